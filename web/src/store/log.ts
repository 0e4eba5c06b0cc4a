// Events of the daemon as lines of a log: bounded, newest last.
import { signal } from "@preact/signals";
import { fromHex, toHex } from "../api/bytes";
import { BoardStatus, Job_State, RunState, type Event } from "../api/types";
import { boardName, runs } from "./fleet";
import { usToMs } from "./numbers";

export type Level = "info" | "warn" | "bad";
export interface LogLine {
  seq: bigint;
  timeMs: number;
  level: Level;
  kind: string; // "board", "run", "job", ...
  boardHex: string; // "": of no board
  runHex: string;
  actor: string;
  text: string;
}

export const kMostLines = 10_000;

const kWords = <E extends number>(names: Record<string, string | number>, value: E): string =>
  String(names[value] ?? value)
    .toLowerCase()
    .replaceAll("_", " ");

const kAlarms: [number, string][] = [
  [1, "dead layer"],
  [2, "saturation"],
  [4, "stuck"],
  [8, "mu clamped"],
];

type Rest = Pick<LogLine, "level" | "kind" | "boardHex" | "runHex" | "text">;
const line = (kind: string, text: string, rest: Partial<Rest> = {}): Rest => ({
  level: "info",
  boardHex: "",
  runHex: "",
  kind,
  text,
  ...rest,
});

/// What an event says in one line; null: nothing that a person would read.
export function describeEvent(event: Event): Rest | null {
  const { what } = event;
  switch (what.case) {
    case "board": {
      const b = what.value;
      const bad = b.status === BoardStatus.OFFLINE || b.status === BoardStatus.QUARANTINED;
      const why = b.resetReason !== "" ? `, last reset ${b.resetReason}` : "";
      return line("board", `${kWords(BoardStatus, b.status)}, boots ${b.bootsSeen}${why}`, {
        boardHex: toHex(b.uid),
        level: bad ? "warn" : "info",
      });
    }
    case "port":
      return line("port", `${what.value.path}: ${what.value.reason?.text || "state changed"}`, {
        boardHex: toHex(what.value.boardUid),
      });
    case "runEvent": {
      const e = what.value;
      const cause = e.cause === "" ? "" : `: ${e.cause}`;
      return line("run", `${kWords(RunState, e.from)} to ${kWords(RunState, e.to)}${cause}`, {
        runHex: toHex(e.runId),
        level: e.to === RunState.FAILED ? "bad" : e.to === RunState.WAITING_BOARD ? "warn" : "info",
      });
    }
    case "epoch": {
      const e = what.value;
      const heldout =
        e.heldout && e.heldout.total > 0
          ? `, held-out ${e.heldout.correct} of ${e.heldout.total}`
          : "";
      const alarms = kAlarms.filter(([bit]) => (e.alarms & bit) !== 0).map(([, word]) => word);
      const alarm = alarms.length > 0 ? `: ${alarms.join(", ")}` : "";
      return line("epoch", `epoch ${e.epoch} at step ${e.step}${heldout}${alarm}`, {
        runHex: toHex(e.runId),
        boardHex: toHex(e.boardUid),
        level: e.alarms !== 0 ? "warn" : "info",
      });
    }
    case "job":
      return line(
        "job",
        `${kWords(Job_State, what.value.state)}: ${what.value.reason?.text || what.value.message}`,
        {
          level: what.value.state === Job_State.FAILED ? "bad" : "info",
        },
      );
    case "warning": {
      const w = what.value;
      return line("warning", [w.reason?.text, w.reason?.remedy].filter(Boolean).join(" "), {
        boardHex: toHex(w.boardUid),
        runHex: toHex(w.runId),
        level: "warn",
      });
    }
    case "snapshot":
      return line(
        "weights",
        `${toHex(what.value.hash).slice(0, 12)} ${what.value.origin} ${what.value.aliases.join(", ")}`.trim(),
        {
          boardHex: toHex(what.value.boardUid),
          runHex: toHex(what.value.runId),
        },
      );
    case "campaignEvent":
      return line("campaign", what.value.cause || "state changed");
    case "evaluation":
      return line(
        "evaluation",
        `${what.value.accuracy?.correct ?? 0} of ${what.value.accuracy?.total ?? 0} right`,
        {
          boardHex: toHex(what.value.boardUid),
        },
      );
    case "model":
    case "dataset":
      return line(what.case, what.value.name);
    case "deleted":
      return line("deleted", `${what.value.kind} ${toHex(what.value.key).slice(0, 12)}`);
    default:
      return null; // a run as a whole comes with every step: its own events tell the changes
  }
}

/// Lines by event number, each once; the oldest are let go.
export class EventLog {
  readonly lines = signal<readonly LogLine[]>([]);
  readonly dropped = signal(0); // lines that gave way
  private readonly seen = new Set<bigint>();

  add(events: readonly Event[]): void {
    const fresh: LogLine[] = [];
    for (const event of events) {
      if (event.eventSeq === 0n || this.seen.has(event.eventSeq)) continue; // 0: a state, not a change
      const said = describeEvent(event);
      if (said === null) continue;
      this.seen.add(event.eventSeq);
      fresh.push({
        seq: event.eventSeq,
        timeMs: usToMs(event.timeUs),
        actor: event.actor,
        ...said,
      });
    }
    if (fresh.length === 0) return;
    const old = this.lines.value;
    const last = old[old.length - 1]?.seq ?? -1n;
    const all = [...old, ...fresh];
    if (fresh.some((l, i) => l.seq < (i === 0 ? last : (fresh[i - 1]?.seq ?? 0n))))
      all.sort((a, b) => (a.seq < b.seq ? -1 : 1));
    const over = Math.max(0, all.length - kMostLines);
    for (const gone of all.slice(0, over)) this.seen.delete(gone.seq);
    this.dropped.value += over;
    this.lines.value = over > 0 ? all.slice(over) : all;
  }

  clear(): void {
    this.lines.value = [];
    this.dropped.value = 0;
    this.seen.clear();
  }
}

export const eventLog = new EventLog();

const two = (n: number): string => String(n).padStart(2, "0");
/// Time as a log has it, to the millisecond: "2026-11-30 15:04:05.123".
export function stamp(timeMs: number): string {
  const t = new Date(timeMs);
  const day = `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())}`;
  const time = `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
  return `${day} ${time}.${String(t.getMilliseconds()).padStart(3, "0")}`;
}

/// Board that a line is about: its own, or that of its run; "" where there is none.
export function boardOf(l: LogLine): string {
  if (l.boardHex !== "" || l.runHex === "") return l.boardHex;
  return toHex(runs.peek(l.runHex)?.spec?.boardUid ?? new Uint8Array());
}

/// Lines as a text file.
export const logText = (lines: readonly LogLine[], times: boolean): string =>
  lines
    .map((l) => {
      const board = boardOf(l);
      const who = board === "" ? "-" : boardName(fromHex(board));
      return `${times ? `${stamp(l.timeMs)} ` : ""}${l.level.toUpperCase().padEnd(4)} ${who} ${l.kind} ${l.text}\n`;
    })
    .join("");
