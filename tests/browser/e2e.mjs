// The dashboard in a real browser against a real odtd with boards, a run going on.
//   node tests/browser/e2e.mjs --url http://127.0.0.1:8080 [--boards N] [--control]
// --control: prints "ASK kill" and "ASK start" and waits for a line each, so that the caller can end the
// daemon without warning and start it again; without it that test is left out.
import { createInterface } from "node:readline";
import { assert, axe, launch, openPage, runTests, text, until } from "./browser.mjs";

const arg = (name, otherwise) => {
  const i = process.argv.indexOf(name);
  return i < 0 ? otherwise : process.argv[i + 1];
};
const url = arg("--url", "http://127.0.0.1:8080");
const boardCount = Number(arg("--boards", 1));
const kSlowMs = 40_000; // a machine under load

const browser = await launch();
const context = await browser.newContext({
  viewport: { width: 1400, height: 1000 },
});
const page = await openPage(context, url);

const pill = () => text(page, ".link-pill");
const isLive = async () => (await pill()).includes("live");
const rows = page.locator("tr.board-row");
const running = page.locator("tr.board-row", {
  has: page.locator(".run-progress"),
});
const number = (t) => Number(t.replace(/\D/g, ""));
const rowSteps = async () =>
  number(
    /([\d\u202f]+)\/[\d\u202f]+\s*$/.exec(
      await running.first().locator(".run-progress").innerText(),
    )?.[1] ?? "0",
  );
const runSteps = async () =>
  number((await page.locator(".run-tiles .tile-value").first().innerText()).split("/")[0]);
const noFaults = () =>
  assert(page.faults.length === 0, `the page reported: ${page.faults.join("; ")}`);

const answers = [];
let answered = null;
createInterface({ input: process.stdin }).on("line", (line) => {
  answers.push(line);
  answered?.();
});
async function ask(what) {
  console.log(`ASK ${what}`);
  while (answers.length === 0) await new Promise((done) => (answered = done));
  answers.shift();
}

const tests = [
  [
    "loads and is live",
    async () => {
      await until("live", isLive, kSlowMs);
      noFaults();
    },
  ],

  [
    "lists every board with core, firmware and state",
    async () => {
      await until(`${boardCount} boards`, async () => (await rows.count()) >= boardCount, kSlowMs);
      await until(
        "all online",
        async () =>
          (await page.locator(".cell-status", { hasText: "online" }).count()) >= boardCount,
        kSlowMs,
      );
      const row = await rows.first().innerText();
      assert(/\d+\.\d+\.\d+/.test(row), `no firmware version in ${row}`);
      assert(/for \d/.test(row), `no age in ${row}`);
    },
  ],

  [
    "a run's progress moves in the fleet",
    async () => {
      await until("a run in progress", async () => (await running.count()) > 0, kSlowMs);
      const first = await until("a step count", rowSteps, kSlowMs);
      await until("later steps", async () => (await rowSteps()) > first, kSlowMs);
      noFaults();
    },
  ],

  [
    "the board page draws its run and blinks the board",
    async () => {
      await running.first().locator(".cell-board a").click();
      await until(
        "four charts",
        async () => (await page.locator(".chart-plot canvas").count()) >= 4,
        kSlowMs,
      );
      await until(
        "link figures",
        async () => /\d (µs|ms)/.test(await text(page, "aside .tiles")),
        kSlowMs,
      );
      await page.getByRole("button", { name: "Identify" }).click();
      // Alerts of the runs that go on may stand beside it.
      await until(
        "an answer",
        async () =>
          (await page.locator(".notice").allInnerTexts()).some((t) => t.includes("blinks")),
        kSlowMs,
      );
      noFaults();
    },
  ],

  [
    "the run page is live: steps, curves, layers, epochs",
    async () => {
      await page.locator(".panel-aside a").first().click();
      await until("the run's page", async () => page.url().includes("#/run/"));
      const first = await until("steps", runSteps, kSlowMs);
      await until("later steps", async () => (await runSteps()) > first, kSlowMs);
      await until(
        "loss and accuracy",
        async () => /\d/.test(await text(page, ".legend-value")),
        kSlowMs,
      );
      const shifts = page
        .locator("figure", { hasText: "Shift per layer" })
        .locator(".legend-value");
      await until(
        "a shift line per layer",
        async () => (await shifts.count()) >= 1 && /\d/.test(await shifts.first().innerText()),
        kSlowMs,
      );
      await until(
        "epochs",
        async () => (await page.locator("table.numbers tbody tr").count()) >= 1,
        kSlowMs,
      );
      await until(
        "run events",
        async () => (await page.locator(".events li").count()) >= 1,
        kSlowMs,
      );
      noFaults();
    },
  ],

  [
    "pause and resume reach the board",
    async () => {
      await page.getByRole("button", { name: "Pause" }).click();
      await until(
        "paused",
        async () => (await text(page, ".page-head")).includes("paused"),
        kSlowMs,
      );
      await page.getByRole("button", { name: "Resume" }).click();
      await until(
        "running",
        async () => (await text(page, ".page-head")).includes("running"),
        kSlowMs,
      );
      const first = await runSteps();
      await until("steps go on", async () => (await runSteps()) > first, kSlowMs);
    },
  ],

  [
    "no accessibility fault on the real pages",
    async () => {
      for (const hash of ["#/fleet", "#/runs", "#/models", "#/data", "#/jobs"]) {
        await page.evaluate((h) => (location.hash = h), hash);
        await until(
          `content of ${hash}`,
          async () => (await page.locator("main h1").count()) === 1,
        );
        await page.waitForTimeout(300);
        const faults = await axe(page);
        assert(faults.length === 0, `${hash}: ${faults.join(" | ")}`);
      }
    },
  ],
];

if (process.argv.includes("--control")) {
  tests.push([
    "a daemon killed without warning is noticed, and the page goes on after it",
    async () => {
      await page.evaluate(() => (location.hash = "#/fleet"));
      await until("rows", async () => (await rows.count()) >= boardCount);
      await ask("kill");
      await until("not live", async () => !(await isLive()), 5000);
      const row = await rows.first().innerText();
      assert(/was /.test(row), `a row still claims to be live: ${row}`);
      await ask("start");
      await until("live again", isLive, kSlowMs);
      await until(
        "boards are back",
        async () =>
          (await page.locator(".cell-status", { hasText: "online" }).count()) >= boardCount,
        kSlowMs,
      );
      await until("a run goes on", async () => (await running.count()) > 0, kSlowMs);
      const first = await until("a step count", rowSteps, kSlowMs);
      await until("later steps", async () => (await rowSteps()) > first, kSlowMs);
      noFaults();
    },
  ]);
}

tests.push([
  "a finished run shows what it brought",
  async () => {
    await page.evaluate(() => (location.hash = "#/runs?state=succeeded"));
    await until(
      "a finished run",
      async () => (await page.locator("table.runs tbody tr").count()) >= 1,
      55_000,
    );
    await page.locator("table.runs tbody th a").first().click();
    await until(
      "before and after",
      async () => /\d %[^]*\d %/.test(await text(page, ".run-tiles")),
      kSlowMs,
    );
    await until(
      "final hashes",
      async () => (await page.locator("aside .hash").count()) >= 4,
      kSlowMs,
    );
    noFaults();
  },
]);

if (process.argv.includes("--control")) {
  tests.push([
    "a daemon with a new database replaces all that was shown",
    async () => {
      await page.evaluate(() => (location.hash = "#/runs"));
      await until("runs", async () => (await page.locator("table.runs tbody tr").count()) > 0);
      await ask("kill");
      await ask("forget");
      await until("not live", async () => !(await isLive()), 5000);
      await ask("start");
      await until("live again", isLive, kSlowMs);
      await until("no runs", async () => /No runs yet/.test(await text(page, "main")), kSlowMs);
      await page.evaluate(() => (location.hash = "#/fleet"));
      await until("the boards come in anew", async () => (await rows.count()) >= 1, kSlowMs);
      assert(!/was /.test(await rows.first().innerText()), "a row tells the past");
      await page.evaluate(() => (location.hash = "#/models"));
      await until("no models", async () => /No models yet/.test(await text(page, "main")), kSlowMs);
      noFaults();
    },
  ]);
}

const failed = await runTests("browser/e2e", tests);
await browser.close();
process.exit(failed === 0 ? 0 : 1);
