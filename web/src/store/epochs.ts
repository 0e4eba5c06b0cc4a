// Results of a run's epochs as the pages hold them: of a long run some, evenly chosen, and every one of its newest.
import type { EpochResult } from "../api/types";

export const kChartEpochs = 500; // asked for at once; about two for each pixel of a chart
export const kRowEpochs = 60; // for a sparkline
const kMostEpochs = 2 * kChartEpochs; // held of those that come live; beyond, every second older one goes
export const kRecentEpochs = 200;

/// Adds results in order of their epochs. A newer attempt's result of the same epoch equals the older one, or the run
/// failed: the newer one is kept.
export function mergeEpochs(
  held: readonly EpochResult[],
  more: readonly EpochResult[],
): readonly EpochResult[] {
  const last = held[held.length - 1];
  const [only] = more;
  if (more.length === 1 && only !== undefined && (last === undefined || last.epoch < only.epoch))
    return [...held, only];
  const byEpoch = new Map(held.map((e) => [e.epoch, e]));
  for (const e of more) byEpoch.set(e.epoch, e);
  return [...byEpoch.values()].sort((a, b) => a.epoch - b.epoch);
}

/// At most `most` of them: every second, fourth and so on, and the newest.
export function thinEpochs(
  list: readonly EpochResult[],
  most = kMostEpochs,
): readonly EpochResult[] {
  let kept = list;
  while (kept.length > most) {
    const end = kept.length - 1;
    kept = kept.filter((_, i) => (end - i) % 2 === 0);
  }
  return kept;
}
