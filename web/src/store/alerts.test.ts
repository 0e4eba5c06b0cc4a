import { describe, expect, it } from "vitest";
import { fromHex } from "../api/bytes";
import { settingKey } from "../api/setting-key";
import { AlertState, SettingScope, type Alert, type Setting } from "../api/types";
import { begins } from "./alert-news";
import { withUnit } from "./alerts";

const alert = (state: AlertState, fire: number, silenced = 0): Alert =>
  ({ state, fireTimeUs: BigInt(fire), silencedUntilTimeUs: BigInt(silenced) * 1000n }) as Alert;

describe("alerts", () => {
  it("begin when they fire first, or again", () => {
    const firing = alert(AlertState.FIRING, 5);
    expect(begins(undefined, firing, 0)).toBe(true);
    expect(begins(firing, alert(AlertState.FIRING, 5), 0)).toBe(false);
    expect(begins(firing, alert(AlertState.FIRING, 9), 0)).toBe(true);
    expect(begins(firing, alert(AlertState.RESOLVED, 5), 0)).toBe(false);
    expect(begins(undefined, alert(AlertState.FIRING, 5, 100), 50)).toBe(false);
    expect(begins(undefined, alert(AlertState.FIRING, 5, 100), 150)).toBe(true);
  });
  it("tell values in their unit", () => {
    expect([
      withUnit(50_000n, "ppm"),
      withUnit(1234n, "ppm"),
      withUnit(30n, "s"),
      withUnit(1n, ""),
    ]).toEqual(["5 %", "0.12 %", "30 s", "1"]);
  });
});

describe("settingKey", () => {
  it("is what an event of deletion names", () => {
    const s = {
      scope: SettingScope.FLEET,
      target: "",
      boardUid: new Uint8Array(),
      key: "k",
    } as Setting;
    expect(settingKey(s)).toBe("01006b");
    const b = {
      scope: SettingScope.BOARD,
      target: "",
      boardUid: fromHex("51a0"),
      key: "k",
    } as Setting;
    expect(settingKey(b)).toBe("0451a0006b");
  });
});
