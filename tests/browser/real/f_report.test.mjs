import { assert, until } from "../browser.mjs";

export const tests = [
  [
    "a report is one file with curves, settings and epochs, without scripts and anything from elsewhere",
    async ({ page, context, go, seen, runId }) => {
      await page.evaluate((h) => (location.hash = h), `#/report/${await runId("apt")}`);
      await seen("energy", ".report", /Energy and memory/);
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: "Save as HTML" }).click(),
      ]);
      const chunks = [];
      for await (const chunk of await file.createReadStream()) chunks.push(chunk);
      const html = Buffer.concat(chunks).toString();
      assert(!/<script|https?:|src=/.test(html), "it loads or runs something");
      const paper = await context.newPage();
      await paper.setContent(html);
      await until(
        "five curves",
        async () => (await paper.locator("figure svg[role=img]").count()) === 5,
      );
      assert(
        (await paper.locator("tr", { hasText: "Tmin" }).count()) === 1,
        "settings are missing",
      );
      await paper.close();
      await go("#/fleet");
    },
  ],
];
