/// Words and figures as they are shown. A missing value is an en dash, never 0.
export const kNone = "–";

export function percent(value: number, digits = 1): string {
  return Number.isFinite(value) ? `${(value * 100).toFixed(digits)} %` : kNone;
}

/// A difference of two fractions, in percentage points with its sign.
export function points(from: number, to: number): string {
  const d = (to - from) * 100;
  if (!Number.isFinite(d)) return kNone;
  return `${d < 0 ? "−" : "+"}${Math.abs(d).toFixed(1)}`;
}

export function decimal(value: number, digits = 2): string {
  if (!Number.isFinite(value)) return kNone;
  return Math.abs(value) >= 10_000 ? count(Math.round(value)) : value.toFixed(digits);
}

/// Four digits: 12.34, 0.001234, 1.234e+6.
export function significant(value: number): string {
  return Number.isFinite(value) ? String(Number(value.toPrecision(4))) : kNone;
}

export function count(value: number | bigint): string {
  return value.toString().replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

export function bytes(value: number | bigint): string {
  const n = Number(value);
  if (n < 1024) return `${n} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let v = n / 1024;
  let u = 0;
  while (v >= 1024 && u < units.length - 1) {
    v /= 1024;
    u++;
  }
  return `${v >= 100 ? v.toFixed(0) : v.toFixed(1)} ${units[u]}`;
}

/// "0 s", "48 s", "3 min 20 s", "2 h 05 min", "4 d 3 h".
export function duration(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  const m = Math.floor(s / 60);
  if (m < 10) return `${m} min ${String(s % 60).padStart(2, "0")} s`;
  if (m < 60) return `${m} min`;
  const h = Math.floor(m / 60);
  if (h < 24) return `${h} h ${String(m % 60).padStart(2, "0")} min`;
  return `${Math.floor(h / 24)} d ${h % 24} h`;
}

export function microseconds(us: number): string {
  if (us === 0) return kNone;
  if (us < 1000) return `${us} µs`;
  return us < 1_000_000
    ? `${(us / 1000).toFixed(us < 10_000 ? 1 : 0)} ms`
    : `${(us / 1e6).toFixed(1)} s`;
}

// Made once: a formatter takes a hundred times as long to make as to use.
const kTime = new Intl.DateTimeFormat(undefined, {
  hour: "numeric",
  minute: "numeric",
  second: "numeric",
  hour12: false,
});
const kDay = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });

/// Local wall clock; the date too where it is not today's.
export function clock(timeMs: number, nowMs: number): string {
  if (timeMs <= 0) return kNone;
  const t = new Date(timeMs);
  const time = kTime.format(t);
  if (t.toDateString() === new Date(nowMs).toDateString()) return time;
  return `${kDay.format(t)} ${time}`;
}

/// Ids and hashes: as much as a person compares by eye.
export const shortHash = (hex: string): string => (hex === "" ? kNone : hex.slice(0, 8));

/// UUIDv7 ids begin with the time, so their random end is what tells them apart; the command line
/// takes the beginning.
export function uuid(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
