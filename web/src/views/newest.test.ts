import { expect, test } from "vitest";
import type { Dataset } from "../api/types";
import { fitting } from "./newest";

const dataset = (name: string, createTimeUs: bigint, ...shape: number[]) =>
  ({ name, shape, meta: { createTimeUs } }) as unknown as Dataset;

test("a model is offered what it takes, the newest first", () => {
  const all = [dataset("old", 1n, 14, 14), dataset("sound", 3n, 32, 50), dataset("flat", 2n, 196)];
  expect(fitting({ inputShape: [1, 14, 14] }, all).map((d) => d.name)).toEqual(["flat", "old"]);
  expect(fitting({ inputShape: [7] }, all)).toEqual([]);
  expect(fitting(undefined, all)).toEqual([]);
});
