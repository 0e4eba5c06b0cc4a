import { useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import type { Problem } from "../../api/errors";
import type { Run, Snapshot } from "../../api/types";
import { histogram, HistogramChart } from "../../charts/histogram";
import { snapshots } from "../../store/fleet";
import { count, percent, shortHash } from "../../store/format";
import { isProblem, readWeights, type LayerWeights } from "../../store/weights-file";
import { runLabel } from "../board-state";
import { Empty, Panel, ProblemBox } from "../parts/bits";
import { dark } from "../theme";

const kBins = 64;

/// Snapshots of the run, newest step first, and those that stand for its model under an alias.
function snapshotsFor(run: Run): Snapshot[] {
  const model = toHex(run.spec?.modelHash ?? new Uint8Array());
  const own = (s: Snapshot): boolean => toHex(s.runId) === toHex(run.id);
  return snapshots
    .all()
    .filter((s) => toHex(s.modelHash) === model && (own(s) || s.aliases.length > 0))
    .sort((a, b) => Number(own(b)) - Number(own(a)) || b.step - a.step);
}

/// Largest |M| of precision k (rule 1.5); 0: not an integer precision.
export function largestWeight(k: number): number {
  const f = k - 8;
  if (k < 2 || k > 16) return 0;
  return f > 0 ? (127 << f) + 2 ** (f - 1) - 1 : 127 >> -f;
}

export function HistogramsPanel({ run }: { run: Run }) {
  const list = snapshotsFor(run);
  const [picked, setPicked] = useState("");
  const [answer, setAnswer] = useState<readonly LayerWeights[] | Problem | null>(null);
  const [loading, setLoading] = useState(false);
  const hash = picked !== "" ? picked : toHex(list[0]?.hash ?? new Uint8Array());
  const load = async (): Promise<void> => {
    setLoading(true);
    setAnswer(await readWeights(hash));
    setLoading(false);
  };
  if (list.length === 0) {
    return (
      <Panel title="Weight histograms">
        <Empty
          title="No snapshot of this run is kept yet"
          command={`odtctl weights pull --board BOARD --alias ${runLabel(run)}`}
        >
          <p>Weights are kept when a run ends, before risky steps, and on request.</p>
        </Empty>
      </Panel>
    );
  }
  return (
    <Panel
      title="Weight histograms"
      aside={
        <span class="row">
          <label class="row">
            Snapshot
            <select
              value={hash}
              onChange={(e) => {
                setPicked(e.currentTarget.value);
                setAnswer(null);
              }}
            >
              {list.map((s) => (
                <option key={toHex(s.hash)} value={toHex(s.hash)}>
                  {s.aliases[0] ?? shortHash(toHex(s.hash))}, step {count(s.step)}
                </option>
              ))}
            </select>
          </label>
          <button type="button" disabled={loading} onClick={() => void load()}>
            {loading ? "Reading …" : "Show"}
          </button>
        </span>
      }
    >
      {answer === null ? (
        <p class="quiet pad">
          The weights are read when asked for: pick a snapshot and press Show.
        </p>
      ) : isProblem(answer) ? (
        <ProblemBox problem={answer} retry={() => void load()} />
      ) : (
        <div class="charts">
          {answer.map((l, i) => {
            const limit = largestWeight(l.k);
            const h = histogram(l.weights, kBins, limit);
            return (
              <HistogramChart
                key={l.name}
                title={`${l.name}, k ${l.k}`}
                histogram={h}
                colour={i}
                dark={dark.value}
                note={`${count(h.total)} weights, ${h.min} to ${h.max}, mean ${h.mean.toFixed(1)}, deviation ${h.deviation.toFixed(1)}${
                  limit > 0 ? `, ${percent(h.atLimit / Math.max(1, h.total))} at ±${limit}` : ""
                }`}
              />
            );
          })}
        </div>
      )}
    </Panel>
  );
}
