// What a person types of a campaign, as the API takes it.
import { fromHex } from "../api/bytes";
import { CampaignKind, Policy, SweepStrategy } from "../api/types";

/// Empty numbers: the daemon's default.
export interface CampaignWish {
  kind: CampaignKind;
  name: string;
  uids: string[];
  query: string;
  modelHex: string;
  datasetHex: string;
  epochs: string;
  muWeight: string; // "1" or "1,-1,-3"
  batch: string;
  k: string;
  parallel: string;
  axes: string; // lines "mu_weight=0,1,2"
  strategy: SweepStrategy;
  trials: string;
  settingsB: string; // "mu_weight=2"
  snapshotHex: string;
  canaryPercent: string;
  phases: string; // "25,50,100"
  maxDropPoints: string;
  commit: boolean;
  rounds: string;
  minBoards: string;
}

export const kNewCampaign: CampaignWish = {
  kind: CampaignKind.SAME,
  name: "",
  uids: [],
  query: "",
  modelHex: "",
  datasetHex: "",
  epochs: "3",
  muWeight: "",
  batch: "",
  k: "",
  parallel: "",
  axes: "mu_weight=0,1,2",
  strategy: SweepStrategy.GRID,
  trials: "",
  settingsB: "mu_weight=2",
  snapshotHex: "",
  canaryPercent: "10",
  phases: "50,100",
  maxDropPoints: "2",
  commit: false,
  rounds: "4",
  minBoards: "",
};

const whole = (text: string): number | undefined => {
  const value = Number(text);
  return text.trim() === "" || !Number.isInteger(value) ? undefined : value;
};
const list = (text: string): string[] =>
  text
    .split(",")
    .map((t) => t.trim())
    .filter(Boolean);
const numbers = (text: string): number[] =>
  list(text)
    .map(whole)
    .filter((n): n is number => n !== undefined);
const ppm = (percent: string): number => Math.round(Number(percent) * 10_000);

/// "mu_weight=0,1,2" a line (or "; " between them) as axes; a line without "=" is named in `wrong`.
export function parseAxes(text: string): {
  axes: { name: string; values: string[] }[];
  wrong: string;
} {
  const axes: { name: string; values: string[] }[] = [];
  for (const line of text.split(/[\n;]/).map((l) => l.trim())) {
    if (line === "") continue;
    const [, name = "", values = ""] = /^([a-z_]+)\s*=\s*(.+)$/.exec(line) ?? [];
    if (name === "") return { axes, wrong: line };
    axes.push({ name, values: list(values) });
  }
  return { axes, wrong: "" };
}

function hyper(wish: CampaignWish) {
  const mu = numbers(wish.muWeight);
  const [epochs, batch, k] = [whole(wish.epochs), whole(wish.batch), whole(wish.k)];
  const swept =
    wish.kind === CampaignKind.SWEEP && /(^|\n|;)\s*(mu_weight|batch|k)\s*=/.test(wish.axes);
  const fixed = mu.length > 0 || swept || wish.kind === CampaignKind.TWIN;
  return {
    policy: fixed ? Policy.FIXED : Policy.AUTO,
    muWeight: mu,
    ...(epochs !== undefined && { epochs }),
    ...(batch !== undefined && { batch }),
    ...(k !== undefined && { k }),
  };
}

/// Settings of twin B: those of A with what is written instead. Throws where a line cannot be read.
function hyperB(wish: CampaignWish) {
  const out: Record<string, unknown> = { ...hyper(wish) };
  for (const { name, values } of twinSettings(wish.settingsB)) {
    const n = numbers(values.join(","));
    if (name === "mu_weight") out["muWeight"] = n;
    else if (name === "epochs" || name === "batch" || name === "k") out[name] = n[0];
    else if (name === "mu_offset") out["muOffset"] = n[0];
    else if (name === "order_seed") out["orderSeed"] = n[0];
    else if (name === "dead_zone") out["deadZone"] = n[0];
    else throw new Error(`settings of B: ${name} is not one of ${kTwinSettings.join(", ")}`);
  }
  return out;
}
export const kTwinSettings = [
  "mu_weight",
  "mu_offset",
  "epochs",
  "batch",
  "k",
  "order_seed",
  "dead_zone",
];
function twinSettings(text: string) {
  const { axes, wrong } = parseAxes(text);
  if (wrong !== "") throw new Error(`settings of B: "${wrong}" is not NAME=VALUE`);
  return axes;
}

/// The spec; throws an Error that says what cannot be read.
export function specOf(wish: CampaignWish) {
  const trained = wish.kind !== CampaignKind.ROLLOUT;
  const { axes, wrong } = parseAxes(wish.axes);
  if (wish.kind === CampaignKind.SWEEP && wrong !== "")
    throw new Error(`axes: "${wrong}" is not NAME=VALUE,VALUE`);
  return {
    name: wish.name.trim(),
    kind: wish.kind,
    query: wish.query.trim(),
    boards: wish.uids.map(fromHex),
    datasetId: fromHex(wish.datasetHex),
    maxParallel: whole(wish.parallel) ?? 0,
    ...(trained && { modelHash: fromHex(wish.modelHex), hyper: hyper(wish) }),
    ...(wish.kind === CampaignKind.SWEEP && {
      sweep: { strategy: wish.strategy, axes, trials: whole(wish.trials) ?? 0, seed: 1 },
    }),
    ...(wish.kind === CampaignKind.TWIN && { hyperB: hyperB(wish) }),
    ...(wish.kind === CampaignKind.ROLLOUT && {
      rollout: {
        snapshot: fromHex(wish.snapshotHex),
        canaryPpm: ppm(wish.canaryPercent),
        phasesPpm: list(wish.phases).map(ppm),
        maxDropPpm: ppm(wish.maxDropPoints),
        commit: wish.commit,
      },
    }),
    ...(wish.kind === CampaignKind.FEDERATED && {
      federated: { rounds: whole(wish.rounds) ?? 0, minBoards: whole(wish.minBoards) ?? 0 },
    }),
  };
}
