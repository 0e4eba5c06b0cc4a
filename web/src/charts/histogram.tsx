import { useRef } from "preact/hooks";
import { ChartFrame } from "./frame";
import { lineColour } from "./palette";
import { useWidth } from "./width";

export interface Histogram {
  first: number; // lower edge of the first bin
  width: number;
  counts: readonly number[];
  total: number;
  min: number;
  max: number;
  mean: number;
  deviation: number;
  atLimit: number; // values at or beyond ±limit
}

/// Integers in at most `bins` bins of whole width; limit: largest value that the format holds (0: none).
export function histogram(values: ArrayLike<number>, bins: number, limit: number): Histogram {
  const n = values.length;
  let [min, max, sum, squares, atLimit] = [Infinity, -Infinity, 0, 0, 0];
  for (let i = 0; i < n; i++) {
    const v = values[i] ?? 0;
    if (v < min) min = v;
    if (v > max) max = v;
    sum += v;
    squares += v * v;
    if (limit > 0 && Math.abs(v) >= limit) atLimit++;
  }
  if (n === 0) [min, max] = [0, 0];
  const width = Math.max(1, Math.ceil((max - min + 1) / bins));
  const first = Math.floor(min / width) * width;
  const counts = new Array<number>(Math.floor((max - first) / width) + 1).fill(0);
  for (let i = 0; i < n; i++) {
    const bin = Math.floor(((values[i] ?? 0) - first) / width);
    counts[bin] = (counts[bin] ?? 0) + 1;
  }
  const mean = n > 0 ? sum / n : NaN;
  const deviation = n > 0 ? Math.sqrt(Math.max(0, squares / n - mean * mean)) : NaN;
  return { first, width, counts, total: n, min, max, mean, deviation, atLimit };
}

const kMostWidth = 520;
const kHeight = 140;

export function HistogramChart(props: {
  title: string;
  histogram: Histogram;
  colour: number;
  dark: boolean;
  note: string;
}) {
  const { first, width, counts } = props.histogram;
  const host = useRef<HTMLDivElement>(null);
  const wide = useWidth(host, kMostWidth);
  const most = Math.max(...counts, 1);
  const step = wide / Math.max(1, counts.length);
  const edge = (i: number): string =>
    width === 1 ? String(first + i) : `${first + i * width} to ${first + (i + 1) * width - 1}`;
  return (
    <div ref={host}>
      <ChartFrame
        title={props.title}
        note={props.note}
        empty="No weights"
        table={{
          head: ["Value", "Weights"],
          rows: counts.map((c, i) => [edge(i), String(c)]),
        }}
      >
        <svg
          class="histogram"
          width={wide}
          height={kHeight + 16}
          role="img"
          aria-label={`${props.title}: ${props.note}`}
        >
          {counts.map((c, i) => {
            const h = (c / most) * kHeight;
            return (
              <rect
                key={i}
                x={i * step}
                y={kHeight - h}
                width={Math.max(0.5, step - 0.5)}
                height={h}
                fill={lineColour(props.colour, props.dark)}
              />
            );
          })}
          <text x="0" y={kHeight + 14}>
            {first}
          </text>
          <text x={wide} y={kHeight + 14} text-anchor="end">
            {first + counts.length * width - 1}
          </text>
        </svg>
      </ChartFrame>
    </div>
  );
}
