import { fromHex, toHex } from "../api/bytes";
import { clients, kCallTimeoutMs } from "../api/clients";
import { lateClients } from "../api/late-clients";
import type { Evaluation, InferResponse } from "../api/types";
import { act } from "./actions";
import { boardName, evaluations, jobs } from "./fleet";
import { jobEnd } from "./job-end";

const options = { timeoutMs: kCallTimeoutMs };
const kBoardMs = 60_000;

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

export interface EvaluationHistory {
  list: Evaluation[]; // newest first, without their confusion
  more: boolean;
}

/// What was measured before: the newest, `most` of them.
export async function listEvaluations(most: number): Promise<EvaluationHistory> {
  const list: Evaluation[] = [];
  for (let pageToken = ""; ; ) {
    const pageSize = Math.min(1000, most - list.length);
    const page = await lateClients().evaluation.listEvaluations({ pageSize, pageToken }, options);
    list.push(...page.evaluations);
    pageToken = page.nextPageToken;
    if (pageToken === "" || list.length >= most) return { list, more: pageToken !== "" };
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
