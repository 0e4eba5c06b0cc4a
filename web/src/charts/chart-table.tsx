import type { Line, LineChartProps } from "./line-chart";

const kMostRows = 200;

/// Row numbers shown of n: all, or evenly thinned with the last kept; newest first.
export function tableRows(n: number, most = kMostRows): number[] {
  if (n <= most) return Array.from({ length: n }, (_, i) => n - 1 - i);
  return Array.from({ length: most }, (_, i) => n - 1 - Math.floor((i * n) / most));
}

export type ChartTableProps = Pick<LineChartProps, "title" | "xLabel" | "x" | "lines" | "format"> &
  Partial<Pick<LineChartProps, "formatX">>;

function xText({ x, formatX }: ChartTableProps, i: number): string {
  const v = x[i] ?? NaN;
  return formatX !== undefined ? formatX(v) : String(Math.round(v));
}

/// A value; where its bucket held several, with their extremes.
function valueText(line: Line, i: number, format: (v: number) => string): string {
  const v = line.values[i] ?? NaN;
  if (!Number.isFinite(v)) return "–";
  const [lo = v, hi = v] = [line.low?.[i], line.high?.[i]];
  return hi > lo ? `${format(v)} (${format(lo)} to ${format(hi)})` : format(v);
}

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
              <th scope="row">{xText(props, i)}</th>
              {props.lines.map((l) => {
                return <td key={l.label}>{valueText(l, i, props.format)}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
