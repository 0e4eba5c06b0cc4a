import { assert, until } from "../browser.mjs";

const figure = (page, title) => page.locator("figure", { hasText: title });

export const tests = [
  [
    "layers of an adaptive run: gauges, shift map, U against Tmin, steps of k",
    async ({ page, go, seen, runId }) => {
      await go(`#/layers/${await runId("apt")}`);
      await seen("a gauge of zero updates", "table.gauges", /\d %/);
      await seen("units", "table.gauges", /of 32/);
      await until("the map", async () => (await page.locator(".heat canvas").count()) === 1);
      await until(
        "four lanes",
        async () => (await page.locator(".chart-plot canvas").count()) >= 4,
      );
      await seen("the bound", ".legend", /Tmin 0\.30/);
      const k = figure(page, "Precision k per layer");
      await k.getByRole("button", { name: "as a table" }).click();
      await seen("the first k", ".chart-table", /\b6\b/);
    },
  ],
  [
    "a place of the shift map leads to the samples of its step",
    async ({ page, seen }) => {
      await page.locator(".heat canvas").click({ position: { x: 200, y: 10 } });
      await seen("a step", ".panel-head h2", /Batch of step \d+/);
      const step = Number(/step=(\d+)/.exec(page.url())?.[1]);
      assert(step >= 1 && step <= 300, `step ${step} of 300 stands in the address`);
      const tiles = page.locator("#batch .sample-tile");
      await until("its batch", async () => (await tiles.locator("canvas, svg").count()) === 8);
      await seen("its epoch", "#batch", `epoch ${Math.ceil(step / 50)}`);
      await seen("what it did", "#batch", /Loss [^]*gradient bits, shift \d/);
      const first = await tiles.first().innerText();
      await page.getByRole("button", { name: "Step after" }).click();
      await until("other samples", async () => (await tiles.first().innerText()) !== first);
      await page.getByRole("button", { name: "Largest shift shown" }).click();
      await seen("a step again", ".panel-head h2", /Batch of step \d+/);
      const back = page.url();
      await page.locator("#batch a", { hasText: "fmnist-inversion" }).click();
      await seen("the dataset", "main h1", "fmnist-inversion");
      await page.goto(back);
      await until("the layers again", async () => (await tiles.count()) === 8);
    },
  ],
  [
    "an earlier epoch can be looked at",
    async ({ page, seen }) => {
      await page.locator("input[type=range]").first().focus();
      await page.keyboard.press("Home");
      await seen("epoch 1", ".panel-head h2", "Layers in epoch 1");
    },
  ],
  [
    "weight histograms are read on demand from a snapshot",
    async ({ page, seen }) => {
      assert((await page.locator("svg.histogram").count()) === 0, "they were read unasked");
      await page.getByRole("button", { name: "Show", exact: true }).click();
      await until("one a layer", async () => (await page.locator("svg.histogram").count()) === 2);
      await seen("their figures", ".chart-note", /6\u202f272 weights/);
    },
  ],
  [
    "APT's pictures: energy and memory against fp32, accuracy over energy, thresholds, energy to a target",
    async ({ page, seen }) => {
      await seen("energy", "figure", /Energy of training[^]*% of fp32/);
      await seen("memory", "figure", /Memory of the trained weights[^]*as stored/);
      await seen("widths side by side", ".legend", /fixed8 \(k 8\)/);
      const dots = page.locator("svg.scatter a");
      await until("two thresholds", async () => (await dots.count()) === 2);
      await seen("energy to a target", "figure", /Energy to reach \d+ %/);
    },
  ],
];
