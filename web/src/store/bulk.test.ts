import { describe, expect, it } from "vitest";
import { bulkProgress, each, tellFailures } from "./bulk";
import { notices } from "./notices";

describe("each", () => {
  it("goes on after a failure, and tells both", async () => {
    const asked: string[] = [];
    const { done, failed } = await each(
      [1, 2, 3, 4, 5],
      (n) => `Could not do ${n}`,
      async (n, requestId) => {
        asked.push(requestId);
        if (n === 2) throw new Error("no");
      },
    );
    expect(done.sort()).toEqual([1, 3, 4, 5]);
    expect(failed.map((f) => [f.item, f.problem.title])).toEqual([[2, "Could not do 2"]]);
    expect(new Set(asked).size).toBe(5);
    expect(bulkProgress.value).toBeNull();
  });
  it("has at most three calls under way", async () => {
    let [now, most] = [0, 0];
    await each(
      Array.from({ length: 12 }, (_, i) => i),
      String,
      async () => {
        most = Math.max(most, ++now);
        await new Promise((done) => setTimeout(done, 1));
        now--;
      },
    );
    expect(most).toBe(3);
  });
});

describe("tellFailures", () => {
  it("makes one notice of many, with the first by name", () => {
    const problem = (n: number) => ({
      title: `Could not do ${n}`,
      cause: "away",
      remedy: "wait",
      code: "X",
    });
    tellFailures(
      [1, 2, 3, 4, 5].map((item) => ({ item, problem: problem(item) })),
      9,
    );
    const last = notices.list.value.at(-1);
    expect(last?.title).toBe("5 of 9 could not be done");
    expect(last?.cause).toContain("Could not do 3: away · and 2 more");
  });
});
