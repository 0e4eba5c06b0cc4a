// Which boards the fleet page shows, in which order, and how many there are of each kind. Of 1,000 boards some change
// all the time: all of this is made anew at most once a second (Table.version), and redrawn only if it differs.
import { computed, type ReadonlySignal } from "@preact/signals";
import { BoardStatus, RunState, type Board } from "../api/types";
import { boards, modelName, runs } from "../store/fleet";
import { newestRunOfBoard, peekRunOfBoard } from "./board-state";
import { boardFields, parseFilter } from "./filter";
import { boardLook, isActive, runLook } from "./words";

export const kChips: [string, BoardStatus[]][] = [
  ["online", [BoardStatus.ONLINE]],
  ["busy", [BoardStatus.BUSY]],
  ["suspect", [BoardStatus.SUSPECT]],
  ["offline", [BoardStatus.OFFLINE, BoardStatus.UNSPECIFIED]],
  ["quarantined", [BoardStatus.QUARANTINED]],
];

/// Versions by their numbers, part by part.
export function olderThan(a: string, b: string): boolean {
  const [x, y] = [a, b].map((v) => v.split(/[^0-9]+/).map(Number));
  for (let i = 0; i < 3; i++) {
    const d = (x?.[i] ?? 0) - (y?.[i] ?? 0);
    if (d !== 0) return d < 0;
  }
  return false;
}

function newestVersion(list: readonly Board[]): string {
  const versions = new Set(list.map((b) => b.fwVersion));
  return [...versions].reduce((best, v) => (olderThan(best, v) ? v : best), "");
}

export const kOnly: [string, (b: Board, newest: string) => boolean, string][] = [
  ["failed", (b) => peekRunOfBoard(b)?.state === RunState.FAILED, "Boards whose newest run failed"],
  [
    "outdated",
    (b, newest) => b.fwVersion !== "" && b.fwVersion !== newest && olderThan(b.fwVersion, newest),
    "Boards with older firmware than the newest in the fleet",
  ],
];

export type SortKey = "board" | "status" | "core" | "run" | "accuracy";
const kSorts: Record<SortKey, (b: Board) => string | number> = {
  board: (b) => b.name.toLowerCase(),
  status: (b) => b.status,
  core: (b) => b.core,
  run: (b) => -(peekRunOfBoard(b)?.state ?? 0),
  accuracy: (b) => {
    const after = peekRunOfBoard(b)?.after ?? peekRunOfBoard(b)?.heldoutBest;
    return after === undefined || after.total === 0 ? 2 : -after.correct / after.total;
  },
};
const { compare } = new Intl.Collator(undefined, { numeric: true });

interface Row {
  key: string;
  board: Board;
}

function sorted(list: Row[], key: SortKey): Row[] {
  const by = kSorts[key];
  const keyed = list.map((row) => ({ row, k: by(row.board) }));
  keyed.sort((x, y) =>
    x.k === y.k
      ? compare(x.row.board.name, y.row.board.name)
      : typeof x.k === "number" && typeof y.k === "number"
        ? x.k - y.k
        : compare(String(x.k), String(y.k)),
  );
  return keyed.map((k) => k.row);
}

const sameKeys = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((k, i) => k === b[i]);

/// Keys of the boards that the query asks for, in its order; the same array as long as nothing moves.
export function shownBoards(query: ReadonlySignal<URLSearchParams>): ReadonlySignal<string[]> {
  let before: string[] = [];
  return computed(() => {
    void boards.version.value;
    void runs.version.value;
    void newestRunOfBoard.value;
    const asked = query.value;
    const text = (asked.get("q") ?? "").trim();
    const test = parseFilter(text);
    const wanted = kChips.find(([word]) => word === asked.get("status"))?.[1];
    const only = kOnly.find(([word]) => word === asked.get("only"))?.[1];
    const newest = only === undefined ? "" : newestVersion(boards.all());
    const place = new Map(before.map((key, i) => [key, i]));
    const list = boards.keys.value.flatMap((key): Row[] => {
      const board = boards.peek(key);
      if (board === undefined) return [];
      if (only !== undefined && !only(board, newest)) return [];
      if (wanted !== undefined && !wanted.includes(board.status)) return [];
      if (text === "") return [{ key, board }];
      const run = peekRunOfBoard(board);
      const word = boardLook(board.status).word;
      const runWord = run === undefined ? "" : runLook(run.state).word;
      return test(boardFields(board, word, modelName(board.modelHash), runWord))
        ? [{ key, board }]
        : [];
    });
    // What is in order already is sorted in one pass.
    list.sort((a, b) => (place.get(a.key) ?? Infinity) - (place.get(b.key) ?? Infinity) || 0);
    const sort = asked.get("sort") ?? "board";
    const keys = sorted(list, sort in kSorts ? (sort as SortKey) : "board").map((r) => r.key);
    if (!sameKeys(keys, before)) before = keys;
    return before;
  });
}

export interface FleetCounts {
  chips: readonly number[]; // as kChips
  only: readonly number[]; // as kOnly
  activeRuns: number;
}

let counted: FleetCounts = { chips: [], only: [], activeRuns: -1 };
const sameCounts = (a: FleetCounts, b: FleetCounts): boolean =>
  a.activeRuns === b.activeRuns && `${a.chips},${a.only}` === `${b.chips},${b.only}`;

export const fleetCounts = computed((): FleetCounts => {
  const list = boards.all();
  void newestRunOfBoard.value;
  const newest = newestVersion(list);
  const count = (test: (b: Board) => boolean): number =>
    list.reduce((n, b) => (test(b) ? n + 1 : n), 0);
  const now = {
    chips: kChips.map(([, states]) => count((b) => states.includes(b.status))),
    only: kOnly.map(([, test]) => count((b) => test(b, newest))),
    activeRuns: runs.all().reduce((n, r) => (isActive(r.state) ? n + 1 : n), 0),
  };
  if (!sameCounts(now, counted)) counted = now;
  return counted;
});
