import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { formatOf, sortFiles, tarHeader, tarOf, type DroppedFile } from "./import-files";

const dropped = (path: string, content = "x"): DroppedFile => ({
  path,
  file: new File([content], path.split("/").pop() ?? path),
});
const names = (list: readonly (DroppedFile | null)[]): (string | undefined)[] =>
  list.map((f) => f?.path);

describe("sortFiles", () => {
  it("knows formats by name", () => {
    expect(
      ["a.CSV", "b.npz", "train-images-idx3-ubyte.gz", "c.wav", "d.bin"].map(formatOf),
    ).toEqual(["csv", "npz", "idx", "wav", ""]);
  });
  it("finds labels and an own test set of IDX files", () => {
    const s = sortFiles(
      [
        "train-labels-idx1-ubyte.gz",
        "t10k-images-idx3-ubyte.gz",
        "train-images-idx3-ubyte.gz",
        "t10k-labels-idx1-ubyte.gz",
        "readme.md",
      ].map((n) => dropped(n)),
    );
    expect(s.format).toBe("idx");
    expect(names([...s.data, s.labels, s.testData, s.testLabels])).toEqual([
      "train-images-idx3-ubyte.gz",
      "train-labels-idx1-ubyte.gz",
      "t10k-images-idx3-ubyte.gz",
      "t10k-labels-idx1-ubyte.gz",
    ]);
    expect(s.left).toEqual(["readme.md"]);
  });
  it("keeps every file of a folder of recordings", () => {
    const s = sortFiles(["yes/1.wav", "no/2.wav", "notes.txt"].map((n) => dropped(n)));
    expect([s.format, s.data.length, s.left]).toEqual(["wav", 2, ["notes.txt"]]);
  });
});

describe("tarOf", () => {
  it("makes what tar unpacks, with long names", async () => {
    const folder = mkdtempSync(join(tmpdir(), "odt-tar-"));
    const long = `${"d".repeat(90)}/${"f".repeat(60)}.wav`;
    const blob = tarOf([dropped("b/two.wav", "zwei"), dropped("a.wav", ""), dropped(long, "lang")]);
    expect(blob.size % 512).toBe(0);
    writeFileSync(join(folder, "x.tar"), new Uint8Array(await blob.arrayBuffer()));
    execFileSync("tar", ["-xf", "x.tar"], { cwd: folder });
    expect(readFileSync(join(folder, "b/two.wav"), "utf8")).toBe("zwei");
    expect(readFileSync(join(folder, "a.wav"), "utf8")).toBe("");
    expect(readFileSync(join(folder, long), "utf8")).toBe("lang");
  });
  it("refuses a name that fits no header", () => {
    expect(() => tarHeader("f".repeat(101), 1)).toThrow("too long");
  });
});
