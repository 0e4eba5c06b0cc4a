// Prints what the browser loads, compressed, and fails where the part it loads first is above the budget.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const kBudgetKb = 110;
const dist = join(dirname(dirname(fileURLToPath(import.meta.url))), "dist");
const page = readFileSync(join(dist, "index.html"), "utf8");
const kb = (bytes) => (bytes / 1000).toFixed(1).padStart(6);
let first = 0;
let all = 0;
for (const name of readdirSync(join(dist, "assets"))
  .filter((n) => /\.(js|css)$/.test(n))
  .sort()) {
  const raw = readFileSync(join(dist, "assets", name));
  const packed = gzipSync(raw, { level: 9 }).length;
  const initial = page.includes(`/assets/${name}`);
  all += packed;
  if (initial) first += packed;
  console.log(
    `  ${name.padEnd(30)} ${kb(raw.length)} kB, gzip ${kb(packed)} kB${initial ? "" : "  (later)"}`,
  );
}
console.log(
  `Loaded first: ${kb(first).trim()} kB gzip of ${kBudgetKb} kB; in all ${kb(all).trim()} kB.`,
);
if (first > kBudgetKb * 1000) {
  console.error("Over the budget: find what grew, or move it behind a dynamic import.");
  process.exit(1);
}
