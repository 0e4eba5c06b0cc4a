// What boards print, as the daemon keeps it.
import { fromHex, toHex } from "../api/bytes";
import { lateClients } from "../api/late-clients";
import { ConsoleSource, type ConsoleLine as ApiLine, type ListConsoleResponse } from "../api/types";
import { boardName } from "./fleet";
import { LineFeed, type FeedPage } from "./line-feed";
import { stamp } from "./log";
import { usToMs } from "./numbers";

const options = { timeoutMs: 20_000 };
const kPage = 500;

export interface ConsoleLine {
  seq: bigint;
  timeMs: number;
  boardHex: string;
  source: "log" | "raw" | "odtd";
  level: number;
  text: string;
}
export interface ConsoleFilter {
  boardHex: string; // "": all
  search: string;
  problems: boolean; // warnings and worse
}

const kLevels = ["trace", "debug", "info", "warn", "error", "critical"];
export const kWarning = 3;
export const levelWord = (l: ConsoleLine): string =>
  l.source === "log" ? (kLevels[l.level] ?? String(l.level)) : l.source;

function line(l: ApiLine): ConsoleLine {
  return {
    seq: l.seq,
    timeMs: usToMs(l.timeUs),
    boardHex: toHex(l.boardUid),
    source:
      l.source === ConsoleSource.RAW ? "raw" : l.source === ConsoleSource.HOST ? "odtd" : "log",
    level: l.level,
    text: l.text,
  };
}

type Where = { afterSeq?: bigint; beforeSeq?: bigint; begin?: boolean };
const ask = (filter: ConsoleFilter, where: Where, pageSize = kPage): Promise<ListConsoleResponse> =>
  lateClients().console.listConsole(
    {
      pageSize,
      boardUids: filter.boardHex === "" ? [] : [fromHex(filter.boardHex)],
      search: filter.search,
      leastLevel: filter.problems ? kWarning : 0,
      ...where,
    },
    options,
  );

export interface ConsoleLimits {
  kept: number;
  perBoard: number;
  lost: number;
}

/// Lines by a filter; `told` hears how many there are on the daemon.
export function consoleFeed(
  filter: ConsoleFilter,
  told: (limits: ConsoleLimits) => void,
): LineFeed<ConsoleLine> {
  const page = (r: ListConsoleResponse, up: boolean): FeedPage<ConsoleLine> => {
    told({ kept: Number(r.kept), perBoard: Number(r.keptPerBoard), lost: Number(r.lost) });
    return {
      lines: r.lines.map(line),
      older: !up && r.more ? String(r.lines[0]?.seq ?? "") : "",
      newest: r.newestSeq,
      epoch: r.epoch,
      more: up && r.more,
    };
  };
  return new LineFeed(
    {
      newest: async () => page(await ask(filter, {}), false),
      before: async (older) => page(await ask(filter, { beforeSeq: BigInt(older) }), false),
      after: async (seq) =>
        page(await ask(filter, seq === 0n ? { begin: true } : { afterSeq: seq }), true),
    },
    "read the consoles",
  );
}

export const consoleText = (lines: readonly ConsoleLine[], times: boolean): string =>
  lines
    .map(
      (l) =>
        `${times ? `${stamp(l.timeMs)} ` : ""}${boardName(fromHex(l.boardHex))} ${levelWord(l)} ${l.text}\n`,
    )
    .join("");

/// All that is kept, oldest first, as parts of a file: a page at a time is in memory.
export async function readConsole(
  filter: ConsoleFilter,
  times: boolean,
  onProgress: (lines: number) => void,
): Promise<Blob[]> {
  const parts: Blob[] = [];
  let done = 0;
  for (let where: Where = { begin: true }; ; ) {
    const page = await ask(filter, where, 1000);
    parts.push(new Blob([consoleText(page.lines.map(line), times)]));
    done += page.lines.length;
    onProgress(done);
    const last = page.lines[page.lines.length - 1];
    if (!page.more || last === undefined) return parts;
    where = { afterSeq: last.seq };
  }
}
