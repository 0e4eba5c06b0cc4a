// Prints what the browser loads first, compressed, and fails above the budget.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const kBudgetKb = 110;
const assets = join(dirname(dirname(fileURLToPath(import.meta.url))), "dist", "assets");
let total = 0;
for (const name of readdirSync(assets).filter((n) => /\.(js|css)$/.test(n)).sort()) {
  const raw = readFileSync(join(assets, name));
  const packed = gzipSync(raw, { level: 9 }).length;
  total += packed;
  console.log(`  ${name.padEnd(34)} ${(raw.length / 1000).toFixed(1).padStart(7)} kB  ` +
    `gzip ${(packed / 1000).toFixed(1).padStart(6)} kB`);
}
console.log(`JS + CSS: ${(total / 1000).toFixed(1)} kB gzip of ${kBudgetKb} kB`);
if (total > kBudgetKb * 1000) {
  console.error("Over the budget: find what grew, or move it behind a dynamic import.");
  process.exit(1);
}
