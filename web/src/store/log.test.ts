import { describe, expect, it } from "vitest";
import { type Board, type Run, RunState, type Event } from "../api/types";
import { boards, runs } from "./fleet";
import { describeEvent, EventLog, kMostLines, logText, stamp } from "./log";

const event = (seq: number, what: unknown): Event =>
  ({ eventSeq: BigInt(seq), timeUs: BigInt(seq) * 1000n, actor: "cli", what }) as Event;
const model = (seq: number): Event => event(seq, { case: "model", value: { name: `m${seq}` } });

describe("EventLog", () => {
  it("keeps each event once, in the order of their numbers", () => {
    const log = new EventLog();
    log.add([model(5), model(6)]);
    log.add([model(3), model(5), model(0)]);
    expect(log.lines.value.map((l) => Number(l.seq))).toEqual([3, 5, 6]);
  });
  it("lets the oldest go and says how many", () => {
    const log = new EventLog();
    log.add(Array.from({ length: kMostLines + 25 }, (_, i) => model(i + 1)));
    expect(log.lines.value.length).toBe(kMostLines);
    expect(log.dropped.value).toBe(25);
    expect(Number(log.lines.value[0]?.seq)).toBe(26);
  });
});

describe("describeEvent", () => {
  it("says changes of a run with their cause, failures loudly", () => {
    const e = event(1, {
      case: "runEvent",
      value: {
        runId: Uint8Array.of(1),
        from: RunState.RUNNING,
        to: RunState.FAILED,
        cause: "board gone",
      },
    });
    expect(describeEvent(e)).toMatchObject({
      text: "running to failed: board gone",
      level: "bad",
      runHex: "01",
    });
  });
  it("leaves out what comes with every step", () => {
    expect(describeEvent(event(1, { case: "run", value: {} }))).toBeNull();
  });
});

describe("logText", () => {
  it("names the board of a run's line", () => {
    boards.set("0a", { uid: Uint8Array.of(10), name: "lab-2" } as Board);
    runs.set("01", { spec: { boardUid: Uint8Array.of(10) } } as Run);
    const log = new EventLog();
    log.add([event(1, { case: "runEvent", value: { runId: Uint8Array.of(1), cause: "paused" } })]);
    expect(logText(log.lines.value, false)).toMatch(/^INFO lab-2 run /);
  });
  it("has a line each, with times or without", () => {
    const log = new EventLog();
    log.add([model(1)]);
    expect(logText(log.lines.value, false)).toBe("INFO - model m1\n");
    expect(logText(log.lines.value, true)).toBe(`${stamp(1)} INFO - model m1\n`);
    expect(stamp(1)).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.001$/);
  });
});
