// Every view and action in a real browser against a real odtd with sim boards: real/*.test.mjs, one after the other
// in order of their names. Each exports `tests = [[name, async (world) => ...]]`.
//   node tests/browser/real.mjs --url http://127.0.0.1:8080 --ctl "odtctl --address unix:/..." [--only WORD]
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { promisify } from "node:util";
import { assert, launch, openPage, runTests, until } from "./browser.mjs";

const arg = (name) => process.argv[process.argv.indexOf(name) + 1];
const url = arg("--url");
const [program, ...ctlArgs] = arg("--ctl").split(" ");
const kWaitMs = 20_000;

const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1400, height: 1000 } });

/// odtctl --json: the other way to the same daemon, to see that what the page did has happened.
async function ctl(...args) {
  const { stdout } = await promisify(execFile)(program, [...ctlArgs, "--json", ...args]);
  const lines = stdout.trim().split("\n");
  try {
    return JSON.parse(stdout);
  } catch {
    return JSON.parse(lines[lines.length - 1]);
  }
}

const page = await openPage(context, url);
/// Goes to a view and waits for its heading.
async function go(hash) {
  await page.evaluate((h) => (location.hash = h), hash);
  await until(
    `content of ${hash}`,
    async () => (await page.locator("main h1").count()) === 1,
    kWaitMs,
  );
}
async function seen(what, selector, words) {
  await until(
    what,
    async () => {
      const all = await page.locator(selector).allInnerTexts();
      return all.some((t) => (words instanceof RegExp ? words.test(t) : t.includes(words)));
    },
    kWaitMs,
  );
}
async function runId(name) {
  const runs = await ctl("run", "list");
  return runs.find((r) => r.spec.name === name).id.replaceAll("-", "");
}

const world = { url, browser, context, page, ctl, go, seen, runId };
const folder = new URL("real/", import.meta.url);
let failed = 0;
for (const file of readdirSync(folder)
  .filter((f) => f.endsWith(".test.mjs"))
  .sort()) {
  const { tests } = await import(new URL(file, folder));
  failed += await runTests(
    `browser/real-${file.replace(".test.mjs", "")}`,
    tests.map(([name, body]) => [
      name,
      async () => {
        page.faults.length = 0;
        await body(world);
        assert(page.faults.length === 0, `the page reported: ${page.faults.join("; ")}`);
      },
    ]),
  );
}
await browser.close();
process.exit(failed === 0 ? 0 : 1);
