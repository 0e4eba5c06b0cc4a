import { useEffect, useRef, useState } from "preact/hooks";
import { ChartTable } from "./chart-table";
import type { Line } from "./line-chart";

export interface HeatmapProps {
  title: string;
  xLabel: string;
  x: ArrayLike<number>;
  lines: readonly Line[]; // one row each
  version: number;
  note: string;
  format: (value: number) => string;
  dark: boolean;
  onPick?: (row: number, index: number) => void; // a place was clicked: line and index into x
}

const kPlotPx = 220; // rows share it, within sense
const kLightRamp: [number, number, number][] = [
  [236, 245, 245],
  [96, 170, 176],
  [8, 70, 92],
];
const kDarkRamp: [number, number, number][] = [
  [24, 36, 46],
  [32, 128, 134],
  [190, 250, 226],
];

/// Colour of t in 0..1 on a ramp of one hue: light to dark on white, dark to light on black.
export function heatColour(t: number, dark: boolean): string {
  const ramp = dark ? kDarkRamp : kLightRamp;
  const at = Math.max(0, Math.min(1, t)) * (ramp.length - 1);
  const i = Math.min(ramp.length - 2, Math.floor(at));
  const [a, b] = [ramp[i], ramp[i + 1]];
  if (a === undefined || b === undefined) return "transparent";
  const mix = [0, 1, 2].map((c) =>
    Math.round((a[c] ?? 0) + ((b[c] ?? 0) - (a[c] ?? 0)) * (at - i)),
  );
  return `rgb(${mix.join(",")})`;
}

function range(lines: readonly Line[]): [number, number] {
  let lo = Infinity;
  let hi = -Infinity;
  for (const { values } of lines) {
    for (let i = 0; i < values.length; i++) {
      const v = values[i] ?? NaN;
      if (v < lo) lo = v;
      if (v > hi) hi = v;
    }
  }
  return lo <= hi ? [lo, hi] : [0, 1];
}

/// Largest of values[from..to): where a pixel stands for several steps a spike is not lost.
export function largest(values: ArrayLike<number>, from: number, to: number): number {
  let best = NaN;
  for (let i = from; i < to && i < values.length; i++) {
    const v = values[i] ?? NaN;
    if (Number.isFinite(v) && !(best >= v)) best = v;
  }
  return best;
}

/// Line and index of a click: of the values that its pixel stands for the largest, which it shows.
function pickedAt(
  lines: readonly Line[],
  n: number,
  box: HTMLElement,
  click: { offsetX: number; offsetY: number },
  rowPx: number,
): [number, number] | null {
  const row = Math.floor(click.offsetY / rowPx);
  const values = lines[row]?.values;
  if (values === undefined || n === 0 || box.clientWidth === 0) return null;
  const at = (px: number): number => (px * n) / box.clientWidth;
  const first = Math.max(0, Math.min(n - 1, Math.floor(at(click.offsetX))));
  let best = first;
  for (let i = first; i < Math.ceil(at(click.offsetX + 1)) && i < n; i++) {
    if ((values[i] ?? NaN) > (values[best] ?? NaN)) best = i;
  }
  return [row, best];
}

/// Layers down, steps across, one colour scale: where a layer leaves its habits is seen at a glance.
export function Heatmap(props: HeatmapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [asTable, setAsTable] = useState(false);
  const [lo, hi] = range(props.lines);
  const rowPx = Math.max(22, Math.min(64, Math.floor(kPlotPx / Math.max(1, props.lines.length))));
  const height = props.lines.length * rowPx;

  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (element == null || context == null) return;
    const draw = (): void => {
      const scale = window.devicePixelRatio || 1;
      const width = Math.max(1, Math.round(element.clientWidth * scale));
      element.width = width;
      element.height = Math.round(height * scale);
      const n = props.x.length;
      props.lines.forEach(({ values }, row) => {
        for (let px = 0; px < width; px++) {
          const v = largest(
            values,
            Math.floor((px * n) / width),
            Math.ceil(((px + 1) * n) / width),
          );
          if (!Number.isFinite(v)) continue;
          context.fillStyle = heatColour(hi === lo ? 0.5 : (v - lo) / (hi - lo), props.dark);
          context.fillRect(px, row * rowPx * scale, 1, (rowPx - 2) * scale);
        }
      });
    };
    draw();
    const observer = new ResizeObserver(draw);
    observer.observe(element);
    return () => observer.disconnect();
  }, [props.version, props.lines.length, props.dark, lo, hi, asTable]);

  const last = props.x.length - 1;
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{props.title}</span>
        <span class="chart-tools">
          <button
            type="button"
            class="small"
            aria-pressed={asTable}
            aria-label={`${props.title} as a table`}
            onClick={() => setAsTable(!asTable)}
          >
            Table
          </button>
        </span>
      </figcaption>
      {asTable ? (
        <ChartTable {...props} />
      ) : (
        <div class="heat">
          <ul class="heat-names">
            {props.lines.map((l) => (
              <li key={l.label} style={{ height: `${rowPx}px`, lineHeight: `${rowPx - 2}px` }}>
                {l.label}
              </li>
            ))}
          </ul>
          <canvas
            ref={canvas}
            role="img"
            class={props.onPick === undefined ? "" : "heat-pick"}
            title={props.onPick === undefined ? "" : "Click for the batch of a step"}
            onClick={(e) => {
              const at = pickedAt(props.lines, props.x.length, e.currentTarget, e, rowPx);
              if (at !== null) props.onPick?.(...at);
            }}
            style={{ height: `${height}px` }}
            aria-label={`${props.title}: from ${props.format(lo)} to ${props.format(hi)}; the table has the values`}
          />
        </div>
      )}
      <p class="legend-x heat-scale">
        <span>
          {props.xLabel} {Math.round(props.x[0] ?? 0)} to {Math.round(props.x[last] ?? 0)}
          {props.note !== "" && ` · ${props.note}`}
        </span>
        <span class="heat-key" aria-hidden="true">
          {props.format(lo)}
          {[0, 0.25, 0.5, 0.75, 1].map((t) => (
            <i key={t} style={{ background: heatColour(t, props.dark) }} />
          ))}
          {props.format(hi)}
        </span>
      </p>
    </figure>
  );
}
