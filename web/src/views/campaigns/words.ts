import { CampaignKind, CampaignState, CampaignUnitState, SweepStrategy } from "../../api/types";
import type { Look } from "../words";

const kUnknown: Look = { word: "unknown", tone: "quiet", shape: "dashed" };

const kStates: Record<CampaignState, Look> = {
  [CampaignState.UNSPECIFIED]: kUnknown,
  [CampaignState.QUEUED]: { word: "queued", tone: "quiet", shape: "dashed" },
  [CampaignState.RUNNING]: { word: "running", tone: "live", shape: "play" },
  [CampaignState.PAUSED]: { word: "paused", tone: "warn", shape: "pause" },
  [CampaignState.ROLLING_BACK]: { word: "rolling back", tone: "warn", shape: "half" },
  [CampaignState.SUCCEEDED]: { word: "succeeded", tone: "ok", shape: "check" },
  [CampaignState.FAILED]: { word: "failed", tone: "bad", shape: "cross" },
  [CampaignState.CANCELLED]: { word: "cancelled", tone: "quiet", shape: "slash" },
};
export const campaignLook = (s: CampaignState): Look => kStates[s] ?? kUnknown;
export const campaignOver = (s: CampaignState): boolean =>
  s === CampaignState.SUCCEEDED || s === CampaignState.FAILED || s === CampaignState.CANCELLED;

const kUnits: Record<CampaignUnitState, Look> = {
  [CampaignUnitState.UNSPECIFIED]: kUnknown,
  [CampaignUnitState.PENDING]: { word: "pending", tone: "quiet", shape: "dashed" },
  [CampaignUnitState.RUNNING]: { word: "running", tone: "live", shape: "play" },
  [CampaignUnitState.SUCCEEDED]: { word: "succeeded", tone: "ok", shape: "check" },
  [CampaignUnitState.FAILED]: { word: "failed", tone: "bad", shape: "cross" },
  [CampaignUnitState.CANCELLED]: { word: "cancelled", tone: "quiet", shape: "slash" },
  [CampaignUnitState.SKIPPED]: { word: "skipped", tone: "quiet", shape: "slash" },
  [CampaignUnitState.LATE]: { word: "late", tone: "warn", shape: "triangle" },
  [CampaignUnitState.ROLLED_BACK]: { word: "rolled back", tone: "warn", shape: "half" },
};
export const unitLook = (s: CampaignUnitState): Look => kUnits[s] ?? kUnknown;

export const kKinds: readonly [CampaignKind, string, string][] = [
  [CampaignKind.SAME, "same run", "The same run on every board"],
  [CampaignKind.SWEEP, "sweep", "Trials of settings, worked through by the boards"],
  [CampaignKind.TWIN, "twin", "Two runs that differ in one thing"],
  [
    CampaignKind.ROLLOUT,
    "roll-out",
    "A snapshot to every board, in phases; aborted where boards get worse",
  ],
  [
    CampaignKind.FEDERATED,
    "federated",
    "Rounds: train on every board, average the integers exactly",
  ],
];
export const kindName = (kind: CampaignKind): string =>
  kKinds.find(([k]) => k === kind)?.[1] ?? "campaign";

/// What a round is called in a campaign of this kind.
export const roundName = (kind: CampaignKind): string =>
  kind === CampaignKind.SWEEP ? "rung" : kind === CampaignKind.ROLLOUT ? "phase" : "round";

export const kStrategies: readonly [SweepStrategy, string][] = [
  [SweepStrategy.GRID, "grid: every combination"],
  [SweepStrategy.RANDOM, "random"],
  [SweepStrategy.HALVING, "successive halving"],
];
