import { describe, expect, it } from "vitest";
import { type Board, type Run, RunState, type Event } from "../api/types";
import { boards, runs } from "./fleet";
import { describeEvent, logLine, logText, stamp, type LogLine } from "./log";

const event = (seq: number, what: unknown): Event =>
  ({ eventSeq: BigInt(seq), timeUs: BigInt(seq) * 1000n, actor: "cli", what }) as Event;
const model = (seq: number): Event => event(seq, { case: "model", value: { name: `m${seq}` } });

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
    const line = logLine(
      event(1, { case: "runEvent", value: { runId: Uint8Array.of(1), cause: "paused" } }),
    ) as LogLine;
    expect(logText([line], false)).toMatch(/^INFO lab-2 run /);
  });
  it("has a line each, with times or without", () => {
    const lines = [logLine(model(1)) as LogLine];
    expect(logText(lines, false)).toBe("INFO - model m1\n");
    expect(logText(lines, true)).toBe(`${stamp(1)} INFO - model m1\n`);
    expect(stamp(1)).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.001$/);
  });
});
