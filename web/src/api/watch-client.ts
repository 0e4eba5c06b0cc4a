import workerUrl from "worker-chunk:./watch-worker.ts";
import { clients } from "./clients.js";
import { WatchHub, type HubPort } from "./watch-hub.js";
import type { HubMessage, TabMessage, TopicKey } from "./watch-protocol.js";

const kAliveMs = 30_000;
const kHiddenStopMs = 60_000;

/// This tab's end of the shared Watch. Where there is no SharedWorker the tab holds a stream of its
/// own, and lets it go while it is hidden.
export class WatchClient {
  private send: (message: TabMessage) => void = () => {};
  private readonly topics = new Map<TopicKey, number>();
  private hiddenAtMs = 0;
  private detachTimer: ReturnType<typeof setTimeout> | null = null;
  private ownHub = false;
  private flushQueued = false;

  constructor(private readonly onMessage: (message: HubMessage) => void) {}

  start(): void {
    if (typeof SharedWorker === "undefined") this.startOwn();
    else this.startShared();
    setInterval(() => this.send({ type: "alive" }), kAliveMs);
    document.addEventListener("visibilitychange", () => this.onVisibility());
    window.addEventListener("online", () => this.send({ type: "retry" }));
    window.addEventListener("pagehide", () => this.send({ type: "bye" }));
    window.addEventListener("pageshow", (e) => {
      if (e.persisted) this.sendTopics(); // from the back-forward cache: the hub has let us go
    });
  }

  retryNow(): void {
    this.send({ type: "retry" });
  }

  /// Wants a topic until the returned function is called. Counted: two views may want the same.
  want(topic: TopicKey): () => void {
    this.topics.set(topic, (this.topics.get(topic) ?? 0) + 1);
    this.queueTopics();
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const left = (this.topics.get(topic) ?? 1) - 1;
      if (left > 0) this.topics.set(topic, left);
      else this.topics.delete(topic);
      this.queueTopics();
    };
  }

  private startShared(): void {
    let worker: SharedWorker;
    try {
      worker = new SharedWorker(workerUrl, { type: "module", name: "odt-watch" });
    } catch {
      this.startOwn(); // forbidden here, e.g. in a private window
      return;
    }
    let heard = false;
    worker.onerror = () => {
      if (!heard) this.startOwn();
    };
    worker.port.onmessage = (m: MessageEvent<HubMessage>) => {
      heard = true;
      this.onMessage(m.data);
    };
    this.send = (message) => worker.port.postMessage(message);
    this.sendTopics();
  }

  private startOwn(): void {
    const { watch } = clients();
    const hub = new WatchHub({
      open: (request, signal) => watch.watch(request, { signal }),
      update: (request) => watch.updateWatch(request, { timeoutMs: 10_000 }),
      now: () => Date.now(),
      random: () => Math.random(),
    });
    const port: HubPort = { post: (message) => this.onMessage(message) };
    this.ownHub = true;
    this.send = (message) => hub.receive(port, message);
    hub.attach(port);
    this.sendTopics();
  }

  private onVisibility(): void {
    if (document.visibilityState === "hidden") {
      this.hiddenAtMs = Date.now();
      this.send({ type: "hidden" });
      if (this.ownHub) {
        this.detachTimer = setTimeout(() => this.send({ type: "bye" }), kHiddenStopMs);
      }
      return;
    }
    if (this.detachTimer !== null) clearTimeout(this.detachTimer);
    const hiddenMs = this.hiddenAtMs === 0 ? 0 : Date.now() - this.hiddenAtMs;
    this.send({ type: "visible", hiddenMs });
    this.sendTopics();
  }

  private queueTopics(): void {
    if (this.flushQueued) return;
    this.flushQueued = true;
    queueMicrotask(() => {
      this.flushQueued = false;
      this.sendTopics();
    });
  }

  private sendTopics(): void {
    this.send({ type: "topics", topics: [...this.topics.keys()] });
  }
}
