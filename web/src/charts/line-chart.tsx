import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import { buildOptions } from "./uplot-options";
import { lineColour, lineDash } from "./palette";
import { ChartTable } from "./chart-table";
import { drawSoon, forgetDraw } from "./draw-queue";

export interface Line {
  label: string;
  values: ArrayLike<number>; // NaN: no value
  colour: number; // index into the palette
  faint?: boolean; // raw values behind a smoothed line
  behind?: boolean; // belongs to the next line: comes and goes with it, and gives its figure
  dots?: boolean;
  step?: boolean; // constant until the next value
  low?: ArrayLike<number>; // extremes behind the values, drawn as a band
  high?: ArrayLike<number>;
}

export type Range = readonly [number, number];

export interface LineChartProps {
  title: string;
  xLabel: string; // "step"
  unit: string; // of y: "%", "bits"
  x: ArrayLike<number>;
  lines: readonly Line[];
  version: number; // a change redraws, and so does another x
  note?: string; // "showing 1 200 of 84 000 steps"
  format: (value: number) => string;
  dark: boolean;
  syncKey?: string; // charts with the same key share the cursor
  yMin?: number; // the scale reaches at least from yMin to yMax
  yMax?: number;
  log?: boolean; // y by powers of ten; values must be above 0
  height?: number;
  empty: string; // what to say without any value
  xRange?: Range | null; // shown; absent or null: all of x
  onRange?: (range: Range | null) => void; // asked for by dragging; null: everything
  formatX?: (x: number) => string;
}

/// Values as uPlot wants them: null where there is none.
function toNulls(values: ArrayLike<number>): ArrayLike<number | null> {
  let i = 0;
  while (i < values.length && Number.isFinite(values[i])) i++;
  if (i === values.length) return values;
  const out = new Array<number | null>(values.length);
  for (i = 0; i < values.length; i++) {
    const v = values[i] ?? NaN;
    out[i] = Number.isFinite(v) ? v : null;
  }
  return out;
}

export const hasBand = (line: Line): boolean =>
  line.low !== undefined && line.high !== undefined && line.low.length > 0;

/// Columns as they are drawn: those of the lines, then high and low of each line with a band.
function drawnData(props: LineChartProps): uPlot.AlignedData {
  const bands = props.lines.filter(hasBand).flatMap((l) => [l.high ?? [], l.low ?? []]);
  const columns = [...props.lines.map((l) => l.values), ...bands];
  return [props.x, ...columns.map(toNulls)] as unknown as uPlot.AlignedData;
}

/// Shows the lines that are not hidden, each with its band.
function applyHidden(plot: uPlot, lines: readonly Line[], hidden: ReadonlySet<string>): void {
  let band = lines.length + 1;
  lines.forEach((line, i) => {
    const show = isShown(lines, i, hidden);
    plot.setSeries(i + 1, { show });
    if (!hasBand(line)) return;
    plot.setSeries(band++, { show });
    plot.setSeries(band++, { show });
  });
}

/// One time series chart: lines over steps, a legend that hides lines, a table of the same values.
export function LineChart(props: LineChartProps) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [asTable, setAsTable] = useState(false);
  const [zoomed, setZoomed] = useState(false);
  const now = useRef(props);
  now.current = props;
  const [cursor, setCursor] = useState<number | null>(null);
  const height = props.height ?? 220;
  const hasData = props.x.length > 0;

  const shape = props.lines.map((l) => `${l.label}${hasBand(l) ? "±" : ""}`).join("|");
  useEffect(() => {
    if (asTable || !hasData || host.current === null) return;
    const element = host.current;
    let disposed = false;
    let observer: ResizeObserver | null = null;
    const make = (UPlot: typeof uPlot): void => {
      const made = new UPlot(
        buildOptions(() => now.current, height, element.clientWidth, setCursor, setZoomed),
        drawnData(now.current),
        element,
      );
      plot.current = made;
      if (hidden.size > 0) applyHidden(made, now.current.lines, hidden);
      let width = element.clientWidth;
      observer = new ResizeObserver(() => {
        if (element.clientWidth === width) return;
        width = element.clientWidth;
        made.setSize({ width, height });
      });
      observer.observe(element);
    };
    void import("uplot").then(({ default: UPlot }) => {
      if (!disposed) drawSoon(host, () => make(UPlot)); // else it would take its successor's place
    });
    return () => {
      disposed = true;
      forgetDraw(host);
      observer?.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [asTable, hasData, shape, props.dark, height]);

  useLayoutEffect(() => {
    if (plot.current === null) return; // it is made with the newest
    drawSoon(host, () => {
      const made = plot.current;
      const data = drawnData(now.current);
      if (made === null || made.series.length !== data.length) return; // other lines: it is made anew
      // Follows the live end unless the reader has zoomed in.
      made.setData(data, !zoomed);
      if (zoomed) made.redraw();
    });
  }, [props.version, shape, props.x, props.xRange]);

  const toggle = (label: string): void => {
    const next = new Set(hidden);
    if (!next.delete(label)) next.add(label);
    setHidden(next);
    if (plot.current !== null) applyHidden(plot.current, props.lines, next);
  };
  const resetZoom = (): void => {
    setZoomed(false);
    plot.current?.setData(plot.current.data, true);
  };

  const at = cursor ?? lastWithValue(props);
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{props.title}</span>
        <span class="chart-tools">
          {zoomed && !asTable && (
            <button type="button" class="small" onClick={resetZoom}>
              Whole run
            </button>
          )}
          {hasData && (
            <button
              type="button"
              class="small"
              aria-pressed={asTable}
              aria-label={`${props.title} as a table`}
              onClick={() => {
                setAsTable(!asTable);
                setZoomed(false);
              }}
            >
              Table
            </button>
          )}
        </span>
      </figcaption>
      {!hasData ? (
        <div class="chart-empty" style={{ height: `${height}px` }}>
          {props.empty}
        </div>
      ) : asTable ? (
        <ChartTable {...props} />
      ) : (
        <>
          <div
            ref={host}
            class="chart-plot"
            role="img"
            aria-label={describe(props)}
            style={{ height: `${height}px` }}
          />
          <ul class="legend" aria-label={`Lines of ${props.title}`}>
            {legendOf(props.lines).map(({ line, figure }) => (
              <li key={line.label}>
                <button
                  type="button"
                  class={`legend-item ${line.faint === true ? "faint" : ""}`}
                  aria-pressed={!hidden.has(line.label)}
                  onClick={() => toggle(line.label)}
                >
                  <svg viewBox="0 0 16 8" class="legend-key" aria-hidden="true">
                    <path
                      d="M0 4h16"
                      stroke={lineColour(line.colour, props.dark)}
                      stroke-width="2.500"
                      stroke-dasharray={lineDash(line.colour).join(" ")}
                    />
                  </svg>
                  <span>{line.label}</span>
                  <span class="legend-value">
                    {valueAt(figure, at, cursor === null, props.format)}
                  </span>
                </button>
              </li>
            ))}
            <li class="legend-x">
              {at >= 0 && `${props.xLabel} ${shownX(props, at)}`}
              {props.note !== undefined && props.note !== "" && ` · ${props.note}`}
            </li>
          </ul>
        </>
      )}
    </figure>
  );
}

/// Lines of the legend, each with the line that its figure is read from.
function legendOf(lines: readonly Line[]): { line: Line; figure: Line }[] {
  return lines.flatMap((line, i) => {
    if (line.behind === true) return [];
    const before = lines[i - 1];
    return [{ line, figure: before?.behind === true ? before : line }];
  });
}

function isShown(lines: readonly Line[], i: number, hidden: ReadonlySet<string>): boolean {
  const line = lines[i];
  const named = line?.behind === true ? lines[i + 1] : line;
  return named === undefined || !hidden.has(named.label);
}

const shownX = ({ x, formatX }: LineChartProps, at: number): string => {
  const v = x[at];
  return v === undefined ? "" : formatX !== undefined ? formatX(v) : String(Math.round(v));
};
const lastWithValue = (props: LineChartProps): number => props.x.length - 1;

// Away from the cursor the legend shows each line's newest value, which may be some steps back.
function valueAt(line: Line, at: number, newest: boolean, format: (v: number) => string): string {
  let i = at;
  if (newest) while (i > 0 && !Number.isFinite(line.values[i] ?? NaN)) i--;
  const v = line.values[i];
  return v !== undefined && Number.isFinite(v) ? format(v) : "–";
}

/// The chart in one sentence, for those who do not see it.
export function describe(props: LineChartProps): string {
  const n = props.x.length;
  const ends = legendOf(props.lines).map(
    ({ line, figure }) => `${line.label} ${valueAt(figure, n - 1, true, props.format)}`,
  );
  const range = `${props.xLabel} ${shownX(props, 0)} to ${shownX(props, n - 1)}`;
  return `${props.title}, ${range}. Newest: ${ends.join(", ")}.`;
}
