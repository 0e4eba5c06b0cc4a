import { until } from "../browser.mjs";

export const tests = [
  [
    "the board page sets desired beside reported, and shows the link over time",
    async ({ page, ctl, go, seen }) => {
      const { uid } = (await ctl("board", "list")).find((b) => b.name === "field-1");
      await go(`#/board/${uid}`);
      await seen("desired", ".panel", /Desired and reported[^]*State[^]*run/);
      await seen("round trip", "figure", /Round trip, since this page looks/);
    },
  ],
  [
    "a label is set and taken off on the board page",
    async ({ page, ctl, go, seen }) => {
      const find = async () => (await ctl("board", "list")).find((b) => b.name === "field-2");
      await go(`#/board/${(await find()).uid}`);
      await page.getByLabel("New label").fill("shelf=3");
      await page.keyboard.press("Enter");
      await seen("the label", ".label", "shelf=3");
      await page.getByRole("button", { name: "Take label shelf off" }).click();
      await until("it is off", async () => (await find()).labels?.shelf === undefined);
    },
  ],
  [
    "a board without non-volatile memory says so when asked, and a restart asks once",
    async ({ page, ctl, go, seen }) => {
      const find = async () => (await ctl("board", "list")).find((b) => b.name === "field-2");
      const before = await find();
      await go(`#/board/${before.uid}`);
      await page.getByRole("button", { name: "Read", exact: true }).click();
      await seen("the answer", ".panel", /Could not read the board’s memory|Bytes of the commit/);
      await page.getByRole("button", { name: "Restart …" }).click();
      await page.locator("dialog.confirm").getByRole("button", { name: "Keep as it is" }).click();
      await until("closed", async () => (await page.locator("dialog.confirm").count()) === 0);
    },
  ],
];
