// Datasets: import by dropping and choosing, balance, samples of every kind, trash; windows captured and labelled.
import { assert, until } from "../browser.mjs";

const button = (page, name) => page.getByRole("button", { name, exact: true });
const stamp = Date.now().toString(36); // the same fleet may be tested twice
const csv = (rows) =>
  `a,b,class\n${Array.from({ length: rows }, (_, i) => `${i % 7},${(i * 3) % 11},${i % 5 === 0 ? "rare" : "often"}`).join("\n")}\n`;
const find = async (ctl, name) => (await ctl("data", "list")).find((d) => d.name === name);

/// A mono 16-bit WAV file of one tone.
function wav(hertz, rate = 8000, seconds = 0.5) {
  const n = Math.round(rate * seconds);
  const out = Buffer.alloc(44 + 2 * n);
  out.write("RIFF", 0);
  out.writeUInt32LE(36 + 2 * n, 4);
  out.write("WAVEfmt ", 8);
  out.writeUInt32LE(16, 16);
  out.writeUInt16LE(1, 20);
  out.writeUInt16LE(1, 22);
  out.writeUInt32LE(rate, 24);
  out.writeUInt32LE(2 * rate, 28);
  out.writeUInt16LE(2, 32);
  out.writeUInt16LE(16, 34);
  out.write("data", 36);
  out.writeUInt32LE(2 * n, 40);
  for (let i = 0; i < n; i++)
    out.writeInt16LE(Math.round(12000 * Math.sin((2 * Math.PI * hertz * i) / rate)), 44 + 2 * i);
  return out;
}

/// Drops a file on the page's import area, as a person would.
async function drop(page, name, content) {
  const data = await page.evaluateHandle(
    ([n, c]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([c], n));
      return transfer;
    },
    [name, content],
  );
  await page.dispatchEvent(".drop", "dragover", { dataTransfer: data });
  await page.dispatchEvent(".drop", "drop", { dataTransfer: data });
}

export const tests = [
  [
    "a dropped CSV file is imported; balance and samples are shown",
    async ({ page, ctl, go, seen }) => {
      await go("#/data");
      await drop(page, `tab-${stamp}.csv`, csv(100));
      await seen("what it is", ".drop", `tab-${stamp}.csv`);
      await button(page, "Import").click();
      await seen("its page", "h1", `tab-${stamp}`);
      const d = await find(ctl, `tab-${stamp}`);
      assert(d.train + d.heldout + d.test === 100, `odtctl knows ${JSON.stringify(d)}`);
      await seen("the balance", ".panel", "The smallest class has 25 %");
      await page.getByRole("button", { name: "Balance as a table" }).click();
      await seen("its table", ".chart-table tbody tr", /rare[^]*20$/);
      await seen("values", ".panel", /Values[^]*Deviation/);
      await until("samples", async () => (await page.locator(".sample-grid li").count()) > 3);
    },
  ],
  [
    "a file that cannot be read is refused by line and column, and nothing is left",
    async ({ page, ctl, go, seen }) => {
      await go("#/data");
      await drop(page, `bad-${stamp}.csv`, `a,b,class\n1,2,x\n1,zwei,y\n`);
      await button(page, "Import").click();
      await seen("the refusal", ".problem", /zwei|line 3/);
      assert((await find(ctl, `bad-${stamp}`)) === undefined, "half a dataset is there");
      await button(page, "Other files").click();
      await seen("the area again", ".drop", "Drop files");
    },
  ],
  [
    "images are shown, any sample by its number",
    async ({ page, ctl, go, seen }) => {
      const d = await find(ctl, "fmnist-inversion");
      await go(`#/data/${d.id.replaceAll("-", "")}`);
      await until(
        "pictures",
        async () => (await page.locator(".sample-grid canvas").count()) >= 10,
      );
      await page.locator(".panel-aside select").selectOption("3");
      await page.locator(".one-sample input").fill(String(d.train));
      await seen("its split", ".one-sample .facts", /held-?out/);
      await page.getByRole("button", { name: "Sample as a table" }).click();
      await until(
        "196 values",
        async () => (await page.locator(".one-sample tbody tr").count()) === 196,
      );
      await page.locator(".one-sample input").fill("99999");
      await seen("the limit", ".one-sample", "There are samples 0 to");
    },
  ],
  [
    "recordings become spectrograms",
    async ({ page, go, seen }) => {
      await go("#/data");
      const files = Array.from({ length: 24 }, (_, i) => ({
        name: `${i % 2 ? "high" : "low"}_${i}.wav`,
        mimeType: "audio/wav",
        buffer: wav(i % 2 ? 2000 + i : 300 + i),
      }));
      await page.getByLabel("Choose files").setInputFiles(files);
      await seen("all of them", ".drop", "24 files");
      await page.getByLabel("Name", { exact: true }).fill(`tones-${stamp}`);
      await page.getByLabel("Name pattern").fill("{label}_*.wav");
      await button(page, "Import").click();
      await seen("its page", "h1", `tones-${stamp}`);
      await seen("how they are drawn", ".panel", "time goes to the right, frequency up");
      await until("pictures", async () => (await page.locator(".sample-grid canvas").count()) >= 4);
    },
  ],
  [
    "a dataset is deleted into the trash and brought back",
    async ({ page, ctl, go, seen }) => {
      const d = await find(ctl, `tab-${stamp}`);
      await go(`#/data/${d.id.replaceAll("-", "")}`);
      await button(page, "Delete").click();
      await button(page, "Move to the trash").click();
      await until("gone", async () => (await find(ctl, `tab-${stamp}`)) === undefined);
      await page
        .locator(".notice", { hasText: "is in the trash" })
        .getByRole("button", { name: "Undo" })
        .click();
      await until("back", async () => (await find(ctl, `tab-${stamp}`)) !== undefined);
      await seen("in the list", "table tbody tr", `tab-${stamp}`);
    },
  ],
  [
    "windows of a board are captured, seen, labelled and become samples",
    async ({ page, ctl, go, seen }) => {
      await go("#/data/capture");
      await page.locator(".page-head select").selectOption({ label: "lab-2" });
      await page.getByLabel("Steps of a window").fill("196");
      await page.getByLabel(/Channels/).fill("1");
      await page.getByLabel(/^Values/).selectOption({ label: "u8" });
      await page.getByLabel("values as they are").check();
      await button(page, "Begin capturing").click();
      await seen("capturing", ".tiles", "capturing");
      await page.getByText("Feed steps from here").click();
      await page.locator(".feed").fill("300");
      await seen("what does not fit", "details", "0 to 255");
      await page.locator(".feed").fill(Array.from({ length: 400 }, (_, i) => i % 200).join("\n"));
      await button(page, "Feed 400 steps").click();
      await seen("two windows", ".panel", "2 held, 2 without a class");
      await until(
        "their values",
        async () => (await page.locator(".window-row svg").count()) === 2,
      );
      await page.getByLabel("Class of window 1").selectOption("3");
      await button(page, "Label window 1").click();
      await seen("a sample", ".window-row", /Window 1[^]*training/);
      const told = await ctl("capture", "list", "lab-2");
      assert(
        told.windows.some((w) => w.label === 3),
        `odtctl says ${JSON.stringify(told)}`,
      );
      await button(page, "Stop").click();
      await seen("stopped", ".tiles", "stopped");
    },
  ],
  [
    "files that hold no data are refused with the cause, what to do, and nothing half-made",
    async ({ page, ctl, go, seen }) => {
      const before = (await ctl("data", "list")).length;
      for (const [name, content, cause] of [
        ["empty.csv", "", "is empty"],
        ["cut.csv", "a,b,label\n1,2,x\n3,", "line 3: 2 cells; expected 3"],
        ["cut.png", "\x89PNG\r\n\x1a\n", ""],
        ["garbage.npz", "PK\x03\x04no", "truncated"],
      ]) {
        await go("#/data");
        await drop(page, name, content);
        await button(page, "Import").click();
        await seen(
          `why ${name} is refused`,
          ".problem",
          new RegExp(`Could not import[^]*${cause}`),
        );
        const said = await page.locator(".problem").innerText();
        assert(!said.includes("odtctl doctor"), `a sound daemon is blamed: ${said}`);
        await go("#/runs");
      }
      assert((await ctl("data", "list")).length === before, "something was made of them");
    },
  ],
];
