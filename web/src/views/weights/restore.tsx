import { useEffect, useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import { describeError, type Problem } from "../../api/errors";
import { BoardRestore_Outcome as Outcome, type BoardRestore, type Snapshot } from "../../api/types";
import { pending } from "../../store/actions";
import { boardName } from "../../store/fleet";
import { linkLive } from "../../store/link";
import { snapshotName } from "../../store/snapshot-tree";
import { checkRestore, restore, type RestoreWish } from "../../store/weights";
import { Panel, ProblemBox } from "../parts/bits";
import { BoardChoice } from "../parts/board-choice";
import { ConfirmButton } from "../parts/confirm";
import { StateMark } from "../parts/state-mark";
import type { Look } from "../words";

const kCheckDelayMs = 350;

const kPlanned: Record<Outcome, Look> = {
  [Outcome.UNSPECIFIED]: { word: "unknown", tone: "quiet", shape: "dashed" },
  [Outcome.DONE]: { word: "will take it", tone: "ok", shape: "play" },
  [Outcome.HELD_IT]: { word: "holds it already", tone: "quiet", shape: "disc" },
  [Outcome.REFUSED]: { word: "refuses", tone: "warn", shape: "triangle" },
  [Outcome.FAILED]: { word: "fails", tone: "bad", shape: "cross" },
};
const kDone: Record<Outcome, Look> = {
  ...kPlanned,
  [Outcome.DONE]: { word: "has it", tone: "ok", shape: "check" },
  [Outcome.REFUSED]: { word: "refused", tone: "warn", shape: "triangle" },
  [Outcome.FAILED]: { word: "failed", tone: "bad", shape: "cross" },
};

/// Puts the weights on one board or a cohort. The daemon says first what would happen on each.
export function RestorePanel({ snapshot: s }: { snapshot: Snapshot }) {
  const [uids, setUids] = useState<string[]>([]);
  const [query, setQuery] = useState("");
  const [commit, setCommit] = useState(false);
  const [plan, setPlan] = useState<BoardRestore[] | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [result, setResult] = useState<BoardRestore[] | null>(null);
  const hex = toHex(s.hash);
  const wish: RestoreWish = { snapshotHex: hex, uids, query: query.trim(), commit };
  const wanted = uids.length > 0 || query.trim() !== "";

  useEffect(() => {
    setPlan(null);
    setProblem(null);
    if (!wanted || !linkLive.value) return;
    let current = true;
    const timer = setTimeout(() => {
      checkRestore(wish)
        .then((p) => current && setPlan(p))
        .catch((e: unknown) => current && setProblem(describeError(e, "Nothing can be put there")));
    }, kCheckDelayMs);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [uids, query, commit, hex]);

  const willTake = plan?.filter((b) => b.outcome === Outcome.DONE).length ?? 0;
  const busy = pending.value.has(`restore/${hex}`);
  const start = async (): Promise<void> => {
    setResult(null);
    setResult(await restore(wish, plan ?? []));
  };
  return (
    <Panel title="Put it on boards">
      <div class="pad">
        <BoardChoice uids={uids} setUids={setUids} />
        <div class="inline-form">
          <label>
            And all boards with
            <input
              value={query}
              placeholder="site=lab,!broken"
              title="Labels and the board's fields name, place, type, core and status, joined by commas"
              onInput={(e) => setQuery(e.currentTarget.value)}
            />
          </label>
          <label class="check">
            <input
              type="checkbox"
              checked={commit}
              onChange={(e) => setCommit(e.currentTarget.checked)}
            />{" "}
            commit to non-volatile memory
          </label>
        </div>
        <div aria-live="polite">
          {!wanted ? (
            <p class="quiet">
              Choose boards: what would happen on each is shown before anything is done.
            </p>
          ) : problem !== null ? (
            <ProblemBox problem={problem} />
          ) : plan === null ? (
            <p class="quiet">Asking the daemon …</p>
          ) : (
            <Outcomes rows={result ?? plan} looks={result === null ? kPlanned : kDone} />
          )}
        </div>
        <ConfirmButton
          label={busy ? "Working …" : "Restore"}
          class="primary"
          title={`Overwrite the weights of ${willTake} board${willTake === 1 ? "" : "s"}?`}
          confirm="Overwrite"
          disabled={willTake === 0 || busy}
          onConfirm={() => void start()}
        >
          <p>
            {snapshotName(s)} replaces what they hold
            {commit ? ", also in their non-volatile memory" : ""}. What they hold now is kept first
            {willTake <= 8 ? ", and can be put back from the message that follows" : ""}.
          </p>
        </ConfirmButton>
      </div>
    </Panel>
  );
}

function Outcomes({
  rows,
  looks,
}: {
  rows: readonly BoardRestore[];
  looks: Record<Outcome, Look>;
}) {
  if (rows.length === 0) return <p class="quiet">No board matches.</p>;
  return (
    <table class="outcomes">
      <caption class="sr-only">What happens on each board</caption>
      <thead>
        <tr>
          <th scope="col">Board</th>
          <th scope="col">Outcome</th>
          <th scope="col">Why</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((r) => (
          <tr key={toHex(r.boardUid)}>
            <th scope="row">{boardName(r.boardUid)}</th>
            <td>
              <StateMark look={looks[r.outcome] ?? looks[Outcome.UNSPECIFIED]} />
            </td>
            <td class="wrap">
              {r.reason?.text}
              {(r.reason?.remedy ?? "") !== "" && <span class="sub wrap">{r.reason?.remedy}</span>}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
