import { useRef } from "preact/hooks";
import { ChartFrame } from "./frame";
import { lineColour } from "./palette";
import { useWidth } from "./width";

export interface Dot {
  label: string;
  x: number;
  y: number;
  colour: number;
  href?: string;
  strong?: boolean;
}

interface ScatterProps {
  title: string;
  xLabel: string;
  yLabel: string;
  dots: readonly Dot[];
  formatX: (v: number) => string;
  formatY: (v: number) => string;
  dark: boolean;
  note?: string;
  empty: string;
}

const kMostWidth = 620;
const kHeight = 220;
const kLeft = 52;
const kBottom = 34;
const kTop = 10;
const kRight = 16;

/// 3 to 6 round values that span lo to hi.
export function roundTicks(lo: number, hi: number): number[] {
  if (!(hi > lo)) return [lo];
  const raw = (hi - lo) / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) ?? raw;
  const out: number[] = [];
  for (let v = Math.ceil(lo / step) * step; v <= hi + step * 1e-9; v += step) {
    out.push(Number(v.toPrecision(12)));
  }
  return out;
}

/// [lo, hi] with room around, never of no width.
export function padded(values: readonly number[]): [number, number] {
  const lo = Math.min(...values);
  const hi = Math.max(...values);
  const room = (hi - lo) * 0.08 || Math.abs(hi) * 0.1 || 0.5;
  return [lo - room, hi + room];
}

/// Points with a name each; the table has the same.
export function Scatter(props: ScatterProps) {
  const host = useRef<HTMLDivElement>(null);
  const width = useWidth(host, kMostWidth);
  const dots = props.dots.filter((d) => Number.isFinite(d.x) && Number.isFinite(d.y));
  const some = dots.length > 0;
  const [x0, x1] = some ? padded(dots.map((d) => d.x)) : [0, 1];
  const [y0, y1] = some ? padded(dots.map((d) => d.y)) : [0, 1];
  const px = (v: number): number => kLeft + ((v - x0) / (x1 - x0)) * (width - kLeft - kRight);
  const py = (v: number): number =>
    kHeight - kBottom - ((v - y0) / (y1 - y0)) * (kHeight - kBottom - kTop);
  return (
    <div ref={host}>
      <ChartFrame
        title={props.title}
        empty={props.empty}
        {...(props.note !== undefined && { note: props.note })}
        table={{
          head: ["Run", props.xLabel, props.yLabel],
          rows: dots.map((d) => [d.label, props.formatX(d.x), props.formatY(d.y)]),
        }}
      >
        <svg
          class="scatter"
          width={width}
          height={kHeight}
          role="group"
          aria-label={`${props.title}: ${dots.length} points; the table has the values`}
        >
          {roundTicks(y0, y1).map((v) => (
            <g key={`y${v}`}>
              <path d={`M${kLeft} ${py(v)}H${width - kRight}`} class="grid-line" />
              <text x={kLeft - 6} y={py(v) + 4} text-anchor="end">
                {props.formatY(v)}
              </text>
            </g>
          ))}
          {roundTicks(x0, x1).map((v) => (
            <text key={`x${v}`} x={px(v)} y={kHeight - kBottom + 15} text-anchor="middle">
              {props.formatX(v)}
            </text>
          ))}
          <text x={(kLeft + width - kRight) / 2} y={kHeight - 3} text-anchor="middle">
            {props.xLabel}
          </text>
          {dots.map((d, i) => {
            const mark = (
              <circle
                cx={px(d.x)}
                cy={py(d.y)}
                r={d.strong === true ? 7 : 5}
                fill={lineColour(d.colour, props.dark)}
                class={d.strong === true ? "dot-strong" : ""}
              >
                <title>{`${d.label}: ${props.xLabel} ${props.formatX(d.x)}, ${props.yLabel} ${props.formatY(d.y)}`}</title>
              </circle>
            );
            return d.href === undefined ? (
              <g key={i}>{mark}</g>
            ) : (
              <a key={i} href={d.href} aria-label={d.label}>
                {mark}
              </a>
            );
          })}
        </svg>
      </ChartFrame>
    </div>
  );
}
