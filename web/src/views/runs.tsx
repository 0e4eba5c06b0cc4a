import { useComputed } from "@preact/signals";
import { toHex } from "../api/bytes";
import { RunState, type Run } from "../api/types";
import { serverNowMs } from "../store/clock";
import { boardName, datasetName, modelName, newestFirst, runs } from "../store/fleet";
import { clock, count, duration } from "../store/format";
import { bulkProgress, changeRuns, retryRuns, trashAll } from "../store/bulk";
import { fleetKnown, linkLive } from "../store/link";
import { selectedRuns } from "../store/selection";
import { usToMs } from "../store/numbers";
import { runLabel } from "./board-state";
import { parseFilter } from "./filter";
import { Act, CancelRuns } from "./fleet-bulk";
import { Empty, Loading } from "./parts/bits";
import { NoMatch, SearchBox, ShownNote } from "./parts/search-box";
import { liveRunLook, ReplayBadge, RunProgress, TestChange, useRunDetail } from "./parts/run-bits";
import { BulkBar, SelectCell, SelectHead } from "./parts/select";
import { StateMark } from "./parts/state-mark";
import { WindowBody } from "./parts/window";
import { href, route, setQuery } from "./router";
import { isActive, isOver, runLook } from "./words";

const kRowHeight = 45;

const kChips: [string, (s: RunState) => boolean][] = [
  ["active", isActive],
  ["queued", (s) => s === RunState.QUEUED],
  ["succeeded", (s) => s === RunState.SUCCEEDED],
  ["failed", (s) => s === RunState.FAILED],
  ["cancelled", (s) => s === RunState.CANCELLED],
];

function fieldsOf(run: Run): Map<string, string> {
  const { spec } = run;
  const pairs: [string, string][] = [
    ["name", spec?.name ?? ""],
    ["id", toHex(run.id)],
    ["state", runLook(run.state).word],
    ["board", spec ? boardName(spec.boardUid) : ""],
    ["uid", spec ? toHex(spec.boardUid) : ""],
    ["model", spec ? modelName(spec.modelHash) : ""],
    ["dataset", spec ? datasetName(spec.datasetId) : ""],
    ["reason", run.reason?.code ?? ""],
  ];
  return new Map(pairs.map(([k, v]) => [k, v.toLowerCase()]));
}

export function RunsView() {
  const shown = useComputed(() => {
    const { query } = route.value;
    const test = parseFilter(query.get("q") ?? "");
    const state = kChips.find(([word]) => word === query.get("state"))?.[1];
    return newestFirst(
      runs.all().filter((r) => (state === undefined || state(r.state)) && test(fieldsOf(r))),
    ).map((r) => toHex(r.id));
  }).value;
  const total = runs.keys.value.length;
  if (total === 0) {
    return (
      <>
        <h1 class="sr-only">Runs</h1>
        {fleetKnown.value ? (
          <Empty
            title="No runs yet"
            command="odtctl train --board BOARD --model MODEL --data DATASET --epochs 5"
          >
            <p>
              A run trains one model on one board with one dataset. Names are in Fleet and Library.
            </p>
          </Empty>
        ) : (
          <Loading />
        )}
      </>
    );
  }
  return (
    <>
      <h1 class="sr-only">Runs</h1>
      <RunsBar shown={shown.length} total={total} />
      <RunsBulk shown={shown} />
      {shown.length === 0 ? (
        <NoMatch view="runs" what="run" total={total} />
      ) : (
        <div class="table-frame">
          <table class="runs">
            <thead>
              <tr>
                <SelectHead selection={selectedRuns} shown={shown} what="runs" />
                <th scope="col">State</th>
                <th scope="col">Run</th>
                <th scope="col">Board</th>
                <th scope="col">Model</th>
                <th scope="col">Dataset</th>
                <th scope="col">Progress</th>
                <th scope="col">Test accuracy</th>
                <th scope="col">Replay</th>
                <th scope="col">Started</th>
              </tr>
            </thead>
            <WindowBody
              keys={shown}
              columns={10}
              rowHeight={kRowHeight}
              row={(hex) => <RunRow key={hex} runHex={hex} shown={shown} />}
            />
          </table>
        </div>
      )}
    </>
  );
}

function RunsBar({ shown, total }: { shown: number; total: number }) {
  const { query } = route.value;
  const state = query.get("state") ?? "";
  const all = runs.all();
  return (
    <div class="bar">
      <SearchBox label="Search runs" placeholder="Search, board=m33-1, dataset=…, -cancelled" />
      <div class="chips" role="group" aria-label="Filter by state">
        {kChips.map(([word, test]) => {
          const n = all.filter((r) => test(r.state)).length;
          if (n === 0 && state !== word) return null;
          return (
            <button
              type="button"
              key={word}
              class="chip"
              aria-pressed={state === word}
              onClick={() => setQuery("state", state === word ? "" : word)}
            >
              {word}
              <span class="chip-count">{count(n)}</span>
            </button>
          );
        })}
      </div>
      <ShownNote shown={shown} total={total} what="run" />
    </div>
  );
}

function RunRow({ runHex, shown }: { runHex: string; shown: readonly string[] }) {
  const run = runs.get(runHex).value;
  if (run === undefined) return null;
  const { spec } = run;
  const start = usToMs(run.startTimeUs);
  const end = usToMs(run.endTimeUs);
  return (
    <tr>
      <SelectCell selection={selectedRuns} row={runHex} name={runLabel(run)} shown={shown} />
      <td>
        <StateMark look={liveRunLook(run)} />
      </td>
      <th scope="row">
        <a href={href("run", runHex)}>{runLabel(run)}</a>
      </th>
      <td data-label="Board">
        {spec && <a href={href("board", toHex(spec.boardUid))}>{boardName(spec.boardUid)}</a>}
      </td>
      <td data-label="Model">{spec && modelName(spec.modelHash)}</td>
      <td data-label="Dataset">{spec && datasetName(spec.datasetId)}</td>
      <td data-label="Progress">
        {isActive(run.state) ? (
          <LiveProgress run={run} />
        ) : run.reason?.text ? (
          <span class={run.state === RunState.FAILED ? "tone-bad" : "quiet"}>
            {run.reason.text}
          </span>
        ) : (
          <span class="quiet">
            {count(run.stepsDone)} steps{end > 0 && start > 0 && `, ${duration(end - start)}`}
          </span>
        )}
      </td>
      <td data-label="Test">
        <TestChange run={run} />
      </td>
      <td data-label="Replay">
        <ReplayBadge run={run} />
      </td>
      <td class="nowrap" data-label="Started">
        {clock(start, serverNowMs.value)}
      </td>
    </tr>
  );
}

/// Actions on the runs that are ticked and shown.
function RunsBulk({ shown }: { shown: readonly string[] }) {
  const list = shown.flatMap((k) => (selectedRuns.has(k) ? (runs.get(k).value ?? []) : []));
  const open = list.filter((r) => !isOver(r.state));
  const paused = open.filter((r) => r.state === RunState.PAUSED);
  const going = open.filter((r) => r.state !== RunState.PAUSED);
  const over = list.filter((r) => isOver(r.state));
  const failed = over.filter((r) => r.state !== RunState.SUCCEEDED);
  const busy = bulkProgress.value !== null || !linkLive.value;
  const ids = list.map((r) => toHex(r.id)).join();
  return (
    <BulkBar selection={selectedRuns} n={list.length} what="runs">
      <a class="button" href={href("compare", "", new URLSearchParams({ runs: ids }))}>
        Compare
      </a>
      <Act n={going.length} label="Pause" busy={busy} run={() => changeRuns(going, "pause")} />
      <Act n={paused.length} label="Resume" busy={busy} run={() => changeRuns(paused, "resume")} />
      <Act n={failed.length} label="Retry failed" busy={busy} run={() => retryRuns(failed)} />
      <CancelRuns list={open} busy={busy} />
      <Act
        n={over.length}
        label="Delete"
        busy={busy}
        run={() =>
          trashAll(
            "run",
            over.map((r) => ({ key: r.id, name: runLabel(r) })),
          )
        }
      />
    </BulkBar>
  );
}

function LiveProgress({ run }: { run: Run }) {
  const detail = useRunDetail(toHex(run.id), false, true);
  return <RunProgress run={run} detail={detail} />;
}
