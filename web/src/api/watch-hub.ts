import { toHex } from "./bytes.js";
import type { WatchResponse } from "./generated/odt/api/v1/services_pb.js";
import { settingKey } from "./setting-key.js";
import type { Event } from "./types.js";
import { WatchLink, type WatchLinkDeps } from "./watch-link.js";
import {
  kGlobalTopics,
  type HubMessage,
  type RemovedKey,
  type TabMessage,
  type TopicKey,
} from "./watch-protocol.js";

/// One tab's end. post() must copy or keep what it is given unchanged.
export interface HubPort {
  post(message: HubMessage): void;
}

interface Tab {
  topics: Set<TopicKey>;
  aliveMs: number;
}

interface Cached {
  event: Event;
  generation: number;
}

// odtd takes 256 topics in one Watch; a fleet page with more active runs than that shows the rest from
// the runs' own records, which come with the global topics.
const kMostTopics = 250;
// A hidden tab's timers run once a minute; three missed minutes mean that it is gone.
const kTabDeadMs = 200_000;
const kPruneMs = 60_000;

/// Key of the resource an event carries, or null where the event is a record and not a state.
export function resourceKey(event: Event): RemovedKey | null {
  const { what } = event;
  switch (what.case) {
    case "board":
      return { kind: "board", keyHex: toHex(what.value.uid) };
    case "port":
      return { kind: "port", keyHex: what.value.path };
    case "model":
    case "snapshot":
      return { kind: what.case, keyHex: toHex(what.value.hash) };
    case "dataset":
    case "run":
    case "job":
    case "campaign":
    case "evaluation":
    case "alert":
      return { kind: what.case, keyHex: toHex(what.value.id) };
    case "setting":
      return { kind: "setting", keyHex: settingKey(what.value) };
    case "alertSettings":
      return { kind: "alertSettings", keyHex: "" };
    default:
      return null;
  }
}

const cacheKey = (key: RemovedKey): string => `${key.kind}/${key.keyHex}`;

/// Shares one Watch stream among tabs. Holds the latest state of every resource, so that a new tab is
/// complete at once; histories of runs are not kept here (tabs fetch them by unary calls).
export class WatchHub {
  private readonly tabs = new Map<HubPort, Tab>();
  private readonly cache = new Map<string, Cached>();
  private readonly link: WatchLink;
  private generation = 0;
  private sweepOnDone = false;
  private storeEpoch = 0n;
  private ready = false;
  private wasDown = false;

  constructor(
    deps: Pick<WatchLinkDeps, "open" | "update" | "now" | "random">,
    private readonly now: () => number = deps.now,
  ) {
    this.link = new WatchLink({
      ...deps,
      onConnect: (resumed) => {
        this.generation++;
        this.sweepOnDone = !resumed;
      },
      onResponse: (response, first) => this.accept(response, first),
      onStatus: (status) => {
        if (status.phase === "reconnecting" || status.phase === "gone") this.wasDown = true;
        this.broadcast({ type: "status", status });
      },
    });
    setInterval(() => this.prune(), kPruneMs);
  }

  attach(port: HubPort): void {
    this.tabs.set(port, { topics: new Set(), aliveMs: this.now() });
    port.post({ type: "status", status: this.link.current() });
    const events = [...this.cache.values()].map((c) => c.event);
    if (events.length > 0) {
      port.post({ type: "data", events, telemetry: [], removed: [], dropped: 0 });
    }
    if (this.ready) port.post({ type: "ready" });
    this.link.setTopics(this.wanted());
    this.link.start();
  }

  detach(port: HubPort): void {
    this.tabs.delete(port);
    this.link.setTopics(this.wanted());
    if (this.tabs.size === 0) this.link.stop();
  }

  receive(port: HubPort, message: TabMessage): void {
    const tab = this.tabs.get(port);
    if (message.type === "bye") {
      if (tab !== undefined) this.detach(port);
      return;
    }
    if (tab === undefined) {
      // Thought dead, or back from the browser's cache. A page that is being left says "hidden" last.
      if (message.type !== "topics" && message.type !== "visible") return;
      this.attach(port);
      this.receive(port, message);
      return;
    }
    tab.aliveMs = this.now();
    if (message.type === "topics") {
      tab.topics = new Set(message.topics);
      this.link.setTopics(this.wanted());
    } else if (message.type === "visible") {
      this.link.wake(message.hiddenMs);
    } else if (message.type === "retry") {
      this.link.retryNow();
    }
  }

  private wanted(): Set<TopicKey> {
    const all = new Set<TopicKey>(kGlobalTopics);
    for (const tab of this.tabs.values()) {
      for (const t of tab.topics) if (all.size < kMostTopics) all.add(t);
    }
    return all;
  }

  private accept(response: WatchResponse, first: boolean): void {
    if (response.storeEpoch !== 0n) {
      if (this.storeEpoch !== 0n && this.storeEpoch !== response.storeEpoch) {
        this.sweepOnDone = true;
        this.broadcast({ type: "new-store" });
      }
      this.storeEpoch = response.storeEpoch;
    }
    for (const event of response.events) this.keep(event);
    const removed = response.snapshotDone && this.sweepOnDone ? this.sweep() : [];
    if (response.events.length + response.telemetry.length + removed.length > 0) {
      this.broadcast({
        type: "data",
        events: response.events,
        telemetry: response.telemetry,
        removed,
        dropped: Number(response.dropped),
      });
    }
    if (response.snapshotDone) {
      this.sweepOnDone = false;
      if (!this.ready) this.broadcast({ type: "ready" });
      this.ready = true;
    }
    if (first && this.wasDown) {
      this.wasDown = false;
      this.broadcast({ type: "reconnected" });
    }
  }

  private keep(event: Event): void {
    if (event.what.case === "deleted") {
      const { kind, key } = event.what.value;
      this.cache.delete(cacheKey({ kind, keyHex: toHex(key) }));
      return;
    }
    const key = resourceKey(event);
    if (key !== null) this.cache.set(cacheKey(key), { event, generation: this.generation });
  }

  // A whole snapshot has come: what it did not name is no longer there.
  private sweep(): RemovedKey[] {
    const removed: RemovedKey[] = [];
    for (const [name, cached] of this.cache) {
      const key = resourceKey(cached.event);
      if (key === null || cached.generation === this.generation) continue;
      this.cache.delete(name);
      removed.push(key);
    }
    return removed;
  }

  private prune(): void {
    for (const [port, tab] of this.tabs) {
      if (this.now() - tab.aliveMs > kTabDeadMs) this.detach(port);
    }
  }

  private broadcast(message: HubMessage): void {
    for (const port of this.tabs.keys()) port.post(message);
  }
}
