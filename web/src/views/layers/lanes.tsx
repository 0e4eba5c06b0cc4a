import { useMemo } from "preact/hooks";
import { AptMode, type EpochResult, type LayerEpoch, type Run } from "../../api/types";
import { Heatmap } from "../../charts/heatmap";
import { LineChart, type Line, type LineChartProps } from "../../charts/line-chart";
import { count } from "../../store/format";
import type { RunDetail } from "../../store/run-detail";
import { layerNames, LayerChart, RangeBar, stepNote } from "../run-charts";
import { showSpike } from "./batch";
import { Panel } from "../parts/bits";
import { dark } from "../theme";

const kDefaultTMinQ8 = 77; // 0.3

/// Bounds of the mean update between which adaptive precision leaves a layer alone; empty without it.
export function thresholds(run: Run): [string, number][] {
  const h = run.effective ?? run.spec?.hyper;
  if (h === undefined || h.apt === AptMode.UNSPECIFIED) return [];
  const out: [string, number][] = [["Tmin", (h.aptTMinQ8 ?? kDefaultTMinQ8) / 256]];
  if ((h.aptTMaxQ8 ?? 0) > 0) out.push(["Tmax", (h.aptTMaxQ8 ?? 0) / 256]);
  return out;
}

const figure = (v: number): string => v.toFixed(Math.abs(v) < 10 ? 2 : 0);

/// One quantity of every layer, epoch by epoch.
function EpochLanes(props: {
  run: Run;
  detail: RunDetail;
  title: string;
  of: (l: LayerEpoch) => number;
  marks?: readonly [string, number][];
  log?: boolean;
  empty: string;
}) {
  const epochs = props.detail.epochs.value;
  const layers = epochs.reduce((n, e) => Math.max(n, e.layers.length), 0);
  const names = layerNames(props.run, layers);
  const { x, lines } = useMemo(() => {
    const value = (e: EpochResult, i: number): number => {
      const l = e.layers[i];
      const v = l === undefined ? NaN : props.of(l);
      return props.log === true && v <= 0 ? NaN : v;
    };
    const all: Line[] = names.map((label, i) => ({
      label,
      values: epochs.map((e) => value(e, i)),
      colour: i,
      dots: epochs.length <= 80,
    }));
    const marks = (props.marks ?? []).map(
      ([label, v], i): Line => ({
        label: `${label} ${figure(v)}`,
        values: epochs.map(() => v),
        colour: 12 + i, // dashed
      }),
    );
    const some = all.some((l) => Array.from(l.values).some(Number.isFinite));
    return { x: some ? epochs.map((e) => e.step) : [], lines: [...all, ...marks] };
  }, [epochs, names.join("|")]);
  const common: LineChartProps = {
    title: props.title,
    xLabel: "step",
    unit: "",
    x,
    lines,
    version: (epochs.at(-1)?.epoch ?? 0) * 4096 + epochs.length,
    format: figure,
    dark: dark.value,
    empty: props.empty,
    syncKey: props.detail.runHex,
    ...(props.log === true ? { log: true } : {}),
  };
  return <LineChart {...common} />;
}

function ShiftMap({ run, detail }: { run: Run; detail: RunDetail }) {
  const b = detail.buckets();
  const names = layerNames(run, b.shift.length);
  if (b.shift.length === 0) {
    return (
      <figure class="chart">
        <figcaption>
          <span class="chart-title">Shift, layer by layer</span>
        </figcaption>
        <div class="chart-empty framed-empty">
          {detail.loaded.value ? "No steps were recorded." : "Loading …"}
        </div>
      </figure>
    );
  }
  return (
    <Heatmap
      title="Shift, layer by layer"
      xLabel="step"
      x={b.x}
      version={detail.stepsVersion.value}
      note={stepNote(b)}
      format={(v) => (Number.isInteger(v) ? String(v) : v.toFixed(1))}
      dark={dark.value}
      onPick={(layer, index) => void showSpike(detail, layer, index)}
      lines={b.shift.map((band, i) => ({ label: names[i] ?? "", values: band.max, colour: i }))}
    />
  );
}

/// The course of every layer: shifts as a map, mean updates against their bounds, Gavg, and the steps of k.
export function LanesPanel({ run, detail }: { run: Run; detail: RunDetail }) {
  const marks = thresholds(run);
  const changes = detail.epochs.value.reduce(
    (n, e, i, all) =>
      n + e.layers.filter((l, j) => i > 0 && all[i - 1]?.layers[j]?.k !== l.k).length,
    0,
  );
  return (
    <Panel title="Over the run" class="curves" aside={<RangeBar detail={detail} />}>
      <ShiftMap run={run} detail={detail} />
      <div class="charts">
        <EpochLanes
          run={run}
          detail={detail}
          title="Mean update U, in steps of the weights"
          of={(l) => l.uQ8 / 256}
          marks={marks}
          empty="U is told at the end of each epoch."
        />
        <LayerChart run={run} detail={detail} quantity="k" />
        <EpochLanes
          run={run}
          detail={detail}
          title="Gavg, mean |gradient| in steps of the weights"
          of={(l) => Number(l.gavgQ8) / 256}
          log
          empty="Gavg is not known for this run."
        />
        <LayerChart run={run} detail={detail} quantity="bits" />
      </div>
      <p class="quiet pad">
        {marks.length === 0
          ? "Precision is fixed in this run; with --apt each layer gets a bit more where U is below Tmin and a bit less where it is above Tmax."
          : `Precision adapts: ${detail.epochs.value.length < detail.epochsDone.value ? "at least " : ""}${count(changes)} changes of k so far.`}
      </p>
    </Panel>
  );
}
