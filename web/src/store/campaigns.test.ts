import { describe, expect, it } from "vitest";
import { CampaignKind, Policy, type CampaignRound, type CampaignUnit } from "../api/types";
import { boardRounds, importance, phaseBoards, settingOf, trialsOf } from "./campaign-figures";
import { kNewCampaign, parseAxes, specOf } from "./campaign-spec";

describe("parseAxes", () => {
  it("reads lines and names what it cannot read", () => {
    expect(parseAxes("mu_weight=0, 1\nbatch = 4,8;k=6").axes).toEqual([
      { name: "mu_weight", values: ["0", "1"] },
      { name: "batch", values: ["4", "8"] },
      { name: "k", values: ["6"] },
    ]);
    expect(parseAxes("mu_weight").wrong).toBe("mu_weight");
  });
});

describe("specOf", () => {
  it("fixes the settings where some are swept or given, else leaves them to the policy", () => {
    expect(specOf(kNewCampaign).hyper?.policy).toBe(Policy.AUTO);
    expect(specOf({ ...kNewCampaign, kind: CampaignKind.SWEEP }).hyper?.policy).toBe(Policy.FIXED);
    expect(specOf({ ...kNewCampaign, muWeight: "1,-1,-3" }).hyper?.muWeight).toEqual([1, -1, -3]);
  });
  it("gives twin B what is written instead", () => {
    const spec = specOf({
      ...kNewCampaign,
      kind: CampaignKind.TWIN,
      settingsB: "mu_weight=2\nk=8",
    });
    expect(spec.hyperB).toMatchObject({ muWeight: [2], k: 8, epochs: 3 });
    expect(() =>
      specOf({ ...kNewCampaign, kind: CampaignKind.TWIN, settingsB: "colour=2" }),
    ).toThrow("colour");
  });
  it("turns percent into millionths", () => {
    const { rollout } = specOf({ ...kNewCampaign, kind: CampaignKind.ROLLOUT, phases: "25, 100" });
    expect(rollout).toMatchObject({
      canaryPpm: 100_000,
      phasesPpm: [250_000, 1_000_000],
      maxDropPpm: 20_000,
    });
  });
});

const unit = (u: Partial<CampaignUnit>): CampaignUnit =>
  ({
    boardUid: new Uint8Array(),
    modelHash: new Uint8Array(),
    round: 0,
    trial: 0,
    ...u,
  }) as CampaignUnit;

describe("figures", () => {
  it("keeps the last rung of a trial", () => {
    const list = [unit({ trial: 1 }), unit({ trial: 0 }), unit({ trial: 1, round: 2, index: 7 })];
    expect(trialsOf(list).map((u) => [u.trial, u.round])).toEqual([
      [0, 0],
      [1, 2],
    ]);
  });
  it("reads a setting as text", () => {
    const u = unit({ hyper: { muWeight: [1, -1, -3], batch: 4 } as never });
    expect([settingOf(u, "mu_weight"), settingOf(u, "batch"), settingOf(u, "k")]).toEqual([
      "1/-1/-3",
      "4",
      "default",
    ]);
  });
  it("tells the axis that decides from the one that does not", () => {
    expect(importance(["a", "a", "b", "b"], [0, 0, 1, 1])).toBe(1);
    expect(importance(["a", "b", "a", "b"], [0, 0, 1, 1])).toBe(0);
    expect(importance(["a", "b"], [0, 1])).toBeNaN();
    expect(importance(["a", "b", "c"], [1, 1, 1])).toBeNaN();
  });
  it("puts drift against the median and the share of samples by board and round", () => {
    const rounds = [
      { round: 0, medianL1: 100n, samples: 400n },
      { round: 1, medianL1: 0n, samples: 0n },
    ] as unknown as CampaignRound[];
    const rows = boardRounds(
      [
        unit({ boardUid: Uint8Array.of(1), driftL1: 150n, weight: 100n }),
        unit({ boardUid: Uint8Array.of(1), round: 1, driftL1: 9n, weight: 0n }),
        unit({ boardUid: Uint8Array.of(1), personal: true, driftL1: 1n, weight: 1n }),
      ],
      rounds,
    );
    expect(rows.length).toBe(1);
    expect([...(rows[0]?.drift ?? [])]).toEqual([1.5, NaN]);
    expect([...(rows[0]?.share ?? [])]).toEqual([0.25, NaN]);
  });
  it("counts the boards of each phase", () => {
    const spec = { rollout: { canaryPpm: 100_000, phasesPpm: [500_000, 1_000_000] } };
    expect(phaseBoards(spec as never, 10)).toEqual([1, 5, 10]);
    expect(phaseBoards({} as never, 3)).toEqual([1, 3]);
  });
});
