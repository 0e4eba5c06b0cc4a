// Evaluations: confusion matrix against odtctl's, wrong samples as pictures, one sample tried.
import { assert, until } from "../browser.mjs";

const button = (page, name) => page.getByRole("button", { name, exact: true });

export const tests = [
  [
    "weights are measured on a board; the matrix and the wrong samples are the board's",
    async ({ page, ctl, go, seen }) => {
      await go("#/evaluate");
      const ask = page.locator(".panel", {
        hasText: "Measure weights on a board",
      });
      await ask.getByLabel("Board").selectOption({ label: "lab-1" });
      await ask.getByLabel("Dataset").selectOption({ label: "fmnist-inversion" });
      const { hash } = (await ctl("weights", "list")).find((s) =>
        s.aliases.includes("final/fixed8"),
      );
      await ask.getByLabel("Weights").selectOption(hash);
      await button(page, "Evaluate").click();
      await until(
        "the result's page",
        async () => /#\/evaluate\/[0-9a-f]{32}/.test(page.url()),
        40_000,
      );
      await seen("the matrix", ".confusion", "Label");
      const rows = await page.locator(".confusion tbody tr").count();
      assert(rows === 10, `the matrix has ${rows} rows`);
      const told = await ctl(
        "eval",
        "--board",
        "lab-1",
        "--weights",
        hash,
        "--data",
        "fmnist-inversion",
      );
      const right = told.accuracy.correct;
      await seen(
        "the same accuracy as odtctl's",
        ".tiles",
        `${right} of ${told.accuracy.total} samples`,
      );
      const wrong = told.accuracy.total - right;
      await seen("the wrong ones", ".panel", new RegExp(`Wrong samples\\s+${wrong}`));
      await until("pictures", async () => (await page.locator(".sample-grid canvas").count()) > 5);
      const cell = page.locator(".cell-button").first();
      const n = Number(await cell.innerText());
      await cell.click();
      await until(
        "those of the cell",
        async () => (await page.locator(".sample-grid li").count()) === n,
      );
      await button(page, "Show all").click();
      await go("#/evaluate");
      await seen("it stands among those before", "table.runs tbody tr", `${right} of`);
    },
  ],
  [
    "one sample is tried, by number and by hand",
    async ({ page, ctl, go, seen }) => {
      await go("#/evaluate");
      const box = page.locator(".panel", { hasText: "Try one sample" });
      await box.getByLabel("Board").selectOption({ label: "lab-1" });
      await box.getByLabel("Dataset").selectOption({ label: "fmnist-inversion" });
      await box.getByLabel(/Sample, 0 to/).fill("3");
      await button(page, "Ask the board").click();
      const told = await ctl(
        "infer",
        "--board",
        "lab-1",
        "--data",
        "fmnist-inversion",
        "--first",
        "3",
      );
      const predicted = String(told.samples[0].predicted);
      await seen("what odtctl says too", ".said", new RegExp(`(Right: |says )${predicted}\\b`));
      await until(
        "ten outputs",
        async () => (await page.locator(".outputs tbody tr").count()) === 10,
      );
      await box.getByLabel(/by hand/).fill("1, 2, x");
      await seen("what cannot be read", ".try-buttons", "not a number");
      await box.getByLabel(/by hand/).fill("1, 2, 3");
      await button(page, "Ask the board").click();
      await seen("how many it wants", ".problem", "196");
      await box.getByLabel(/by hand/).fill(Array(196).fill(0).join(" "));
      await button(page, "Ask the board").click();
      await seen("an answer without a label", ".said", "It says");
    },
  ],
  [
    "a board that trains refuses, with its name and the reason",
    async ({ page, go, seen }) => {
      await go("#/evaluate");
      const box = page.locator(".panel", { hasText: "Try one sample" });
      await box.getByLabel("Board").selectOption({ label: "field-1" });
      await button(page, "Ask the board").click();
      await seen("the refusal", ".problem", /field-1[^]*run/);
      await go("#/evaluate/00ff");
      await seen("no such evaluation", "main", "no such evaluation");
    },
  ],
];
