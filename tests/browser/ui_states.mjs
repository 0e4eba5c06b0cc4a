// Every view without anything in it, with a daemon that refuses, and after the daemon went away: accessible, with the
// next command where there is nothing, and with cause and remedy where something failed.
import { assertAccessible } from "./a11y.mjs";
import { assert, until } from "./browser.mjs";
import { live, rows, withPage } from "./ui_page.mjs";

// Those of fleet, board, run, compare and layers are looked at by their own tests.
const kLists = [
  "#/runs",
  "#/campaigns",
  "#/weights",
  "#/evaluate",
  "#/data",
  "#/models",
  "#/jobs",
  "#/alerts",
];
const kOthers = [
  "#/ports",
  "#/launch",
  "#/campaign/new",
  "#/logs",
  "#/console",
  "#/storage",
  "#/settings",
  "#/data/capture",
];
const kNowhere = ["run", "campaign", "weights", "evaluate", "data", "models", "report"].map(
  (view) => `#/${view}/00ff`,
);
const kAll = [...kLists, ...kOthers, ...kNowhere];
const kFull = process.env.ODT_FULL === "1";

async function saysTheNextCommand(page, hash) {
  if (!kLists.includes(hash)) return [];
  const command = await page.locator("main .empty .command code").allInnerTexts();
  return command.some((c) => c.startsWith("odtctl ")) ? [] : ["no next command"];
}

async function saysCauseAndRemedy(page) {
  const faults = [];
  for (const box of await page.locator("main .problem").all()) {
    const parts = await box.locator("p").allInnerTexts();
    if (parts.length < 3 || parts.some((p) => p.trim() === ""))
      faults.push(`an error without cause or remedy: ${parts.join(" / ")}`);
  }
  return faults;
}

const kRefused = { message: "disk I/O error", reason: "DISK_FULL", remedy: "free some room" };

/// [name, server options, what comes before, what else has to hold]
const kStates = [
  ["empty", { empty: true }, null, saysTheNextCommand],
  ["refused", { refuse: kRefused }, null, saysCauseAndRemedy],
  ["stale", {}, (page, server) => server.stop(), null],
];

function stateTest(state, options, before, also, scheme, hashes, part) {
  const body = async (page, server) => {
    await live(page);
    if (!options.empty) await until("rows", async () => (await rows(page)) > 0);
    await page.waitForLoadState("networkidle").catch(() => {}); // the parts of all pages are here
    await before?.(page, server);
    if (state === "stale")
      await until("the banner", async () => (await page.locator(".banner").count()) === 1);
    await assertAccessible(page, hashes, { scheme, also: also ?? undefined });
  };
  return [
    `every view ${state} is accessible, ${scheme}, ${part}`,
    () => withPage(body, { server: options, mayFail: true }),
  ];
}

const kSchemes = kFull ? ["light", "dark"] : ["light"];
const halves = [kAll.slice(0, 12), kAll.slice(12)];

export const stateTests = [
  ...kStates.flatMap(([state, options, before, also]) =>
    kSchemes.flatMap((scheme) =>
      halves.map((hashes, i) =>
        stateTest(state, options, before, also, scheme, hashes, `${i + 1} of 2`),
      ),
    ),
  ),
  [
    "what the daemon refuses is told with its remedy, and asked again on demand",
    () =>
      withPage(
        async (page, server) => {
          await live(page);
          await page.evaluate(() => (location.hash = "#/storage"));
          const box = page.locator(".problem").first();
          await until("the error", async () => (await box.count()) === 1);
          const said = await box.innerText();
          assert(/disk I\/O error/.test(said) && /free some room/.test(said), `it says ${said}`);
          server.options.refuse = undefined;
          await box.getByRole("button", { name: "Try again" }).click();
          await until(
            "another answer",
            async () =>
              (await box.count()) === 0 || !(await box.innerText()).includes("disk I/O error"),
          );
        },
        { server: { refuse: kRefused }, mayFail: true },
      ),
  ],
];
