// Models with their fit, what is on disk and in the trash, the log.
import { readFileSync } from "node:fs";
import { assert, until } from "../browser.mjs";

const button = (page, name) => page.getByRole("button", { name, exact: true });
const stamp = Date.now().toString(36); // the same fleet may be tested twice
const list = (ctl, what) => ctl(what, "list");

export const tests = [
  [
    "a model is shown layer by layer, with the boards that it fits",
    async ({ page, ctl, go, seen }) => {
      const model = (await list(ctl, "model")).find((m) => m.name === "fmnist");
      await go("#/models");
      await page.locator("th a", { hasText: "fmnist" }).first().click();
      await seen("its layers", ".graph", /196 × 32[^]*32 × 10/);
      assert((await page.locator(".graph-layer").count()) === model.layers.length, "a layer lacks");
      await until("a verdict of every board", async () => {
        const words = await page.locator(".panel", { hasText: "On which boards" }).innerText();
        return (words.match(/fits/g) ?? []).length >= 3 && !words.includes("asking");
      });
      await seen("RAM of a board", ".panel", /KiB of 8\.0 MiB/);
    },
  ],
  [
    "the model's ONNX file is downloaded, and compiled again under another name",
    async ({ page, ctl, go, seen }) => {
      const model = (await list(ctl, "model")).find((m) => m.name === "fmnist");
      await go(`#/models/${model.hash}`);
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("link", { name: "ONNX source" }).click(),
      ]);
      const buffer = readFileSync(await file.path());
      await go("#/models");
      await page.getByLabel("Choose a file").setInputFiles({
        name: `again-${stamp}.onnx`,
        mimeType: "application/octet-stream",
        buffer,
      });
      await page.getByLabel("Trainable layers").fill("1");
      await button(page, "Compile").click();
      await seen("its page", "h1", `again-${stamp}`);
      await seen("a frozen layer", ".graph", /frozen[^]*trained/);
      await go("#/models");
      await page.getByLabel("Choose a file").setInputFiles({
        name: "broken.onnx",
        mimeType: "application/octet-stream",
        buffer: Buffer.from("not an ONNX file"),
      });
      await button(page, "Compile").click();
      await seen("why not", ".problem", "Could not add broken");
    },
  ],
  [
    "what is deleted waits in the trash, is restored, purged with the bytes freed",
    async ({ page, ctl, go, seen }) => {
      const name = `again-${stamp}`;
      const find = async () => (await list(ctl, "model")).find((m) => m.name === name);
      const remove = async () => {
        await go(`#/models/${(await find()).hash}`);
        await button(page, "Delete").click();
        await button(page, "Move to the trash").click();
        await until("gone", async () => (await find()) === undefined);
        await go("#/storage");
        await seen("in the trash", "tbody tr", name);
      };
      await remove();
      await button(page, `Restore ${name}`).click();
      await until("back", async () => (await find()) !== undefined);
      await remove();
      await button(page, `Purge ${name}`).click();
      await seen("what it frees", "dialog", /1 thing goes[^]*are freed/);
      await button(page, "Purge for good").click();
      await seen("what was freed", ".notices", "1 purged");
      await until(
        "no more",
        async () => (await page.locator("tbody tr", { hasText: name }).count()) === 0,
      );
    },
  ],
  [
    "usage is told, and a backup is a tar file",
    async ({ page, go, seen }) => {
      await go("#/storage");
      await seen("usage", ".facts", /Telemetry[^]* of [^]*Free on the disk/);
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        button(page, "Download a backup").click(),
      ]);
      const bytes = readFileSync(await file.path());
      assert(bytes.toString("latin1", 257, 262) === "ustar", "it is no tar file");
      await button(page, "Prune weights …").click();
      await seen("what would go", "dialog", /snapshots go to the trash[^]*stay/);
      await button(page, "Keep as it is").click();
    },
  ],
  [
    "the log has what happened before and what happens now, by board and by word",
    async ({ page, ctl, go, seen }) => {
      await go("#/logs");
      await until("lines", async () => (await page.locator(".log-line").count()) > 5, 20_000);
      await page.getByLabel("Kind", { exact: true }).selectOption("job");
      await seen("a job's end", ".log-text", "succeeded");
      await page.getByLabel("Kind", { exact: true }).selectOption("model");
      await seen("the model", ".log-text", "fmnist");
      await page.getByLabel("Kind", { exact: true }).selectOption("");
      await ctl("board", "label", "lab-1", `seen=${stamp}`);
      const before = await page.locator(".bar-note").innerText();
      await ctl(
        "data",
        "import",
        "/usr/share/datasets/fashion-mnist",
        "--name",
        `log-${stamp}`,
        "--resize",
        "14x14",
        "--train",
        "50",
        "--heldout",
        "10",
        "--test",
        "10",
        "--seed",
        "1",
      );
      await page.locator("#search").fill(`log-${stamp}`);
      await seen("a new line by itself", ".log", `log-${stamp}`);
      assert((await page.locator(".bar-note").innerText()) !== before, "the count stood still");
      await until("only those", async () =>
        (await page.locator(".log-kind").allInnerTexts()).every((t) => /dataset|job/.test(t)),
      );
      await page.locator("#search").fill("");
      await page.getByLabel("Board", { exact: true }).selectOption({ label: "lab-2" });
      await until("lines of lab-2", async () => {
        const boards = await page.locator(".log-board").allInnerTexts();
        return boards.length > 3 && boards.every((b) => b === "lab-2");
      });
      await button(page, "times").click();
      await until("no times", async () => (await page.locator(".log time").count()) === 0);
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        button(page, "Download all").click(),
      ]);
      const text = readFileSync(await file.path(), "utf8");
      assert(
        text
          .split("\n")
          .filter(Boolean)
          .every((l) => l.includes("lab-2")),
        "other boards are in the file",
      );
      await page.getByLabel("Board", { exact: true }).selectOption("");
      await button(page, "times").click();
    },
  ],
];
