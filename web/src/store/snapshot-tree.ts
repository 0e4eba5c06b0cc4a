import { toHex } from "../api/bytes";
import type { Snapshot } from "../api/types";

export interface TreeRow {
  snapshot: Snapshot;
  depth: number; // 0: nothing shown is its parent
  children: number;
}

const created = (s: Snapshot): bigint => s.meta?.createTimeUs ?? 0n;
const parentsOf = (s: Snapshot): string[] =>
  [s.parent, ...s.parents].map(toHex).filter((hex) => hex !== "");

/// Snapshots as a forest: a child follows its parent, newest families first, children oldest first. An average hangs
/// under the first of its parents that is shown. What would be a circle is shown flat.
export function snapshotTree(list: readonly Snapshot[]): TreeRow[] {
  const known = new Map(list.map((s) => [toHex(s.hash), s]));
  const children = new Map<string, Snapshot[]>();
  const roots: Snapshot[] = [];
  for (const s of list) {
    const parent = parentsOf(s).find((hex) => known.has(hex) && hex !== toHex(s.hash));
    if (parent === undefined) roots.push(s);
    else children.set(parent, [...(children.get(parent) ?? []), s]);
  }
  const rows: TreeRow[] = [];
  const seen = new Set<string>();
  const visit = (s: Snapshot, depth: number): void => {
    const hex = toHex(s.hash);
    if (seen.has(hex)) return;
    seen.add(hex);
    const mine = (children.get(hex) ?? []).sort((a, b) => Number(created(a) - created(b)));
    rows.push({ snapshot: s, depth, children: mine.length });
    for (const child of mine) visit(child, depth + 1);
  };
  roots.sort((a, b) => Number(created(b) - created(a))).forEach((s) => visit(s, 0));
  list.forEach((s) => visit(s, 0)); // those of a circle
  return rows;
}

/// What a snapshot is called: an alias a person gave, else any alias, else the beginning of its hash.
export function snapshotName(s: Snapshot): string {
  const own = s.aliases.find((a) => !a.startsWith("final/"));
  return own ?? s.aliases[0] ?? toHex(s.hash).slice(0, 12);
}
