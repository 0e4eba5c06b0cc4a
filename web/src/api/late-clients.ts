import { createClient, type Client } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-web";
import { AlertService, SettingsService } from "./generated/odt/api/v1/alerts_pb.js";
import { CampaignService } from "./generated/odt/api/v1/campaigns_pb.js";
import { LabService } from "./generated/odt/api/v1/lab_pb.js";
import { ConsoleService } from "./generated/odt/api/v1/console_pb.js";
import { EvaluationService } from "./generated/odt/api/v1/evaluations_pb.js";
import { EventService } from "./generated/odt/api/v1/events_pb.js";
import { StorageService } from "./generated/odt/api/v1/storage_pb.js";
import { withOwner } from "./owner";

/// Services that only pages fetched later use: import this from those alone.
export interface LateClients {
  campaign: Client<typeof CampaignService>;
  storage: Client<typeof StorageService>;
  alert: Client<typeof AlertService>;
  settings: Client<typeof SettingsService>;
  lab: Client<typeof LabService>;
  console: Client<typeof ConsoleService>;
  evaluation: Client<typeof EvaluationService>;
  event: Client<typeof EventService>;
}

let shared: LateClients | null = null;
export function lateClients(): LateClients {
  if (shared === null) {
    const transport = createGrpcWebTransport({
      baseUrl: self.location.origin,
      interceptors: [withOwner],
    });
    shared = {
      campaign: createClient(CampaignService, transport),
      storage: createClient(StorageService, transport),
      alert: createClient(AlertService, transport),
      settings: createClient(SettingsService, transport),
      lab: createClient(LabService, transport),
      console: createClient(ConsoleService, transport),
      evaluation: createClient(EvaluationService, transport),
      event: createClient(EventService, transport),
    };
  }
  return shared;
}
