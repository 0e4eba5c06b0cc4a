// Energy and memory of runs by the account of the APT paper, read once for a finished run.
import { signal } from "@preact/signals";
import { fromHex, toHex } from "../api/bytes";
import { kCallTimeoutMs } from "../api/clients";
import { lateClients } from "../api/late-clients";
import { describeError, type Problem } from "../api/errors";
import type { GetRunAccountingResponse, Run } from "../api/types";
import { newestFirst, runs } from "./fleet";
import { fraction } from "./numbers";

export type Account = GetRunAccountingResponse;
export const accounts = signal<ReadonlyMap<string, Account>>(new Map());
export const accountProblem = signal<Problem | null>(null);

const kParallel = 3;
const asked = new Map<string, number>(); // epochs that an answer was asked at

/// Reads what is not known yet, or has grown since.
export async function loadAccounts(list: readonly Run[]): Promise<void> {
  const todo = list.filter((r) => asked.get(toHex(r.id)) !== r.epochsDone);
  todo.forEach((r) => asked.set(toHex(r.id), r.epochsDone));
  const read = async (): Promise<void> => {
    for (let run = todo.shift(); run !== undefined; run = todo.shift()) {
      const hex = toHex(run.id);
      try {
        const answer = await lateClients().campaign.getRunAccounting(
          { runId: fromHex(hex) },
          { timeoutMs: kCallTimeoutMs },
        );
        accounts.value = new Map(accounts.value).set(hex, answer);
        accountProblem.value = null;
      } catch (error) {
        asked.delete(hex);
        accountProblem.value = describeError(
          error,
          `Could not read the account of ${hex.slice(0, 8)}`,
        );
      }
    }
  };
  await Promise.all(Array.from({ length: kParallel }, read));
}

/// Runs that can be compared with this one: same model, same data, at least an epoch; newest first, itself included.
export function siblings(run: Run, most: number): Run[] {
  const { spec } = run;
  if (spec === undefined) return [];
  const [model, data] = [toHex(spec.modelHash), toHex(spec.datasetId)];
  const same = runs
    .all()
    .filter(
      (r) =>
        r.epochsDone > 0 &&
        r.spec !== undefined &&
        toHex(r.spec.modelHash) === model &&
        toHex(r.spec.datasetId) === data,
    );
  const list = newestFirst(same).slice(0, most);
  return list.some((r) => toHex(r.id) === toHex(run.id)) ? list : [run, ...list];
}

/// Energy of the epochs up to the first whose held-out accuracy reaches `target`; NaN: never.
export function energyToReach(account: Account, target: number): number {
  let sum = 0;
  for (const e of account.epochs) {
    sum += Number(e.energy);
    if (fraction(e.heldout) >= target) return sum;
  }
  return NaN;
}

export const bestHeldout = (account: Account): number =>
  account.epochs.reduce((best, e) => {
    const f = fraction(e.heldout);
    return f > best || Number.isNaN(best) ? f : best;
  }, NaN);
