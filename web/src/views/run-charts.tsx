import { useMemo, useState } from "preact/hooks";
import { toHex } from "../api/bytes";
import { RunState, type Loss, type Run } from "../api/types";
import { Heatmap } from "../charts/heatmap";
import { join, smooth } from "../charts/join";
import { LineChart, type Line } from "../charts/line-chart";
import { models } from "../store/fleet";
import { count, decimal, percent, significant } from "../store/format";
import { errorUnit, fraction, hasClasses, lossPerSample, squaredError } from "../store/numbers";
import type { RunDetail } from "../store/run-detail";
import { dark } from "./theme";
import { isActive } from "./words";

const kSmoothing = 0.95;
const kLayerSmoothing = 0.9;

interface ChartProps {
  run: Run;
  detail: RunDetail;
}

/// Names of the trainable layers, first to last, as the telemetry counts them.
function layerNames(run: Run, n: number): string[] {
  const model = run.spec === undefined ? undefined : models.get(toHex(run.spec.modelHash)).value;
  const trainable = model?.layers.filter((l) => l.trainable) ?? [];
  return Array.from({ length: n }, (_, i) => trainable[i]?.name || `layer ${i}`);
}

function useStepNote(detail: RunDetail): string {
  void detail.stepsVersion.value;
  const [held, total] = [detail.steps.length, detail.totalSteps.value];
  // The newest step or two may be on their way.
  return held > 0 && held < total * 0.99 - 1
    ? `showing ${count(held)} of ${count(total)} steps`
    : "";
}

function emptyText(run: Run, detail: RunDetail): string {
  if (!detail.loaded.value) return "Loading …";
  if (run.state === RunState.QUEUED) return "Queued: the curve begins with the first step.";
  if (isActive(run.state)) return "Waiting for the first step.";
  return "No steps were recorded for this run.";
}

export function AccuracyChart({ run, detail }: ChartProps) {
  const version = detail.stepsVersion.value;
  const epochs = detail.epochs.value;
  const { x, lines } = useMemo(() => {
    const batch = detail.steps.column("accuracy");
    const joined = join(
      detail.steps.column("step"),
      [batch, smooth(batch, kSmoothing)],
      epochs.map((e) => e.step),
      [epochs.map((e) => fraction(e.heldout)), epochs.map((e) => fraction(e.train))],
    );
    const [raw, mean, heldout, train] = joined.columns;
    const all: (Line | null)[] = [
      raw && { label: "batch", values: raw, colour: 0, faint: true },
      mean && { label: "batch, smoothed", values: mean, colour: 0 },
      heldout && { label: "held-out, per epoch", values: heldout, colour: 1, dots: true },
      train && { label: "train, per epoch", values: train, colour: 2, dots: true },
    ].map((l) => l ?? null);
    return { x: joined.x, lines: withValues(all) };
  }, [version, epochs, detail]);
  return (
    <LineChart
      title="Accuracy"
      xLabel="step"
      unit="%"
      x={x}
      lines={lines}
      version={version * 1000 + epochs.length}
      note={useStepNote(detail)}
      format={(v) => percent(v, 0)}
      dark={dark.value}
      syncKey={detail.runHex}
      yMin={0}
      yMax={1}
      empty={emptyText(run, detail)}
    />
  );
}

export function LossChart({ run, detail }: ChartProps) {
  const classes = hasClasses(run.outputs);
  const unit = squaredError({ sum: 1n, exp2: 0, count: 1 } as Loss, run.outputs);
  const version = detail.stepsVersion.value;
  const epochs = detail.epochs.value;
  const { x, lines } = useMemo(() => {
    // As the board sums it up; in the units of the errors where there are no classes.
    const perSample = detail.steps.column("loss");
    const raw = classes ? perSample : perSample.map((v) => v * unit);
    const joined = join(
      detail.steps.column("step"),
      [raw, smooth(raw, kSmoothing)],
      epochs.map((e) => e.step),
      classes
        ? [epochs.map((e) => lossPerSample(e.loss))]
        : [
            epochs.map((e) => squaredError(e.loss, run.outputs)),
            epochs.map((e) => squaredError(e.heldoutLoss, run.outputs)),
          ],
    );
    const [batch, mean, epoch, heldout] = joined.columns;
    const all: (Line | null)[] = [
      batch && { label: "batch", values: batch, colour: 0, faint: true },
      mean && { label: "batch, smoothed", values: mean, colour: 0 },
      epoch && {
        label: classes ? "epoch mean" : "train, per epoch",
        values: epoch,
        colour: 2,
        dots: true,
      },
      heldout && { label: "held-out, per epoch", values: heldout, colour: 1, dots: true },
    ].map((l) => l ?? null);
    return { x: joined.x, lines: withValues(all) };
  }, [version, epochs, detail]);
  return (
    <LineChart
      title={classes ? "Loss per sample" : "Mean squared error"}
      xLabel="step"
      unit={classes ? "" : errorUnit(run.outputs)}
      x={x}
      lines={lines}
      version={version * 1000 + epochs.length}
      note={useStepNote(detail)}
      format={(v) => (classes ? decimal(v, Math.abs(v) < 10 && v !== 0 ? 2 : 0) : significant(v))}
      dark={dark.value}
      syncKey={detail.runHex}
      yMin={0}
      empty={emptyText(run, detail)}
    />
  );
}

const withValues = (lines: (Line | null)[]): Line[] =>
  lines.filter((l): l is Line => l !== null && Array.from(l.values).some(Number.isFinite));

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

export function LayerChart({ run, detail, quantity }: ChartProps & { quantity: Quantity }) {
  const [heat, setHeat] = useState(false);
  const version = detail.stepsVersion.value;
  const layers = detail.steps.layers;
  const names = layerNames(run, layers);
  const x = detail.steps.column("step");
  const columns = names.map((_, i) => detail.steps.layerColumn(quantity, i));
  const raw = (i: number): Line => ({
    label: `${names[i] ?? ""}, each step`,
    values: columns[i] ?? [],
    colour: i,
    faint: true,
    step: true,
    behind: true,
  });
  const lines: Line[] = names.flatMap((label, i) => [
    raw(i),
    { label, values: smooth(columns[i] ?? [], kLayerSmoothing), colour: i },
  ]);
  const { title, about } = kQuantities[quantity];
  const common = {
    title,
    xLabel: "step",
    x,
    version,
    note: useStepNote(detail),
    format: (v: number) => (Number.isInteger(v) ? String(v) : v.toFixed(1)),
    dark: dark.value,
    empty: emptyText(run, detail),
  };
  return (
    <div class="chart-choice" title={about}>
      {heat && layers > 0 ? (
        <Heatmap {...common} lines={names.map((label, i) => ({ ...raw(i), label }))} />
      ) : (
        <LineChart {...common} lines={lines} unit="" syncKey={detail.runHex} />
      )}
      {layers > 0 && (
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

/// How well it does: accuracy and loss; without classes the loss alone.
export function ResultCharts({ run, detail }: ChartProps) {
  return (
    <>
      {hasClasses(run.outputs) && <AccuracyChart run={run} detail={detail} />}
      <LossChart run={run} detail={detail} />
    </>
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
