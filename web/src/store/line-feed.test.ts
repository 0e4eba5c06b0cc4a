import { describe, expect, it } from "vitest";
import { LineFeed, type FeedPage, type FeedSource } from "./line-feed";

interface Line {
  seq: bigint;
}
/// A record of lines 1 to n, in pages of 4.
class Record implements FeedSource<Line> {
  n = 10;
  epoch = 1n;
  calls = 0;
  fails = false;
  private page(from: number, to: number): FeedPage<Line> {
    this.calls++;
    if (this.fails) throw new Error("gone");
    const lines = [];
    for (let i = Math.max(1, from); i <= to; i++) lines.push({ seq: BigInt(i) });
    return {
      lines,
      older: from > 1 ? String(from) : "",
      newest: BigInt(this.n),
      epoch: this.epoch,
      more: to < this.n,
    };
  }
  newest = async () => this.page(this.n - 3, this.n);
  before = async (older: string) => this.page(Number(older) - 4, Number(older) - 1);
  after = async (seq: bigint) => this.page(Number(seq) + 1, Math.min(this.n, Number(seq) + 4));
}
const numbers = (feed: LineFeed<Line>): number[] => feed.lines.value.map((l) => Number(l.seq));

describe("LineFeed", () => {
  it("begins with the newest, goes on, and reads older ones", async () => {
    const record = new Record();
    const feed = new LineFeed(record, "read");
    await feed.poll();
    expect(numbers(feed)).toEqual([7, 8, 9, 10]);
    record.n = 19;
    await feed.poll(); // three pages of it
    expect(numbers(feed)).toEqual([7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
    await feed.readOlder();
    await feed.readOlder();
    expect(numbers(feed)[0]).toBe(1);
    expect(feed.older.value).toBe("");
    expect(feed.added.value).toBe(6);
  });
  it("reads a line that comes while others are read", async () => {
    const record = new Record();
    const feed = new LineFeed(record, "read");
    await feed.poll();
    const older = feed.readOlder();
    record.n = 11;
    await feed.poll(); // asked for while the older ones are on their way
    await older;
    expect(numbers(feed).at(-1)).toBe(11);
  });
  it("keeps a bounded window, and says that its end is not the newest", async () => {
    const record = new Record();
    const feed = new LineFeed(record, "read", 6);
    await feed.restart();
    record.n = 14;
    await feed.poll();
    expect(numbers(feed)).toEqual([9, 10, 11, 12, 13, 14]);
    expect(feed.older.value).toBe("9");
    await feed.readOlder();
    expect(numbers(feed)).toEqual([5, 6, 7, 8, 9, 10]);
    expect(feed.atEnd.value).toBe(false);
    const { calls } = record;
    await feed.poll();
    expect(record.calls).toBe(calls); // nothing is put behind a gap
    await feed.restart();
    expect(numbers(feed)).toEqual([11, 12, 13, 14]);
  });
  it("begins anew with another record", async () => {
    const record = new Record();
    const feed = new LineFeed(record, "read");
    await feed.restart();
    record.epoch = 2n;
    record.n = 2;
    await feed.poll();
    expect(numbers(feed)).toEqual([1, 2]);
  });
  it("keeps what it has when the daemon is away", async () => {
    const record = new Record();
    const feed = new LineFeed(record, "read it");
    await feed.restart();
    record.fails = true;
    await feed.poll();
    expect(numbers(feed)).toEqual([7, 8, 9, 10]);
    expect(feed.problem.value?.title).toContain("Could not read it");
    record.fails = false;
    await feed.poll();
    expect(feed.problem.value).toBeNull();
  });
});
