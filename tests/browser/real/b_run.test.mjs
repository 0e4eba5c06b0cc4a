import { assert, text, until } from "../browser.mjs";

const note = (page) =>
  page.locator("figure", { hasText: "Loss per sample" }).locator(".legend-x").innerText();

export const tests = [
  [
    "a long run is shown in buckets, says so, and a zoom reads its steps anew",
    async ({ page, go, runId }) => {
      await go(`#/run/${await runId("long")}`);
      await until(
        "more steps than fit",
        async () => /showing [\d\u202f]+ of [\d\u202f]+ points/.test(await note(page)),
        60_000,
      );
      for (let i = 0; i < 4; i++) await page.getByRole("button", { name: "Zoom in" }).click();
      await until("every step of the part", async () => !/showing/.test(await note(page)));
      const words = await text(page, ".range-words");
      assert(/steps [\d\u202f]+ to [\d\u202f]+ of/.test(words), `the bar says ${words}`);
      await page.getByRole("button", { name: "Earlier steps" }).click();
      await until("other steps", async () => (await text(page, ".range-words")) !== words);
      await page.getByRole("button", { name: "Whole run" }).first().click();
      await until("all again", async () => /^all /.test(await text(page, ".range-words")));
    },
  ],
  [
    "dragging in a chart zooms all of them, a double click shows everything",
    async ({ page }) => {
      const plot = page.locator("figure", { hasText: "Shift per layer" }).locator(".u-over");
      const box = await until("a plot", () => plot.boundingBox());
      await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width * 0.4, box.y + 60, { steps: 4 });
      await page.mouse.up();
      await until("zoomed", async () => /^steps/.test(await text(page, ".range-words")));
      await plot.dblclick();
      await until("all again", async () => /^all /.test(await text(page, ".range-words")));
    },
  ],
  [
    "the raw records are exported whole",
    async ({ page, go, runId, ctl }) => {
      const id = await runId("apt");
      await go(`#/run/${id}`);
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: "Raw CSV" }).click(),
      ]);
      assert(file.suggestedFilename() === "apt.csv", `named ${file.suggestedFilename()}`);
      const chunks = [];
      for await (const chunk of await file.createReadStream()) chunks.push(chunk);
      const lines = Buffer.concat(chunks).toString().trim().split("\n");
      const stepsDone = (await ctl("run", "list")).find((r) => r.spec.name === "apt").steps_done;
      assert(
        lines.filter((l) => /^\d/.test(l)).length >= stepsDone,
        `${lines.length} lines for ${stepsDone} steps`,
      );
    },
  ],
];
