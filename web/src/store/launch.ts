import { fromHex, newRequestId, toHex } from "../api/bytes";
import { clients, kCallTimeoutMs } from "../api/clients";
import { describeError, type Problem } from "../api/errors";
import { Policy, type Run } from "../api/types";
import { runs } from "./fleet";

/// A run as a person asks for it. Empty numbers: the policy's default.
export interface RunWish {
  boardHex: string;
  modelHex: string;
  datasetHex: string;
  name: string;
  epochs: string;
  muWeight: string; // "" or "1" or "1,-1,-3"
  batch: string;
  k: string;
}

const numberOf = (text: string): number | undefined => {
  const value = Number(text);
  return text.trim() === "" || !Number.isInteger(value) ? undefined : value;
};

export function hyperOf(wish: RunWish) {
  const mu = wish.muWeight
    .split(",")
    .map((t) => numberOf(t))
    .filter((n): n is number => n !== undefined);
  const given = { epochs: numberOf(wish.epochs), batch: numberOf(wish.batch), k: numberOf(wish.k) };
  return {
    policy: mu.length > 0 ? Policy.FIXED : Policy.AUTO,
    muWeight: mu,
    ...(given.epochs !== undefined && { epochs: given.epochs }),
    ...(given.batch !== undefined && { batch: given.batch }),
    ...(given.k !== undefined && { k: given.k }),
  };
}

async function create(wish: RunWish, dryRun: boolean): Promise<Run | Problem> {
  try {
    const answer = await clients().run.createRun(
      {
        requestId: newRequestId(),
        dryRun,
        spec: {
          boardUid: fromHex(wish.boardHex),
          modelHash: fromHex(wish.modelHex),
          datasetId: fromHex(wish.datasetHex),
          name: wish.name.trim(),
          hyper: hyperOf(wish),
          evaluate: true,
        },
      },
      { timeoutMs: kCallTimeoutMs },
    );
    if (answer.run === undefined) throw new Error("the daemon answered without a run");
    return answer.run;
  } catch (error) {
    return describeError(error, dryRun ? "This run would be refused" : "Could not start the run");
  }
}

export const isProblem = (answer: Run | Problem): answer is Problem => "remedy" in answer;

/// Asks the daemon whether the run would be taken; nothing is changed.
export const checkRun = (wish: RunWish): Promise<Run | Problem> => create(wish, true);

/// Queues the run; it goes on without this page.
export async function startRun(wish: RunWish): Promise<Run | Problem> {
  const answer = await create(wish, false);
  if (!isProblem(answer)) runs.set(toHex(answer.id), answer);
  return answer;
}
