import { assert, until } from "../browser.mjs";

export const tests = [
  [
    "labels filter the fleet, in the address",
    async ({ page, go }) => {
      await go("#/fleet?q=site%3Dlab");
      await until("two boards", async () => (await page.locator("tr.board-row").count()) === 2);
      await page.locator("#search").fill("site!=lab");
      await until("the others", async () => (await page.locator("tr.board-row").count()) === 2);
      const rows = await page.locator("tr.board-row").allInnerTexts();
      assert(
        rows.every((r) => r.includes("field-")),
        `rows are ${rows.join(" / ")}`,
      );
    },
  ],
];
