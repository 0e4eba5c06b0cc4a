import { describe, expect, it } from "vitest";
import { Task, type Loss, type Outputs } from "../api/types";
import { bytes, count, duration, microseconds, percent, points, significant } from "./format";
import { errorUnit, fraction, hasClasses, lossPerSample, squaredError } from "./numbers";

describe("format", () => {
  it("says what was not measured", () => {
    expect(percent(fraction(undefined))).toBe("–");
    expect(percent(fraction({ correct: 0, total: 0 } as never))).toBe("–");
    expect(percent(fraction({ correct: 0, total: 10 } as never))).toBe("0.0 %");
  });
  it("signs differences in points", () => {
    expect(points(0.5, 0.625)).toBe("+12.5");
    expect(points(0.5, 0.375)).toBe("−12.5");
    expect(points(NaN, 0.5)).toBe("–");
  });
  it("writes ages in two units", () => {
    expect(duration(-5)).toBe("0 s");
    expect(duration(59_999)).toBe("59 s");
    expect(duration(60_000)).toBe("1 min 00 s");
    expect(duration(3_600_000)).toBe("1 h 00 min");
    expect(duration(90_000_000)).toBe("1 d 1 h");
  });
  it("groups digits and scales sizes", () => {
    expect(count(1234567)).toBe("1\u202f234\u202f567");
    expect(bytes(1023)).toBe("1023 B");
    expect(bytes(1024)).toBe("1.0 KiB");
    expect(bytes(5_000_000n)).toBe("4.8 MiB");
    expect(microseconds(950)).toBe("950 µs");
    expect(microseconds(1500)).toBe("1.5 ms");
  });
  it("divides a loss by its count and scale", () => {
    expect(lossPerSample({ sum: 100n, exp2: 2, count: 8 } as never)).toBe(50);
    expect(lossPerSample({ sum: 100n, exp2: 0, count: 0 } as never)).toBeNaN();
  });
  it("tells errors in units of the target where there is one scale", () => {
    const loss = { sum: 7200n, exp2: 0, count: 9 } as Loss;
    const outputs = (scale: number[]): Outputs =>
      ({ task: Task.REGRESS, count: 2, offset: scale.map(() => 5), scale }) as never;
    expect(squaredError(loss, outputs([4, 4]))).toBe(25);
    expect(squaredError(loss, outputs([4]))).toBe(25);
    expect(errorUnit(outputs([4]))).toBe("units of the target");
    for (const unknown of [[], [4, 5]]) {
      expect(squaredError(loss, outputs(unknown))).toBe(400);
      expect(errorUnit(outputs(unknown))).toBe("steps of the model’s integers");
    }
    expect(squaredError(undefined, outputs([4]))).toBeNaN();
    expect(significant(squaredError(undefined, undefined))).toBe("–");
    expect([12.3456, 0.00123456, 1e7].map(significant)).toEqual(["12.35", "0.001235", "10000000"]);
  });
  it("knows what has classes", () => {
    expect(hasClasses(undefined)).toBe(true);
    expect(hasClasses({ task: Task.UNSPECIFIED } as Outputs)).toBe(true);
    expect(hasClasses({ task: Task.REGRESS } as Outputs)).toBe(false);
    expect(hasClasses({ task: Task.AUTOENCODE } as Outputs)).toBe(false);
  });
});
