import { useMemo, useState } from "preact/hooks";
import { fromHex, toHex } from "../../api/bytes";
import { kCallTimeoutMs } from "../../api/clients";
import { lateClients } from "../../api/late-clients";
import { SeriesKind, type Run } from "../../api/types";
import { cohortBand, joinAll, smooth } from "../../charts/join";
import { LineChart, type Line, type Range } from "../../charts/line-chart";
import { toBuckets, type Buckets } from "../../store/buckets";
import { axisOf, axisText, kAxes, type Axis } from "../../store/compare";
import { count, decimal, percent } from "../../store/format";
import { fraction } from "../../store/numbers";
import { runDetail } from "../../store/run-detail";
import { runLabel } from "../board-state";
import { ProblemBox } from "../parts/bits";
import { useLoad } from "../parts/use-load";
import { dark } from "../theme";

const kMostLines = 50; // beyond, a band of all and the pinned run
const kMostPoints = 40_000; // over all runs
const kBandPoints = 240;

interface Part {
  run: Run;
  label: string;
  colour: number;
  x: (step: number) => number;
  buckets: Buckets | undefined;
  epochs: { x: number; heldout: number }[];
}

interface Props {
  list: readonly Run[];
  base: string;
  axis: Axis;
  smoothing: number;
}

/// Runs that are open are read again every so many steps.
const progressOf = (run: Run): number =>
  Math.floor(run.epochsDone / Math.max(1, Math.ceil((run.effective?.epochs ?? 10) / 50)));

export function CompareCharts(props: Props) {
  const { list, axis } = props;
  const buckets = Math.max(60, Math.min(600, Math.floor(kMostPoints / list.length)));
  const key = list.map((r) => `${toHex(r.id)}${progressOf(r)}`).join();
  const series = useLoad(key, "read the curves", async () => {
    const answer = await lateClients().storage.getSeries(
      {
        runIds: list.map((r) => fromHex(toHex(r.id))),
        kinds: [SeriesKind.LOSS, SeriesKind.CORRECT],
        buckets,
      },
      { timeoutMs: kCallTimeoutMs },
    );
    return new Map(answer.runs.map((r) => [toHex(r.runId), r]));
  });
  const [range, setRange] = useState<Range | null>(null);
  const parts = list.map((run, colour): Part => {
    const hex = toHex(run.id);
    const epochs = runDetail(hex).epochs.value;
    const x = axisOf(axis, run, epochs);
    const own = series.value?.get(hex);
    return {
      run,
      label: runLabel(run),
      colour,
      x,
      buckets:
        own === undefined
          ? undefined
          : toBuckets(own, { batch: run.effective?.batch ?? 0, trainSamples: run.trainSamples }),
      epochs: epochs.map((e) => ({ x: x(e.step), heldout: fraction(e.heldout) })),
    };
  });
  const held = parts.reduce((n, p) => n + (p.buckets?.x.length ?? 0), 0);
  const points = parts.reduce((n, p) => n + (p.buckets?.points ?? 0), 0);
  const note = held < points ? `showing ${count(held)} of ${count(points)} points` : "";
  const common = {
    ...props,
    parts,
    range,
    setRange,
    version: held + parts.reduce((n, p) => n + p.epochs.length, 0) * 100_003,
    note,
    empty: series.loading ? "Loading …" : "No steps were recorded.",
  };
  return (
    <>
      {series.problem !== null && <ProblemBox problem={series.problem} retry={series.reload} />}
      {range !== null && (
        <p class="row pad">
          <span class="quiet">
            {axisText(axis)(range[0])} to {axisText(axis)(range[1])}
          </span>
          <button type="button" class="small" onClick={() => setRange(null)}>
            Everything
          </button>
        </p>
      )}
      <div class="charts">
        <Overlay
          {...common}
          title="Held-out accuracy"
          of={(p) => ({ x: p.epochs.map((e) => e.x), y: p.epochs.map((e) => e.heldout) })}
          format={(v) => percent(v, 0)}
          dots
          note=""
          empty="No epoch is complete yet."
        />
        <Overlay
          {...common}
          title="Batch accuracy"
          of={(p) => ({
            x: Array.from(p.buckets?.x ?? [], p.x),
            y: p.buckets?.accuracy.mean ?? [],
          })}
          format={(v) => percent(v, 0)}
        />
        <Overlay
          {...common}
          title="Loss per sample"
          of={(p) => ({ x: Array.from(p.buckets?.x ?? [], p.x), y: p.buckets?.loss.mean ?? [] })}
          format={(v) => decimal(v, Math.abs(v) < 10 && v !== 0 ? 2 : 0)}
        />
        <Overlay
          {...common}
          title="Loss against the pinned run"
          of={(p) => ({ x: Array.from(p.buckets?.x ?? [], p.x), y: againstBase(p, parts[0]) })}
          format={(v) => decimal(v, Math.abs(v) < 10 && v !== 0 ? 2 : 0)}
        />
      </div>
    </>
  );
}

/// Loss minus that of the pinned run at the newest step that both have.
function againstBase(part: Part, base: Part | undefined): Float64Array {
  const own = part.buckets;
  const other = base?.buckets;
  if (own === undefined || other === undefined) return new Float64Array(0);
  let at = 0;
  return own.loss.mean.map((v, i) => {
    const step = own.x[i] ?? NaN;
    while (at + 1 < other.x.length && (other.x[at + 1] ?? Infinity) <= step) at++;
    const inside = step <= (other.x[other.x.length - 1] ?? -Infinity) + 1;
    return inside ? v - (other.loss.mean[at] ?? NaN) : NaN;
  });
}

interface OverlayProps extends Props {
  title: string;
  parts: readonly Part[];
  of: (part: Part) => { x: ArrayLike<number>; y: ArrayLike<number> };
  format: (v: number) => string;
  range: Range | null;
  setRange: (range: Range | null) => void;
  version: number;
  note: string;
  empty: string;
  dots?: boolean;
}

function Overlay(props: OverlayProps) {
  const { parts, axis, smoothing, base } = props;
  const raw = props.dots !== true && smoothing > 0;
  const many = parts.length > kMostLines;
  const { x, lines } = useMemo(
    () => (many ? bandLines(props) : overlayLines(props, raw)),
    [props.version, parts.map((p) => toHex(p.run.id)).join(), axis, smoothing, base],
  );
  const some = lines.some((l) => Array.from(l.values).some(Number.isFinite));
  return (
    <LineChart
      title={props.title}
      xLabel={kAxes.find(([name]) => name === axis)?.[1].toLowerCase() ?? ""}
      unit=""
      x={some ? x : []}
      lines={lines}
      version={props.version * 100 + Math.round(smoothing * 100)}
      note={[many ? `5 to 95 % of ${parts.length} runs` : "", props.note]
        .filter(Boolean)
        .join(" · ")}
      format={props.format}
      formatX={axisText(axis)}
      dark={dark.value}
      xRange={props.range}
      onRange={props.setRange}
      syncKey="compare"
      empty={props.empty}
    />
  );
}

function overlayLines({ parts, of, smoothing, dots }: OverlayProps, raw: boolean) {
  const curves = parts.map((p) => {
    const { x, y } = of(p);
    return { x, columns: raw ? [y, smooth(y, smoothing)] : [y] };
  });
  const joined = joinAll(curves);
  const per = raw ? 2 : 1;
  const none = new Float64Array(0);
  const lines = parts.flatMap((p, i): Line[] => {
    const values = joined.columns[i * per] ?? none;
    const line = { label: p.label, colour: p.colour };
    if (!raw) return [{ ...line, values, ...(dots === true && { dots: values.length <= 400 }) }];
    return [
      { ...line, label: `${p.label}, raw`, values, faint: true, behind: true },
      { ...line, values: joined.columns[i * per + 1] ?? none },
    ];
  });
  return { x: joined.x, lines };
}

function bandLines({ parts, of, smoothing, base }: OverlayProps) {
  const curves = parts.map((p) => {
    const { x, y } = of(p);
    return { x, values: smooth(y, smoothing) };
  });
  const band = cohortBand(curves, kBandPoints);
  const pinned = parts.findIndex((p) => toHex(p.run.id) === base);
  const own = curves[pinned];
  const joined = joinAll([
    { x: band.x, columns: band.columns },
    { x: own?.x ?? [], columns: [own?.values ?? []] },
  ]);
  const [low = [], middle = [], high = [], values = []] = joined.columns;
  const lines: Line[] = [
    { label: "median of all", values: middle, low, high, colour: 7 },
    { label: parts[pinned]?.label ?? "", values, colour: 0 },
  ];
  return { x: joined.x, lines };
}
