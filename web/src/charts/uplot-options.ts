import type uPlot from "uplot";
import { lineColour, lineDash } from "./palette";
import { hasBand, type LineChartProps, type Range } from "./line-chart";

const kFont = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

// uPlot's stepped path, built here so that the library can be loaded late.
function steppedPaths(u: uPlot, series: number, from: number, to: number): uPlot.Series.Paths {
  const stroke = new Path2D();
  const xs = u.data[0];
  const ys = u.data[series];
  const scale = u.series[series]?.scale ?? "y";
  let previous: number | null = null;
  for (let i = from; i <= to; i++) {
    const y = ys?.[i];
    if (y === null || y === undefined) continue;
    const px = Math.round(u.valToPos(xs[i] ?? 0, "x", true));
    const py = Math.round(u.valToPos(y, scale, true));
    if (previous === null) {
      stroke.moveTo(px, py);
    } else {
      stroke.lineTo(px, previous);
      stroke.lineTo(px, py);
    }
    previous = py;
  }
  return { stroke, flags: 0 } as uPlot.Series.Paths;
}

/// Range of y: the values with a margin, and at least [yMin, yMax] where given.
export function yRange(
  lo: number | null,
  hi: number | null,
  yMin: number | undefined,
  yMax: number | undefined,
): [number, number] {
  let a = lo ?? yMin ?? 0;
  let b = hi ?? yMax ?? 1;
  const margin = (b - a) * 0.06 || Math.abs(b) * 0.1 || 0.5;
  a -= margin;
  b += margin;
  if (yMin !== undefined) a = Math.max(Math.min(a, yMin), lo !== null && lo >= yMin ? yMin : a);
  if (yMax !== undefined) b = Math.max(b, yMax);
  return [a, b];
}

function isZoomed(u: uPlot): boolean {
  const xs = u.data[0];
  const { min, max } = u.scales["x"] ?? {};
  if (min == null || max == null || xs.length < 2) return false;
  return min > (xs[0] ?? min) || max < (xs[xs.length - 1] ?? max);
}

function seriesOf(props: LineChartProps): { series: uPlot.Series[]; bands: uPlot.Band[] } {
  const series = props.lines.map((line): uPlot.Series => {
    const colour = lineColour(line.colour, props.dark);
    return {
      label: line.label,
      stroke: line.faint === true ? `${colour}55` : colour,
      width: line.faint === true ? 1 : 1.8,
      dash: lineDash(line.colour),
      spanGaps: true,
      points: { show: line.dots === true, size: 5, fill: colour },
      ...(line.step === true ? { paths: steppedPaths } : {}),
    };
  });
  const bands: uPlot.Band[] = [];
  for (const line of props.lines.filter(hasBand)) {
    const high = series.length + 1;
    const edge: uPlot.Series = { stroke: "transparent", width: 0, points: { show: false } };
    series.push({ ...edge, label: `${line.label} high` }, { ...edge, label: `${line.label} low` });
    bands.push({ series: [high, high + 1], fill: `${lineColour(line.colour, props.dark)}2e` });
  }
  return { series, bands };
}

// Dragging asks for another range; the double click of uPlot asks for everything.
function rangeHooks(current: () => LineChartProps): uPlot.Hooks.Arrays {
  return {
    ready: [(u) => u.over.addEventListener("dblclick", () => current().onRange?.(null))],
    setSelect: [
      (u) => {
        const { left, width } = u.select;
        if (width <= 0) return;
        const range: Range = [u.posToVal(left, "x"), u.posToVal(left + width, "x")];
        u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        current().onRange?.(range);
      },
    ],
  };
}

/// `current` gives the chart's props as they are now; those of the first call make its shape.
export function buildOptions(
  current: () => LineChartProps,
  height: number,
  width: number,
  onCursor: (index: number | null) => void,
  onZoom: (zoomed: boolean) => void,
): uPlot.Options {
  const props = current();
  const ink = props.dark ? "#9aa8b5" : "#566372";
  const grid = props.dark ? "rgba(154,168,181,.14)" : "rgba(60,75,90,.12)";
  const axis: uPlot.Axis = {
    stroke: ink,
    font: kFont,
    grid: { stroke: grid, width: 1 },
    ticks: { show: false },
    gap: 4,
  };
  const { series, bands } = seriesOf(props);
  const asks = props.onRange !== undefined;
  const xRange = (lo: number, hi: number): Range => current().xRange ?? [lo, hi];
  return {
    width: Math.max(width, 120),
    height,
    padding: [8, 28, 0, 0], // half a label of the last step
    legend: { show: false },
    cursor: {
      drag: { x: true, y: false, dist: 6, setScale: !asks },
      ...(props.syncKey !== undefined ? { sync: { key: props.syncKey, setSeries: false } } : {}),
      points: { size: 7 },
    },
    scales: {
      x: { time: false, range: (_u, lo, hi) => [...xRange(lo, hi)] },
      y: props.log
        ? { distr: 3, range: (_u, lo, hi) => [(lo ?? 1) / 1.4, (hi ?? 10) * 1.4] }
        : { range: (_u, lo, hi) => yRange(lo, hi, props.yMin, props.yMax) },
    },
    axes: [
      {
        ...axis,
        size: 24,
        values: (_u, splits) =>
          splits.map((s) => props.formatX?.(s) ?? (s % 1 === 0 ? String(s) : "")),
      },
      {
        ...axis,
        size: 52,
        values: (_u, splits) => splits.map((s) => (s == null ? "" : props.format(s))),
      },
    ],
    series: [{}, ...series],
    bands,
    hooks: {
      ...(asks ? rangeHooks(current) : {}),
      setCursor: [(u) => onCursor(u.cursor.idx ?? null)],
      setScale: [
        (u, key) => {
          if (key === "x" && !asks) onZoom(isZoomed(u));
        },
      ],
    },
  };
}
