// Snapshots: list, tree, names, restore with undo, diff, files, trash.
import { readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, until } from "../browser.mjs";

const find = async (ctl, alias) =>
  (await ctl("weights", "list")).find((s) => s.aliases.includes(alias));
const button = (page, name) => page.getByRole("button", { name, exact: true });
const notice = (page, words) =>
  until(`a message "${words}"`, async () =>
    (await page.locator(".notices").innerText()).includes(words),
  );

const undo = (page, words) =>
  page.locator(".notice", { hasText: words }).getByRole("button", { name: "Undo" }).click();

async function download(page, press) {
  const [file] = await Promise.all([page.waitForEvent("download"), press()]);
  return { name: file.suggestedFilename(), path: await file.path() };
}

export const tests = [
  [
    "weights are listed with where they come from, and searched",
    async ({ page, go, seen }) => {
      await go("#/weights");
      await seen(
        "the run's weights",
        "table.snapshots tbody tr",
        /final\/fixed8[^]*lab-1[^]*run fixed8/,
      );
      const all = await page.locator("table.snapshots tbody tr").count();
      await page.locator("#search").fill("board=lab-2");
      await until(
        "fewer",
        async () => (await page.locator("table.snapshots tbody tr").count()) < all,
      );
      await page.locator("#search").fill("no-such-thing");
      await seen("a way out", ".empty", "Clear the search");
    },
  ],
  [
    "an alias, a note and a pin are given, and taken back by Undo",
    async ({ page, ctl, go }) => {
      const { hash } = await find(ctl, "final/fixed8");
      await go(`#/weights/${hash}`);
      await page.getByLabel("New alias").fill("golden");
      await button(page, "Give it").click();
      await until("golden", async () => (await find(ctl, "golden"))?.hash === hash);
      await button(page, "Remove alias golden").click();
      await until("gone", async () => (await find(ctl, "golden")) === undefined);
      await undo(page, "is no longer golden");
      await until("golden again", async () => (await find(ctl, "golden"))?.hash === hash);
      const words = `for hall ${Date.now()}`;
      await page.getByLabel("Note").fill(words);
      await button(page, "Keep note").click();
      await until("the note", async () => (await find(ctl, "golden")).note === words);
      await button(page, "Pin").click();
      await until("pinned", async () => (await find(ctl, "golden")).pinned);
      await until("the page has its answer", async () =>
        (await page.locator(".notice").allInnerTexts()).some((t) => t.includes("is pinned")),
      );
      await button(page, "Unpin").click();
      await until("not pinned", async () => !(await find(ctl, "golden")).pinned);
    },
  ],
  [
    "provenance ends at the model's own weights, each link checked",
    async ({ go, ctl, seen }) => {
      await go(`#/weights/${(await find(ctl, "final/apt")).hash}`);
      await seen("a checked link", ".panel", /Provenance[^]*checked[^]*began with the model/);
    },
  ],
  [
    "two snapshots are compared layer by layer and channel by channel",
    async ({ page, ctl, go, seen }) => {
      const [a, b] = [await find(ctl, "final/apt"), await find(ctl, "final/auto")];
      await go("#/weights");
      await page.locator("#search").fill("");
      for (const s of [a, b]) {
        await page
          .locator("tr", { hasText: s.hash.slice(0, 12) })
          .getByRole("checkbox")
          .check();
      }
      await button(page, "Compare 2 of 2").click();
      const diff = await ctl("weights", "diff", a.hash, b.hash);
      const changed = String(diff.all.changed).replace(/\B(?=(\d{3})+$)/g, "\u202f");
      await seen("the same figure as odtctl's", ".tiles", changed);
      await until(
        "a map per layer",
        async () => (await page.locator(".cell-map svg").count()) === 2,
      );
      await page.locator(".cell-map button").first().click();
      await until(
        "32 channels",
        async () => (await page.locator(".cell-map tbody tr").count()) === 32,
      );
    },
  ],
  [
    "weights are put on a board after one question, and Undo puts the old ones back",
    async ({ page, ctl, go, seen }) => {
      const held = async () => (await ctl("weights", "pull", "lab-2")).hash;
      const before = await held();
      const others = [await find(ctl, "final/fixed8"), await find(ctl, "final/auto")];
      const { hash } = others.find((s) => s.hash !== before);
      await go(`#/weights/${hash}`);
      await page.getByLabel("And all boards with").fill("name=lab-2");
      await seen("the plan", ".outcomes", /lab-2[^]*will take it/);
      await button(page, "Restore").click();
      await button(page, "Overwrite").click();
      await seen("done", ".outcomes", /lab-2[^]*has it/);
      assert((await held()) === hash, "the board holds other weights");
      await undo(page, "is on 1 board");
      await notice(page, "lab-2 has its weights from before");
      assert((await held()) === before, "the board did not get its weights back");
    },
  ],
  [
    "a board that trains refuses, with the reason, and nothing can be pressed",
    async ({ page, ctl, go, seen }) => {
      await go(`#/weights/${(await find(ctl, "final/auto")).hash}`);
      await page.getByRole("checkbox", { name: /field-1/ }).check();
      await seen("a refusal", ".outcomes", /field-1[^]*refuses[^]*run/);
      assert(await button(page, "Restore").isDisabled(), "Restore can be pressed");
    },
  ],
  [
    "weights are downloaded as npz, C, JSON, odt_weights and ONNX",
    async ({ page, ctl, go }) => {
      await go(`#/weights/${(await find(ctl, "final/apt")).hash}`);
      for (const [name, begin, extension] of [
        [".npz", "PK", "npz"],
        ["C header", "/", "h"],
        ["JSON", "{", "json"],
        ["odt_weights", "ODTW", "odtw"],
        ["ONNX", "", "onnx"],
      ]) {
        const file = await download(page, () => button(page, name).click());
        const bytes = readFileSync(file.path);
        assert(file.name === `final-apt.${extension}`, `the file is called ${file.name}`);
        assert(bytes.length > 1000, `${file.name} has ${bytes.length} bytes`);
        assert(bytes.toString("latin1").startsWith(begin), `${file.name} begins wrongly`);
        await until("the next", () => button(page, ".npz").isEnabled());
      }
    },
  ],
  [
    "a file of weights is taken, deleted into the trash and brought back",
    async ({ page, ctl, go, seen }) => {
      const kept = await find(ctl, "final/auto");
      await go(`#/weights/${kept.hash}`);
      const file = await download(page, () => button(page, "odt_weights").click());
      const bytes = readFileSync(file.path);
      bytes[bytes.length - 5] ^= 1; // other weights of the same model
      const path = join(tmpdir(), "odt-browser-other.odtw");
      writeFileSync(path, bytes);
      await go("#/weights");
      await button(page, "Keep weights …").click();
      await page.getByLabel("Alias").fill("from-file");
      await page.getByLabel("Take a file").setInputFiles(path);
      await seen("its page", "h1", "from-file");
      const { hash } = await find(ctl, "from-file");
      await button(page, "Remove alias from-file").click();
      await until("Delete", () => button(page, "Delete").isEnabled());
      await button(page, "Delete").click();
      await button(page, "Move to the trash").click();
      const list = async () => (await ctl("weights", "list")).some((s) => s.hash === hash);
      await until("gone from the list", async () => !(await list()));
      await notice(page, "is in the trash");
      await undo(page, "is in the trash");
      await until("back in the list", list);
    },
  ],
];
