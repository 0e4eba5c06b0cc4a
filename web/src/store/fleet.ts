import { batch, signal } from "@preact/signals";
import { toHex } from "../api/bytes";
import type {
  Alert,
  AlertSettings,
  Board,
  Campaign,
  Dataset,
  Evaluation,
  Event,
  Job,
  Model,
  Port,
  Run,
  Setting,
  Snapshot,
} from "../api/types";
import { settingKey } from "../api/setting-key";
import type { RemovedKey } from "../api/watch-protocol";
import { Table } from "./table";

export const boards = new Table<Board>();
export const ports = new Table<Port>();
export const runs = new Table<Run>();
export const models = new Table<Model>();
export const datasets = new Table<Dataset>();
export const snapshots = new Table<Snapshot>();
export const jobs = new Table<Job>();
export const campaigns = new Table<Campaign>();
export const evaluations = new Table<Evaluation>();
export const alerts = new Table<Alert>();
export const settings = new Table<Setting>();
/// Rules and silences; null: not known.
export const alertSettings = signal<AlertSettings | null>(null);

/// Puts resources of events where they belong; returns the events that are records of a run.
export function applyEvents(events: readonly Event[]): Event[] {
  const records: Event[] = [];
  batch(() => {
    for (const event of events) {
      const { what } = event;
      switch (what.case) {
        case "board":
          boards.set(toHex(what.value.uid), what.value);
          break;
        case "port":
          ports.set(what.value.path, what.value);
          break;
        case "run":
          runs.set(toHex(what.value.id), what.value);
          break;
        case "model":
          models.set(toHex(what.value.hash), what.value);
          break;
        case "dataset":
          datasets.set(toHex(what.value.id), what.value);
          break;
        case "snapshot":
          snapshots.set(toHex(what.value.hash), what.value);
          break;
        case "job":
          jobs.set(toHex(what.value.id), what.value);
          break;
        case "campaign":
          campaigns.set(toHex(what.value.id), what.value);
          break;
        case "evaluation":
          evaluations.set(toHex(what.value.id), what.value);
          break;
        case "alert":
          alerts.set(toHex(what.value.id), what.value);
          break;
        case "alertSettings":
          alertSettings.value = what.value;
          break;
        case "setting":
          settings.set(settingKey(what.value), what.value);
          break;
        case "deleted":
          remove({ kind: what.value.kind, keyHex: toHex(what.value.key) }, what.value.key);
          break;
        default:
          records.push(event);
      }
    }
  });
  return records;
}

export function applyRemoved(keys: readonly RemovedKey[]): void {
  batch(() => keys.forEach((key) => remove(key)));
}

function remove(key: RemovedKey, raw?: Uint8Array): void {
  const tables: Record<string, Table<unknown>> = {
    board: boards as Table<unknown>,
    run: runs as Table<unknown>,
    model: models as Table<unknown>,
    dataset: datasets as Table<unknown>,
    snapshot: snapshots as Table<unknown>,
    job: jobs as Table<unknown>,
    campaign: campaigns as Table<unknown>,
    evaluation: evaluations as Table<unknown>,
    alert: alerts as Table<unknown>,
    setting: settings as Table<unknown>,
  };
  if (key.kind === "port") {
    ports.delete(raw === undefined ? key.keyHex : new TextDecoder().decode(raw));
  } else {
    tables[key.kind]?.delete(key.keyHex);
  }
}

export function modelName(hash: Uint8Array): string {
  const hex = toHex(hash);
  return models.get(hex).value?.name ?? (hex === "" ? "" : hex.slice(0, 8));
}
export function datasetName(id: Uint8Array): string {
  const hex = toHex(id);
  // A run without a dataset is on what its board captured.
  return datasets.get(hex).value?.name ?? (hex === "" ? "captured samples" : hex.slice(0, 8));
}
export function boardName(uid: Uint8Array): string {
  const hex = toHex(uid);
  return boards.get(hex).value?.name || hex.slice(-8);
}

/// Runs of one board, newest first.
export function runsOfBoard(uidHex: string): Run[] {
  return newestFirst(
    runs.all().filter((r) => r.spec !== undefined && toHex(r.spec.boardUid) === uidHex),
  );
}

export function newestFirst(list: Run[]): Run[] {
  // UUIDv7: the id's order is the order of creation.
  return list.sort((a, b) => (toHex(a.id) < toHex(b.id) ? 1 : -1));
}
