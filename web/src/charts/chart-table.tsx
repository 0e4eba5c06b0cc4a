import type { LineChartProps } from "./line-chart";

const kMostRows = 200;

/// Row numbers shown of n: all, or evenly thinned with the last kept; newest first.
export function tableRows(n: number, most = kMostRows): number[] {
  if (n <= most) return Array.from({ length: n }, (_, i) => n - 1 - i);
  return Array.from({ length: most }, (_, i) => n - 1 - Math.floor((i * n) / most));
}

export type ChartTableProps = Pick<LineChartProps, "title" | "xLabel" | "x" | "lines" | "format">;

/// The values of a chart as text.
export function ChartTable(props: ChartTableProps) {
  const rows = tableRows(props.x.length);
  const thinned = rows.length < props.x.length ? `${rows.length} of ${props.x.length} rows` : "";
  return (
    <div class="chart-table" tabIndex={0} role="region" aria-label={`${props.title}, values`}>
      <table>
        <caption class={thinned === "" ? "sr-only" : "quiet"}>
          {props.title}
          {thinned !== "" && `: ${thinned}`}
        </caption>
        <thead>
          <tr>
            <th scope="col">{props.xLabel}</th>
            {props.lines.map((l) => (
              <th scope="col" key={l.label}>
                {l.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((i) => (
            <tr key={i}>
              <th scope="row">{props.x[i]}</th>
              {props.lines.map((l) => {
                const v = l.values[i] ?? NaN;
                return <td key={l.label}>{Number.isFinite(v) ? props.format(v) : "–"}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
