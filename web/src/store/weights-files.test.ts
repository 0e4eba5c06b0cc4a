import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { toHex } from "../api/bytes";
import type { Snapshot } from "../api/types";
import { fileName } from "./files";
import { Sha256 } from "./sha256";
import { snapshotName, snapshotTree } from "./snapshot-tree";

describe("Sha256", () => {
  it("agrees with the system's for every length around a block, in pieces", () => {
    for (const n of [0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 1000, 65_537]) {
      const data = Uint8Array.from({ length: n }, (_, i) => (i * 31 + n) & 255);
      const sha = new Sha256();
      for (let at = 0; at < n; at += 37) sha.update(data.subarray(at, Math.min(n, at + 37)));
      expect(toHex(sha.digest())).toBe(createHash("sha256").update(data).digest("hex"));
    }
  });
});

const snap = (id: number, parent: number, at: number, aliases: string[] = []): Snapshot =>
  ({
    hash: Uint8Array.of(id),
    parent: parent === 0 ? new Uint8Array() : Uint8Array.of(parent),
    parents: [],
    aliases,
    meta: { createTimeUs: BigInt(at) },
  }) as unknown as Snapshot;
const shape = (list: Snapshot[]): string =>
  snapshotTree(list)
    .map((r) => `${"-".repeat(r.depth)}${r.snapshot.hash[0]}`)
    .join(" ");

describe("snapshotTree", () => {
  it("puts children under their parents, newest family first", () => {
    expect(shape([snap(1, 0, 10), snap(2, 1, 20), snap(3, 0, 15), snap(4, 1, 18)])).toBe(
      "3 1 -4 -2",
    );
  });
  it("shows what has a parent that is gone as a root, and circles flat", () => {
    expect(shape([snap(2, 9, 1)])).toBe("2");
    expect(shape([snap(1, 2, 1), snap(2, 1, 2)])).toBe("1 -2");
    expect(shape([snap(1, 1, 1)])).toBe("1");
  });
  it("hangs an average under the first parent there is", () => {
    const average = { ...snap(5, 0, 30), parents: [Uint8Array.of(8), Uint8Array.of(1)] };
    expect(shape([snap(1, 0, 10), average as Snapshot])).toBe("1 -5");
  });
});

describe("names", () => {
  it("prefers an alias that a person gave", () => {
    expect(snapshotName(snap(1, 0, 1, ["final/x", "best"]))).toBe("best");
    expect(snapshotName(snap(1, 0, 1, ["final/x"]))).toBe("final/x");
    expect(snapshotName(snap(171, 0, 1))).toBe("ab");
  });
  it("makes file names", () => {
    expect(fileName("final/apt high", "npz")).toBe("final-apt-high.npz");
    expect(fileName("../..", "h")).toBe("file.h");
  });
});
