import { useRef, useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import type { Evaluation } from "../../api/types";
import { pending } from "../../store/actions";
import { serverNowMs } from "../../store/clock";
import {
  evaluate,
  listEvaluations,
  type EvaluateWish,
  type EvaluationHistory,
} from "../../store/evaluate";
import {
  boardName,
  boards,
  datasetName,
  datasets,
  evaluations,
  jobs,
  modelName,
  models,
  snapshots,
} from "../../store/fleet";
import { clock, count, kNone, percent, significant } from "../../store/format";
import { fleetKnown, linkLive } from "../../store/link";
import { fraction, hasClasses, squaredError, usToMs } from "../../store/numbers";
import { snapshotName } from "../../store/snapshot-tree";
import { parseFilter, toFields } from "../filter";
import { fitting, newest } from "../newest";
import { Empty, Loading, Panel, ProblemBox, Progress } from "../parts/bits";
import { NoMatch, SearchBox, ShownNote } from "../parts/search-box";
import { useLoad } from "../parts/use-load";
import { go, href, route } from "../router";
import { Job_Kind, Job_State } from "../../api/types";
import "./evaluate.css";
import { EvaluationView } from "./evaluation";
import { TryPanel } from "./try";

const kPage = 50;
const kMore = 200;

/// #/evaluate: ask for one, and what was measured before; #/evaluate/ID: one of them.
export function EvaluateView({ id }: { id: string }) {
  return id === "" ? <Overview /> : <EvaluationView hex={id} />;
}

function Overview() {
  if (!fleetKnown.value) {
    return <Loading page="Evaluate" />;
  }
  const possible = boards.keys.value.length > 0 && datasets.keys.value.length > 0;
  return (
    <>
      <h1 class="sr-only">Evaluate</h1>
      {possible ? (
        <div class="even-columns">
          <AskPanel />
          <TryPanel />
        </div>
      ) : (
        <Empty
          title={
            boards.keys.value.length === 0
              ? "No board to evaluate on"
              : "No dataset to evaluate with"
          }
          command={
            boards.keys.value.length === 0
              ? "odtctl board list"
              : "odtctl data import samples.csv --name NAME"
          }
        />
      )}
      <History />
    </>
  );
}

/// What the address says, else the first there is.
export function firstChoice(): { uidHex: string; datasetHex: string } {
  const query = route.peek().query;
  const uidHex = query.get("board") ?? toHex(boards.all()[0]?.uid ?? new Uint8Array());
  const model = models.peek(toHex(boards.peek(uidHex)?.modelHash ?? new Uint8Array()));
  const dataset = fitting(model, datasets.all())[0] ?? newest(datasets.all())[0];
  return { uidHex, datasetHex: query.get("data") ?? toHex(dataset?.id ?? new Uint8Array()) };
}

function AskPanel() {
  const [wish, setWish] = useState<EvaluateWish>({
    ...firstChoice(),
    snapshotHex: route.peek().query.get("weights") ?? "",
    split: "test",
    samples: true,
  });
  const set = (change: Partial<EvaluateWish>): void => setWish({ ...wish, ...change });
  const busy = pending.value.has("evaluate");
  const job = jobs
    .all()
    .find(
      (j) =>
        j.kind === Job_Kind.EVALUATE &&
        (j.state === Job_State.RUNNING || j.state === Job_State.QUEUED),
    );
  const start = async (): Promise<void> => {
    const hex = await evaluate(wish);
    if (hex !== "") go(href("evaluate", hex));
  };
  return (
    <Panel title="Measure weights on a board">
      <form
        class="pad"
        onSubmit={(e) => {
          e.preventDefault();
          void start();
        }}
      >
        <div class="fields">
          <BoardSelect value={wish.uidHex} onChange={(uidHex) => set({ uidHex })} />
          <label>
            Weights
            <select
              value={wish.snapshotHex}
              onChange={(e) => set({ snapshotHex: e.currentTarget.value })}
            >
              <option value="">what it holds now</option>
              {newest(snapshots.all()).map((s) => (
                <option key={toHex(s.hash)} value={toHex(s.hash)}>
                  {snapshotName(s)} ({toHex(s.hash).slice(0, 8)})
                </option>
              ))}
            </select>
          </label>
          <DatasetSelect value={wish.datasetHex} onChange={(datasetHex) => set({ datasetHex })} />
          <SplitSelect value={wish.split} onChange={(split) => set({ split })} />
        </div>
        <p>
          <label class="check">
            <input
              type="checkbox"
              checked={wish.samples}
              onChange={(e) => set({ samples: e.currentTarget.checked })}
            />{" "}
            also which samples are wrong (slower)
          </label>
        </p>
        <p class="row">
          <button type="submit" class="primary" disabled={busy || !linkLive.value}>
            {busy ? "Measuring …" : "Evaluate"}
          </button>
          {busy && job !== undefined && (
            <Progress done={job.progressPermille} total={1000} label="Progress of the evaluation" />
          )}
        </p>
      </form>
    </Panel>
  );
}

interface SelectProps {
  value: string;
  onChange: (value: string) => void;
}
export function BoardSelect({ value, onChange }: SelectProps) {
  return (
    <label>
      Board
      <select value={value} onChange={(e) => onChange(e.currentTarget.value)}>
        {boards
          .all()
          .sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }))
          .map((b) => (
            <option key={toHex(b.uid)} value={toHex(b.uid)}>
              {b.name}
            </option>
          ))}
      </select>
    </label>
  );
}
export function DatasetSelect({ value, onChange }: SelectProps) {
  return (
    <label>
      Dataset
      <select value={value} onChange={(e) => onChange(e.currentTarget.value)}>
        {newest(datasets.all()).map((d) => (
          <option key={toHex(d.id)} value={toHex(d.id)}>
            {d.name}
          </option>
        ))}
      </select>
    </label>
  );
}
export function SplitSelect({ value, onChange }: SelectProps) {
  return (
    <label>
      Split
      <select value={value} onChange={(e) => onChange(e.currentTarget.value)}>
        <option value="test">test</option>
        <option value="heldout">held-out</option>
        <option value="train">train</option>
      </select>
    </label>
  );
}

function History() {
  const [most, setMost] = useState(kPage);
  const { value, problem, loading, reload } = useLoad(
    `history/${most}`,
    "read what was measured before",
    () => listEvaluations(most),
    evaluations.version.value,
  );
  const last = useRef<EvaluationHistory | null>(null);
  last.current = value ?? last.current; // while more are read
  const { list, more } = last.current ?? { list: [], more: false };
  const test = parseFilter(route.value.query.get("q") ?? "");
  const shown = list.filter((e) =>
    test(
      toFields({
        board: boardName(e.boardUid),
        model: modelName(e.modelHash),
        data: datasetName(e.datasetId),
        split: e.split,
        id: toHex(e.id),
        weights: toHex(e.snapshot),
      }),
    ),
  );
  return (
    <Panel title="Measured before">
      {problem !== null && <ProblemBox problem={problem} retry={reload} />}
      {list.length > 0 && (
        <div class="bar pad">
          <SearchBox label="Search evaluations" placeholder="Search, board=m33-1, split=test" />
          <ShownNote shown={shown.length} total={list.length} what="evaluation">
            {more && ", there are older ones"}
          </ShownNote>
        </div>
      )}
      {list.length === 0 && problem === null ? (
        last.current === null ? (
          <Loading what="Loading …" />
        ) : (
          <Empty
            title="Nothing was evaluated yet"
            command="odtctl eval --board BOARD --data DATASET --wrong 20"
          />
        )
      ) : shown.length === 0 && list.length > 0 ? (
        <NoMatch view="evaluate" what="evaluation" total={list.length} />
      ) : (
        list.length > 0 && <HistoryTable list={shown} />
      )}
      {more && (
        <p class="pad">
          <button
            type="button"
            disabled={loading || !linkLive.value}
            onClick={() => setMost(most + kMore)}
          >
            {loading ? "Reading …" : `Up to ${count(kMore)} older ones`}
          </button>
        </p>
      )}
    </Panel>
  );
}

function HistoryTable({ list }: { list: readonly Evaluation[] }) {
  return (
    <div class="table-frame">
      <table class="runs">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Result</th>
            <th scope="col">Board</th>
            <th scope="col">Model</th>
            <th scope="col">Weights</th>
            <th scope="col">Data</th>
            <th scope="col">Split</th>
          </tr>
        </thead>
        <tbody>
          {list.map((e) => (
            <HistoryRow key={toHex(e.id)} evaluation={e} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/// Accuracy, or squared error where there are no classes.
export function resultOf(e: Evaluation): string {
  if (hasClasses(e.outputs)) return percent(fraction(e.accuracy));
  return `mse ${significant(squaredError(e.loss, e.outputs))}`;
}

function HistoryRow({ evaluation: e }: { evaluation: Evaluation }) {
  const snapshot = snapshots.get(toHex(e.snapshot)).value;
  return (
    <tr>
      <td class="nowrap" data-label="When">
        {clock(usToMs(e.meta?.createTimeUs ?? 0n), serverNowMs.value)}
      </td>
      <th scope="row">
        <a href={href("evaluate", toHex(e.id))}>{resultOf(e)}</a>
        {(e.accuracy?.total ?? 0) > 0 && (
          <span class="sub">
            {count(e.accuracy?.correct ?? 0)} of {count(e.accuracy?.total ?? 0)}
          </span>
        )}
      </th>
      <td data-label="Board">{boardName(e.boardUid)}</td>
      <td data-label="Model">{modelName(e.modelHash) || kNone}</td>
      <td data-label="Weights">
        {e.snapshot.length === 0 ? (
          <span class="quiet">what it held</span>
        ) : (
          <a href={href("weights", toHex(e.snapshot))}>
            {snapshot !== undefined ? snapshotName(snapshot) : toHex(e.snapshot).slice(0, 12)}
          </a>
        )}
      </td>
      <td data-label="Data">{datasetName(e.datasetId)}</td>
      <td data-label="Split">{e.split}</td>
    </tr>
  );
}
