import { fromHex, toHex } from "../api/bytes";
import { clients, kCallTimeoutMs } from "../api/clients";
import { Job_Kind, Job_State, type Evaluation, type InferResponse } from "../api/types";
import { act } from "./actions";
import { boardName, evaluations, jobs } from "./fleet";
import { jobEnd } from "./job-end";

const options = { timeoutMs: kCallTimeoutMs };
const kBoardMs = 60_000;
const kMostAtOnce = 4;

export interface EvaluateWish {
  uidHex: string;
  snapshotHex: string; // "": what the board holds
  datasetHex: string;
  split: string;
  samples: boolean;
}

/// Evaluates on the board and waits for the end; the evaluation's hex, "" where it failed.
export async function evaluate(wish: EvaluateWish): Promise<string> {
  let hex = "";
  await act(
    "evaluate",
    `evaluate on board ${boardName(fromHex(wish.uidHex))}`,
    "",
    async (requestId) => {
      const { job } = await clients().weights.evaluate(
        {
          requestId,
          boardUid: fromHex(wish.uidHex),
          snapshot: fromHex(wish.snapshotHex),
          datasetId: fromHex(wish.datasetHex),
          split: wish.split,
          samples: wish.samples,
        },
        options,
      );
      if (job === undefined) throw new Error("the daemon answered without a job");
      jobs.set(toHex(job.id), job);
      hex = toHex((await jobEnd(job)).resultKey);
      await fetchEvaluation(hex);
    },
  );
  return hex;
}

export async function fetchEvaluation(hex: string): Promise<Evaluation | undefined> {
  const known = evaluations.peek(hex);
  if (known !== undefined) return known;
  const { evaluation } = await clients().weights.getEvaluation({ id: fromHex(hex) }, options);
  if (evaluation !== undefined) evaluations.set(hex, evaluation);
  return evaluation;
}

/// Hex ids of evaluations, newest first: the jobs tell of them, there is no list of their own.
export function evaluationIds(): string[] {
  const fromJobs = jobs
    .all()
    .filter((j) => j.kind === Job_Kind.EVALUATE && j.state === Job_State.SUCCEEDED)
    .map((j) => toHex(j.resultKey));
  return [...new Set([...fromJobs, ...evaluations.keys.value])]
    .filter((hex) => hex !== "")
    .sort((a, b) => (a < b ? 1 : -1));
}

/// Fetches those of the ids that are not known yet, a few at a time.
export async function fetchEvaluations(ids: readonly string[]): Promise<void> {
  const missing = ids.filter((hex) => evaluations.peek(hex) === undefined);
  for (let i = 0; i < missing.length; i += kMostAtOnce) {
    const group = missing.slice(i, i + kMostAtOnce);
    await Promise.all(group.map((hex) => fetchEvaluation(hex).catch(() => undefined)));
  }
}

export interface InferWish {
  uidHex: string;
  datasetHex: string;
  split: string;
  index: number;
  values: number[]; // not empty: these, by hand
}

/// What the board says of one sample.
export function infer(wish: InferWish): Promise<InferResponse> {
  return clients().weights.infer(
    {
      boardUid: fromHex(wish.uidHex),
      datasetId: wish.values.length > 0 ? new Uint8Array() : fromHex(wish.datasetHex),
      split: wish.values.length > 0 ? "" : wish.split,
      first: wish.index,
      count: 1,
      values: wish.values,
    },
    { timeoutMs: kBoardMs },
  );
}
