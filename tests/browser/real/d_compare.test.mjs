import { assert, until } from "../browser.mjs";

export const tests = [
  [
    "runs are overlaid with smoothing over the raw values, and their settings differ in a table",
    async ({ page, go, seen, runId }) => {
      const ids = [await runId("fixed8"), await runId("apt")];
      await go(`#/compare?runs=${ids.join()}`);
      await until(
        "four charts",
        async () => (await page.locator(".chart-plot canvas").count()) === 4,
      );
      await seen("both runs", ".legend", /fixed8[^]*apt/);
      const table = page.locator("table.compare");
      await seen("what differs", "table.compare", /Precision adapts/);
      assert(
        !/Dataset/.test(await table.innerText()),
        "the same dataset is listed as a difference",
      );
      await page.getByLabel("also what is the same").check();
      await seen("everything", "table.compare", /Dataset/);
    },
  ],
  [
    "a run is added, pinned and taken out, in the address",
    async ({ page, go, seen, runId }) => {
      const auto = await runId("auto");
      await go(`#/compare?runs=${await runId("fixed8")},${await runId("apt")}`);
      await page.locator("select#search").selectOption(auto);
      await until(
        "three runs",
        async () => (await page.locator("table.compare thead th").count()) === 4,
      );
      await page.getByRole("button", { name: "Pin auto" }).click();
      await until("pinned first", async () =>
        (await page.locator("table.compare thead th").nth(1).innerText()).startsWith("auto"),
      );
      assert(page.url().includes(`base=${auto}`), page.url());
      await seen("energy against the pinned run", "table.compare", /Energy[^]*×/);
      await page.getByRole("button", { name: "Take apt out" }).click();
      await until(
        "two runs",
        async () => (await page.locator("table.compare thead th").count()) === 3,
      );
    },
  ],
  [
    "over epochs, time since the start and time of day",
    async ({ page, go, seen, runId }) => {
      await go(`#/compare?runs=${await runId("auto")},${await runId("apt")}`);
      for (const [axis, words] of [
        ["epoch", /epoch \d/],
        ["relative", /time since the start [\d.]+ s/],
        ["wall", /time of day \d+:\d\d:\d\d/],
      ]) {
        await page.locator(".panel-aside select").selectOption(axis);
        await seen(axis, ".legend-x", words);
      }
    },
  ],
];
