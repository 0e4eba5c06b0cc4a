// GetSeries of the scripted fleet: its frames in buckets, as odtd's store makes them.
const kKinds = [
  [1, (f) => Math.floor(((f.loss ? Number(f.loss.sum) : 0) * 65536) / (f.loss?.count || 8))],
  [2, (f) => f.correct],
];
const kLayerKinds = [
  [3, "bits"],
  [4, "shift"],
  [5, "k"],
];

function column(kind, layer, groups, value) {
  const out = { kind, layer, min: [], max: [], sum: [], count: [] };
  for (const group of groups) {
    const values = group.map(value);
    out.min.push(BigInt(values.length > 0 ? Math.min(...values) : 0));
    out.max.push(BigInt(values.length > 0 ? Math.max(...values) : 0));
    out.sum.push(BigInt(values.reduce((a, b) => a + b, 0)));
  }
  return out;
}

export function seriesOf(runId, frames, { buckets, firstStep, lastStep }) {
  const mine = frames.filter((f) => f.step >= firstStep && (lastStep === 0 || f.step <= lastStep));
  const [first, last] = [mine[0]?.step ?? 0, mine.at(-1)?.step ?? 0];
  const width = Math.max(1, Math.ceil((last - first + 1) / (buckets || 200)));
  const groups = [];
  for (const f of mine) (groups[Math.floor((f.step - first) / width)] ??= []).push(f);
  const filled = Array.from(groups, (g) => g ?? []);
  const layers = mine[0]?.layers.length ?? 0;
  return {
    runId,
    firstStep: first,
    lastStep: last,
    bucketFirstStep: filled.map((_, i) => first + i * width),
    count: filled.map((g) => g.length),
    points: BigInt(mine.length),
    series: [
      ...kKinds.map(([kind, value]) => column(kind, 0, filled, value)),
      ...Array.from({ length: layers }, (_, l) =>
        kLayerKinds.map(([kind, name]) => column(kind, l, filled, (f) => f.layers[l][name])),
      ).flat(),
    ],
  };
}
