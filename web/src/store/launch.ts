import { fromHex, newRequestId, toHex } from "../api/bytes";
import { clients, kCallTimeoutMs } from "../api/clients";
import { describeError, type Problem } from "../api/errors";
import { AptMode, Policy, type Run, type RunEstimate } from "../api/types";
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
  more?: Partial<MoreWishes>;
}

/// What the launch page asks beside the few of the dialog. Empty: default of the policy or the board.
export interface MoreWishes {
  fixed: boolean; // policy fixed though mu weight is empty
  muOffset: string;
  apt: "" | "quarters" | "epochs";
  tMin: string; // in steps of the weights, e.g. 0.3
  tMax: string;
  kMax: string;
  telemetryEvery: string;
  streamed: boolean;
  noGuard: boolean;
  start: string; // hash of a snapshot
  priority: string;
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
  const more = wish.more ?? {};
  const given = { epochs: numberOf(wish.epochs), batch: numberOf(wish.batch), k: numberOf(wish.k) };
  return {
    policy: mu.length > 0 || more.fixed === true ? Policy.FIXED : Policy.AUTO,
    muWeight: mu,
    ...(given.epochs !== undefined && { epochs: given.epochs }),
    ...(given.batch !== undefined && { batch: given.batch }),
    ...(given.k !== undefined && { k: given.k }),
    ...moreHyper(more),
  };
}

function moreHyper(more: Partial<MoreWishes>) {
  const whole = (key: string, text: string | undefined) => {
    const value = numberOf(text ?? "");
    return value === undefined ? {} : { [key]: value };
  };
  const q8 = (key: string, text: string | undefined) => {
    const value = Number(text ?? "");
    return text === undefined || text.trim() === "" || !Number.isFinite(value)
      ? {}
      : { [key]: Math.round(value * 256) };
  };
  const apt = { "": undefined, quarters: AptMode.QUARTERS, epochs: AptMode.EPOCHS }[more.apt ?? ""];
  return {
    ...whole("muOffset", more.muOffset),
    ...whole("telemetryEvery", more.telemetryEvery),
    ...(more.streamed === true && { streamed: true }),
    ...(more.noGuard === true && { guard: false }),
    ...(apt !== undefined && {
      apt,
      ...q8("aptTMinQ8", more.tMin),
      ...q8("aptTMaxQ8", more.tMax),
      ...whole("aptKMax", more.kMax),
    }),
  };
}

async function ask(wish: RunWish, dryRun: boolean): Promise<Checked | Problem> {
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
          ...(wish.more?.start && { startSnapshot: fromHex(wish.more.start) }),
          priority: numberOf(wish.more?.priority ?? "") ?? 0,
        },
      },
      { timeoutMs: kCallTimeoutMs },
    );
    if (answer.run === undefined) throw new Error("the daemon answered without a run");
    return { run: answer.run, estimate: answer.estimate };
  } catch (error) {
    return describeError(error, dryRun ? "This run would be refused" : "Could not start the run");
  }
}

/// What the daemon says of a run before it starts.
export interface Checked {
  run: Run;
  estimate: RunEstimate | undefined;
}

export const isProblem = <T extends object>(answer: T | Problem): answer is Problem =>
  "remedy" in answer;

async function create(wish: RunWish, dryRun: boolean): Promise<Run | Problem> {
  const answer = await ask(wish, dryRun);
  return isProblem(answer) ? answer : answer.run;
}

/// The same with what it would take: memory, time, warnings.
export const estimateRun = (wish: RunWish): Promise<Checked | Problem> => ask(wish, true);

/// Asks the daemon whether the run would be taken; nothing is changed.
export const checkRun = (wish: RunWish): Promise<Run | Problem> => create(wish, true);

/// Queues the run; it goes on without this page.
export async function startRun(wish: RunWish): Promise<Run | Problem> {
  const answer = await create(wish, false);
  if (!isProblem(answer)) runs.set(toHex(answer.id), answer);
  return answer;
}
