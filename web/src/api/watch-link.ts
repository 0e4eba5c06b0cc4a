import { create } from "@bufbuild/protobuf";
import { fromHex } from "./bytes.js";
import { linkErrorText } from "./errors.js";
import {
  TopicSchema,
  UpdateWatchRequestSchema,
  WatchRequestSchema,
  type Topic,
  type UpdateWatchRequest,
  type WatchRequest,
  type WatchResponse,
} from "./generated/odt/api/v1/services_pb.js";
import { Topic_Kind } from "./types.js";
import type { LinkPhase, LinkStatus, StreamTopic } from "./watch-protocol.js";

// odtd sends a heartbeat every 10 s. One that is late makes what is shown stale; two that are late
// mean that the stream is dead, whatever the browser thinks of the socket.
export const kStaleAfterMs = 12_500;
export const kDeadAfterMs = 25_000;
export const kBackoffMinMs = 500;
export const kBackoffMaxMs = 15_000;
export const kGoneAfterMs = 15_000;
const kConnectTimeoutMs = 8_000;
const kWatchdogMs = 500;
const kTelemetryRateHz = 4;

/// Delay before attempt n (from 1): doubles from 0.5 s to 15 s, with jitter, so that many browsers do
/// not come back in one beat. `random` is in [0, 1).
export function backoffMs(attempt: number, random: number): number {
  const ceiling = Math.min(kBackoffMaxMs, kBackoffMinMs * 2 ** Math.min(attempt, 16));
  return Math.max(kBackoffMinMs, Math.round(ceiling * (0.5 + random / 2)));
}

export function makeTopic(key: StreamTopic): Topic {
  const colon = key.indexOf(":");
  const kind: Topic_Kind = Number(key.slice(0, colon));
  return create(TopicSchema, {
    kind,
    key: fromHex(key.slice(colon + 1)),
    lossless: kind === Topic_Kind.RUN,
    maxRateHz: kTelemetryRateHz,
  });
}

export interface WatchLinkDeps {
  open(request: WatchRequest, signal: AbortSignal): AsyncIterable<WatchResponse>;
  update(request: UpdateWatchRequest): Promise<unknown>;
  now(): number;
  random(): number;
  onResponse(response: WatchResponse, first: boolean): void;
  onConnect(resumed: boolean): void;
  onStatus(status: LinkStatus): void;
}

/// The browser's one Watch stream. Purpose: always either live, or honestly something else.
/// Operation: opens, resumes by (store_epoch, event_seq), notices silence by the clock, backs off.
/// Concurrency: one event loop; stop() ends everything it started.
export class WatchLink {
  private topics = new Set<StreamTopic>();
  private sentTopics = new Set<StreamTopic>();
  private abort: AbortController | null = null;
  private watchId = 0n;
  private storeEpoch = 0n;
  private lastSeq = 0n;
  private updating = false;
  private running = false;
  private openedMs = 0;
  private downSinceMs = 0;
  private retryTimer: ReturnType<typeof setTimeout> | null = null;
  private watchdog: ReturnType<typeof setInterval> | null = null;
  private status: LinkStatus;

  constructor(private readonly deps: WatchLinkDeps) {
    this.status = {
      phase: "connecting",
      sinceMs: deps.now(),
      lastFrameMs: 0,
      attempt: 0,
      retryAtMs: 0,
      error: "",
      clockOffsetMs: 0,
    };
  }

  current(): LinkStatus {
    return this.status;
  }

  start(): void {
    if (this.running) return;
    this.running = true;
    this.downSinceMs = this.deps.now();
    this.setStatus({ phase: this.status.lastFrameMs === 0 ? "connecting" : "reconnecting" });
    this.watchdog = setInterval(() => this.checkSilence(), kWatchdogMs);
    void this.connect();
  }

  stop(): void {
    this.running = false;
    if (this.watchdog !== null) clearInterval(this.watchdog);
    this.watchdog = null;
    this.clearRetry();
    this.abort?.abort();
    this.abort = null;
  }

  setTopics(topics: Iterable<StreamTopic>): void {
    this.topics = new Set(topics);
    void this.syncTopics();
  }

  /// Attempts at once: the user asked, the page came back, or the network did.
  retryNow(): void {
    if (!this.running || this.status.phase === "live") return;
    if (this.status.phase === "stale") {
      this.restart("the daemon went silent");
    } else if (this.retryTimer !== null) {
      this.clearRetry();
      void this.connect();
    }
  }

  /// The page is looked at again after hiddenMs. What is overdue is asked for now, not at the next tick.
  wake(hiddenMs: number): void {
    this.checkSilence();
    // After a long sleep a fresh snapshot is cheaper and surer than a burst of replayed changes.
    if (hiddenMs > 60_000 && this.status.phase !== "live") this.forgetToken();
    this.retryNow();
  }

  private forgetToken(): void {
    this.lastSeq = 0n;
    this.storeEpoch = 0n;
  }

  private async connect(): Promise<void> {
    const abort = new AbortController();
    this.abort = abort;
    this.watchId = 0n;
    this.openedMs = this.deps.now();
    const resumed = this.storeEpoch !== 0n;
    this.sentTopics = new Set(this.topics);
    const request = create(WatchRequestSchema, {
      topics: [...this.sentTopics].map(makeTopic),
      resumeStoreEpoch: this.storeEpoch,
      resumeEventSeq: this.lastSeq,
    });
    this.setStatus({ retryAtMs: 0 });
    this.deps.onConnect(resumed);
    let first = true;
    let error = "the daemon closed the stream";
    try {
      for await (const response of this.deps.open(request, abort.signal)) {
        if (this.abort !== abort) return;
        this.accept(response, first);
        first = false;
        if (response.resync) {
          this.forgetToken();
          error = "";
          break;
        }
      }
    } catch (e) {
      error = linkErrorText(e);
    }
    if (this.abort !== abort || !this.running) return;
    this.abort = null;
    abort.abort();
    this.lost(error);
  }

  private accept(response: WatchResponse, first: boolean): void {
    const now = this.deps.now();
    if (response.watchId !== 0n) this.watchId = response.watchId;
    this.deps.onResponse(response, first);
    if (response.storeEpoch !== 0n && response.nextSeq > 0n) {
      this.storeEpoch = response.storeEpoch;
      this.lastSeq = response.nextSeq - 1n;
    }
    const offset =
      response.serverTimeUs === 0n
        ? this.status.clockOffsetMs
        : Number(response.serverTimeUs / 1000n) - now;
    this.setStatus({
      phase: "live",
      lastFrameMs: now,
      attempt: 0,
      error: "",
      // Small differences are the network's; only a real change of either clock moves the offset.
      clockOffsetMs:
        Math.abs(offset - this.status.clockOffsetMs) > 250 ? offset : this.status.clockOffsetMs,
    });
    void this.syncTopics();
  }

  private async syncTopics(): Promise<void> {
    if (this.watchId === 0n || this.updating || this.status.phase !== "live") return;
    const add = [...this.topics].filter((t) => !this.sentTopics.has(t));
    const remove = [...this.sentTopics].filter((t) => !this.topics.has(t));
    if (add.length + remove.length === 0) return;
    this.updating = true;
    const abort = this.abort;
    this.sentTopics = new Set(this.topics);
    try {
      await this.deps.update(
        create(UpdateWatchRequestSchema, {
          watchId: this.watchId,
          add: add.map(makeTopic),
          remove: remove.map(makeTopic),
        }),
      );
    } catch {
      // The stream no longer matches what is wanted: a new one will.
      if (this.abort === abort) this.restart("the daemon did not take the change of topics");
    } finally {
      this.updating = false;
    }
    void this.syncTopics();
  }

  private lost(error: string): void {
    if (error === "") {
      void this.connect(); // asked to watch afresh
      return;
    }
    const attempt = this.status.attempt + 1;
    const now = this.deps.now();
    if (this.status.phase === "live" || this.status.phase === "stale") {
      this.downSinceMs = now;
    }
    const gone = now - this.downSinceMs >= kGoneAfterMs || attempt >= 5;
    const delay = backoffMs(attempt, this.deps.random());
    const waiting: LinkPhase =
      this.status.lastFrameMs === 0 && !gone ? "connecting" : "reconnecting";
    this.setStatus({ phase: gone ? "gone" : waiting, attempt, error, retryAtMs: now + delay });
    this.clearRetry();
    this.retryTimer = setTimeout(() => {
      this.retryTimer = null;
      void this.connect();
    }, delay);
  }

  private restart(error: string): void {
    const old = this.abort;
    this.abort = null;
    old?.abort();
    this.lost(error);
  }

  private checkSilence(): void {
    if (this.abort === null) return;
    const now = this.deps.now();
    const { phase, lastFrameMs } = this.status;
    const live = phase === "live" || phase === "stale";
    if (!live) {
      if (now - this.openedMs > kConnectTimeoutMs) this.restart("the daemon does not answer");
    } else if (now - lastFrameMs > kDeadAfterMs) {
      this.restart("the daemon went silent");
    } else if (phase === "live" && now - lastFrameMs > kStaleAfterMs) {
      this.setStatus({ phase: "stale" });
    }
  }

  private clearRetry(): void {
    if (this.retryTimer !== null) clearTimeout(this.retryTimer);
    this.retryTimer = null;
  }

  private setStatus(change: Partial<LinkStatus>): void {
    const phaseChanged = change.phase !== undefined && change.phase !== this.status.phase;
    this.status = { ...this.status, ...change };
    if (phaseChanged) this.status.sinceMs = this.deps.now();
    this.deps.onStatus(this.status);
  }
}
