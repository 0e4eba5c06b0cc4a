// Events of the daemon as lines of a log, newest last.
import { fromHex, toHex } from "../api/bytes";
import { lateClients } from "../api/late-clients";
import { BoardStatus, Job_State, RunState, type Event } from "../api/types";
import { boardName, runs } from "./fleet";
import { LineFeed, type FeedPage } from "./line-feed";
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
    case "alert": {
      const a = what.value;
      const over = a.resolveTimeUs > 0n;
      return line(
        "alert",
        `${a.subject}: ${over ? `over, ${a.resolution}` : (a.reason?.text ?? "")}`,
        {
          boardHex: toHex(a.boardUid),
          runHex: toHex(a.runId),
          level: over ? "info" : "warn",
        },
      );
    }
    case "setting":
      return line("setting", `${what.value.key} = ${what.value.value}`, {
        boardHex: toHex(what.value.boardUid),
      });
    case "model":
    case "dataset":
      return line(what.case, what.value.name);
    case "deleted":
      return line("deleted", `${what.value.kind} ${toHex(what.value.key).slice(0, 12)}`);
    default:
      return null; // a run as a whole comes with every step: its own events tell the changes
  }
}

/// What events are asked for by the kind that their lines have.
export const kKinds: Record<string, string> = {
  board: "board",
  port: "port",
  run: "run_event",
  epoch: "epoch",
  job: "job",
  warning: "warning",
  alert: "alert",
  weights: "snapshot",
  campaign: "campaign_event",
  evaluation: "evaluation",
  model: "model",
  dataset: "dataset",
  setting: "setting",
  deleted: "deleted",
};

export interface LogFilter {
  boardHex: string; // "": all
  kind: string; // "": every kind
  search: string;
  problems: boolean;
}

export function logLine(event: Event): LogLine | null {
  const said = describeEvent(event);
  if (said === null) return null;
  return { seq: event.eventSeq, timeMs: usToMs(event.timeUs), actor: event.actor, ...said };
}

const options = { timeoutMs: 20_000 };
const kPage = 500;

const ask = (
  filter: LogFilter,
  where: { afterSeq?: bigint; pageToken?: string },
  pageSize: number,
) =>
  lateClients().event.searchEvents(
    {
      pageSize,
      search: filter.search,
      kinds: filter.kind === "" ? Object.values(kKinds) : [kKinds[filter.kind] ?? filter.kind],
      boardUid: fromHex(filter.boardHex),
      problems: filter.problems,
      ...where,
    },
    options,
  );
type Answer = Awaited<ReturnType<typeof ask>>;

const linesOf = (answer: Answer): LogLine[] =>
  answer.events
    .map(logLine)
    .filter((l): l is LogLine => l !== null)
    .reverse();

/// The daemon's events by a filter, searched there.
export function logFeed(filter: LogFilter): LineFeed<LogLine> {
  const page = (answer: Answer): FeedPage<LogLine> => ({
    lines: linesOf(answer),
    older: answer.nextPageToken,
    newest: answer.newestEventSeq,
    epoch: answer.storeEpoch,
    more: false,
  });
  return new LineFeed(
    {
      newest: async () => page(await ask(filter, {}, kPage)),
      before: async (pageToken) => page(await ask(filter, { pageToken }, kPage)),
      after: async (afterSeq) => page(await allAfter(filter, afterSeq)),
    },
    "read the log",
  );
}

// They come newest first: all pages of what is later.
async function allAfter(filter: LogFilter, afterSeq: bigint): Promise<Answer> {
  const first = await ask(filter, { afterSeq }, 1000);
  for (let pageToken = first.nextPageToken; pageToken !== ""; ) {
    const next = await ask(filter, { afterSeq, pageToken }, 1000);
    first.events.push(...next.events);
    pageToken = next.nextPageToken;
  }
  return first;
}

/// Every line that matches, oldest first, as parts of a file.
export async function readLog(
  filter: LogFilter,
  times: boolean,
  onProgress: (lines: number) => void,
): Promise<Blob[]> {
  const parts: Blob[] = [];
  let done = 0;
  for (let pageToken = ""; ; ) {
    const answer = await ask(filter, { pageToken }, 1000);
    const lines = linesOf(answer);
    parts.unshift(new Blob([logText(lines, times)]));
    done += lines.length;
    onProgress(done);
    pageToken = answer.nextPageToken;
    if (pageToken === "") return parts;
  }
}

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
