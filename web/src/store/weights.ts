// What a person does with snapshots of weights.
import { fromHex, newRequestId, toHex } from "../api/bytes";
import { clients, kCallTimeoutMs } from "../api/clients";
import { BoardRestore_Outcome, WeightsFormat } from "../api/types";
import type { BoardRestore, Snapshot } from "../api/types";
import { act } from "./actions";
import { boardName, boards, snapshots } from "./fleet";
import { fileName, saveBlob, uploadFile, type Progress } from "./files";
import { jobEnd } from "./job-end";
import { snapshotName } from "./snapshot-tree";

const options = { timeoutMs: kCallTimeoutMs };
const kBoardMs = 120_000; // weights go over a serial line
const kMostUndone = 8; // boards whose weights are read first, so that a restore can be taken back

interface Change {
  addAliases?: string[];
  removeAliases?: string[];
  note?: string;
  pinned?: boolean;
}

export function updateSnapshot(s: Snapshot, change: Change, done: string, undo?: Change) {
  const name = snapshotName(s);
  return act(
    `snapshot/${toHex(s.hash)}`,
    `change weights ${name}`,
    done,
    async (requestId) => {
      const answer = await clients().weights.updateSnapshot(
        { requestId, hash: s.hash, ...change },
        options,
      );
      if (answer.snapshot !== undefined) snapshots.set(toHex(s.hash), answer.snapshot);
    },
    undo === undefined
      ? undefined
      : { label: "Undo", run: () => void updateSnapshot(s, undo, "Changed back") },
  );
}

/// Reads what a board holds now and keeps it; the snapshot's hex.
export async function pullWeights(uidHex: string, alias: string): Promise<string> {
  const name = boardName(fromHex(uidHex));
  let hex = "";
  await act(
    `pull/${uidHex}`,
    `read the weights of board ${name}`,
    () => `The weights of ${name} are kept as ${hex.slice(0, 12)}`,
    async (requestId) => {
      hex = await pull(requestId, uidHex, alias);
    },
  );
  return hex;
}

async function pull(requestId: string, uidHex: string, alias: string): Promise<string> {
  const request = { requestId, boardUid: fromHex(uidHex), alias };
  const { snapshot } = await clients().weights.pullWeights(request, { timeoutMs: kBoardMs });
  if (snapshot === undefined) throw new Error("the daemon answered without a snapshot");
  snapshots.set(toHex(snapshot.hash), snapshot);
  return toHex(snapshot.hash);
}

export interface RestoreWish {
  snapshotHex: string;
  uids: string[];
  query: string; // labels; "": none
  commit: boolean;
}

async function askRestore(wish: RestoreWish, dryRun: boolean): Promise<BoardRestore[]> {
  const request = {
    requestId: newRequestId(),
    snapshot: fromHex(wish.snapshotHex),
    boards: wish.query,
    boardUids: wish.uids.map(fromHex),
    commit: wish.commit,
    dryRun,
  };
  const timeoutMs = dryRun ? kCallTimeoutMs : kBoardMs;
  return (await clients().weights.restoreCohort(request, { timeoutMs })).boards;
}

/// What a restore would do, per board; nothing is done.
export const checkRestore = (wish: RestoreWish): Promise<BoardRestore[]> => askRestore(wish, true);

/// Puts the snapshot on the boards. What each of a few boards held is read first, so that it can be put back.
export async function restore(
  wish: RestoreWish,
  planned: readonly BoardRestore[],
): Promise<BoardRestore[] | null> {
  const s = snapshots.peek(wish.snapshotHex);
  const name = s === undefined ? wish.snapshotHex.slice(0, 12) : snapshotName(s);
  const before = new Map<string, string>();
  let result: BoardRestore[] | null = null;
  const doing = planned.filter((b) => b.outcome === BoardRestore_Outcome.DONE);
  if (doing.length <= kMostUndone) {
    for (const { boardUid } of doing) {
      const uid = toHex(boardUid);
      const held = await pull(newRequestId(), uid, "").catch(() => ""); // it holds none
      if (held !== "") before.set(uid, held);
    }
  }
  const count = (o: BoardRestore_Outcome): number =>
    result?.filter((b) => b.outcome === o).length ?? 0;
  await act(
    `restore/${wish.snapshotHex}`,
    `put ${name} on the boards`,
    () => {
      const bad = count(BoardRestore_Outcome.FAILED) + count(BoardRestore_Outcome.REFUSED);
      const done = count(BoardRestore_Outcome.DONE);
      return `${name} is on ${done} board${done === 1 ? "" : "s"}${bad > 0 ? `; ${bad} did not take it` : ""}`;
    },
    async () => {
      result = await askRestore(wish, false);
    },
    before.size > 0 ? { label: "Undo", run: () => void putBack(before) } : undefined,
  );
  return result;
}

async function putBack(before: ReadonlyMap<string, string>): Promise<void> {
  for (const [uid, held] of before) {
    const board = boardName(fromHex(uid));
    await act(
      `restore/${uid}`,
      `give board ${board} its weights back`,
      `${board} has its weights from before`,
      async (requestId) => {
        const answer = await clients().weights.restoreWeights(
          { requestId, boardUid: fromHex(uid), snapshot: fromHex(held) },
          { timeoutMs: kBoardMs },
        );
        if (answer.board !== undefined) boards.set(uid, answer.board);
      },
    );
  }
}

export const kFormats: readonly [WeightsFormat, string, string][] = [
  [WeightsFormat.NPZ, ".npz", "npz"],
  [WeightsFormat.C, "C header", "h"],
  [WeightsFormat.JSON, "JSON", "json"],
  [WeightsFormat.UNSPECIFIED, "odt_weights", "odtw"],
];

export function exportSnapshot(s: Snapshot, format: WeightsFormat, extension: string) {
  const name = snapshotName(s);
  return act(
    `export/${toHex(s.hash)}`,
    `export weights ${name}`,
    `${fileName(name, extension)} is on its way`,
    async (requestId) => {
      const request = { requestId, snapshot: s.hash, format };
      const { blob } = await clients().weights.exportSnapshot(request, options);
      await saveBlob(blob, fileName(name, extension));
    },
  );
}

/// The model's ONNX file with these weights in it: a job, then the file.
export function exportOnnx(s: Snapshot) {
  const name = snapshotName(s);
  return act(
    `export/${toHex(s.hash)}`,
    `export weights ${name} as ONNX`,
    `${fileName(name, "onnx")} is on its way`,
    async (requestId) => {
      const { job } = await clients().weights.exportOnnx({ requestId, snapshot: s.hash }, options);
      if (job === undefined) throw new Error("the daemon answered without a job");
      const ended = await jobEnd(job);
      await saveBlob(ended.resultKey, fileName(name, "onnx"));
    },
  );
}

/// Keeps an odt_weights file as a snapshot; its hex, "" where it was refused.
export async function addSnapshot(
  file: File,
  alias: string,
  onProgress: (p: Progress) => void,
): Promise<string> {
  let hex = "";
  await act(
    "add-snapshot",
    `keep ${file.name} as weights`,
    () => `${file.name} is kept as ${hex.slice(0, 12)}`,
    async (requestId) => {
      const blob = await uploadFile(file, file.name, onProgress);
      const answer = await clients().weights.addSnapshot({ requestId, blob, alias }, options);
      if (answer.snapshot === undefined) throw new Error("the daemon answered without a snapshot");
      hex = toHex(answer.snapshot.hash);
      snapshots.set(hex, answer.snapshot);
    },
  );
  return hex;
}
