// What the browser tests share: a headless Chromium, waiting for a condition, PASS/FAIL lines.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "../../web/test-support/pb.js";

const kChromium = process.env.ODT_CHROMIUM ?? "/usr/bin/chromium";
const kTestMs = 60_000;

export const launch = () =>
  chromium.launch({
    executablePath: kChromium,
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });

/// A page that remembers what went wrong on it: script errors, refused resources, failed assertions of CSP.
export async function openPage(context, url) {
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", (e) => page.faults.push(`script error: ${e.message}`));
  page.on("console", (m) => {
    if (m.type() === "error" && !/net::ERR_|Failed to load resource/.test(m.text()))
      page.faults.push(m.text());
  });
  await page.goto(url);
  return page;
}

export function assert(condition, message) {
  if (!condition) throw new Error(message);
}

/// Polls until `probe` gives something true; its last value is in the error.
export async function until(what, probe, timeoutMs = 10_000) {
  const end = Date.now() + timeoutMs;
  let last;
  do {
    last = await probe();
    if (last) return last;
    await new Promise((done) => setTimeout(done, 50));
  } while (Date.now() < end);
  throw new Error(`${what}: not within ${timeoutMs} ms (last: ${JSON.stringify(last)})`);
}

export const text = (page, selector) => page.locator(selector).first().innerText();

/// Violations of axe's rules for WCAG 2.1 A and AA on what the page shows now, one line each; of `rules` alone where
/// they are given.
export async function axe(page, rules) {
  const require = createRequire(new URL("../../web/package.json", import.meta.url));
  const source = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
  await page.evaluate(source);
  const result = await page.evaluate(
    (only) => window.axe.run(document, { runOnly: only }),
    rules ?? ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
  );
  return result.violations.flatMap((v) =>
    v.nodes.map((n) => `${v.id}: ${n.target.join(" ")} ${n.failureSummary ?? ""}`),
  );
}

/// Runs the tests in order and prints a line each; returns the number of failures.
export async function runTests(suite, tests) {
  let failed = 0;
  const only = process.argv.includes("--only")
    ? process.argv[process.argv.indexOf("--only") + 1]
    : "";
  for (const [name, body] of tests) {
    if (only !== "" && !name.includes(only)) continue;
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`longer than ${kTestMs} ms`)), kTestMs);
    });
    const id = `${suite}/${name.replace(/\s+/g, "_")}`;
    try {
      await Promise.race([body(), late]);
      console.log(`PASS ${id}`);
    } catch (error) {
      failed++;
      console.log(`FAIL ${id} ${String(error.message).split("\n")[0]}`);
      console.error(error.stack);
    } finally {
      clearTimeout(timer);
    }
  }
  return failed;
}
