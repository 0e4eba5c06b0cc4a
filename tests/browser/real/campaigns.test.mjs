// Campaigns: made with a dry run, followed, steered; sweep, twins, roll-out, federated rounds.
import { assert, until } from "../browser.mjs";

const button = (page, name) => page.getByRole("button", { name, exact: true });
const find = async (ctl, name) => (await ctl("campaign", "list")).find((c) => c.spec.name === name);
const hashOf = (c) => `#/campaign/${c.id.replaceAll("-", "")}`;
const state = (page, word) =>
  until(
    `state ${word}`,
    async () => (await page.locator(".page-head").innerText()).includes(word),
    30_000,
  );
const stamp = Date.now().toString(36); // the same fleet may be tested twice
const kTrain = ["--model", "fmnist", "--data", "fmnist-inversion", "--policy", "fixed"];

async function form(page, go, kind, boards, name) {
  await go("#/campaign/new");
  await page.getByRole("radio", { name: new RegExp(`^${kind}`) }).check();
  for (const board of boards) await page.getByRole("checkbox", { name: new RegExp(board) }).check();
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByLabel("Dataset").selectOption({ label: "fmnist-inversion (400 samples)" });
}

export const tests = [
  [
    "a daemon without campaigns gives the next command",
    async ({ ctl, go, seen }) => {
      if ((await ctl("campaign", "list")).length > 0) return;
      await go("#/campaigns");
      await seen("the command", ".empty", "odtctl campaign create");
    },
  ],
  [
    "a sweep is checked, started and followed to its best trial",
    async ({ page, ctl, go, seen }) => {
      const name = `sweep-${stamp}`;
      await form(page, go, "sweep", ["lab-1", "lab-2"], name);
      await page.getByLabel(/Axes/).fill("mu_weight");
      await seen("what cannot be read", ".problem", 'axes: "mu_weight"');
      assert(await button(page, "Start campaign").isDisabled(), "a bad sweep can be started");
      await page.getByLabel(/Axes/).fill("colour=1,2");
      await seen("the daemon's refusal", ".problem", "colour");
      await page.getByLabel(/Axes/).fill("mu_weight=0,1\nbatch=4,8");
      await seen("the plan", "aside", /2 boards can do this[^]*4 runs in the first rung/);
      await button(page, "Start campaign").click();
      await seen("its page", "h1", name);
      await state(page, "succeeded");
      await until("four lines", async () => (await page.locator(".parallel .trial").count()) === 4);
      const made = await find(ctl, name);
      await seen("the best trial", "table.trials tr", "best");
      assert(made.units_done === 4, `odtctl knows ${made.units_done} runs`);
      await page.getByRole("button", { name: "Settings and outcome as a table" }).click();
      await until(
        "four rows",
        async () => (await page.locator(".parallel tbody tr").count()) === 4,
      );
      await button(page, "batch").click();
      const first = await page.locator("table.trials tbody tr").first().innerText();
      assert(/4/.test(first), `sorted by batch the first is ${first}`);
    },
  ],
  [
    "equal twins are told to be equal, others where they part",
    async ({ page, ctl, go, seen }) => {
      const name = `equal-${stamp}`;
      await form(page, go, "twin", ["lab-1", "lab-2"], name);
      await page.getByLabel(/What B does otherwise/).fill("");
      await seen("the plan", "aside", "2 boards can do this");
      await button(page, "Start campaign").click();
      await seen("its page", "h1", name);
      await state(page, "succeeded");
      await seen("the verdict", ".facts", "equal, bit for bit");
      await ctl(
        "campaign",
        "twin",
        "--a",
        "lab-1",
        "--b",
        "mu_weight=2",
        ...kTrain,
        "--mu-weight",
        "1",
        "--epochs",
        "2",
        "--name",
        `differ-${stamp}`,
        "--detach",
      );
      await go(hashOf(await find(ctl, `differ-${stamp}`)));
      await state(page, "succeeded");
      await seen("where they part", ".facts", /shift[^]*mu_weight/);
      await until(
        "both losses",
        async () => (await page.locator(".chart-plot canvas").count()) === 1,
      );
    },
  ],
  [
    "a campaign is paused, resumed and, after one question, cancelled",
    async ({ page, ctl, go, seen }) => {
      const name = `steer-${stamp}`;
      await ctl(
        "campaign",
        "create",
        "--board",
        "field-2",
        ...kTrain,
        "--mu-weight",
        "1",
        "--epochs",
        "3000",
        "--name",
        name,
        "--detach",
      );
      await go(hashOf(await find(ctl, name)));
      await state(page, "running");
      await button(page, "Pause").click();
      await state(page, "paused");
      await button(page, "Resume").click();
      await state(page, "running");
      await button(page, "Cancel").click();
      await page.getByRole("button", { name: "Keep as it is" }).click();
      assert((await find(ctl, name)).state === "RUNNING", "it was cancelled without a yes");
      await button(page, "Cancel").click();
      await button(page, "Cancel the campaign").click();
      await state(page, "cancelled");
      await button(page, "Delete").click();
      await button(page, "Forget it").click();
      await until("the list", async () => page.url().endsWith("#/campaigns"));
      assert((await find(ctl, name)) === undefined, "it is still there");
      await seen("the others", "table.runs tbody tr", `equal-${stamp}`);
    },
  ],
  [
    "federated rounds show averages, drift and what each board contributes",
    async ({ page, ctl, go, seen }) => {
      const name = `fed-${stamp}`;
      await form(page, go, "federated", ["lab-1", "lab-2"], name);
      await page.getByLabel("Rounds", { exact: true }).fill("2");
      await page.getByLabel("Epochs").fill("1");
      await page.getByLabel("k", { exact: true }).fill("8");
      await seen("the plan", "aside", "2 boards can do this");
      await button(page, "Start campaign").click();
      await seen("its page", "h1", name);
      await state(page, "succeeded");
      await seen("two rounds", ".panel", /Rounds[^]*the model’s own/);
      await seen("shares", ".panel", /What each board contributes[^]*50\.0 %/);
      await until("charts", async () => (await page.locator(".chart-plot canvas").count()) === 2);
      assert((await find(ctl, name)).result !== "", "odtctl knows no average");
    },
  ],
  [
    "a roll-out goes through its phases",
    async ({ page, ctl, go, seen }) => {
      const name = `roll-${stamp}`;
      const weights = (await ctl("weights", "list")).find((s) => s.aliases.includes("final/auto"));
      await go(`#/campaign/new?snapshot=${weights.hash}`);
      await form(page, async () => {}, "roll-out", ["lab-1", "lab-2"], name);
      await page.getByLabel(/Abort above/).fill("50");
      await seen("the plan", "aside", "2 boards can do this");
      await button(page, "Start campaign").click();
      await seen("its page", "h1", name);
      await state(page, "succeeded");
      await until("every phase done", async () =>
        (await page.locator(".phases li").allInnerTexts()).every((t) => t.includes("done")),
      );
    },
  ],
];
