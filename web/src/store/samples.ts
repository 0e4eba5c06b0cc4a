// Single samples of datasets as source values.
import { fromHex } from "../api/bytes";
import { clients, kCallTimeoutMs } from "../api/clients";
import type { Dataset, DatasetPreview, GetDatasetResponse } from "../api/types";

const kKept = 300; // answers; the oldest go

const cache = new Map<string, Promise<GetDatasetResponse>>();

/// The sample of this number in the dataset (train first); asked for once.
export function sampleOf(datasetHex: string, sample: number): Promise<GetDatasetResponse> {
  const key = `${datasetHex}/${sample}`;
  const known = cache.get(key);
  if (known !== undefined) return known;
  const asked = clients().dataset.getDataset(
    { id: fromHex(datasetHex), sample },
    { timeoutMs: kCallTimeoutMs },
  );
  cache.set(key, asked);
  asked.catch(() => cache.delete(key));
  const oldest = cache.size > kKept ? cache.keys().next().value : undefined;
  if (oldest !== undefined) cache.delete(oldest);
  return asked;
}

/// Number in the dataset of a sample of a split.
export function indexInDataset(d: Dataset, split: string, index: number): number {
  if (split === "train") return index;
  return split === "heldout" ? d.train + index : d.train + d.heldout + index;
}

export function splitSize(d: Dataset, split: string): number {
  return split === "train" ? d.train : split === "heldout" ? d.heldout : d.test;
}

export const className = (d: Dataset | undefined, label: number): string =>
  d?.classNames[label] || String(label);

/// What a sample is drawn as: a picture made of sound says so by its sample rate.
export const pictureKind = (p: DatasetPreview): string =>
  p.kind === "image" && p.sampleRate > 0 ? "spectrogram" : p.kind;
