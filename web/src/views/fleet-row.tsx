import { toHex } from "../api/bytes";
import type { Board, LinkStats, Run } from "../api/types";
import { boards, datasetName, modelName } from "../store/fleet";
import { count, kNone, microseconds } from "../store/format";
import { selectedBoards } from "../store/selection";
import { boardState, knownLook, runLabel, runOfBoard } from "./board-state";
import {
  HeldoutChange,
  HeldoutSpark,
  liveRunLook,
  ReplayBadge,
  RunProgress,
  TestChange,
  useRunDetail,
} from "./parts/run-bits";
import { SelectCell } from "./parts/select";
import { StateMark } from "./parts/state-mark";
import { href } from "./router";
import { isActive, isOpen } from "./words";

export function BoardRow({ uidHex, shown }: { uidHex: string; shown: readonly string[] }) {
  const board = boards.get(uidHex).value;
  if (board === undefined) return null;
  const run = runOfBoard(board);
  return (
    <tr class={`board-row tone-row-${knownLook(board.status).tone}`}>
      <SelectCell
        selection={selectedBoards}
        row={uidHex}
        name={board.name || uidHex.slice(-8)}
        shown={shown}
      />
      <td class="cell-status">
        <BoardStateMark board={board} />
      </td>
      <th scope="row" class="cell-board">
        <a href={href("board", uidHex)}>{board.name || uidHex.slice(-8)}</a>
        <span class="sub">{board.place || `…${uidHex.slice(-8)}`}</span>
        <UseNote board={board} />
      </th>
      <td class="cell-core" data-label="Core">
        {board.core || kNone}
        <span class="sub">{board.boardType}</span>
      </td>
      <td class="cell-fw" data-label="Firmware">
        {board.fwVersion || kNone}
        <span class="sub">rules {board.rulesVersion}</span>
      </td>
      <td class="cell-model" data-label="Model">
        {modelName(board.modelHash) || kNone}
      </td>
      {run === undefined ? <NoRun /> : <RunCells key={toHex(run.id)} run={run} board={board} />}
      <td class="cell-link" data-label="Link">
        <LinkCell link={board.link} />
      </td>
      <td class="cell-labels" data-label="Labels">
        {Object.entries(board.labels).map(([k, v]) => (
          <a
            key={k}
            class="label"
            href={href("fleet", "", new URLSearchParams({ q: `${k}=${v}` }))}
            title="Show boards with this label"
          >
            {k}={v}
          </a>
        ))}
      </td>
    </tr>
  );
}

/// Who else may not use it now.
function UseNote({ board }: { board: Board }) {
  if (board.maintenance !== undefined) {
    return (
      <span class="sub tone-warn" title={board.maintenance.note}>
        in maintenance
      </span>
    );
  }
  if (board.reservation === undefined) return null;
  return (
    <span class="sub tone-warn" title={board.reservation.note}>
      for {board.reservation.owner}
    </span>
  );
}

/// Of its own: an age goes on every second, the rest of the row does not.
function BoardStateMark({ board }: { board: Board }) {
  return <StateMark {...boardState(board)} />;
}

function NoRun() {
  return (
    <>
      <td class="cell-run" data-label="Run">
        <span class="quiet">no run yet</span>
      </td>
      <td class="cell-accuracy" data-label="Accuracy">
        <span class="quiet">{kNone}</span>
      </td>
      <td class="cell-spark" />
    </>
  );
}

function RunCells({ run, board }: { run: Run; board: Board }) {
  const active = isActive(run.state);
  const detail = useRunDetail(toHex(run.id), false, isOpen(run.state));
  const name = board.name || toHex(board.uid).slice(-8);
  // While it trains only the held-out set tells how it goes; in the end the test split counts.
  const hasAfter = (run.after?.total || run.afterLoss?.count || 0) > 0;
  const hasBefore = (run.before?.total || run.beforeLoss?.count || 0) > 0;
  const test = hasAfter || (!active && hasBefore);
  return (
    <>
      <td class="cell-run" data-label="Run">
        <span class="run-line">
          <StateMark look={liveRunLook(run)} />
          <a href={href("run", toHex(run.id))}>
            {run.spec ? datasetName(run.spec.datasetId) : runLabel(run)}
          </a>
        </span>
        {active ? (
          <RunProgress run={run} detail={detail} />
        ) : (
          <span class="sub" title={run.reason?.text ?? ""}>
            {run.reason?.code ? run.reason.text || run.reason.code : runLabel(run)}
          </span>
        )}
      </td>
      <td class="cell-accuracy" data-label="Accuracy">
        {test ? <TestChange run={run} /> : <HeldoutChange run={run} />}
        <span class="sub">
          {test ? "test split" : active ? "held-out, best so far" : "held-out"}{" "}
          <ReplayBadge run={run} />
        </span>
      </td>
      <td class="cell-spark">
        <HeldoutSpark run={run} detail={detail} name={name} />
      </td>
    </>
  );
}

function LinkCell({ link }: { link: LinkStats | undefined }) {
  if (link === undefined) return <span class="quiet">{kNone}</span>;
  const faults = link.crcErrors + link.retries;
  return (
    <>
      {microseconds(link.rttUs)}
      <span class={faults > 0n ? "sub tone-warn" : "sub"}>
        {faults > 0n ? `${count(link.crcErrors)} CRC, ${count(link.retries)} resent` : "no faults"}
      </span>
    </>
  );
}
