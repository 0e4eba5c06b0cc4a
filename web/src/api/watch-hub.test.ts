import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
  WatchResponseSchema,
  type WatchRequest,
  type WatchResponse,
} from "./generated/odt/api/v1/services_pb.js";
import { EventSchema, type Event } from "./generated/odt/api/v1/types_pb.js";
import { WatchHub, type HubPort } from "./watch-hub";
import type { HubMessage } from "./watch-protocol";

type Init = Omit<Partial<WatchResponse>, "$typeName" | "$unknown">;

function boardEvent(uid: number, name: string, seq = 0n): Event {
  return create(EventSchema, {
    eventSeq: seq,
    what: { case: "board", value: { uid: new Uint8Array([uid]), name } as never },
  });
}

class Script {
  readonly requests: WatchRequest[] = [];
  private feed: ((r: WatchResponse | null) => void) | null = null;
  open = (request: WatchRequest): AsyncIterable<WatchResponse> => {
    this.requests.push(request);
    const queue: (WatchResponse | null)[] = [];
    let wake: (() => void) | null = null;
    this.feed = (r) => {
      queue.push(r);
      wake?.();
    };
    return (async function* () {
      for (;;) {
        while (queue.length === 0) await new Promise<void>((d) => (wake = d));
        const next = queue.shift();
        if (next == null) return;
        yield next;
      }
    })();
  };
  async say(init: Init | null): Promise<void> {
    this.feed?.(
      init === null
        ? null
        : create(WatchResponseSchema, { watchId: 1n, storeEpoch: 5n, nextSeq: 9n, ...init }),
    );
    await new Promise((d) => setTimeout(d, 1));
  }
}

function setUp() {
  const script = new Script();
  const updates: unknown[] = [];
  const hub = new WatchHub({
    open: script.open,
    update: async (r) => updates.push(r),
    now: () => Date.now(),
    random: () => 0,
  });
  const tab = () => {
    const messages: HubMessage[] = [];
    const port: HubPort = { post: (m) => messages.push(m) };
    const names = (): string[] =>
      messages.flatMap((m) =>
        m.type === "data"
          ? m.events.map((e) => (e.what.case === "board" ? e.what.value.name : (e.what.case ?? "")))
          : [],
      );
    const removed = (): string[] =>
      messages.flatMap((m) =>
        m.type === "data" ? m.removed.map((r) => `${r.kind}/${r.keyHex}`) : [],
      );
    return { port, messages, names, removed };
  };
  return { script, hub, tab, updates };
}

describe("WatchHub", () => {
  it("opens one stream for two tabs and gives the second the whole state", async () => {
    const { script, hub, tab } = setUp();
    const [a, b] = [tab(), tab()];
    hub.attach(a.port);
    await script.say({ events: [boardEvent(1, "one"), boardEvent(2, "two")], snapshotDone: true });
    await script.say({ events: [boardEvent(1, "one renamed", 9n)] });
    hub.attach(b.port);
    expect(script.requests.length).toBe(1);
    expect(b.names()).toEqual(["one renamed", "two"]);
    expect(b.messages.map((m) => m.type)).toEqual(["status", "data", "ready"]);
    hub.detach(a.port);
    hub.detach(b.port);
  });

  it("is not ready before the snapshot is whole", async () => {
    const { script, hub, tab } = setUp();
    const a = tab();
    hub.attach(a.port);
    await script.say({ events: [boardEvent(1, "one")] });
    expect(a.messages.some((m) => m.type === "ready")).toBe(false);
    await script.say({ snapshotDone: true });
    expect(a.messages.some((m) => m.type === "ready")).toBe(true);
    hub.detach(a.port);
  });

  it("removes what a fresh snapshot no longer names", async () => {
    const { script, hub, tab } = setUp();
    const a = tab();
    hub.attach(a.port);
    await script.say({ events: [boardEvent(1, "one"), boardEvent(2, "two")], snapshotDone: true });
    await script.say({ resync: true });
    await script.say({ events: [boardEvent(2, "two")], snapshotDone: true });
    expect(a.removed()).toEqual(["board/01"]);
    hub.detach(a.port);
  });

  it("tells the tabs when the daemon has another database", async () => {
    const { script, hub, tab } = setUp();
    const a = tab();
    hub.attach(a.port);
    await script.say({ events: [boardEvent(1, "one")], snapshotDone: true });
    await script.say({ storeEpoch: 6n, events: [boardEvent(3, "three")], snapshotDone: true });
    expect(a.messages.some((m) => m.type === "new-store")).toBe(true);
    hub.detach(a.port);
  });

  it("asks for the union of what the tabs want", async () => {
    const { script, hub, tab, updates } = setUp();
    const [a, b] = [tab(), tab()];
    hub.attach(a.port);
    hub.attach(b.port);
    await script.say({ snapshotDone: true });
    hub.receive(a.port, { type: "topics", topics: ["4:aa"] });
    hub.receive(b.port, { type: "topics", topics: ["4:aa", "3:aa"] });
    await new Promise((d) => setTimeout(d, 1));
    const added = updates.flatMap((u) => (u as { add: { kind: number }[] }).add.map((t) => t.kind));
    expect(added.sort()).toEqual([3, 4]);
    hub.detach(a.port);
    hub.detach(b.port);
  });

  it("gives a row the newest step of its run, and only to the tab that shows it", async () => {
    const { script, hub, tab, updates } = setUp();
    const [a, b] = [tab(), tab()];
    hub.attach(a.port);
    hub.attach(b.port);
    await script.say({ snapshotDone: true });
    hub.receive(a.port, { type: "topics", topics: ["progress:aa"] });
    await new Promise((d) => setTimeout(d, 1));
    expect(updates).toMatchObject([{ add: [{ kind: 4 }] }]);
    const frame = (step: number) => ({ runId: new Uint8Array([0xaa]), step, gap: 0, timeUs: 0n });
    await script.say({ telemetry: [frame(7), frame(8)] as never });
    const progress = (of: typeof a) =>
      of.messages.flatMap((m) => (m.type === "data" ? m.progress.map((p) => p.steps) : []));
    expect(progress(a)).toEqual([9]);
    expect(b.messages.some((m) => m.type === "data")).toBe(false);
    hub.detach(a.port);
    hub.detach(b.port);
  });

  it("stays below the daemon's limit of topics", async () => {
    const { script, hub, tab, updates } = setUp();
    const a = tab();
    hub.attach(a.port);
    await script.say({ snapshotDone: true });
    const topics = Array.from({ length: 400 }, (_, i) => `3:${(i + 4096).toString(16)}` as const);
    hub.receive(a.port, { type: "topics", topics });
    await new Promise((d) => setTimeout(d, 1));
    const added = updates.flatMap((u) => (u as { add: unknown[] }).add).length;
    expect(added).toBeGreaterThan(200);
    expect((script.requests[0]?.topics.length ?? 0) + added).toBeLessThanOrEqual(256);
    hub.detach(a.port);
  });

  it("lets a tab go that said bye, and takes it back when it is looked at", async () => {
    const { script, hub, tab } = setUp();
    const a = tab();
    hub.attach(a.port);
    await script.say({ events: [boardEvent(1, "one")], snapshotDone: true });
    hub.receive(a.port, { type: "bye" });
    hub.receive(a.port, { type: "hidden" });
    hub.receive(a.port, { type: "alive" });
    expect(script.requests.length).toBe(1);
    hub.receive(a.port, { type: "visible", hiddenMs: 1000 });
    expect(script.requests.length).toBe(2);
    hub.detach(a.port);
  });
});
