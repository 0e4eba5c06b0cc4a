import { useState } from "preact/hooks";
import { useWidth } from "./use-width";
import { heatColour } from "./heatmap";

export interface ParallelRow {
  label: string; // "trial 3"
  values: readonly string[]; // one per axis
  outcome: number; // NaN: none yet
  key: string;
}
export interface ParallelProps {
  title: string;
  axes: readonly string[];
  outcomeName: string;
  rows: readonly ParallelRow[];
  best: string; // key
  format: (v: number) => string;
  dark: boolean;
  chosen: string; // key; "": none
  choose: (key: string) => void;
}

const kHeight = 260;
const kTop = 30;
const kBottom = 18;
const kSide = 44;

/// Places of an axis' values: as numbers where all are, else in order of appearance.
export function axisScale(values: readonly string[]): (value: string) => number {
  const distinct = [...new Set(values)];
  const numeric = distinct.map(Number);
  if (distinct.every((v) => v !== "") && numeric.every(Number.isFinite)) {
    distinct.sort((a, b) => Number(a) - Number(b)); // evenly spaced: settings are chosen values, not measurements
  }
  const n = distinct.length;
  return (value) => (n <= 1 ? 0.5 : distinct.indexOf(value) / (n - 1));
}

/// Trials as lines over their settings; the last axis is what came out.
export function ParallelChart(props: ParallelProps) {
  const [asTable, setAsTable] = useState(false);
  return (
    <figure class="chart parallel">
      <figcaption>
        <span class="chart-title">{props.title}</span>
        <button
          type="button"
          class="small"
          aria-pressed={asTable}
          aria-label={`${props.title} as a table`}
          onClick={() => setAsTable(!asTable)}
        >
          Table
        </button>
      </figcaption>
      {asTable ? <ParallelTable {...props} /> : <ParallelLines {...props} />}
    </figure>
  );
}

function ParallelLines(props: ParallelProps) {
  const { axes, rows } = props;
  const [svg, width] = useWidth<SVGSVGElement>(900);
  const known = rows.map((r) => r.outcome).filter(Number.isFinite);
  const lo = Math.min(...known);
  const hi = Math.max(...known);
  const span = hi > lo ? hi - lo : 1;
  const x = (i: number): number => kSide + (i * (width - 2 * kSide)) / Math.max(1, axes.length);
  const y = (t: number): number => kHeight - kBottom - t * (kHeight - kTop - kBottom);
  const scales = axes.map((_, i) => axisScale(rows.map((r) => r.values[i] ?? "")));
  const path = (r: ParallelRow): string => {
    const points = axes.map((_, i) => [x(i), y(scales[i]?.(r.values[i] ?? "") ?? 0)] as const);
    if (Number.isFinite(r.outcome)) points.push([x(axes.length), y((r.outcome - lo) / span)]);
    return points
      .map(([px, py], i) => `${i === 0 ? "M" : "L"}${px.toFixed(1)} ${py.toFixed(1)}`)
      .join("");
  };
  const colour = (r: ParallelRow): string =>
    heatColour(0.35 + 0.65 * ((r.outcome - lo) / span || 0), props.dark);
  const ordered = [...rows].sort((a, b) => rank(a, props) - rank(b, props));
  return (
    <svg
      ref={svg}
      viewBox={`0 0 ${width} ${kHeight}`}
      role="img"
      aria-label={`${props.title}: ${rows.length} trials over ${axes.join(", ")}; ${props.outcomeName} from ${props.format(lo)} to ${props.format(hi)}; the table has the values`}
    >
      {ordered.map((r) => {
        const strong = r.key === props.chosen || (props.chosen === "" && r.key === props.best);
        return (
          <path
            key={r.key}
            class={strong ? "trial strong" : "trial"}
            d={path(r)}
            stroke={Number.isFinite(r.outcome) ? colour(r) : "currentColor"}
            stroke-dasharray={Number.isFinite(r.outcome) ? undefined : "3 4"}
            onClick={() => props.choose(r.key === props.chosen ? "" : r.key)}
          >
            <title>{`${r.label}: ${axes.map((a, i) => `${a} ${r.values[i]}`).join(", ")}; ${Number.isFinite(r.outcome) ? props.format(r.outcome) : "no result yet"}`}</title>
          </path>
        );
      })}
      {axes.map((name, i) => (
        <Axis
          key={name}
          name={name}
          x={x(i)}
          ticks={[...new Set(rows.map((r) => r.values[i] ?? ""))].map((v) => [
            v,
            y(scales[i]?.(v) ?? 0),
          ])}
        />
      ))}
      {known.length > 0 && (
        <Axis
          name={props.outcomeName}
          x={x(axes.length)}
          last
          ticks={[...new Set([lo, hi])].map((v) => [props.format(v), y((v - lo) / span)])}
        />
      )}
    </svg>
  );
}

const rank = (r: ParallelRow, p: ParallelProps): number =>
  r.key === p.chosen ? 2 : r.key === p.best ? 1 : 0;

/// The last one has its words to the left: to the right the picture ends.
function Axis(props: { name: string; x: number; ticks: [string, number][]; last?: boolean }) {
  const { x, last = false } = props;
  return (
    <g class="parallel-axis">
      <path d={`M${x} ${kTop}V${kHeight - kBottom}`} stroke="currentColor" />
      <text
        x={last ? x + kSide - 4 : x}
        y={14}
        text-anchor={last ? "end" : "middle"}
        class="axis-name"
      >
        {props.name}
      </text>
      {props.ticks.map(([word, y]) => (
        <text
          key={word}
          x={last ? x - 7 : x + 7}
          y={y + 4}
          text-anchor={last ? "end" : "start"}
          class="axis-tick"
        >
          {word}
        </text>
      ))}
    </g>
  );
}

function ParallelTable(props: ParallelProps) {
  return (
    <div class="chart-table" tabIndex={0} role="region" aria-label={`${props.title}, values`}>
      <table>
        <caption class="sr-only">{props.title}</caption>
        <thead>
          <tr>
            <th scope="col">Trial</th>
            {props.axes.map((a) => (
              <th scope="col" key={a}>
                {a}
              </th>
            ))}
            <th scope="col">{props.outcomeName}</th>
          </tr>
        </thead>
        <tbody>
          {props.rows.map((r) => (
            <tr key={r.key}>
              <th scope="row">{r.label}</th>
              {r.values.map((v, i) => (
                <td key={props.axes[i]}>{v}</td>
              ))}
              <td>{Number.isFinite(r.outcome) ? props.format(r.outcome) : "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
