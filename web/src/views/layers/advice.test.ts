import { describe, expect, it } from "vitest";
import type { EpochResult, HyperParams, LayerEpoch } from "../../api/types";
import { adviceOn } from "./advice";

const layer = (change: Partial<LayerEpoch>): LayerEpoch =>
  ({ nonzeroDeltasPpm: 500_000, saturated: 0, deadUnits: 0, k: 8, ...change }) as LayerEpoch;
const told = { muWeight: [1, -1, -3] } as unknown as HyperParams;
const advise = (...layers: LayerEpoch[]) =>
  adviceOn({ layers } as unknown as EpochResult, told, ["a", "b"], [100, 100], [10, 10]);

describe("adviceOn", () => {
  it("says nothing of layers within the limits of rule 1.10", () => {
    expect(
      advise(layer({}), layer({ nonzeroDeltasPpm: 50_000, saturated: 5, deadUnits: 9 })),
    ).toEqual([]);
  });
  it("asks for larger steps where hardly any weight moves", () => {
    const [a] = advise(layer({}), layer({ nonzeroDeltasPpm: 30_000 }));
    expect(a).toMatchObject({ layer: 1, change: { muWeight: "2,0,-2" } });
    expect(a?.text).toContain("b: 97 %");
  });
  it("asks for smaller steps where weights stand at the limit or units are silent", () => {
    expect(advise(layer({ saturated: 6 }))[0]?.change).toEqual({ muWeight: "0,-2,-4" });
    expect(advise(layer({ deadUnits: 10 }))[0]?.text).toContain("10 of 10 units");
  });
  it("has none before the first epoch", () => {
    expect(adviceOn(undefined, told, [], [], [])).toEqual([]);
  });
});
