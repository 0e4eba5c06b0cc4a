// Ties the Watch stream to the tables; the only caller of the api's streaming side.
import { batch } from "@preact/signals";
import type { Event } from "../api/types";
import {
  kEverything,
  progressTopic,
  runTopic,
  telemetryTopic,
  type HubMessage,
} from "../api/watch-protocol";
import { WatchClient } from "../api/watch-client";
import { startClock } from "./clock";
import { applyEvents, applyRemoved } from "./fleet";
import { announceAlerts } from "./alert-news";
import { announceBoards } from "./hotplug";
import { fleetKnown, linkStatus } from "./link";
import { applyRecords, forgetDetails, runDetail, trimDetails } from "./run-detail";
import { notices } from "./notices";

const watch = new WatchClient(onMessage);
const shown = new Map<string, { holders: number; steps: boolean }>();

export function startSession(): void {
  startClock();
  watch.start();
}

const listeners = new Set<(events: readonly Event[]) => void>();

/// Hears every event of the daemon, not only those that the pages show, until the returned function is called.
export function hearEvents(listener: (events: readonly Event[]) => void): () => void {
  listeners.add(listener);
  const release = watch.want(kEverything);
  return () => {
    listeners.delete(listener);
    release();
  };
}

export const retryNow = (): void => watch.retryNow();

/// Shows one run's details: read from the store now and, while it is `live`, kept up by the stream. A run
/// that ends is read once more when its view asks again with live off, so that its last records are there.
/// Returns the release.
export function showRun(runHex: string, options: { steps: boolean; live: boolean }): () => void {
  const detail = runDetail(runHex);
  const steps = options.steps ? telemetryTopic(runHex) : progressTopic(runHex);
  const topics = options.live ? [runTopic(runHex), steps] : [];
  const releases = topics.map((topic) => watch.want(topic));
  const entry = shown.get(runHex) ?? { holders: 0, steps: false };
  entry.holders++;
  entry.steps ||= options.steps;
  shown.set(runHex, entry);
  enqueueLoad(() => detail.load(options.steps));
  return () => {
    releases.forEach((release) => release());
    entry.holders--;
    if (entry.holders === 0) shown.delete(runHex);
    trimDetails(new Set(shown.keys()));
  };
}

// A fleet page shows many runs at once; their histories are asked for a few at a time, because the
// browser has six connections to a host and the stream holds one.
const kParallelLoads = 3;
const waiting: (() => Promise<void>)[] = [];
let loading = 0;

function enqueueLoad(load: () => Promise<void>): void {
  waiting.push(load);
  pump();
}

function pump(): void {
  while (loading < kParallelLoads) {
    const next = waiting.shift();
    if (next === undefined) return;
    loading++;
    void next().finally(() => {
      loading--;
      pump();
    });
  }
}

function reloadShown(): void {
  for (const [hex, { steps }] of shown) enqueueLoad(() => runDetail(hex).load(steps));
}

function onMessage(message: HubMessage): void {
  switch (message.type) {
    case "status":
      linkStatus.value = message.status;
      break;
    case "data":
      batch(() => onData(message)); // what it changes is drawn once
      break;
    case "ready":
      fleetKnown.value = true;
      break;
    case "reconnected":
      reloadShown();
      break;
    case "new-store":
      forgetDetails();
      reloadShown();
      break;
  }
}

function onData(message: HubMessage & { type: "data" }): void {
  for (const listener of listeners) listener(message.events);
  announceBoards(message.events);
  announceAlerts(message.events);
  const records = applyEvents(message.events);
  applyRemoved(message.removed);
  applyRecords(records, message);
  for (const { what } of records) {
    if (what.case === "warning") notices.warn(what.value);
  }
}
