import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { EventSchema, TelemetryFrameSchema, type Event } from "./generated/odt/api/v1/types_pb.js";
import { Outbox, type Arrival, type Wants } from "./outbox";
import type { HubMessage, LinkStatus } from "./watch-protocol";

const board = (uid: number, name: string): Event =>
  create(EventSchema, {
    what: { case: "board", value: { uid: new Uint8Array([uid]), name } as never },
  });
const gone = (uid: number): Event =>
  create(EventSchema, {
    what: { case: "deleted", value: { kind: "board", key: new Uint8Array([uid]) } as never },
  });
const frame = (run: number, step: number, gap = 0) =>
  create(TelemetryFrameSchema, { runId: new Uint8Array([run]), step, gap, timeUs: 5_000_000n });
const arrival = (part: Partial<Arrival>): Arrival => ({
  events: [],
  telemetry: [],
  removed: [],
  dropped: 0,
  ...part,
});
const wants: Wants = {
  everyEvent: false,
  frames: new Set(["01"]),
  progress: new Set(["02", "03"]),
};
const status = (phase: LinkStatus["phase"], lastFrameMs = 0): LinkStatus => ({
  phase,
  sinceMs: 0,
  lastFrameMs,
  attempt: 0,
  retryAtMs: 0,
  error: "",
  clockOffsetMs: 0,
});

const posted: HubMessage[] = [];
const data = () => posted.flatMap((m) => (m.type === "data" ? [m] : []));
const names = () =>
  data().flatMap((m) =>
    m.events.map((e) => (e.what.case === "board" ? e.what.value.name : (e.what.case ?? ""))),
  );
const make = () =>
  new Outbox(
    (m) => posted.push(m),
    () => Date.now(),
    () => 400,
  );

beforeEach(() => {
  vi.useFakeTimers();
  posted.length = 0;
});
afterEach(() => vi.useRealTimers());

describe("Outbox", () => {
  it("sends at once after a pause and gathers what follows", () => {
    const box = make();
    box.put(arrival({ events: [board(1, "a")] }), wants);
    expect(names()).toEqual(["a"]);
    for (const n of ["b", "c", "d"]) box.put(arrival({ events: [board(1, n)] }), wants);
    box.put(arrival({ events: [board(2, "other")] }), wants);
    vi.advanceTimersByTime(399);
    expect(data().length).toBe(1);
    vi.advanceTimersByTime(1);
    expect(names()).toEqual(["a", "d", "other"]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("keeps the newest of a coming and a going", () => {
    const box = make();
    box.put(arrival({ events: [board(9, "first")] }), wants);
    box.put(arrival({ events: [board(1, "a"), gone(1)] }), wants);
    box.put(arrival({ events: [gone(2), board(2, "back")] }), wants);
    vi.advanceTimersByTime(400);
    expect(names()).toEqual(["first", "deleted", "back"]);
  });

  it("leaves no event out for a tab that wants each", () => {
    const box = make();
    const all = { ...wants, everyEvent: true };
    box.put(arrival({ events: [board(1, "a")] }), all);
    box.put(arrival({ events: [board(1, "b"), board(1, "c")] }), all);
    vi.advanceTimersByTime(400);
    expect(names()).toEqual(["a", "b", "c"]);
  });

  it("gives every frame of one run, the newest step of another, nothing of a third", () => {
    const box = make();
    box.put(arrival({ events: [board(1, "a")] }), wants);
    const telemetry = [frame(1, 4), frame(2, 7), frame(4, 1), frame(1, 5), frame(2, 8)];
    box.put(arrival({ telemetry, dropped: 3 }), wants);
    box.put(arrival({ telemetry: [frame(2, 6), frame(3, 9, 20)] }), wants);
    vi.advanceTimersByTime(400);
    const last = data()[1];
    expect(last?.telemetry.map((f) => f.step)).toEqual([4, 5]);
    expect(last?.progress).toEqual([{ run: "02", steps: 9, timeMs: 5000 }]);
    expect(last?.dropped).toBe(3);
  });

  it("tells a change of phase at once, the age of the last frame with the next data", () => {
    const box = make();
    box.putStatus(status("live"));
    box.put(arrival({ events: [board(1, "a")] }), wants);
    box.putStatus(status("live", 100));
    box.putStatus(status("live", 200));
    expect(posted.map((m) => m.type)).toEqual(["status", "data"]);
    box.putStatus(status("stale", 200));
    expect(posted.map((m) => m.type)).toEqual(["status", "data", "status"]);
    box.putStatus(status("stale", 300));
    vi.advanceTimersByTime(400);
    expect(posted.length).toBe(4);
  });

  it("keeps the order of what follows the data", () => {
    const box = make();
    box.put(arrival({ events: [board(1, "a")] }), wants);
    box.put(arrival({ events: [board(1, "b")] }), wants);
    box.send({ type: "ready" });
    expect(posted.map((m) => m.type)).toEqual(["data", "data", "ready"]);
    box.put(
      arrival({ events: [board(3, "c")], removed: [{ kind: "board", keyHex: "01" }] }),
      wants,
    );
    expect(data()[2]?.removed.length).toBe(1);
  });
});
