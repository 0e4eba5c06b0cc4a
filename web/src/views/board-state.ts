import { computed } from "@preact/signals";
import { toHex } from "../api/bytes";
import { BoardStatus, type Board, type Run } from "../api/types";
import { serverNowMs } from "../store/clock";
import { runs } from "../store/fleet";
import { clock, duration } from "../store/format";
import { linkLive } from "../store/link";
import { usToMs } from "../store/numbers";
import { boardLook, type Look } from "./words";

/// A state's look; without a live connection the state is only what it was.
export function knownLook(status: BoardStatus): Look {
  const look = boardLook(status);
  return linkLive.value ? look : { word: `was ${look.word}`, tone: "quiet", shape: "dashed" };
}

/// How a board is, as far as it is known now: without a live connection a state is only what it was.
export function boardState(board: Board): { look: Look; age: string } {
  const look = knownLook(board.status);
  const now = serverNowMs.value;
  const seen = usToMs(board.lastSeenTimeUs);
  const silent = seen > 0 ? duration(now - seen) : "";
  if (!linkLive.value) {
    return { look, age: silent === "" ? "" : `seen ${silent} ago` };
  }
  if (board.status === BoardStatus.OFFLINE || board.status === BoardStatus.UNSPECIFIED) {
    return { look, age: seen > 0 ? `since ${clock(seen, now)}, ${silent}` : "never seen" };
  }
  if (board.status === BoardStatus.SUSPECT) return { look, age: `silent ${silent}` };
  const since = usToMs(board.onlineSinceTimeUs);
  return { look, age: since > 0 ? `for ${duration(now - since)}` : "" };
}

/// Newest run of every board: key of the run by uid. What a run is about never changes, so runs are looked
/// at when they come and go alone.
export const newestRunOfBoard = computed(() => {
  const newest = new Map<string, string>();
  for (const key of runs.keys.value) {
    const spec = runs.peek(key)?.spec;
    if (spec === undefined) continue;
    const uid = toHex(spec.boardUid);
    if ((newest.get(uid) ?? "") < key) newest.set(uid, key);
  }
  return newest;
});

/// The run a board has in hand, else its newest.
export function runOfBoard(board: Board): Run | undefined {
  const active = board.runId.length > 0 ? runs.get(toHex(board.runId)).value : undefined;
  return active ?? runs.get(newestRunOfBoard.value.get(toHex(board.uid)) ?? "").value;
}

/// The same for views over many boards, without hearing of each run's change.
export function peekRunOfBoard(board: Board): Run | undefined {
  const active = board.runId.length > 0 ? runs.peek(toHex(board.runId)) : undefined;
  return active ?? runs.peek(newestRunOfBoard.value.get(toHex(board.uid)) ?? "");
}

export const runLabel = (run: Run): string => run.spec?.name || toHex(run.id).slice(0, 13);
