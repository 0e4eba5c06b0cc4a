// Figures of campaigns: settings of trials, how much an axis matters, drift and contribution.
import { toHex } from "../api/bytes";
import type { CampaignRound, CampaignSpec, CampaignUnit, HyperParams } from "../api/types";
import { fraction } from "./numbers";

const kFields: Record<string, keyof HyperParams> = {
  mu_weight: "muWeight",
  mu_offset: "muOffset",
  order_seed: "orderSeed",
  dead_zone: "deadZone",
  shift_source: "shiftSource",
  rule: "ruleSet",
  layer_k: "layerK",
  apt_k_max: "aptKMax",
  apt_t_min_q8: "aptTMinQ8",
  apt_t_max_q8: "aptTMaxQ8",
  lr_m: "lrM",
  lr_s: "lrS",
};

/// A unit's value of a setting as text; "default" where it has none.
export function settingOf(
  unit: CampaignUnit,
  axis: string,
  modelLayers?: (hex: string) => number,
): string {
  if (axis === "trainable_layers") return String(modelLayers?.(toHex(unit.modelHash)) ?? "");
  const value = unit.hyper?.[kFields[axis] ?? (axis as keyof HyperParams)];
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return "default";
  return Array.isArray(value) ? value.join("/") : String(value);
}

/// Of every trial the unit that went furthest (the latest rung), by trial.
export function trialsOf(units: readonly CampaignUnit[]): CampaignUnit[] {
  const last = new Map<number, CampaignUnit>();
  for (const u of units) {
    const old = last.get(u.trial);
    if (old === undefined || old.round <= u.round) last.set(u.trial, u);
  }
  return [...last.values()].sort((a, b) => a.trial - b.trial);
}

/// Share of the outcome's variance that lies between the values of an axis: 0 it does not matter, 1 it decides all.
/// NaN where fewer than three outcomes are known, or all are the same.
export function importance(values: readonly string[], outcomes: readonly number[]): number {
  const known = outcomes
    .map((y, i) => ({ y, v: values[i] ?? "" }))
    .filter(({ y }) => Number.isFinite(y));
  if (known.length < 3) return NaN;
  const mean = known.reduce((sum, { y }) => sum + y, 0) / known.length;
  const total = known.reduce((sum, { y }) => sum + (y - mean) ** 2, 0);
  if (total === 0) return NaN;
  const groups = new Map<string, number[]>();
  for (const { v, y } of known) groups.set(v, [...(groups.get(v) ?? []), y]);
  let between = 0;
  for (const ys of groups.values()) {
    const own = ys.reduce((a, b) => a + b, 0) / ys.length;
    between += ys.length * (own - mean) ** 2;
  }
  return between / total;
}

export interface BoardRounds {
  boardHex: string;
  drift: Float64Array; // against the round's median; NaN: none
  share: Float64Array; // of the samples in the average; 0: left out
  heldout: Float64Array; // best held-out accuracy
}

/// Federated rounds by board.
export function boardRounds(
  units: readonly CampaignUnit[],
  rounds: readonly CampaignRound[],
): BoardRounds[] {
  const boards = new Map<string, BoardRounds>();
  const at = new Map(rounds.map((r, i) => [r.round, i]));
  const none = (): Float64Array => new Float64Array(rounds.length).fill(NaN);
  for (const u of units) {
    const i = at.get(u.round);
    if (i === undefined || u.personal || u.boardUid.length === 0) continue;
    const hex = toHex(u.boardUid);
    const row = boards.get(hex) ?? { boardHex: hex, drift: none(), share: none(), heldout: none() };
    boards.set(hex, row);
    const median = Number(rounds[i]?.medianL1 ?? 0n);
    const samples = Number(rounds[i]?.samples ?? 0n);
    if (median > 0) row.drift[i] = Number(u.driftL1) / median;
    if (samples > 0) row.share[i] = Number(u.weight) / samples;
    row.heldout[i] = fraction(u.heldoutBest);
  }
  return [...boards.values()];
}

/// How many boards each phase of a rollout has in all, canary first; phases that add none are left out.
export function phaseBoards(spec: CampaignSpec, boards: number): number[] {
  const r = spec.rollout;
  const share = (ppm: number): number => Math.ceil((boards * ppm) / 1e6);
  const out = [Math.max(1, share(r?.canaryPpm || 100_000))];
  const later = (r?.phasesPpm.length ?? 0) > 0 ? (r?.phasesPpm ?? []) : [1_000_000];
  for (const ppm of later) if (share(ppm) > (out[out.length - 1] ?? 0)) out.push(share(ppm));
  return out;
}
