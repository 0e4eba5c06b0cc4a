// Regenerates src/api/generated from ../proto. With --check: fails if that would change anything.
import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const webDir = dirname(dirname(fileURLToPath(import.meta.url)));
const target = join(webDir, "src/api/generated");
const fresh = mkdtempSync(join(tmpdir(), "odt-generate-"));

function listFiles(dir) {
  if (!existsSync(dir)) return [];
  return readdirSync(dir)
    .flatMap((name) => {
      const path = join(dir, name);
      return statSync(path).isDirectory() ? listFiles(path) : [path];
    })
    .sort();
}

function differences() {
  const names = new Set([target, fresh].flatMap((d) => listFiles(d).map((f) => relative(d, f))));
  return [...names].filter((name) => {
    const [a, b] = [join(target, name), join(fresh, name)];
    return !existsSync(a) || !existsSync(b) || readFileSync(a, "utf8") !== readFileSync(b, "utf8");
  });
}

try {
  const template = JSON.stringify({
    version: "v2",
    inputs: [{ directory: "../proto", paths: ["../proto/odt/api", "../proto/google/rpc"] }],
    plugins: [
      {
        local: "node_modules/.bin/protoc-gen-es",
        out: fresh,
        opt: ["target=js+dts", "import_extension=js"],
      },
    ],
  });
  execFileSync("node_modules/.bin/buf", ["generate", "--template", template], {
    cwd: webDir,
    stdio: "inherit",
  });
  const changed = differences();
  if (process.argv.includes("--check")) {
    if (changed.length > 0) {
      console.error(`Bindings are out of date: ${changed.join(", ")}. Run: npm run generate`);
      process.exitCode = 1;
    } else {
      console.log(`Bindings are up to date (${listFiles(fresh).length} files).`);
    }
  } else {
    rmSync(target, { recursive: true, force: true });
    cpSync(fresh, target, { recursive: true });
    console.log(`Wrote ${listFiles(target).length} files; ${changed.length} changed.`);
  }
} finally {
  rmSync(fresh, { recursive: true, force: true });
}
