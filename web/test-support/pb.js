// What the browser tests outside web/ need of its packages.
export { create, fromBinary, toBinary } from "@bufbuild/protobuf";
export { anyPack } from "@bufbuild/protobuf/wkt";
export { chromium } from "playwright-core";
export * from "../src/api/generated/odt/api/v1/services_pb.js";
export * from "../src/api/generated/odt/api/v1/types_pb.js";
export * from "../src/api/generated/odt/api/v1/storage_pb.js";
export { AlertService, SettingsService } from "../src/api/generated/odt/api/v1/alerts_pb.js";
export { ConsoleService } from "../src/api/generated/odt/api/v1/console_pb.js";
export { EvaluationService } from "../src/api/generated/odt/api/v1/evaluations_pb.js";
export { EventService } from "../src/api/generated/odt/api/v1/events_pb.js";
export { CampaignService } from "../src/api/generated/odt/api/v1/campaigns_pb.js";
export {
  BadRequestSchema,
  ErrorInfoSchema,
} from "../src/api/generated/google/rpc/error_details_pb.js";
export { StatusSchema } from "../src/api/generated/google/rpc/status_pb.js";
