import { useEffect, useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import type { Evaluation } from "../../api/types";
import { pending } from "../../store/actions";
import { serverNowMs } from "../../store/clock";
import { evaluate, evaluationIds, fetchEvaluations, type EvaluateWish } from "../../store/evaluate";
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
import { fitting, newest } from "../newest";
import { Empty, Panel, Progress } from "../parts/bits";
import { go, href, route } from "../router";
import { Job_Kind, Job_State } from "../../api/types";
import "./evaluate.css";
import { EvaluationView } from "./evaluation";
import { TryPanel } from "./try";

const kMost = 50;

/// #/evaluate: ask for one, and what was measured before; #/evaluate/ID: one of them.
export function EvaluateView({ id }: { id: string }) {
  return id === "" ? <Overview /> : <EvaluationView hex={id} />;
}

function Overview() {
  if (!fleetKnown.value) {
    return (
      <p class="loading" aria-busy="true">
        Waiting for the daemon’s first snapshot …
      </p>
    );
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
        <label class="check">
          <input
            type="checkbox"
            checked={wish.samples}
            onChange={(e) => set({ samples: e.currentTarget.checked })}
          />{" "}
          also which samples are wrong (slower)
        </label>
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
  const ids = evaluationIds();
  const shown = ids.slice(0, kMost);
  const wanted = shown.join();
  useEffect(() => void fetchEvaluations(shown), [wanted]);
  const list = shown
    .map((hex) => evaluations.get(hex).value)
    .filter((e): e is Evaluation => e !== undefined);
  return (
    <Panel title="Measured before" aside={ids.length > 0 ? count(ids.length) : undefined}>
      {ids.length === 0 ? (
        <Empty
          title="Nothing was evaluated yet"
          command="odtctl eval --board BOARD --data DATASET --wrong 20"
        />
      ) : (
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
      )}
      {ids.length > kMost && (
        <p class="pad quiet">
          The newest {kMost} of {count(ids.length)}.
        </p>
      )}
    </Panel>
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
