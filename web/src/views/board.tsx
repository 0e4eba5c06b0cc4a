import { useState } from "preact/hooks";
import { toHex } from "../api/bytes";
import { BoardStatus, type Board, type Run } from "../api/types";
import { identify, pending, rename } from "../store/actions";
import { serverNowMs } from "../store/clock";
import { boards, datasetName, modelName, runsOfBoard } from "../store/fleet";
import { bytes, clock, count, duration, kNone, microseconds } from "../store/format";
import { fleetKnown, linkLive } from "../store/link";
import { usToMs } from "../store/numbers";
import { DesiredPanel, LabelsEditor, LinkHistory, NvmPanel, ResetButton } from "./board-panels";
import { LabPanel } from "./board-lab";
import { boardState, runLabel, runOfBoard } from "./board-state";
import { Empty, Facts, Hash, Loading, Panel, ProblemBox, Tile } from "./parts/bits";
import {
  HeldoutChange,
  liveRunLook,
  ReplayBadge,
  RunProgress,
  TestChange,
  useRunDetail,
} from "./parts/run-bits";
import { StateMark } from "./parts/state-mark";
import { href } from "./router";
import { LayerChart, ResultCharts } from "./run-charts";
import { TrainDialog } from "./train-dialog";
import { isActive, isOpen } from "./words";

export function BoardView({ uidHex }: { uidHex: string }) {
  const board = boards.get(uidHex).value;
  if (board === undefined) {
    if (!fleetKnown.value) {
      return <Loading page="Board" />;
    }
    return (
      <>
        <h1 class="sr-only">Board</h1>
        <Empty title={`No board ${uidHex}`} command="odtctl board list">
          <p>
            It was never seen by this daemon, or it was deleted.{" "}
            <a href={href("fleet")}>All boards</a>
          </p>
        </Empty>
      </>
    );
  }
  const run = runOfBoard(board);
  return (
    <>
      <BoardHead board={board} />
      <div class="two-columns">
        <div>
          {run === undefined ? (
            <Panel title="Training">
              <Empty
                title="This board has not trained yet"
                command={`odtctl train --board ${board.name || uidHex} --model MODEL --data DATASET --epochs 5`}
              />
            </Panel>
          ) : (
            <RunPanel key={toHex(run.id)} run={run} />
          )}
          <DesiredPanel board={board} />
          <History uidHex={uidHex} />
        </div>
        <aside>
          <LinkPanel board={board} />
          <LabPanel board={board} />
          <LabelsEditor board={board} />
          <NvmPanel board={board} />
          <DetailPanel board={board} />
        </aside>
      </div>
    </>
  );
}

function BoardHead({ board }: { board: Board }) {
  const [editing, setEditing] = useState(false);
  const [training, setTraining] = useState(false);
  const { look, age } = boardState(board);
  const uid = toHex(board.uid);
  const reachable = board.status === BoardStatus.ONLINE || board.status === BoardStatus.SUSPECT;
  return (
    <header class="page-head">
      <nav aria-label="Where this is" class="crumbs">
        <a href={href("fleet")}>Fleet</a> <span aria-hidden="true">/</span>
      </nav>
      {editing ? (
        <RenameForm board={board} close={() => setEditing(false)} />
      ) : (
        <h1>{board.name || uid.slice(-8)}</h1>
      )}
      <StateMark look={look} age={age} />
      <span class="quiet head-note">
        {[board.core, board.boardType, board.place].filter(Boolean).join(" · ")}
      </span>
      <div class="page-actions">
        {!editing && (
          <button type="button" onClick={() => setEditing(true)}>
            Rename
          </button>
        )}
        <button
          type="button"
          disabled={!reachable || !linkLive.value || pending.value.has(`identify/${uid}`)}
          title={
            reachable ? "Blinks the board’s LED for 10 s" : "Only a board that is online can blink"
          }
          onClick={() => void identify(board)}
        >
          Identify
        </button>
        <a class="button" href={href("console", "", new URLSearchParams({ board: uid }))}>
          Console
        </a>
        <ResetButton board={board} />
        <button
          type="button"
          class="primary"
          disabled={!linkLive.value}
          onClick={() => setTraining(true)}
        >
          Train …
        </button>
      </div>
      {training && <TrainDialog board={board} close={() => setTraining(false)} />}
    </header>
  );
}

function RenameForm({ board, close }: { board: Board; close: () => void }) {
  const [name, setName] = useState(board.name);
  const [place, setPlace] = useState(board.place);
  return (
    <form
      class="rename"
      onSubmit={(e) => {
        e.preventDefault();
        void rename(board, name.trim(), place.trim()).then((ok) => ok && close());
      }}
      onKeyDown={(e) => e.key === "Escape" && close()}
    >
      <label>
        Name
        <input
          value={name}
          required
          maxLength={63}
          onInput={(e) => setName(e.currentTarget.value)}
        />
      </label>
      <label>
        Place
        <input value={place} maxLength={63} onInput={(e) => setPlace(e.currentTarget.value)} />
      </label>
      <button type="submit" class="primary">
        Save
      </button>
      <button type="button" onClick={close}>
        Cancel
      </button>
    </form>
  );
}

function RunPanel({ run }: { run: Run }) {
  const active = isActive(run.state);
  const detail = useRunDetail(toHex(run.id), true, isOpen(run.state));
  const hex = toHex(run.id);
  return (
    <Panel
      title={active ? "Current run" : "Last run"}
      aside={
        <>
          <StateMark look={liveRunLook(run)} />
          <ReplayBadge run={run} />
          <a href={href("run", hex)}>{runLabel(run)}</a>
        </>
      }
    >
      <div class="run-strip">
        <span>
          {run.spec && modelName(run.spec.modelHash)} on{" "}
          {run.spec && datasetName(run.spec.datasetId)}
        </span>
        {active && <RunProgress run={run} detail={detail} />}
        <span>
          <span class="quiet">test </span>
          <TestChange run={run} />
        </span>
        <span>
          <span class="quiet">held-out </span>
          <HeldoutChange run={run} />
        </span>
      </div>
      {detail.problem.value !== null && (
        <ProblemBox problem={detail.problem.value} retry={() => void detail.load(true)} />
      )}
      <div class="charts">
        <ResultCharts run={run} detail={detail} />
        <LayerChart run={run} detail={detail} quantity="shift" />
        <LayerChart run={run} detail={detail} quantity="bits" />
      </div>
    </Panel>
  );
}

function LinkPanel({ board }: { board: Board }) {
  const link = board.link;
  const now = serverNowMs.value;
  const seen = usToMs(board.lastSeenTimeUs);
  return (
    <Panel title="Link">
      <div class="tiles">
        <Tile label="Round trip" value={microseconds(link?.rttUs ?? 0)} note="smoothed" />
        <Tile
          label="CRC errors"
          value={<Fault n={link?.crcErrors ?? 0n} />}
          note={perMillion(link?.crcErrors ?? 0n, link?.rxFrames ?? 0n)}
        />
        <Tile
          label="Resent"
          value={<Fault n={link?.retries ?? 0n} />}
          note={perMillion(link?.retries ?? 0n, link?.txFrames ?? 0n)}
        />
        <Tile label="Telemetry gaps" value={<Fault n={link?.telemetryGaps ?? 0n} />} />
      </div>
      <Facts
        rows={[
          ["Endpoint", <code>{link?.endpoint || kNone}</code>],
          ["Last frame", seen > 0 ? `${duration(now - seen)} ago` : "never"],
          ["Sessions", count(link?.sessionCount ?? 0)],
          ["Received", `${bytes(link?.rxBytes ?? 0n)} in ${count(link?.rxFrames ?? 0n)} frames`],
          ["Sent", `${bytes(link?.txBytes ?? 0n)} in ${count(link?.txFrames ?? 0n)} frames`],
        ]}
      />
      <LinkHistory board={board} />
    </Panel>
  );
}

function Fault({ n }: { n: bigint }) {
  return <span class={n > 0n ? "tone-warn" : ""}>{count(n)}</span>;
}

function perMillion(n: bigint, of: bigint): string {
  if (of === 0n) return "of no frames";
  const ppm = Number((n * 1_000_000n) / of);
  return n === 0n ? `of ${count(of)} frames` : `${count(ppm)} ppm of frames`;
}

function DetailPanel({ board }: { board: Board }) {
  return (
    <Panel title="Board">
      <Facts
        rows={[
          ["Uid", <Hash value={board.uid} label="uid" />],
          ["Place", board.place || kNone],
          ["Core", board.core || kNone],
          ["Type", board.boardType || kNone],
          ["Firmware", board.fwVersion || kNone],
          ["Rules version", board.rulesVersion],
          ["RAM for training", bytes(board.ramBytes)],
          ["Most layers", board.maxLayers],
          ["Largest batch", board.maxBatch],
          ["Frame limit", bytes(board.mtu)],
          ["Model held", modelName(board.modelHash) || kNone],
          ["State held", <Hash value={board.stateHash} label="state hash" />],
          ["Last step", count(board.lastStep)],
          ["Boots seen", board.bootsSeen],
          ["Last reset", board.resetReason || kNone],
          ["First seen", clock(usToMs(board.meta?.createTimeUs ?? 0n), serverNowMs.value)],
        ]}
      />
    </Panel>
  );
}

function History({ uidHex }: { uidHex: string }) {
  const list = runsOfBoard(uidHex);
  if (list.length === 0) return null;
  return (
    <Panel title="Runs of this board">
      <div class="table-frame">
        <table>
          <thead>
            <tr>
              <th scope="col">State</th>
              <th scope="col">Run</th>
              <th scope="col">Dataset</th>
              <th scope="col">Model</th>
              <th scope="col">Test accuracy</th>
              <th scope="col">Started</th>
            </tr>
          </thead>
          <tbody>
            {list.slice(0, 50).map((run) => (
              <HistoryRow key={toHex(run.id)} run={run} />
            ))}
          </tbody>
        </table>
      </div>
      {list.length > 50 && (
        <p class="quiet">
          The newest 50 of {count(list.length)}:{" "}
          <a href={href("runs", "", new URLSearchParams({ q: uidHex }))}>all runs of this board</a>
        </p>
      )}
    </Panel>
  );
}

function HistoryRow({ run }: { run: Run }) {
  return (
    <tr>
      <td>
        <StateMark look={liveRunLook(run)} />
      </td>
      <th scope="row">
        <a href={href("run", toHex(run.id))}>{runLabel(run)}</a>
      </th>
      <td>{run.spec && datasetName(run.spec.datasetId)}</td>
      <td>{run.spec && modelName(run.spec.modelHash)}</td>
      <td>
        <TestChange run={run} />
      </td>
      <td class="nowrap">{clock(usToMs(run.startTimeUs), serverNowMs.value)}</td>
    </tr>
  );
}
