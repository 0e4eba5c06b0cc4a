// What boards print, and the list of evaluations.
import { readFileSync } from "node:fs";
import { assert, until } from "../browser.mjs";

const button = (page, name) => page.getByRole("button", { name, exact: true });
const lines = (page) => page.locator(".log-line").allInnerTexts();

export const tests = [
  [
    "consoles are merged or of one board, searched by the daemon, followed",
    async ({ page, ctl, go, seen }) => {
      await go("#/console");
      await seen("boards came online", ".log-text", "online at");
      const merged = await page.locator(".log-board").allInnerTexts();
      assert(new Set(merged).size > 1, `lines of one board only: ${merged}`);
      await page.getByLabel("Board", { exact: true }).selectOption({ label: "lab-2" });
      await until("one board", async () => (await page.locator(".log-board").count()) === 0);
      await ctl("board", "identify", "lab-2", "--seconds", "1");
      await seen("its new line by itself", ".log-text", "identify: this is the board");
      await page.locator("#search").fill("IDENTIFY");
      await until("only those", async () => {
        const all = await lines(page);
        return all.length > 0 && all.every((l) => l.includes("identify"));
      });
      await page.locator("#search").fill("nothing-like-it");
      await seen("a way out", ".empty", "Clear the search");
      await page.locator("#search").fill("");
      await button(page, "only warnings").click();
      await until("no information", async () =>
        (await lines(page)).every((l) => !l.includes("online at")),
      );
      await button(page, "only warnings").click();
      await button(page, "times").click();
      await until("no times", async () => (await page.locator(".log time").count()) === 0);
      await seen("lines again", ".log-text", "identify");
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        button(page, "Download all").click(),
      ]);
      const said = readFileSync(await file.path(), "utf8")
        .split("\n")
        .filter(Boolean);
      assert(said.length >= 2 && said.every((l) => l.startsWith("lab-2 ")), said.join("|"));
      await button(page, "times").click();
    },
  ],
  [
    "the board's page leads to its console",
    async ({ page, ctl, go, seen }) => {
      const board = (await ctl("board", "list")).find((b) => b.name === "lab-1").uid;
      await go(`#/board/${board}`);
      await page.getByRole("link", { name: "Console", exact: true }).click();
      await seen("its console", "h1", "Console of lab-1");
      await go("#/fleet");
    },
  ],
  [
    "every evaluation is listed, newest first, and found by its board",
    async ({ page, ctl, go, seen }) => {
      await ctl("eval", "--board", "lab-1", "--data", "fmnist-inversion", "--split", "heldout");
      const all = await ctl("eval", "list", "--count", "1000");
      await go("#/evaluate");
      await seen("how many", ".bar-note", new RegExp(`${all.length} evaluation`));
      await page.locator("#search").fill("board=lab-1 split=heldout");
      await until("those of lab-1", async () => {
        const rows = await page.locator("table.runs tbody tr").allInnerTexts();
        return rows.length > 0 && rows.every((r) => r.includes("lab-1"));
      });
      await page.locator("table.runs tbody th a").first().click();
      await seen("its matrix", ".confusion", "Label");
      await go("#/fleet");
    },
  ],
];
