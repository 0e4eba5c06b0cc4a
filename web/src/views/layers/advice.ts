import type { EpochResult, HyperParams, LayerEpoch } from "../../api/types";
import { percent } from "../../store/format";

export interface Advice {
  layer: number;
  text: string; // what is wrong, with its figure
  remedy: string; // what to try
  change: { muWeight?: string; k?: string }; // settings of a trial, as the launch page takes them
}

const kStuck = 0.95; // rule 1.10
const kSaturated = 0.05;
const kDead = 0.9;

export const zeroUpdates = (l: LayerEpoch): number => 1 - l.nonzeroDeltasPpm / 1e6;

/// Settings with every mu_weight one step up or down.
const shiftedMu = (told: HyperParams, by: number): string =>
  told.muWeight.map((m) => Math.min(4, m + by)).join(",");

/// What the newest epoch says against its layers by the limits of rule 1.10; most telling first.
export function adviceOn(
  epoch: EpochResult | undefined,
  told: HyperParams | undefined,
  names: readonly string[],
  weights: readonly number[],
  units: readonly number[],
): Advice[] {
  if (epoch === undefined || told === undefined) return [];
  return epoch.layers.flatMap((l, layer): Advice[] => {
    const name = names[layer] ?? `layer ${layer}`;
    const [w = 0, u = 0] = [weights[layer], units[layer]];
    const zero = zeroUpdates(l);
    if (zero > kStuck) {
      const mu = shiftedMu(told, 1);
      return [
        {
          layer,
          text: `${name}: ${percent(zero, 0)} of its updates are zero`,
          remedy:
            l.k < 16
              ? "Raise mu weight by 1, or give it a bit more precision."
              : "Raise mu weight by 1.",
          change: mu !== "" ? { muWeight: mu } : { k: String(Math.min(16, l.k + 1)) },
        },
      ];
    }
    if (w > 0 && l.saturated / w > kSaturated) {
      const mu = shiftedMu(told, -1);
      return [
        {
          layer,
          text: `${name}: ${percent(l.saturated / w, 0)} of its weights stand at the largest value`,
          remedy: "Lower mu weight by 1, so that the updates are smaller.",
          change: mu !== "" ? { muWeight: mu } : {},
        },
      ];
    }
    if (u > 0 && l.deadUnits / u > kDead) {
      return [
        {
          layer,
          text: `${name}: ${l.deadUnits} of ${u} units were silent for the whole epoch`,
          remedy:
            "Start from weights that still answer (an earlier snapshot), or lower mu weight by 1.",
          change: { muWeight: shiftedMu(told, -1) },
        },
      ];
    }
    return [];
  });
}
