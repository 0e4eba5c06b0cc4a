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
  [
    "boards ticked together get a label, and Undo takes it back",
    async ({ page, go, seen, ctl }) => {
      await go("#/fleet?q=site%3Dlab");
      await until("two boards", async () => (await page.locator("tr.board-row").count()) === 2);
      await page.getByLabel(/Select all 2 boards/).check();
      await page.getByRole("button", { name: "Label …" }).click();
      await page.getByLabel("Label", { exact: true }).fill("bench=a");
      await page.keyboard.press("Enter");
      await seen("the notice", ".notice", "2 boards labelled bench=a");
      const labels = async () =>
        (await ctl("board", "list")).filter((b) => b.labels?.bench === "a").length;
      await until("the daemon has it", async () => (await labels()) === 2);
      await page.locator(".notice").getByRole("button", { name: "Undo" }).click();
      await until("it is taken back", async () => (await labels()) === 0);
    },
  ],
  [
    "boards ticked blink together; the ticks go with Clear",
    async ({ page, seen }) => {
      await page.getByRole("button", { name: /^Identify/ }).click();
      await seen("the notice", ".notice", "2 boards blink for 10 s");
      await page.getByRole("button", { name: "Clear" }).click();
      await until("no bar", async () => (await page.locator(".bulk").count()) === 0);
    },
  ],
  [
    "Stop all asks once, pauses every run, and Undo lets them go on",
    async ({ page, go, seen, ctl, runId }) => {
      await go("#/fleet");
      const id = await runId("long");
      const state = async () =>
        (await ctl("run", "list")).find((r) => r.id.replaceAll("-", "") === id).state;
      await page.getByRole("button", { name: "Stop all …" }).click();
      await page.locator("dialog.confirm").getByRole("button", { name: "Stop all" }).click();
      await seen("the notice", ".notice", /1 run stopped; \d board/);
      await until("paused", async () => (await state()) === "PAUSED");
      await page
        .locator(".notice", { hasText: "stopped" })
        .getByRole("button", { name: "Undo" })
        .click();
      await until("running", async () => (await state()) === "RUNNING");
    },
  ],
  [
    "runs ticked go to compare, and to the trash and back",
    async ({ page, go, seen, ctl }) => {
      await go("#/runs?q=apt");
      await until(
        "two runs",
        async () => (await page.locator("table.runs tbody tr").count()) === 2,
      );
      await page.getByLabel(/Select all 2 runs/).check();
      const link = await page.getByRole("link", { name: "Compare" }).getAttribute("href");
      assert(/runs=[0-9a-f]{32}%2C[0-9a-f]{32}$/.test(link), link);
      await page.getByLabel("Select apt", { exact: true }).uncheck();
      await page.getByRole("button", { name: /^Delete/ }).click();
      await seen("the notice", ".notice", "1 run in the trash");
      const names = async () => (await ctl("run", "list")).map((r) => r.spec.name);
      await until("it is gone", async () => !(await names()).includes("apt-high"));
      await page
        .locator(".notice", { hasText: "trash" })
        .getByRole("button", { name: "Undo" })
        .click();
      await until("it is back", async () => (await names()).includes("apt-high"));
      await until(
        "in the list too",
        async () => (await page.locator("table.runs tbody tr").count()) === 2,
      );
    },
  ],
];
