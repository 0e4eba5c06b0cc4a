import { useMemo, useState } from "preact/hooks";
import { toHex } from "../api/bytes";
import { describeError } from "../api/errors";
import { RunState, type EpochResult, type Loss, type Run } from "../api/types";
import { Heatmap } from "../charts/heatmap";
import { join, smooth } from "../charts/join";
import { LineChart, type Line, type Range } from "../charts/line-chart";
import type { Band, Buckets } from "../store/buckets";
import { models } from "../store/fleet";
import { count, decimal, percent, significant } from "../store/format";
import { notices } from "../store/notices";
import { errorUnit, fraction, hasClasses, lossPerSample, squaredError } from "../store/numbers";
import type { RunDetail } from "../store/run-detail";
import { go, href } from "./router";
import { dark } from "./theme";
import { isActive } from "./words";

const kSmoothing = 0.95;
const kLayerSmoothing = 0.9;
const kMostDots = 80; // beyond, the line alone is easier to read

interface ChartProps {
  run: Run;
  detail: RunDetail;
}

/// Names of the trainable layers, first to last, as the telemetry counts them.
export function layerNames(run: Run, n: number): string[] {
  const model = run.spec === undefined ? undefined : models.get(toHex(run.spec.modelHash)).value;
  const trainable = model?.layers.filter((l) => l.trainable) ?? [];
  return Array.from({ length: n }, (_, i) => trainable[i]?.name || `layer ${i}`);
}

/// What the curves leave out, where they leave out anything.
export function stepNote(b: Buckets): string {
  const notes = [
    b.x.length < b.points ? `showing ${count(b.x.length)} of ${count(b.points)} points` : "",
    b.gaps > 0 ? `${count(b.gaps)} steps without a record` : "",
    b.thinned > 0 ? `${count(b.thinned)} points known by their rollups only` : "",
  ];
  return notes.filter(Boolean).join(" · ");
}

/// A quantity of the steps: each value (or the mean of a bucket, before its extremes), and its course.
function stepLines(b: Buckets, band: Band, colour: number, label: string, scale = 1): Line[] {
  const by = (column: Float64Array): Float64Array =>
    scale === 1 ? column : column.map((v) => v * scale);
  const mean = by(band.mean);
  const bucketed = b.x.length < b.points;
  return [
    {
      label,
      values: mean,
      colour,
      faint: true,
      ...(bucketed && { low: by(band.min), high: by(band.max) }),
    },
    { label: `${label}, smoothed`, values: smooth(mean, kSmoothing), colour },
  ];
}

/// The lines of `lines` over x and those of `more` over `moreX`, all over the union of both.
function joinLines(
  x: Float64Array,
  lines: readonly Line[],
  moreX: readonly number[],
  more: readonly Line[],
): { x: Float64Array; lines: Line[] } {
  const columns = lines.flatMap((l) => [l.values, l.low ?? [], l.high ?? []]);
  const joined = join(
    x,
    columns,
    moreX,
    more.map((l) => l.values),
  );
  const at = (i: number): Float64Array => joined.columns[i] ?? new Float64Array(0);
  const spread = lines.map((l, i) => ({
    ...l,
    values: at(3 * i),
    ...(l.low !== undefined && { low: at(3 * i + 1), high: at(3 * i + 2) }),
  }));
  const rest = more.map((l, i) => ({ ...l, values: at(columns.length + i) }));
  return { x: joined.x, lines: withValues([...spread, ...rest]) };
}

/// Of a long run some epochs are shown, evenly chosen.
function epochNote(detail: RunDetail, shown: readonly EpochResult[]): string {
  const [done, first, last] = [detail.epochsDone.value, shown[0], shown[shown.length - 1]];
  if (first === undefined || last === undefined) return "";
  const all = detail.zoom.value === null ? done : last.epoch - first.epoch + 1;
  return shown.length < all ? `${count(shown.length)} of ${count(all)} epochs` : "";
}

/// What all charts of a run have in common: its steps, the range shown, the theme.
function useCommon(run: Run, detail: RunDetail, epochs: readonly EpochResult[] = []) {
  const b = detail.buckets();
  const zoom = detail.zoom.value;
  return {
    b,
    common: {
      xLabel: "step",
      version: detail.stepsVersion.value * 1000 + epochs.length,
      note: [stepNote(b), epochNote(detail, epochs)].filter(Boolean).join(" · "),
      dark: dark.value,
      syncKey: detail.runHex,
      xRange: zoom,
      onRange: (range: Range | null) => detail.setZoom(range),
      empty: emptyText(run, detail),
    },
  };
}

function emptyText(run: Run, detail: RunDetail): string {
  if (!detail.loaded.value) return "Loading …";
  if (run.state === RunState.QUEUED) return "Queued: the curve begins with the first step.";
  if (isActive(run.state)) return "Waiting for the first step.";
  return "No steps were recorded for this run.";
}

export function AccuracyChart({ run, detail }: ChartProps) {
  const epochs = detail.shownEpochs();
  const { b, common } = useCommon(run, detail, epochs);
  const { x, lines } = useMemo(
    () =>
      joinLines(
        b.x,
        stepLines(b, b.accuracy, 0, "batch"),
        epochs.map((e) => e.step),
        [
          {
            label: "held-out, per epoch",
            values: epochs.map((e) => fraction(e.heldout)),
            colour: 1,
            dots: epochs.length <= kMostDots,
          },
          {
            label: "train, per epoch",
            values: epochs.map((e) => fraction(e.train)),
            colour: 2,
            dots: epochs.length <= kMostDots,
          },
        ],
      ),
    [b, epochs],
  );
  return (
    <LineChart
      {...common}
      title="Accuracy"
      unit="%"
      x={x}
      lines={lines}
      format={(v) => percent(v, 0)}
      yMin={0}
      yMax={1}
    />
  );
}

export function LossChart({ run, detail }: ChartProps) {
  const classes = hasClasses(run.outputs);
  // As the board sums it up; in the units of the errors where there are no classes.
  const unit = classes ? 1 : squaredError({ sum: 1n, exp2: 0, count: 1 } as Loss, run.outputs);
  const epochs = detail.shownEpochs();
  const { b, common } = useCommon(run, detail, epochs);
  const { x, lines } = useMemo(() => {
    const perEpoch = (label: string, colour: number, of: (e: EpochResult) => number): Line => ({
      label,
      values: epochs.map(of),
      colour,
      dots: epochs.length <= kMostDots,
    });
    return joinLines(
      b.x,
      stepLines(b, b.loss, 0, "batch", unit),
      epochs.map((e) => e.step),
      classes
        ? [perEpoch("epoch mean", 2, (e) => lossPerSample(e.loss))]
        : [
            perEpoch("train, per epoch", 2, (e) => squaredError(e.loss, run.outputs)),
            perEpoch("held-out, per epoch", 1, (e) => squaredError(e.heldoutLoss, run.outputs)),
          ],
    );
  }, [b, epochs]);
  return (
    <LineChart
      {...common}
      title={classes ? "Loss per sample" : "Mean squared error"}
      unit={classes ? "" : errorUnit(run.outputs)}
      x={x}
      lines={lines}
      format={(v) => (classes ? decimal(v, Math.abs(v) < 10 && v !== 0 ? 2 : 0) : significant(v))}
      yMin={0}
    />
  );
}

const withValues = (lines: Line[]): Line[] =>
  lines.filter((l) => Array.from(l.values).some(Number.isFinite));

type Quantity = "shift" | "bits" | "k";
const kQuantities: Record<Quantity, { title: string; about: string }> = {
  shift: {
    title: "Shift per layer",
    about: "How far each layer’s weight gradient was shifted right before it was subtracted (NITI)",
  },
  bits: {
    title: "Gradient bits per layer",
    about: "Bit length of the largest gradient of the batch",
  },
  k: { title: "Precision k per layer", about: "Bits of the stored weights" },
};

/// Precision moves in steps, which smoothing would hide.
function layerLines(
  band: Band,
  colour: number,
  label: string,
  bucketed: boolean,
  quantity: Quantity,
): Line[] {
  const each: Line = {
    label,
    values: band.mean,
    ...(bucketed && { low: band.min, high: band.max }),
    colour,
    step: true,
  };
  if (quantity === "k") return [each];
  return [
    { ...each, label: `${label}, each step`, faint: true, behind: true },
    { label, values: smooth(band.mean, kLayerSmoothing), colour },
  ];
}

export function LayerChart({ run, detail, quantity }: ChartProps & { quantity: Quantity }) {
  const [heat, setHeat] = useState(false);
  const { b, common } = useCommon(run, detail);
  const bands = b[quantity];
  const names = layerNames(run, bands.length);
  const bucketed = b.x.length < b.points;
  const lines = useMemo(
    () => bands.flatMap((band, i) => layerLines(band, i, names[i] ?? "", bucketed, quantity)),
    [b, quantity, names.join("|")],
  );
  const { title, about } = kQuantities[quantity];
  const format = (v: number): string => (Number.isInteger(v) ? String(v) : v.toFixed(1));
  return (
    <div class="chart-choice" title={about}>
      {heat && bands.length > 0 ? (
        <Heatmap
          {...common}
          title={title}
          x={b.x}
          format={format}
          {...(quantity === "shift" && {
            onPick: (layer: number, index: number) =>
              void detail
                .largestShift(layer, index)
                .then((step) => goToBatch(run, step))
                .catch((e: unknown) =>
                  notices.fail(describeError(e, "Could not find the step of this spike")),
                ),
          })}
          lines={bands.map((band, i) => ({ label: names[i] ?? "", values: band.max, colour: i }))}
        />
      ) : (
        <LineChart {...common} title={title} x={b.x} lines={lines} unit="" format={format} />
      )}
      {bands.length > 0 && (
        <button
          type="button"
          class="small chart-switch"
          aria-pressed={heat}
          aria-label={`${title} as a heat-map`}
          onClick={() => setHeat(!heat)}
        >
          Heat-map
        </button>
      )}
    </div>
  );
}

/// The samples of a step are shown beside its layers.
const goToBatch = (run: Run, step: number): void =>
  go(href("layers", toHex(run.id), new URLSearchParams({ step: String(step) })));

/// How well it does: accuracy and loss; without classes the loss alone.
export function ResultCharts({ run, detail }: ChartProps) {
  return (
    <>
      {hasClasses(run.outputs) && <AccuracyChart run={run} detail={detail} />}
      <LossChart run={run} detail={detail} />
    </>
  );
}

/// Which steps the curves show, by buttons; dragging in a chart does the same.
export function RangeBar({ detail }: { detail: RunDetail }) {
  const zoom = detail.zoom.value;
  const end = Math.max(detail.totalSteps.value, detail.lastStep.value, 1);
  const [first, last] = zoom ?? [1, end];
  const width = last - first;
  // About the middle; moved, it keeps its width at the ends of the run.
  const scale = (by: number): void => {
    const half = (width * by) / 2;
    const middle = (first + last) / 2;
    detail.setZoom([middle - half, middle + half]);
  };
  const move = (share: number): void => {
    const start = Math.min(Math.max(first + width * share, 1), end - width);
    detail.setZoom([start, start + width]);
  };
  return (
    <div class="range-bar" role="group" aria-label="Steps shown">
      <span class="quiet range-words">
        {zoom === null
          ? `all ${count(end)} steps`
          : `steps ${count(first)} to ${count(last)} of ${count(end)}`}
      </span>
      <button type="button" class="small" disabled={first <= 1} onClick={() => move(-0.5)}>
        <span aria-hidden="true">←</span>
        <span class="sr-only">Earlier steps</span>
      </button>
      <button type="button" class="small" disabled={last >= end} onClick={() => move(0.5)}>
        <span aria-hidden="true">→</span>
        <span class="sr-only">Later steps</span>
      </button>
      <button type="button" class="small" disabled={width < 8} onClick={() => scale(0.5)}>
        Zoom in
      </button>
      <button type="button" class="small" disabled={zoom === null} onClick={() => scale(2)}>
        Zoom out
      </button>
      <button
        type="button"
        class="small"
        disabled={zoom === null}
        onClick={() => detail.setZoom(null)}
      >
        Whole run
      </button>
    </div>
  );
}

/// The curves of a run, with one cursor.
export function RunCharts({ run, detail }: ChartProps) {
  return (
    <div class="charts">
      <ResultCharts run={run} detail={detail} />
      <LayerChart run={run} detail={detail} quantity="shift" />
      <LayerChart run={run} detail={detail} quantity="bits" />
    </div>
  );
}
