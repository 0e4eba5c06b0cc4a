import { useState } from "preact/hooks";
import { toHex } from "../api/bytes";
import { kCallTimeoutMs } from "../api/clients";
import { lateClients } from "../api/late-clients";
import { LabEvent_Kind, type Board, type LabEvent } from "../api/types";
import { label, pending } from "../store/actions";
import { serverNowMs } from "../store/clock";
import { boardName } from "../store/fleet";
import { clock, duration } from "../store/format";
import {
  extendReservation,
  owner,
  powerCycle,
  releaseBoard,
  reserve,
  setMaintenance,
  workFor,
} from "../store/lab";
import { linkLive } from "../store/link";
import { usToMs } from "../store/numbers";
import { Facts, Panel, ProblemBox } from "./parts/bits";
import { ConfirmButton } from "./parts/confirm";
import { useLoad } from "./parts/use-load";

const kTimes: [string, number][] = [
  ["1 hour", 3600],
  ["4 hours", 4 * 3600],
  ["1 day", 86_400],
  ["1 week", 7 * 86_400],
];
const kShown = 12; // events

/// Whose the board is for now, whether it is in service, its power, and what was done with it.
export function LabPanel({ board }: { board: Board }) {
  const { reservation, maintenance, power } = board;
  const now = serverNowMs.value;
  const rows: [string, string][] = [
    [
      "Reserved",
      reservation === undefined
        ? "for nobody"
        : `for ${reservation.owner} until ${clock(usToMs(reservation.expireTimeUs), now)}` +
          (reservation.note === "" ? "" : `: ${reservation.note}`),
    ],
    [
      "Service",
      maintenance === undefined
        ? "in service"
        : `maintenance for ${duration(now - usToMs(maintenance.sinceTimeUs))}, by ${maintenance.actor}` +
          (maintenance.note === "" ? "" : `: ${maintenance.note}`),
    ],
  ];
  if (power !== undefined) {
    const last = power.lastTimeUs === 0n ? "" : `, last ${clock(usToMs(power.lastTimeUs), now)}`;
    rows.push(["Power", `${power.profile}${power.automatic ? ", automatic" : ""}${last}`]);
  }
  return (
    <Panel title="In the lab" aside={<LabActions board={board} />}>
      <Facts rows={rows} />
      {reservation === undefined ? <ReserveForm board={board} /> : <HeldBy board={board} />}
      <LabHistory board={board} />
    </Panel>
  );
}

function LabActions({ board }: { board: Board }) {
  const uid = toHex(board.uid);
  const name = label(board);
  const off = board.maintenance === undefined;
  return (
    <span class="row">
      {off ? (
        <ConfirmButton
          class="small"
          label="Maintenance"
          name={`Maintenance of ${name}`}
          title={`Take ${name} out of service?`}
          confirm="Out of service"
          onConfirm={() => void setMaintenance(board, true, "")}
        >
          <p>No run begins on it and its alerts are quiet until it is in service again.</p>
        </ConfirmButton>
      ) : (
        <button
          type="button"
          class="small"
          disabled={!linkLive.value || pending.value.has(`maintenance/${uid}`)}
          onClick={() => void setMaintenance(board, false, "")}
        >
          Back in service
        </button>
      )}
      {board.power !== undefined && (
        <ConfirmButton
          class="small danger"
          label="Power cycle"
          name={`Power cycle ${name}`}
          title={`Switch the power of ${name} off and on?`}
          confirm="Off and on"
          disabled={board.power.running || pending.value.has(`power/${uid}`)}
          onConfirm={() => void powerCycle(board)}
        >
          <p>What the board holds in memory is lost; a run resumes from its last checkpoint.</p>
        </ConfirmButton>
      )}
    </span>
  );
}

function TimeChoice({ value, set }: { value: number; set: (seconds: number) => void }) {
  return (
    <label>
      For
      <select value={value} onChange={(e) => set(Number(e.currentTarget.value))}>
        {kTimes.map(([word, seconds]) => (
          <option key={seconds} value={seconds}>
            {word}
          </option>
        ))}
      </select>
    </label>
  );
}

function ReserveForm({ board }: { board: Board }) {
  const [seconds, setSeconds] = useState(3600);
  const [note, setNote] = useState("");
  const [name, setName] = useState(owner.value);
  return (
    <form
      class="row"
      onSubmit={(e) => {
        e.preventDefault();
        workFor(name);
        void reserve(board, seconds, note.trim(), false);
      }}
    >
      <label>
        Who
        <input
          value={name}
          maxLength={64}
          placeholder="this browser"
          onInput={(e) => setName(e.currentTarget.value)}
        />
      </label>
      <TimeChoice value={seconds} set={setSeconds} />
      <label>
        Note
        <input value={note} maxLength={200} onInput={(e) => setNote(e.currentTarget.value)} />
      </label>
      <button
        type="submit"
        disabled={!linkLive.value || pending.value.has(`reserve/${toHex(board.uid)}`)}
      >
        Reserve
      </button>
    </form>
  );
}

function HeldBy({ board }: { board: Board }) {
  const [seconds, setSeconds] = useState(3600);
  const held = board.reservation?.owner ?? "";
  const mine = held === owner.value || (owner.value === "" && held === board.reservation?.actor);
  const waits = !linkLive.value || pending.value.has(`reserve/${toHex(board.uid)}`);
  if (mine) {
    return (
      <div class="row">
        <TimeChoice value={seconds} set={setSeconds} />
        <button
          type="button"
          disabled={waits}
          onClick={() => void extendReservation(board, seconds)}
        >
          Extend
        </button>
        <button type="button" disabled={waits} onClick={() => void releaseBoard(board, false)}>
          Release
        </button>
      </div>
    );
  }
  return (
    <div class="row">
      <ConfirmButton
        class="small danger"
        label="Take over"
        title={`Take the board over from ${held}?`}
        confirm="Take it over"
        disabled={waits}
        onConfirm={() => void reserve(board, 3600, "", true)}
      >
        <p>{held} loses it; that is written down. It is yours for an hour.</p>
      </ConfirmButton>
    </div>
  );
}

function eventText(e: LabEvent): string {
  const note = e.note === "" ? "" : `: ${e.note}`;
  switch (e.kind) {
    case LabEvent_Kind.RESERVED:
      return `reserved for ${e.owner}${note}`;
    case LabEvent_Kind.EXTENDED:
      return `${e.owner} keeps it longer`;
    case LabEvent_Kind.RELEASED:
      return `${e.owner} released it`;
    case LabEvent_Kind.EXPIRED:
      return `the reservation of ${e.owner} ended`;
    case LabEvent_Kind.TAKEN_OVER:
      return `taken over from ${e.previous} for ${e.owner}${note}`;
    case LabEvent_Kind.MAINTENANCE_ON:
      return `maintenance begins${note}`;
    case LabEvent_Kind.MAINTENANCE_OFF:
      return "maintenance ends";
    case LabEvent_Kind.PLACED:
      return e.place === "" ? `taken from ${e.previous}` : `placed at ${e.place}`;
    case LabEvent_Kind.REPLACED:
      return `replaced by ${boardName(e.otherUid)} at ${e.place}`;
    case LabEvent_Kind.REPLACES:
      return `replaces ${boardName(e.otherUid)} at ${e.place}`;
    case LabEvent_Kind.POWER_CYCLED:
      return e.power?.ok === true
        ? `power off and on${e.power.automatic ? `: ${e.power.reason?.text ?? "by itself"}` : ""}`
        : `power: ${e.power?.reason?.text ?? "failed"}`;
    default:
      return "something else";
  }
}

/// Read anew whenever the board has changed.
function LabHistory({ board }: { board: Board }) {
  const uid = toHex(board.uid);
  const version = `${board.reservation?.expireTimeUs ?? 0n}/${board.maintenance?.sinceTimeUs ?? 0n}`;
  const key = `${uid}/${version}/${board.place}/${board.power?.lastTimeUs ?? 0n}/${board.power?.running}`;
  const events = useLoad(key, "read what was done with the board", async () => {
    const answer = await lateClients().lab.listLabEvents(
      { boardUid: board.uid, pageSize: kShown },
      { timeoutMs: kCallTimeoutMs },
    );
    return answer.events;
  });
  if (events.problem !== null) return <ProblemBox problem={events.problem} />;
  if (events.value === null || events.value === undefined || events.value.length === 0) return null;
  const now = serverNowMs.value;
  return (
    <ul class="plain" aria-label="What was done with the board">
      {events.value.map((e) => (
        <li key={e.seq}>
          <span class="quiet">
            {clock(usToMs(e.timeUs), now)} {e.actor}
          </span>{" "}
          {eventText(e)}
        </li>
      ))}
    </ul>
  );
}
