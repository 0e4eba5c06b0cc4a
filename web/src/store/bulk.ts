// One thing asked for many boards or runs at once: a few calls at a time, one notice for all, and what takes it back.
import { signal } from "@preact/signals";
import { newRequestId, toHex } from "../api/bytes";
import { clients, kCallTimeoutMs } from "../api/clients";
import { describeError, type Problem } from "../api/errors";
import type { Board, Run } from "../api/types";
import { boards, runs } from "./fleet";
import { notices, type NoticeAction } from "./notices";

const kParallel = 3; // the browser has six connections to a host, and the stream holds one
const kNamed = 3; // failures that a notice names
const options = { timeoutMs: kCallTimeoutMs };

/// How far a bulk action is; null: none is under way.
export const bulkProgress = signal<{ done: number; total: number } | null>(null);

export interface Failure<T> {
  item: T;
  problem: Problem;
}

/// Calls for every item; those that fail do not hold up the others.
export async function each<T>(
  items: readonly T[],
  title: (item: T) => string, // "Could not pause run x"
  call: (item: T, requestId: string) => Promise<void>,
): Promise<{ done: T[]; failed: Failure<T>[] }> {
  const queue = [...items];
  const done: T[] = [];
  const failed: Failure<T>[] = [];
  const work = async (): Promise<void> => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
      try {
        await call(item, newRequestId());
        done.push(item);
      } catch (error) {
        failed.push({ item, problem: describeError(error, title(item)) });
      }
      bulkProgress.value = { done: done.length + failed.length, total: items.length };
    }
  };
  bulkProgress.value = { done: 0, total: items.length };
  await Promise.all(Array.from({ length: kParallel }, work));
  bulkProgress.value = null;
  return { done, failed };
}

/// One notice for what failed, with the first of them by name.
export function tellFailures<T>(failed: readonly Failure<T>[], total: number): void {
  const [first] = failed;
  if (first === undefined) return;
  if (failed.length === 1) return notices.fail(first.problem);
  const causes = failed.slice(0, kNamed).map((f) => `${f.problem.title}: ${f.problem.cause}`);
  const more = failed.length > kNamed ? ` · and ${failed.length - kNamed} more` : "";
  notices.fail({
    ...first.problem,
    title: `${failed.length} of ${total} could not be done`,
    cause: causes.join(" · ") + more,
  });
}

async function bulk<T>(
  items: readonly T[],
  title: (item: T) => string,
  call: (item: T, requestId: string) => Promise<void>,
  said: (n: number) => string,
  undo?: (done: readonly T[]) => NoticeAction,
): Promise<T[]> {
  const { done, failed } = await each(items, title, call);
  tellFailures(failed, items.length);
  if (done.length > 0) notices.done(said(done.length), undo?.(done));
  return done;
}

const many = (n: number, what: string): string => (n === 1 ? `1 ${what}` : `${n} ${what}s`);
const boardLabel = (b: Board): string => b.name || toHex(b.uid).slice(-8);
const runLabel = (r: Run): string => r.spec?.name || toHex(r.id).slice(0, 13);

export const identifyAll = (list: readonly Board[]): Promise<Board[]> =>
  bulk(
    list,
    (b) => `Could not identify board ${boardLabel(b)}`,
    async (b, requestId) => {
      await clients().fleet.identifyBoard({ requestId, uid: b.uid, seconds: 10 }, options);
    },
    (n) => `${many(n, "board")} ${n === 1 ? "blinks" : "blink"} for 10 s`,
  );

interface LabelChange {
  uid: Uint8Array;
  name: string;
  set: Record<string, string>;
  remove: string[];
}

async function applyLabels(
  list: readonly LabelChange[],
  said: string,
  undo?: LabelChange[],
): Promise<void> {
  await bulk(
    list,
    (c) => `Could not label board ${c.name}`,
    async (c, requestId) => {
      const answer = await clients().fleet.updateBoard(
        { requestId, uid: c.uid, setLabels: c.set, removeLabels: c.remove },
        options,
      );
      if (answer.board !== undefined) boards.set(toHex(c.uid), answer.board);
    },
    () => said,
    undo === undefined
      ? undefined
      : () => ({ label: "Undo", run: () => void applyLabels(undo, "The labels are as they were") }),
  );
}

/// Sets key=value on every board, or with value null takes the label away.
export function labelAll(list: readonly Board[], key: string, value: string | null): Promise<void> {
  const change = (b: Board, to: string | null | undefined): LabelChange => ({
    uid: b.uid,
    name: boardLabel(b),
    set: to == null ? {} : { [key]: to },
    remove: to == null ? [key] : [],
  });
  const said =
    value === null
      ? `Label ${key} is off ${many(list.length, "board")}`
      : `${many(list.length, "board")} labelled ${key}=${value}`;
  return applyLabels(
    list.map((b) => change(b, value)),
    said,
    list.map((b) => change(b, b.labels[key])),
  );
}

async function change(
  run: Run,
  verb: "pause" | "resume" | "cancel",
  requestId: string,
): Promise<void> {
  const request = { requestId, id: run.id };
  const api = clients().run;
  const call = { pause: api.pauseRun, resume: api.resumeRun, cancel: api.cancelRun }[verb];
  const answer = await call(request, options);
  if (answer.run !== undefined) runs.set(toHex(run.id), answer.run);
}

const kPast = { pause: "paused", resume: "resumed", cancel: "cancelled" };
const kBack = { pause: "resume", resume: "pause" } as const;

/// Pausing and resuming take each other back; a cancelled run can only be run again.
export function changeRuns(
  list: readonly Run[],
  verb: "pause" | "resume" | "cancel",
): Promise<Run[]> {
  return bulk(
    list,
    (r) => `Could not ${verb} run ${runLabel(r)}`,
    (r, requestId) => change(r, verb, requestId),
    (n) => `${many(n, "run")} ${kPast[verb]}`,
    (done) =>
      verb === "cancel"
        ? { label: "Run again", run: () => void retryRuns(done) }
        : { label: "Undo", run: () => void changeRuns(done, kBack[verb]) },
  );
}

/// New runs of the same settings, of those that failed or were cancelled.
export const retryRuns = (list: readonly Run[]): Promise<Run[]> =>
  bulk(
    list,
    (r) => `Could not run ${runLabel(r)} again`,
    async (r, requestId) => {
      const answer = await clients().run.retryRun({ requestId, id: r.id }, options);
      if (answer.run !== undefined) runs.set(toHex(answer.run.id), answer.run);
    },
    (n) => `${many(n, "run")} queued again`,
  );

/// Into the trash, from where they come back.
export async function trashAll(
  kind: "board" | "run",
  list: readonly { key: Uint8Array; name: string }[],
): Promise<void> {
  const { lateClients } = await import("../api/late-clients");
  const { storage } = lateClients();
  await bulk(
    list,
    (t) => `Could not delete ${kind} ${t.name}`,
    async (t, requestId) => {
      await storage.trash({ requestId, kind, key: t.key }, options);
      (kind === "board" ? boards : runs).delete(toHex(t.key));
    },
    (n) => `${many(n, kind)} in the trash`,
    (done) => ({
      label: "Undo",
      run: () =>
        void bulk(
          done,
          (t) => `Could not bring back ${kind} ${t.name}`,
          async (t, requestId) => {
            await storage.untrash({ requestId, kind, key: t.key }, options);
          },
          (n) => `${many(n, kind)} back from the trash`,
        ),
    }),
  );
}

/// Pauses everything that is not over, all boards at once.
export async function stopAll(): Promise<void> {
  try {
    const answer = await clients().run.stopAll(
      { requestId: newRequestId(), cancel: false },
      options,
    );
    const stopped = answer.runs.flatMap((s) => runs.peek(toHex(s.runId)) ?? []);
    const silent = answer.boardsSilent;
    notices.done(
      `${many(answer.runs.length, "run")} stopped; ${many(answer.boardsTold, "board")} answered` +
        (silent > 0 ? `, ${silent} did not and will be told when they are back` : ""),
      stopped.length > 0
        ? { label: "Undo", run: () => void changeRuns(stopped, "resume") }
        : undefined,
    );
  } catch (error) {
    notices.fail(describeError(error, "Could not stop all runs"));
  }
}
