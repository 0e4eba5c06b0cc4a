import { computed } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { BoardStatus } from "../api/types";
import { stopAll } from "../store/bulk";
import { boards } from "../store/fleet";
import { count } from "../store/format";
import { fleetKnown } from "../store/link";
import { selectedBoards } from "../store/selection";
import { loadSystemInfo, systemInfo } from "../store/system";
import { knownLook } from "./board-state";
import { FleetBulk } from "./fleet-bulk";
import { fleetCounts, kChips, kOnly, shownBoards, type SortKey } from "./fleet-list";
import { BoardRow } from "./fleet-row";
import { PortsPanel } from "./ports";
import { Empty } from "./parts/bits";
import { ConfirmButton } from "./parts/confirm";
import { SearchBox, ShownNote } from "./parts/search-box";
import { SelectHead } from "./parts/select";
import { StateMark } from "./parts/state-mark";
import { WindowBody } from "./parts/window";
import { href, route, setQuery } from "./router";

const kRowHeight = 53;

export function FleetView() {
  const list = useMemo(() => shownBoards(computed(() => route.value.query)), []);
  const shown = list.value;
  const total = boards.keys.value.length;
  if (total === 0) return <NoBoards />;
  return (
    <>
      <h1 class="sr-only">Fleet</h1>
      <FleetBar shown={shown.length} total={total} />
      <FleetBulk shown={shown} />
      {shown.length === 0 ? (
        <Empty title="No board matches">
          <p>
            <a href={href("fleet")}>Clear the filters</a> to see all {total}.
          </p>
        </Empty>
      ) : (
        <div class="table-frame">
          <table class="fleet">
            <thead>
              <tr>
                <SelectHead selection={selectedBoards} shown={shown} what="boards" />
                <SortHead name="status" label="Status" />
                <SortHead name="board" label="Board" />
                <SortHead name="core" label="Core" />
                <th scope="col">Firmware</th>
                <th scope="col">Model</th>
                <SortHead name="run" label="Run" />
                <SortHead name="accuracy" label="Accuracy" />
                <th scope="col">Epochs</th>
                <th scope="col">Link</th>
                <th scope="col">Labels</th>
              </tr>
            </thead>
            <WindowBody
              keys={shown}
              columns={11}
              rowHeight={kRowHeight}
              row={(uid) => <BoardRow key={uid} uidHex={uid} shown={shown} />}
            />
          </table>
        </div>
      )}
      <PortsPanel />
    </>
  );
}

function SortHead({ name, label }: { name: SortKey; label: string }) {
  const active = (route.value.query.get("sort") ?? "board") === name;
  return (
    <th scope="col" aria-sort={active ? "ascending" : "none"}>
      <button
        type="button"
        class="sort"
        onClick={() => setQuery("sort", name === "board" ? "" : name)}
      >
        {label}
        <span aria-hidden="true" class="sort-mark">
          {active ? "▾" : ""}
        </span>
      </button>
    </th>
  );
}

function FleetBar({ shown, total }: { shown: number; total: number }) {
  const query = route.value.query;
  const status = query.get("status") ?? "";
  const counts = fleetCounts.value;
  const active = counts.activeRuns;
  return (
    <div class="bar">
      <SearchBox
        label="Search boards"
        placeholder="Search, core=cortex-m33, site=lab, -offline"
        title="Words, key=value for fields and labels, -word or key!=value to leave out"
      />
      <div class="chips" role="group" aria-label="Filter by status">
        {kChips.map(([word, states], i) => {
          const n = counts.chips[i] ?? 0;
          if (n === 0 && status !== word) return null;
          return (
            <button
              type="button"
              key={word}
              class="chip"
              aria-pressed={status === word}
              onClick={() => setQuery("status", status === word ? "" : word)}
            >
              <StateMark look={knownLook(states[0] ?? BoardStatus.UNSPECIFIED)} />
              <span class="chip-count">{n}</span>
            </button>
          );
        })}
        {kOnly.map(([word, , title], i) => {
          const n = counts.only[i] ?? 0;
          const on = query.get("only") === word;
          if (n === 0 && !on) return null;
          return (
            <button
              type="button"
              key={word}
              class="chip"
              title={title}
              aria-pressed={on}
              onClick={() => setQuery("only", on ? "" : word)}
            >
              only {word}
              <span class="chip-count">{n}</span>
            </button>
          );
        })}
      </div>
      <ShownNote shown={shown} total={total} what="board">
        {" · "}
        <a href={href("runs", "", new URLSearchParams({ state: "active" }))}>
          {active === 1 ? "1 run active" : `${count(active)} runs active`}
        </a>
      </ShownNote>
      <ConfirmButton
        label="Stop all …"
        title="Stop all runs?"
        confirm="Stop all"
        disabled={active === 0}
        hint={active === 0 ? "No run is active" : "Pauses every run on every board, at once"}
        onConfirm={() => void stopAll()}
      >
        <p>
          Every run that is not over is paused, and each board is told at once; one that does not
          answer is told when it is back. Undo lets them go on.
        </p>
      </ConfirmButton>
    </div>
  );
}

function NoBoards() {
  if (!fleetKnown.value) {
    return (
      <div class="loading" aria-busy="true">
        <h1 class="sr-only">Fleet</h1>
        <p>Waiting for the daemon’s first snapshot …</p>
      </div>
    );
  }
  return (
    <>
      <h1 class="sr-only">Fleet</h1>
      <FirstBoard />
      <PortsPanel />
    </>
  );
}

function FirstBoard() {
  useEffect(() => void loadSystemInfo(), []);
  const listen = systemInfo.value?.listenBoards ?? "";
  return (
    <Empty
      title="No boards yet"
      command={
        listen === ""
          ? "odtd --listen 127.0.0.1:7420"
          : `odt-sim-board --connect ${listen} --uid 51a0000000000001`
      }
    >
      <p>
        Plug a board in: a known USB id is opened at once, any other port appears below to be
        adopted.{" "}
        {listen === ""
          ? "This daemon takes no boards over the network yet; to let simulated ones dial in:"
          : "Without hardware, start a simulated one:"}
      </p>
    </Empty>
  );
}
