import type { Dataset, Model } from "../api/types";

/// Resources by time of creation, newest first.
export const newest = <T extends { meta?: { createTimeUs: bigint } | undefined }>(list: T[]): T[] =>
  list.sort((a, b) => Number((b.meta?.createTimeUs ?? 0n) - (a.meta?.createTimeUs ?? 0n)));

const values = (shape: number[]): number => shape.reduce((a, b) => a * b, 1);

/// Datasets whose samples have as many values as the model takes, the newest first.
export const fitting = (model: Pick<Model, "inputShape"> | undefined, list: Dataset[]): Dataset[] =>
  newest(list).filter((d) => model !== undefined && values(d.shape) === values(model.inputShape));
