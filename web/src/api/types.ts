// The API's types as the rest of the dashboard sees them. Generated code is imported only in api/.
export type {
  Accuracy,
  Board,
  Campaign,
  CampaignUnit,
  CampaignEvent,
  CampaignRound,
  CampaignSpec,
  HyperParams,
  Dataset,
  DatasetPreview,
  DatasetReport,
  Evaluation,
  EpochResult,
  Event,
  Job,
  LayerInfo,
  LayerStep,
  LinkStats,
  Loss,
  Model,
  Outputs,
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
  CampaignKind,
  CampaignState,
  CampaignUnitState,
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
  SweepStrategy,
  Task,
  TwinResult_What,
} from "./generated/odt/api/v1/types_pb.js";
export { Topic_Kind } from "./generated/odt/api/v1/services_pb.js";
export type { GetInfoResponse } from "./generated/odt/api/v1/services_pb.js";
export { SeriesKind, ExportFormat } from "./generated/odt/api/v1/storage_pb.js";
export type { RunSeries, Series } from "./generated/odt/api/v1/storage_pb.js";
export type {
  AccountedEpoch,
  GetRunAccountingResponse,
} from "./generated/odt/api/v1/campaigns_pb.js";
export {
  BoardRestore_Outcome,
  CaptureRole,
  CaptureTrigger,
  CaptureRule_Of,
  ListSnapshotLogResponse_End,
  ListSnapshotLogResponse_Link,
  ModelArithmetic,
  ModelInput,
  WeightsFormat,
} from "./generated/odt/api/v1/services_pb.js";
export type {
  BoardRestore,
  Capture,
  CapturedWindow,
  DiffSnapshotsResponse,
  GetDatasetResponse,
  InferResponse,
  LayerDiff,
  ListSnapshotLogResponse,
  WeightDiff,
} from "./generated/odt/api/v1/services_pb.js";
export type { BoardCheck, CreateCampaignResponse } from "./generated/odt/api/v1/campaigns_pb.js";
export type { LayerEpoch, RunEstimate } from "./generated/odt/api/v1/types_pb.js";
export { AptMode, RunEstimate_Basis } from "./generated/odt/api/v1/types_pb.js";
export { DiskState } from "./generated/odt/api/v1/storage_pb.js";
export type {
  GetStorageResponse,
  PurgeResponse,
  TrashItem,
} from "./generated/odt/api/v1/storage_pb.js";
export {
  AlertDelivery_State,
  AlertRuleKind,
  AlertSeverity,
  AlertState,
  SettingScope,
} from "./generated/odt/api/v1/types_pb.js";
export type {
  Alert,
  AlertRule,
  AlertSettings,
  AlertSilence,
  Setting,
} from "./generated/odt/api/v1/types_pb.js";
export type { EffectiveSetting } from "./generated/odt/api/v1/alerts_pb.js";
export type { LabEvent } from "./generated/odt/api/v1/types_pb.js";
export { LabEvent_Kind } from "./generated/odt/api/v1/types_pb.js";
export { ConsoleSource } from "./generated/odt/api/v1/console_pb.js";
export type { ConsoleLine, ListConsoleResponse } from "./generated/odt/api/v1/console_pb.js";
