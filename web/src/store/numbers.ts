import type { Accuracy, Loss } from "../api/types";

/// The wire carries integers; here, and only here, they are divided.
export function lossPerSample(loss: Loss | undefined): number {
  if (loss === undefined || loss.count === 0) return NaN;
  return (Number(loss.sum) * 2 ** loss.exp2) / loss.count;
}

/// 0..1; NaN: not measured.
export function fraction(accuracy: Accuracy | undefined): number {
  if (accuracy === undefined || accuracy.total === 0) return NaN;
  return accuracy.correct / accuracy.total;
}

export const usToMs = (us: bigint): number => Number(us / 1000n);
