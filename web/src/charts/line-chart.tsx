import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import { buildOptions } from "./uplot-options";
import { lineColour, lineDash } from "./palette";
import { ChartTable } from "./chart-table";

export interface Line {
  label: string;
  values: ArrayLike<number>; // NaN: no value
  colour: number; // index into the palette
  faint?: boolean; // raw values behind a smoothed line
  behind?: boolean; // belongs to the next line: comes and goes with it, and gives its figure
  dots?: boolean;
  step?: boolean; // constant until the next value
}

export interface LineChartProps {
  title: string;
  xLabel: string; // "step"
  unit: string; // of y: "%", "bits"
  x: ArrayLike<number>;
  lines: readonly Line[];
  version: number; // a change redraws
  note?: string; // "showing 1 200 of 84 000 steps"
  format: (value: number) => string;
  dark: boolean;
  syncKey?: string; // charts with the same key share the cursor
  yMin?: number; // the scale reaches at least from yMin to yMax
  yMax?: number;
  height?: number;
  empty: string; // what to say without any value
}

const toNulls = (values: ArrayLike<number>): (number | null)[] =>
  Array.from(values, (v) => (Number.isFinite(v) ? v : null));

/// One time series chart: lines over steps, a legend that hides lines, a table of the same values.
export function LineChart(props: LineChartProps) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [asTable, setAsTable] = useState(false);
  const [zoomed, setZoomed] = useState(false);
  const [cursor, setCursor] = useState<number | null>(null);
  const height = props.height ?? 220;
  const hasData = props.x.length > 0;

  const shape = props.lines.map((l) => l.label).join("|");
  const data = useMemo(
    () => [Array.from(props.x), ...props.lines.map((l) => toNulls(l.values))] as uPlot.AlignedData,
    [props.version, shape],
  );

  useEffect(() => {
    if (asTable || !hasData || host.current === null) return;
    const element = host.current;
    let disposed = false;
    let observer: ResizeObserver | null = null;
    void import("uplot").then(({ default: UPlot }) => {
      if (disposed) return;
      const made = new UPlot(
        buildOptions(props, height, element.clientWidth, setCursor, setZoomed),
        data,
        element,
      );
      plot.current = made;
      props.lines.forEach((_, i) =>
        made.setSeries(i + 1, { show: isShown(props.lines, i, hidden) }),
      );
      observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
      observer.observe(element);
    });
    return () => {
      disposed = true;
      observer?.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [asTable, hasData, shape, props.dark, height]);

  useLayoutEffect(() => {
    // Follows the live end unless the reader has zoomed in.
    plot.current?.setData(data, !zoomed);
    if (zoomed) plot.current?.redraw();
  }, [data]);

  const toggle = (label: string): void => {
    const next = new Set(hidden);
    if (!next.delete(label)) next.add(label);
    setHidden(next);
    props.lines.forEach((_, i) =>
      plot.current?.setSeries(i + 1, { show: isShown(props.lines, i, next) }),
    );
  };
  const resetZoom = (): void => {
    setZoomed(false);
    plot.current?.setData(data, true);
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
              {at >= 0 && `${props.xLabel} ${props.x[at] ?? ""}`}
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
  const range = `${props.xLabel} ${props.x[0] ?? 0} to ${props.x[n - 1] ?? 0}`;
  return `${props.title}, ${range}. Newest: ${ends.join(", ")}.`;
}
