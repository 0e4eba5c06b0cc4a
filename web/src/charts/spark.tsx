export interface SparkProps {
  values: readonly number[]; // 0..1, oldest first
  label: string; // the same in words
}

const kWidth = 88;
const kHeight = 22;
const kPad = 2.5;

/// Points of a sparkline; the range is at least 10 points of accuracy, so that noise stays small.
export function sparkPath(values: readonly number[], width = kWidth, height = kHeight): string {
  const finite = values.filter(Number.isFinite);
  if (finite.length < 2) return "";
  let lo = Math.min(...finite);
  let hi = Math.max(...finite);
  if (hi - lo < 0.1) {
    const mid = (hi + lo) / 2;
    lo = mid - 0.05;
    hi = mid + 0.05;
  }
  return finite
    .map((v, i) => {
      const x = kPad + (i * (width - 2 * kPad)) / (finite.length - 1);
      const y = height - kPad - ((v - lo) / (hi - lo)) * (height - 2 * kPad);
      return `${i === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`;
    })
    .join("");
}

export function Spark({ values, label }: SparkProps) {
  const path = sparkPath(values);
  if (path === "") return <span class="spark-none" />;
  const end = /([\d.]+) ([\d.]+)$/.exec(path);
  return (
    <svg class="spark" viewBox={`0 0 ${kWidth} ${kHeight}`} role="img" aria-label={label}>
      <path
        d={path}
        fill="none"
        stroke="currentColor"
        stroke-width="1.500"
        stroke-linejoin="round"
      />
      {end !== null && <circle cx={end[1]} cy={end[2]} r="2.200" fill="currentColor" />}
    </svg>
  );
}
