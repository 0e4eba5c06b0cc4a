// Which samples a step trained on: rule 1.8 (proto/README.md, firmware/odt/src/order.c), so that a spike leads to its cause.
import type { Run } from "../api/types";

function xorshift32(x: number): number {
  x ^= x << 13;
  x ^= x >>> 17;
  x ^= x << 5;
  return x >>> 0;
}

/// Permutation of 0..n-1 for an epoch, from 0.
export function epochOrder(orderSeed: number, epoch: number, n: number): Uint32Array {
  let x = (orderSeed ^ Math.imul(epoch + 1, 0x9e3779b1)) >>> 0;
  if (x === 0) x = 0x9e3779b9;
  for (let i = 0; i < 4; i++) x = xorshift32(x);
  const p = Uint32Array.from({ length: n }, (_, i) => i);
  for (let i = n - 1; i >= 1; i--) {
    x = xorshift32(x);
    const j = Number((BigInt(x) * BigInt(i + 1)) >> 32n);
    const [a, b] = [p[i] ?? 0, p[j] ?? 0];
    p[i] = b;
    p[j] = a;
  }
  return p;
}

export interface Batch {
  epoch: number; // from 0
  samples: readonly number[]; // in the dataset, train first, in the order in which they were trained on
}

/// Why the samples of a step cannot be told; "": they can.
export function batchUnknown(run: Run, datasetTrain: number | undefined): string {
  if (run.spec?.captured === true) return "The samples that the board captured never left it.";
  if (run.effective?.batch === undefined || run.trainSamples === 0)
    return "The run has not begun: its batches are not settled.";
  if (datasetTrain === undefined) return "The dataset of this run is no longer here.";
  return datasetTrain === run.trainSamples
    ? ""
    : `The dataset has ${datasetTrain} training samples now, the run had ${run.trainSamples}.`;
}

/// The samples of a step, from 1.
export function batchOf(run: Run, step: number): Batch | null {
  const { batch = 0, orderSeed = 0 } = run.effective ?? {};
  const n = run.trainSamples;
  if (batch <= 0 || n <= 0 || step < 1 || (run.stepsTotal > 0 && step > run.stepsTotal))
    return null;
  const perEpoch = Math.ceil(n / batch);
  const epoch = Math.floor((step - 1) / perEpoch);
  const first = ((step - 1) % perEpoch) * batch;
  return { epoch, samples: [...epochOrder(orderSeed, epoch, n).slice(first, first + batch)] };
}
