export interface Joined {
  x: Float64Array;
  /// The columns of `a`, then those of `b`, over the common x; NaN where a side has no point.
  columns: Float64Array[];
}

/// Two sets of columns over ascending x, put over the union of both.
export function join(
  ax: ArrayLike<number>,
  a: readonly ArrayLike<number>[],
  bx: ArrayLike<number>,
  b: readonly ArrayLike<number>[],
): Joined {
  const x: number[] = [];
  const rows: [number, number][] = []; // positions in a and b, -1: none
  let i = 0;
  let j = 0;
  while (i < ax.length || j < bx.length) {
    const va = i < ax.length ? (ax[i] ?? Infinity) : Infinity;
    const vb = j < bx.length ? (bx[j] ?? Infinity) : Infinity;
    x.push(Math.min(va, vb));
    rows.push([va <= vb ? i++ : -1, vb <= va ? j++ : -1]);
  }
  const pick = (source: ArrayLike<number>, side: 0 | 1): Float64Array =>
    Float64Array.from(rows, (r) => (r[side] < 0 ? NaN : (source[r[side]] ?? NaN)));
  return {
    x: Float64Array.from(x),
    columns: [...a.map((c) => pick(c, 0)), ...b.map((c) => pick(c, 1))],
  };
}

/// Exponential moving average with the given weight of the past, NaN skipped, start unbiased.
export function smooth(values: ArrayLike<number>, weight: number): Float64Array {
  const out = new Float64Array(values.length);
  let sum = 0;
  let mass = 0;
  for (let i = 0; i < values.length; i++) {
    const v = values[i] ?? NaN;
    if (Number.isFinite(v)) {
      sum = sum * weight + v * (1 - weight);
      mass = mass * weight + (1 - weight);
    }
    out[i] = mass > 0 ? sum / mass : NaN;
  }
  return out;
}
