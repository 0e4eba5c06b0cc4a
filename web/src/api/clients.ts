import { createClient, type Client, type Transport } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-web";
import {
  CaptureService,
  DatasetService,
  FleetService,
  JobService,
  ModelService,
  RunService,
  SystemService,
  UploadService,
  WatchService,
  WeightsService,
} from "./generated/odt/api/v1/services_pb.js";
import { withOwner } from "./owner";

/// Longest a unary call may take before it counts as failed.
export const kCallTimeoutMs = 15_000;

export interface Clients {
  fleet: Client<typeof FleetService>;
  run: Client<typeof RunService>;
  job: Client<typeof JobService>;
  watch: Client<typeof WatchService>;
  system: Client<typeof SystemService>;
  weights: Client<typeof WeightsService>;
  model: Client<typeof ModelService>;
  dataset: Client<typeof DatasetService>;
  upload: Client<typeof UploadService>;
  capture: Client<typeof CaptureService>;
}

/// Clients of the daemon that served this page.
export function createClients(baseUrl: string): Clients {
  const transport: Transport = createGrpcWebTransport({ baseUrl, interceptors: [withOwner] });
  return {
    fleet: createClient(FleetService, transport),
    run: createClient(RunService, transport),
    job: createClient(JobService, transport),
    watch: createClient(WatchService, transport),
    system: createClient(SystemService, transport),
    weights: createClient(WeightsService, transport),
    model: createClient(ModelService, transport),
    dataset: createClient(DatasetService, transport),
    upload: createClient(UploadService, transport),
    capture: createClient(CaptureService, transport),
  };
}

let shared: Clients | null = null;
export function clients(): Clients {
  shared ??= createClients(self.location.origin);
  return shared;
}
