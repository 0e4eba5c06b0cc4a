// The API's types as the rest of the dashboard sees them. Generated code is imported only in api/.
export type {
  Accuracy,
  Board,
  Dataset,
  EpochResult,
  Event,
  HyperParams,
  Job,
  LayerInfo,
  LayerStep,
  LinkStats,
  Loss,
  Model,
  Port,
  Reason,
  Run,
  RunEvent,
  Snapshot,
  TelemetryFrame,
  Warning,
} from "./generated/odt/api/v1/types_pb.js";
export {
  BoardStatus,
  DesiredState,
  Job_Kind,
  Job_State,
  LossKind,
  Loss_Kind,
  Policy,
  PortState,
  Rounding,
  RuleSet,
  RunState,
  Run_ReplayVerdict,
  ShiftSource,
} from "./generated/odt/api/v1/types_pb.js";
export { Topic_Kind } from "./generated/odt/api/v1/services_pb.js";
export type { GetInfoResponse } from "./generated/odt/api/v1/services_pb.js";
