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

/// Exponential moving average with the given weight of the past, NaN skipped, start unbiased. It ends with the values.
export function smooth(values: ArrayLike<number>, weight: number): Float64Array {
  const out = new Float64Array(values.length);
  let sum = 0;
  let mass = 0;
  let end = values.length;
  while (end > 0 && !Number.isFinite(values[end - 1] ?? NaN)) end--;
  out.fill(NaN, end);
  for (let i = 0; i < end; i++) {
    const v = values[i] ?? NaN;
    if (Number.isFinite(v)) {
      sum = sum * weight + v * (1 - weight);
      mass = mass * weight + (1 - weight);
    }
    out[i] = mass > 0 ? sum / mass : NaN;
  }
  return out;
}

export interface Curve {
  x: ArrayLike<number>; // ascending
  columns: readonly ArrayLike<number>[];
}

/// Any number of curves over the union of their x; the columns of the first curve, then of the second, and so on.
export function joinAll(curves: readonly Curve[]): Joined {
  const x = Float64Array.from(new Set(curves.flatMap((c) => Array.from(c.x)))).sort();
  const at = new Map<number, number>();
  x.forEach((v, i) => at.set(v, i));
  const columns = curves.flatMap((c) =>
    c.columns.map((column) => {
      const out = new Float64Array(x.length).fill(NaN);
      for (let i = 0; i < c.x.length; i++) {
        const row = at.get(c.x[i] ?? NaN);
        if (row !== undefined) out[row] = column[i] ?? NaN;
      }
      return out;
    }),
  );
  return { x, columns };
}

/// The p-th quantile (0..1) of ascending values, between neighbours.
export function quantile(sorted: readonly number[], p: number): number {
  if (sorted.length === 0) return NaN;
  const at = p * (sorted.length - 1);
  const [lo, hi] = [Math.floor(at), Math.ceil(at)];
  const a = sorted[lo] ?? NaN;
  return a + ((sorted[hi] ?? a) - a) * (at - lo);
}

/// 5th, 50th and 95th percentile of many curves over `points` places of their common range. A curve counts from its
/// first to its last x, with its newest value.
export function cohortBand(
  curves: readonly { x: ArrayLike<number>; values: ArrayLike<number> }[],
  points: number,
): Joined {
  const starts = curves.map((c) => c.x[0] ?? NaN).filter(Number.isFinite);
  const ends = curves.map((c) => c.x[c.x.length - 1] ?? NaN).filter(Number.isFinite);
  const [from, to] = [Math.min(...starts), Math.max(...ends)];
  if (starts.length === 0 || points < 2) return { x: new Float64Array(0), columns: [] };
  const x = Float64Array.from(
    { length: points },
    (_, i) => from + ((to - from) * i) / (points - 1),
  );
  const places = curves.map(() => 0);
  const rows = Array.from(x, (v) => {
    const values = curves.flatMap((c, i) => {
      let p = places[i] ?? 0;
      while (p + 1 < c.x.length && (c.x[p + 1] ?? Infinity) <= v) p++;
      places[i] = p;
      const inside = (c.x[0] ?? Infinity) <= v && v <= (c.x[c.x.length - 1] ?? -Infinity);
      const y = c.values[p] ?? NaN;
      return inside && Number.isFinite(y) ? [y] : [];
    });
    return values.sort((a, b) => a - b);
  });
  const column = (p: number): Float64Array => Float64Array.from(rows, (r) => quantile(r, p));
  return { x, columns: [column(0.05), column(0.5), column(0.95)] };
}
