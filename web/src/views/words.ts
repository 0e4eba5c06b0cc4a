// How states are named and drawn: one place, so that a state looks the same everywhere.
import {
  BoardStatus,
  Job_Kind,
  Job_State,
  LossKind,
  Policy,
  PortState,
  Rounding,
  RuleSet,
  RunState,
  ShiftSource,
} from "../api/types";

export type Tone = "ok" | "live" | "warn" | "bad" | "quiet";
export type Shape =
  | "disc"
  | "ring"
  | "triangle"
  | "diamond"
  | "square"
  | "dashed"
  | "play"
  | "pause"
  | "half"
  | "dot-ring"
  | "check"
  | "cross"
  | "slash";

export interface Look {
  word: string;
  tone: Tone;
  shape: Shape;
}

const kUnknown: Look = { word: "unknown", tone: "quiet", shape: "dashed" };

const kBoardLooks: Record<BoardStatus, Look> = {
  [BoardStatus.UNSPECIFIED]: kUnknown,
  [BoardStatus.ONLINE]: { word: "online", tone: "ok", shape: "disc" },
  [BoardStatus.SUSPECT]: { word: "suspect", tone: "warn", shape: "triangle" },
  [BoardStatus.OFFLINE]: { word: "offline", tone: "bad", shape: "ring" },
  [BoardStatus.QUARANTINED]: { word: "quarantined", tone: "bad", shape: "square" },
  [BoardStatus.BUSY]: { word: "busy", tone: "live", shape: "diamond" },
};
export const boardLook = (s: BoardStatus): Look => kBoardLooks[s] ?? kUnknown;

const kRunLooks: Record<RunState, Look> = {
  [RunState.UNSPECIFIED]: kUnknown,
  [RunState.QUEUED]: { word: "queued", tone: "quiet", shape: "dashed" },
  [RunState.PREPARING]: { word: "preparing", tone: "live", shape: "half" },
  [RunState.RUNNING]: { word: "running", tone: "live", shape: "play" },
  [RunState.PAUSED]: { word: "paused", tone: "warn", shape: "pause" },
  [RunState.WAITING_BOARD]: { word: "waiting for board", tone: "warn", shape: "triangle" },
  [RunState.EVALUATING]: { word: "evaluating", tone: "live", shape: "dot-ring" },
  [RunState.SUCCEEDED]: { word: "succeeded", tone: "ok", shape: "check" },
  [RunState.FAILED]: { word: "failed", tone: "bad", shape: "cross" },
  [RunState.CANCELLED]: { word: "cancelled", tone: "quiet", shape: "slash" },
};
export const runLook = (s: RunState): Look => kRunLooks[s] ?? kUnknown;

export const isActive = (s: RunState): boolean =>
  s === RunState.PREPARING ||
  s === RunState.RUNNING ||
  s === RunState.PAUSED ||
  s === RunState.WAITING_BOARD ||
  s === RunState.EVALUATING;
export const isOver = (s: RunState): boolean =>
  s === RunState.SUCCEEDED || s === RunState.FAILED || s === RunState.CANCELLED;

/// May still change by itself: worth watching.
export const isOpen = (s: RunState): boolean => !isOver(s);

const kJobLooks: Record<Job_State, Look> = {
  [Job_State.UNSPECIFIED]: kUnknown,
  [Job_State.QUEUED]: { word: "queued", tone: "quiet", shape: "dashed" },
  [Job_State.RUNNING]: { word: "running", tone: "live", shape: "play" },
  [Job_State.SUCCEEDED]: { word: "succeeded", tone: "ok", shape: "check" },
  [Job_State.FAILED]: { word: "failed", tone: "bad", shape: "cross" },
  [Job_State.CANCELLED]: { word: "cancelled", tone: "quiet", shape: "slash" },
};
export const jobLook = (s: Job_State): Look => kJobLooks[s] ?? kUnknown;

const kJobKinds: Record<Job_Kind, string> = {
  [Job_Kind.UNSPECIFIED]: "job",
  [Job_Kind.COMPILE]: "compile model",
  [Job_Kind.IMPORT]: "import dataset",
  [Job_Kind.TRAIN_PC]: "train on the PC",
  [Job_Kind.REPLAY]: "replay run",
  [Job_Kind.EVALUATE]: "evaluate on a board",
  [Job_Kind.DERIVE]: "quantise samples",
  [Job_Kind.EXPORT]: "export ONNX file",
};
export const jobKind = (k: Job_Kind): string => kJobKinds[k] ?? "job";

const kPortLooks: Record<PortState, Look> = {
  [PortState.UNSPECIFIED]: kUnknown,
  [PortState.UNCLAIMED]: { word: "unclaimed", tone: "quiet", shape: "dashed" },
  [PortState.OPENING]: { word: "opening", tone: "live", shape: "half" },
  [PortState.ONLINE]: { word: "board answers", tone: "ok", shape: "disc" },
  [PortState.LOCKED]: { word: "locked by another program", tone: "warn", shape: "square" },
  [PortState.SILENT]: { word: "nobody answers", tone: "warn", shape: "triangle" },
  [PortState.BAUD_MISMATCH_SUSPECTED]: {
    word: "wrong baud rate?",
    tone: "warn",
    shape: "triangle",
  },
  [PortState.GONE]: { word: "gone", tone: "quiet", shape: "ring" },
  [PortState.ERROR]: { word: "error", tone: "bad", shape: "cross" },
};
export const portLook = (s: PortState): Look => kPortLooks[s] ?? kUnknown;

const name =
  <E extends number>(names: Partial<Record<E, string>>) =>
  (value: E): string =>
    names[value] ?? "default";
export const policyName = name<Policy>({ [Policy.AUTO]: "auto", [Policy.FIXED]: "fixed" });
export const lossName = name<LossKind>({ [LossKind.MSE]: "MSE", [LossKind.CE]: "cross-entropy" });
export const ruleSetName = name<RuleSet>({
  [RuleSet.NITI]: "NITI",
  [RuleSet.NITI_LITERAL]: "NITI literal",
});
export const roundingName = name<Rounding>({
  [Rounding.HALF_UP]: "half up",
  [Rounding.HALF_AWAY]: "half away",
  [Rounding.PSTO]: "pseudo-stochastic",
  [Rounding.SR]: "stochastic",
});
export const shiftSourceName = name<ShiftSource>({
  [ShiftSource.EXACT]: "exact",
  [ShiftSource.STALE]: "stale",
});

const kAlarms: [number, string][] = [
  [1, "dead layer"],
  [2, "saturation"],
  [4, "stuck"],
];
export const alarmWords = (bits: number): string =>
  kAlarms
    .filter(([bit]) => (bits & bit) !== 0)
    .map(([, word]) => word)
    .join(", ");
