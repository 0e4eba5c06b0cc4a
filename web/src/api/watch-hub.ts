import { toHex } from "./bytes.js";
import type { WatchResponse } from "./generated/odt/api/v1/services_pb.js";
import { Outbox, type Arrival, type Wants } from "./outbox.js";
import { keyText, resourceKey } from "./resource-key.js";
import { Topic_Kind, type Event } from "./types.js";
import { WatchLink, type WatchLinkDeps } from "./watch-link.js";
import {
  kEverything,
  kGlobalTopics,
  streamTopic,
  type HubMessage,
  type RemovedKey,
  type StreamTopic,
  type TabMessage,
  type TopicKey,
} from "./watch-protocol.js";

/// One tab's end. post() must copy or keep what it is given unchanged.
export interface HubPort {
  post(message: HubMessage): void;
}

interface Tab {
  outbox: Outbox;
  wants: Wants;
  topics: readonly TopicKey[];
  hidden: boolean;
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
// How often a tab is woken: curves move four times a second, rows of a list need less, a hidden tab only notices.
const kFramesPaceMs = 250;
const kRowsPaceMs = 400;
const kHiddenPaceMs = 1000;

function paceOf(tab: Tab | undefined): number {
  if (tab === undefined || tab.hidden) return kHiddenPaceMs;
  return tab.wants.frames.size > 0 ? kFramesPaceMs : kRowsPaceMs;
}

function wantsOf(topics: readonly TopicKey[]): Wants {
  const keys = (kind: string): ReadonlySet<string> =>
    new Set(topics.filter((t) => t.startsWith(kind)).map((t) => t.slice(kind.length)));
  return {
    everyEvent: topics.includes(kEverything),
    frames: keys(`${Topic_Kind.TELEMETRY}:`),
    progress: keys("progress:"),
  };
}

const kNothing: Arrival = { events: [], telemetry: [], removed: [], dropped: 0 };

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
        for (const tab of this.tabs.values()) tab.outbox.putStatus(status);
      },
    });
    setInterval(() => this.prune(), kPruneMs);
  }

  attach(port: HubPort): void {
    const outbox = new Outbox(
      (message) => port.post(message),
      this.now,
      () => paceOf(this.tabs.get(port)),
    );
    const wants = wantsOf([]);
    this.tabs.set(port, { outbox, wants, topics: [], hidden: false, aliveMs: this.now() });
    const events = [...this.cache.values()].map((c) => c.event);
    outbox.putStatus(this.link.current());
    if (events.length > 0) outbox.put({ ...kNothing, events }, wants);
    outbox.flush();
    if (this.ready) outbox.send({ type: "ready" });
    this.link.setTopics(this.wanted());
    this.link.start();
  }

  detach(port: HubPort): void {
    this.tabs.get(port)?.outbox.close();
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
      tab.topics = message.topics;
      tab.wants = wantsOf(message.topics);
      this.link.setTopics(this.wanted());
    } else if (message.type === "hidden") {
      tab.hidden = true;
    } else if (message.type === "visible") {
      tab.hidden = false;
      tab.outbox.flush();
      this.link.wake(message.hiddenMs);
    } else if (message.type === "retry") {
      this.link.retryNow();
    }
  }

  private wanted(): Set<StreamTopic> {
    const all = new Set<StreamTopic>(kGlobalTopics);
    for (const tab of this.tabs.values()) {
      for (const t of tab.topics) if (all.size < kMostTopics) all.add(streamTopic(t));
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
    const { events, telemetry } = response;
    if (events.length + telemetry.length + removed.length > 0) {
      const arrival = { events, telemetry, removed, dropped: Number(response.dropped) };
      for (const tab of this.tabs.values()) tab.outbox.put(arrival, tab.wants);
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
      this.cache.delete(keyText({ kind, keyHex: toHex(key) }));
      return;
    }
    const key = resourceKey(event);
    if (key !== null) this.cache.set(keyText(key), { event, generation: this.generation });
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
    for (const tab of this.tabs.values()) tab.outbox.send(message);
  }
}
