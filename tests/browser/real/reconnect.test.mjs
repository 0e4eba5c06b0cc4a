// The page when the network, not the daemon, goes; and after it was hidden. (Killed daemons and new databases: e2e.mjs.)
import { assert, openPage, text, until } from "../browser.mjs";
import { GapProxy } from "../gap_proxy.mjs";

const kSlowMs = 40_000;
const stamp = Date.now().toString(36);

const pill = (page) => text(page, ".link-pill");
const isLive = async (page) => (await pill(page)).includes("live");
const row = (page) => page.locator("tr.board-row", { hasText: "lab-1" }).first();

/// A page of its own, with a network of its own.
async function withGap({ browser, url }, body) {
  const proxy = await new GapProxy(url).start();
  const context = await browser.newContext({ viewport: { width: 1400, height: 1000 } });
  try {
    const page = await openPage(context, proxy.url);
    await until("live", () => isLive(page), kSlowMs);
    await until("rows", async () => (await row(page).count()) === 1, kSlowMs);
    await body(page, proxy);
    assert(page.faults.length === 0, `the page reported: ${page.faults.join("; ")}`);
  } finally {
    await context.close();
    await proxy.stop();
  }
}

async function showsWhatHappened(page, ctl, place, change) {
  await ctl("board", "place", "lab-1", place);
  await change();
  await until("live again", () => isLive(page), kSlowMs);
  await page.evaluate((q) => (location.hash = `#/fleet?q=place=${q}`), place);
  await until("what changed meanwhile", async () => (await row(page).count()) === 1, kSlowMs);
  assert((await page.locator(".banner").count()) === 0, "a banner stays");
  assert(!/was online/.test(await row(page).innerText()), "the row still tells the past");
  await page.evaluate(() => (location.hash = "#/fleet"));
}

export const tests = [
  [
    "a network that is cut is told at once; what happened meanwhile comes afterwards",
    (world) =>
      withGap(world, async (page, proxy) => {
        proxy.cut();
        await until("not live", async () => !(await isLive(page)), 5000);
        await until("the past is told", async () => /was /.test(await row(page).innerText()));
        await showsWhatHappened(page, world.ctl, `cut-${stamp}`, async () => proxy.mend());
      }),
  ],
  ...(process.env.ODT_FULL === "1"
    ? [
        [
          "a network that carries nothing is told as stale, then replaced",
          (world) =>
            withGap(world, async (page, proxy) => {
              proxy.freeze(true);
              await until(
                "stale",
                async () => (await page.locator(".banner-stale").count()) === 1,
                20_000,
              );
              assert(!(await isLive(page)), "still says live");
              await showsWhatHappened(page, world.ctl, `frozen-${stamp}`, async () => proxy.mend());
            }),
        ],
      ]
    : []),
  [
    "a tab that was hidden for long shows how things are, at once",
    (world) =>
      withGap(world, async (page) => {
        const turn = (state, laterMs) =>
          page.evaluate(
            ([to, later]) => {
              const { now } = Date;
              Date.now = () => now() + later;
              Object.defineProperty(document, "visibilityState", {
                value: to,
                configurable: true,
              });
              document.dispatchEvent(new Event("visibilitychange"));
              Date.now = now;
            },
            [state, laterMs],
          );
        await turn("hidden", 0);
        await showsWhatHappened(page, world.ctl, `hidden-${stamp}`, () => turn("visible", 120_000));
      }),
  ],
];
