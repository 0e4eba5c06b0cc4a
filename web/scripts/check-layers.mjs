// Imports go one way: api <- store <- views, charts stand alone; generated code is imported in api/ only.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const src = join(dirname(dirname(fileURLToPath(import.meta.url))), "src");
const allowed = {
  api: ["api"],
  store: ["api", "store"],
  charts: ["charts"],
  views: ["api", "store", "charts", "views"],
};

const files = (dir) =>
  readdirSync(dir).flatMap((name) => {
    const path = join(dir, name);
    return statSync(path).isDirectory() ? files(path) : /\.tsx?$/.test(name) ? [path] : [];
  });

const faults = [];
for (const file of files(src)) {
  const room = relative(src, file).split(sep)[0];
  if (!(room in allowed)) continue; // main.tsx wires
  for (const [, target] of readFileSync(file, "utf8").matchAll(/from "(\.[^"]+)"/g)) {
    const path = relative(src, join(dirname(file), target));
    const to = path.split(sep)[0];
    const generated = path.includes(`${sep}generated${sep}`) && room !== "api";
    if (!allowed[room].includes(to) || generated)
      faults.push(`${relative(src, file)} -> ${target}`);
  }
}
if (faults.length > 0) {
  console.error(`Imports against the layers:\n  ${faults.join("\n  ")}`);
  process.exit(1);
}
console.log("Layers hold.");
