import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  WatchResponseSchema,
  type UpdateWatchRequest,
  type WatchRequest,
  type WatchResponse,
} from "./generated/odt/api/v1/services_pb.js";
import {
  backoffMs,
  kBackoffMaxMs,
  kBackoffMinMs,
  kDeadAfterMs,
  kStaleAfterMs,
  WatchLink,
} from "./watch-link";
import type { LinkPhase } from "./watch-protocol";

/// A stream that the test feeds.
class FakeStream {
  private queue: (WatchResponse | Error | null)[] = [];
  private wake: (() => void) | null = null;
  constructor(
    readonly request: WatchRequest,
    readonly signal: AbortSignal,
  ) {
    signal.addEventListener("abort", () => this.push(new Error("aborted")));
  }
  say(init: Omit<Partial<WatchResponse>, "$typeName" | "$unknown">): void {
    this.push(create(WatchResponseSchema, { watchId: 7n, storeEpoch: 5n, nextSeq: 11n, ...init }));
  }
  end(): void {
    this.push(null);
  }
  fail(message: string): void {
    this.push(new Error(message));
  }
  private push(item: WatchResponse | Error | null): void {
    this.queue.push(item);
    this.wake?.();
  }
  async *[Symbol.asyncIterator](): AsyncGenerator<WatchResponse> {
    for (;;) {
      while (this.queue.length === 0) await new Promise<void>((done) => (this.wake = done));
      const item = this.queue.shift();
      if (item === null || item === undefined) return;
      if (item instanceof Error) throw item;
      yield item;
    }
  }
}

function setUp() {
  const streams: FakeStream[] = [];
  const updates: UpdateWatchRequest[] = [];
  const phases: LinkPhase[] = [];
  const link = new WatchLink({
    open: (request, signal) => {
      const s = new FakeStream(request, signal);
      streams.push(s);
      return s;
    },
    update: async (request) => {
      updates.push(request);
    },
    now: () => Date.now(),
    random: () => 0,
    onResponse: () => {},
    onConnect: () => {},
    onStatus: (s) => {
      if (phases.at(-1) !== s.phase) phases.push(s.phase);
    },
  });
  link.setTopics(["1:"]);
  link.start();
  const newest = (): FakeStream => {
    const s = streams.at(-1);
    if (s === undefined) throw new Error("no stream was opened");
    return s;
  };
  return { link, streams, updates, phases, newest };
}

const settle = () => vi.advanceTimersByTimeAsync(0);

describe("backoff", () => {
  it("doubles from the least to the most", () => {
    expect(backoffMs(1, 0)).toBe(500);
    expect(backoffMs(2, 0)).toBe(1000);
    expect(backoffMs(3, 0)).toBe(2000);
    expect(backoffMs(40, 0.999)).toBeLessThanOrEqual(kBackoffMaxMs);
  });
  it("spreads by jitter and never goes below the least", () => {
    expect(backoffMs(5, 0.9)).toBeGreaterThan(backoffMs(5, 0.1));
    for (let n = 0; n < 60; n++) expect(backoffMs(n, 0)).toBeGreaterThanOrEqual(kBackoffMinMs);
  });
});

describe("WatchLink", () => {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.setSystemTime(1_000_000);
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("is live only once a frame has come", async () => {
    const t = setUp();
    await settle();
    expect(t.link.current().phase).toBe("connecting");
    t.newest().say({});
    await settle();
    expect(t.link.current().phase).toBe("live");
    t.link.stop();
  });

  it("is stale when a heartbeat is late, and live again with the next frame", async () => {
    const t = setUp();
    t.newest().say({});
    await settle();
    await vi.advanceTimersByTimeAsync(kStaleAfterMs - 600);
    expect(t.link.current().phase).toBe("live");
    await vi.advanceTimersByTimeAsync(1300);
    expect(t.link.current().phase).toBe("stale");
    t.newest().say({});
    await settle();
    expect(t.link.current().phase).toBe("live");
    expect(t.streams.length).toBe(1);
    t.link.stop();
  });

  it("gives up a silent stream, reconnects and resumes behind the last event", async () => {
    const t = setUp();
    t.newest().say({ storeEpoch: 5n, nextSeq: 43n });
    await settle();
    await vi.advanceTimersByTimeAsync(kDeadAfterMs + 600);
    expect(t.link.current().phase).toBe("reconnecting");
    expect(t.streams[0]?.signal.aborted).toBe(true);
    await vi.advanceTimersByTimeAsync(600);
    expect(t.streams.length).toBe(2);
    expect(t.newest().request.resumeStoreEpoch).toBe(5n);
    expect(t.newest().request.resumeEventSeq).toBe(42n);
    t.link.stop();
  });

  it("asks for a snapshot after a resync, at once", async () => {
    const t = setUp();
    t.newest().say({ nextSeq: 43n });
    t.newest().say({ resync: true });
    await settle();
    expect(t.streams.length).toBe(2);
    expect(t.newest().request.resumeStoreEpoch).toBe(0n);
    expect(t.newest().request.resumeEventSeq).toBe(0n);
    t.link.stop();
  });

  it("counts attempts, and says that the daemon is gone", async () => {
    const t = setUp();
    t.newest().say({});
    await settle();
    t.newest().fail("network error");
    await settle();
    expect(t.link.current()).toMatchObject({ phase: "reconnecting", attempt: 1 });
    for (let i = 0; i < 6; i++) {
      await vi.advanceTimersByTimeAsync(kBackoffMaxMs);
      t.newest().fail("network error");
      await settle();
    }
    expect(t.link.current().phase).toBe("gone");
    expect(t.phases).toEqual(["connecting", "live", "reconnecting", "gone"]);
    t.link.retryNow();
    t.newest().say({});
    await settle();
    expect(t.link.current()).toMatchObject({ phase: "live", attempt: 0, error: "" });
    t.link.stop();
  });

  it("gives up a connection that never answers", async () => {
    const t = setUp();
    await vi.advanceTimersByTimeAsync(9_000);
    expect(t.link.current().attempt).toBe(1);
    expect(t.streams[0]?.signal.aborted).toBe(true);
    t.link.stop();
  });

  it("changes topics of the running stream without opening another", async () => {
    const t = setUp();
    t.newest().say({});
    await settle();
    t.link.setTopics(["1:", "3:ab01"]);
    t.link.setTopics(["3:ab01"]);
    await settle();
    expect(t.streams.length).toBe(1);
    const added = t.updates.flatMap((u) => u.add);
    expect(added.map((a) => [a.kind, [...a.key]])).toEqual([[3, [0xab, 0x01]]]);
    expect(t.updates.flatMap((u) => u.remove).map((r) => r.kind)).toEqual([1]);
    expect(t.updates[0]?.watchId).toBe(7n);
    t.link.stop();
  });

  it("checks at once when the page is looked at again, and takes a snapshot after a long sleep", async () => {
    const t = setUp();
    t.newest().say({ nextSeq: 43n });
    await settle();
    vi.setSystemTime(Date.now() + 120_000); // a sleep: no timer ran
    t.link.wake(120_000);
    await settle();
    expect(t.link.current().phase).toBe("reconnecting");
    expect(t.newest().request.resumeStoreEpoch).toBe(0n);
    expect(t.streams.length).toBe(2);
    t.link.stop();
  });

  it("follows the daemon's clock", async () => {
    const t = setUp();
    t.newest().say({ serverTimeUs: BigInt(Date.now() + 5000) * 1000n });
    await settle();
    expect(t.link.current().clockOffsetMs).toBe(5000);
    t.link.stop();
  });

  it("opens nothing after stop", async () => {
    const t = setUp();
    t.newest().fail("network error");
    await settle();
    t.link.stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(t.streams.length).toBe(1);
  });
});
