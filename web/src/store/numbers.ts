import { Task, type Accuracy, type Loss, type Outputs } from "../api/types";

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

/// Whether accuracy says how a model does; else its squared error does. Absent: of before there were others.
export const hasClasses = (outputs: Outputs | undefined): boolean =>
  outputs?.task !== Task.REGRESS && outputs?.task !== Task.AUTOENCODE;

/// The scale of all outputs; NaN: not known, or not one.
function commonScale(outputs: Outputs | undefined): number {
  const [first = NaN, ...others] = outputs?.scale ?? [];
  return others.every((s) => s === first) ? first : NaN;
}

/// Mean squared error of an output: in units of the target where there is one scale, else of the
/// model's integers. NaN: not measured.
export function squaredError(loss: Loss | undefined, outputs: Outputs | undefined): number {
  const scale = commonScale(outputs);
  const unit = Number.isFinite(scale) ? scale * scale : 1;
  return lossPerSample(loss) / Math.max(outputs?.count ?? 1, 1) / unit;
}

/// What squaredError() is in.
export function errorUnit(outputs: Outputs | undefined): string {
  if (!Number.isFinite(commonScale(outputs))) return "steps of the model’s integers";
  return outputs?.task === Task.AUTOENCODE ? "units of the data" : "units of the target";
}

export const usToMs = (us: bigint): number => Number(us / 1000n);
