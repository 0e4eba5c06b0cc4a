import { useEffect, useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import { AptMode, type Run } from "../../api/types";
import { Bars, type Bar } from "../../charts/bars";
import { LineChart, type Line } from "../../charts/line-chart";
import { Scatter, type Dot } from "../../charts/scatter";
import {
  accountProblem,
  accounts,
  bestHeldout,
  energyToReach,
  loadAccounts,
  siblings,
  type Account,
} from "../../store/accounts";
import { bytes, kNone, percent } from "../../store/format";
import { fraction, hasClasses } from "../../store/numbers";
import { runLabel } from "../board-state";
import { Empty, Panel, ProblemBox } from "../parts/bits";
import { href } from "../router";
import { dark } from "../theme";

const kMostRuns = 24;
const kDefaultTMin = 77 / 256;

/// MAC-bits in words that people compare: 1.2 G.
export function macBits(v: number): string {
  if (!Number.isFinite(v)) return kNone;
  const units = ["", "k", "M", "G", "T", "P"];
  let u = 0;
  while (v >= 1000 && u < units.length - 1) {
    v /= 1000;
    u++;
  }
  return `${v.toFixed(v < 10 && u > 0 ? 2 : v < 100 && u > 0 ? 1 : 0)} ${units[u]}`.trim();
}

const isApt = (run: Run): boolean =>
  (run.effective?.apt ?? AptMode.UNSPECIFIED) !== AptMode.UNSPECIFIED;
const tMin = (run: Run): number =>
  run.effective?.aptTMinQ8 !== undefined ? run.effective.aptTMinQ8 / 256 : kDefaultTMin;

/// "apt, Tmin 0.30" or "k 8".
export function precisionOf(run: Run): string {
  if (isApt(run)) return `adaptive, Tmin ${tMin(run).toFixed(2)}`;
  return run.effective?.k !== undefined ? `k ${run.effective.k}` : "";
}

interface Known {
  run: Run;
  account: Account;
  colour: number;
}

/// The pictures of adaptive precision: this run's account, beside the same run at fixed widths.
export function AptPanel({ run }: { run: Run }) {
  const family = siblings(run, kMostRuns);
  const wanted = family.map((r) => `${toHex(r.id)}${r.epochsDone}`).join();
  useEffect(() => void loadAccounts(family), [wanted]);
  const known = family.flatMap((r, colour): Known[] => {
    const account = accounts.value.get(toHex(r.id));
    return account === undefined || account.epochs.length === 0
      ? []
      : [{ run: r, account, colour }];
  });
  const own = known.find((k) => toHex(k.run.id) === toHex(run.id));
  const problem = accountProblem.value;
  return (
    <Panel
      title="Precision, energy and memory"
      aside={<span>as the APT paper counts: MACs × bits, weights × bits</span>}
    >
      {problem !== null && <ProblemBox problem={problem} retry={() => void loadAccounts(family)} />}
      {own === undefined ? (
        problem === null && (
          <Empty title={run.epochsDone === 0 ? "No epoch is complete yet" : "Reading …"}>
            <p>The account of a run is made of its epochs.</p>
          </Empty>
        )
      ) : (
        <>
          <div class="charts">
            <EnergyBars account={own.account} />
            <MemoryBars account={own.account} />
            {hasClasses(run.outputs) && <AccuracyOverEnergy known={known} own={own} />}
            {hasClasses(run.outputs) && <ThresholdScatter known={known} own={run} />}
          </div>
          {hasClasses(run.outputs) && <EnergyToTarget known={known} own={own} />}
        </>
      )}
    </Panel>
  );
}

const saved = (v: number, of: number): string => (of > 0 ? `${percent(v / of, 0)} of fp32` : "");

function EnergyBars({ account }: { account: Account }) {
  const fp32 = Number(account.energyFp32);
  const bar = (label: string, value: bigint, colour: number): Bar => ({
    label,
    value: Number(value),
    colour,
    note: saved(Number(value), fp32),
  });
  return (
    <Bars
      title="Energy of training, MAC-bits"
      dark={dark.value}
      format={macBits}
      empty="No figure"
      note="The same MACs at other widths: an account, not a measurement of current."
      bars={[
        bar("this run", account.energy, 0),
        bar("fixed 8 bits", account.energyFixed8, 7),
        bar("fixed 16 bits", account.energyFixed16, 7),
        bar("fp32", account.energyFp32, 7),
      ]}
    />
  );
}

function MemoryBars({ account }: { account: Account }) {
  const fp32 = Number(account.memoryFp32Bits) / 8;
  const resident = Math.max(0, ...account.epochs.map((e) => Number(e.residentBytes)));
  const bar = (label: string, value: number, colour: number): Bar => ({
    label,
    value,
    colour,
    note: saved(value, fp32),
  });
  return (
    <Bars
      title="Memory of the trained weights"
      dark={dark.value}
      format={(v) => bytes(Math.round(v))}
      empty="No figure"
      note="Counted: bits in use. As stored: what the board holds (8 or 16 bits each)."
      bars={[
        bar("counted, peak", Number(account.peakMemoryBits) / 8, 0),
        bar("as stored", resident, 1),
        bar("fp32", fp32, 7),
      ]}
    />
  );
}

/// Held-out accuracy against the energy spent: adaptive precision and fixed widths of the same model and data.
function AccuracyOverEnergy({ known, own }: { known: readonly Known[]; own: Known }) {
  // Longer runs are cut, so that this one is not a dot in the corner.
  const most = 2 * Number(own.account.energy);
  const points = known
    .flatMap(({ run, account }) => {
      let sum = 0;
      return account.epochs.map((e) => {
        sum += Number(e.energy);
        return { run: toHex(run.id), x: sum, y: fraction(e.heldout) };
      });
    })
    .filter((p) => p.x <= most);
  const x = [...new Set(points.map((p) => p.x))].sort((a, b) => a - b);
  const lines: Line[] = known.map(({ run, colour }) => {
    const own = new Map(points.filter((p) => p.run === toHex(run.id)).map((p) => [p.x, p.y]));
    return {
      label: `${runLabel(run)} (${precisionOf(run)})`,
      values: x.map((v) => own.get(v) ?? NaN),
      colour,
      dots: x.length <= 160,
    };
  });
  return (
    <LineChart
      title="Held-out accuracy against energy"
      xLabel="MAC-bits"
      unit="%"
      x={x}
      lines={lines}
      version={points.length}
      format={(v) => percent(v, 0)}
      formatX={macBits}
      dark={dark.value}
      yMin={0}
      yMax={1}
      empty="No epoch yet"
      note={
        known.length === 1
          ? "train the same at --k 8 and --k 16 to compare"
          : `${known.length} runs of this model and data`
      }
    />
  );
}

/// What a higher bound buys and costs: best held-out accuracy of each adaptive run.
function ThresholdScatter({ known, own }: { known: readonly Known[]; own: Run }) {
  const dots = known
    .filter(({ run }) => isApt(run))
    .map(
      ({ run, account, colour }): Dot => ({
        label: runLabel(run),
        x: tMin(run),
        y: bestHeldout(account),
        colour,
        href: href("run", toHex(run.id)),
        strong: toHex(run.id) === toHex(own.id),
      }),
    );
  return (
    <Scatter
      title="Threshold against accuracy"
      xLabel="Tmin"
      yLabel="best held-out"
      dots={dots}
      formatX={(v) => v.toFixed(2)}
      formatY={(v) => percent(v, 1)}
      dark={dark.value}
      empty="No run of this model and data adapts its precision: odtctl train --apt --apt-t-min 0.3"
    />
  );
}

function EnergyToTarget({ known, own }: { known: readonly Known[]; own: Known }) {
  const [asked, setAsked] = useState<number | null>(null);
  const target = asked ?? Math.floor((bestHeldout(own.account) || 0) * 95) / 100;
  return (
    <Bars
      title={`Energy to reach ${percent(target, 0)} held-out accuracy`}
      dark={dark.value}
      format={macBits}
      empty={`None of ${known.length} runs reached ${percent(target, 0)}.`}
      note={`Runs that never reached it are left out: ${known.filter(({ account }) => Number.isNaN(energyToReach(account, target))).length} of ${known.length}.`}
      tools={
        <label class="row">
          Target
          <input
            type="range"
            min={10}
            max={100}
            value={Math.round(target * 100)}
            aria-valuetext={percent(target, 0)}
            onInput={(e) => setAsked(Number(e.currentTarget.value) / 100)}
          />
        </label>
      }
      bars={known.map(({ run, account, colour }) => ({
        label: runLabel(run),
        value: energyToReach(account, target),
        colour,
        note: precisionOf(run),
      }))}
    />
  );
}
