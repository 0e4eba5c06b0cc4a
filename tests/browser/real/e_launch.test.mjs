import { assert, until } from "../browser.mjs";

const uids = async (ctl, ...names) =>
  (await ctl("board", "list")).filter((b) => names.includes(b.name)).map((b) => b.uid);

export const tests = [
  [
    "a launch on two boards is checked on each, started on both, and compared",
    async ({ page, ctl, go, seen }) => {
      await go(`#/launch?boards=${(await uids(ctl, "lab-1", "lab-2")).join()}`);
      await page.getByRole("textbox", { name: "Epochs" }).fill("2");
      await page.getByRole("textbox", { name: "Name", exact: true }).fill("both");
      const table = page.locator(".launch-boards");
      await until(
        "both fit",
        async () => ((await table.innerText()).match(/✓ fits/g) ?? []).length === 2,
        40_000,
      );
      await seen("memory of the board", ".launch-boards", /[KM]iB of 8\.0 MiB/);
      await seen("the command", ".launch-buttons .command", "--epochs 2 --name 'both'");
      await page.getByRole("button", { name: "Start 2 runs" }).click();
      await until("compared", async () => page.url().includes("#/compare"));
      const runs = (await ctl("run", "list")).filter((r) => r.spec.name === "both");
      assert(
        runs.length === 2 && runs[0].spec.board_uid !== runs[1].spec.board_uid,
        `${runs.length} runs`,
      );
    },
  ],
  [
    "what a board cannot do is said with the remedy, and does not start",
    async ({ page, ctl, go, seen }) => {
      await go(`#/launch?boards=${(await uids(ctl, "field-2")).join()}`);
      await page.getByLabel("k", { exact: true }).fill("99");
      await seen("a refusal", ".launch-boards", /✕ [^]*16/);
      assert(
        await page.getByRole("button", { name: "Start run" }).isDisabled(),
        "it can be started",
      );
    },
  ],
  [
    "adaptive precision is asked for in the fold, and reaches the board",
    async ({ page, ctl, go, seen }) => {
      await go("#/fleet"); // the settings of the test before go
      await go(`#/launch?boards=${(await uids(ctl, "field-2")).join()}`);
      await page.getByRole("textbox", { name: "Epochs" }).fill("1");
      await page.getByRole("textbox", { name: "mu weight" }).fill("1");
      await page.locator("summary").click();
      await page.getByLabel("Precision adapts").selectOption("epochs");
      await page.getByRole("textbox", { name: "Tmin" }).fill("0.5");
      await page.getByRole("textbox", { name: "Name", exact: true }).fill("apt-half");
      await seen("it fits", ".launch-boards", /✓ fits/);
      await page.getByRole("button", { name: "Start run" }).click();
      await until("its page", async () => page.url().includes("#/run/"));
      await seen("the bound in force", "aside .facts", /Tmin[^]*0\.50/);
      assert(
        (await ctl("run", "list")).some((r) => r.spec.name === "apt-half"),
        "the daemon has no such run",
      );
    },
  ],
];
