import { beforeEach, describe, expect, it, vi } from "vitest";
import { drawSoon, forgetDraw } from "./draw-queue";

const frames: (() => void)[] = [];
let clock = 0;
beforeEach(() => {
  frames.length = 0;
  clock = 0;
  vi.stubGlobal("requestAnimationFrame", (f: () => void) => frames.push(f));
  vi.stubGlobal("performance", { now: () => clock });
});
const nextFrame = async (): Promise<void> => {
  frames.shift()?.();
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

describe("drawSoon", () => {
  it("draws quick charts in one frame, the newest wish of each", async () => {
    const drawn: string[] = [];
    const [a, b] = [{}, {}];
    drawSoon(a, () => drawn.push("a1"));
    drawSoon(b, () => drawn.push("b"));
    drawSoon(a, () => drawn.push("a2"));
    expect(drawn).toEqual([]);
    await nextFrame();
    expect(drawn).toEqual(["a2", "b"]);
    expect(frames.length).toBe(0);
  });

  it("gives slow charts a frame each, forgets the gone", async () => {
    const drawn: string[] = [];
    const slow = (name: string) => () => {
      drawn.push(name);
      clock += 50;
    };
    const gone = {};
    drawSoon({}, slow("a"));
    drawSoon(gone, slow("gone"));
    drawSoon({}, slow("b"));
    forgetDraw(gone);
    await nextFrame();
    expect(drawn).toEqual(["a"]);
    await nextFrame();
    expect(drawn).toEqual(["a", "b"]);
    expect(frames.length).toBe(0);
  });
});
