// What the pages show, how they are searched and reached by keys.
import { assert, axe, text, until } from "./browser.mjs";
import { calls, goTo, live, rows, runPath, withPage } from "./ui_page.mjs";

export const viewTests = [
  [
    "fleet shows every board with status as text, shape and age",
    () =>
      withPage(async (page) => {
        await live(page);
        await until("seven rows", async () => (await rows(page)) === 7);
        const offline = page.locator("tr.board-row", { hasText: "sim-2" });
        const words = await offline.locator(".cell-status").innerText();
        assert(
          /offline/.test(words) && /since (\w+ \d+ )?\d+:\d/.test(words) && /12 min/.test(words),
          `offline row says "${words}"`,
        );
        assert(
          (await offline.locator(".cell-status svg circle").getAttribute("fill")) === "none",
          "offline has its own shape",
        );
        const online = await page.locator("tr.board-row", { hasText: "m33-1" }).innerText();
        for (const word of ["online", "cortex-m33", "0.1.0", "fmnist", "running", "site=lab"]) {
          assert(online.includes(word), `row of m33-1 lacks "${word}": ${online}`);
        }
      }),
  ],
  [
    "fleet row of a running board moves without a reload",
    () =>
      withPage(async (page) => {
        await live(page);
        const cell = page.locator("tr.board-row", { hasText: "m4-1" }).locator(".run-progress");
        const steps = async () => Number(/(\d+)\/500/.exec(await cell.innerText())?.[1] ?? 0);
        const first = await until("a step count", steps);
        await until("later steps", async () => (await steps()) >= first + 5);
        await until("a sparkline", async () => page.locator("tr.board-row svg.spark").count());
      }),
  ],
  [
    "search and status filter stand in the address and survive a reload",
    () =>
      withPage(async (page) => {
        await live(page);
        await page.keyboard.press("/");
        await page.keyboard.type("core=host -sim-3");
        await until("three rows", async () => (await rows(page)) === 3);
        await page.locator(".chip", { hasText: "offline" }).click();
        await until("one row", async () => (await rows(page)) === 1);
        assert(
          /q=core/.test(page.url()) && /status=offline/.test(page.url()),
          `address is ${page.url()}`,
        );
        await page.reload();
        await until("one row again", async () => (await rows(page)) === 1);
        await page.locator("#search").fill("nothing-like-it");
        await until("a way out", async () =>
          (await page.locator(".empty").innerText()).includes("Clear the filters"),
        );
      }),
  ],
  [
    "board page shows curves, link and history, and identifies the board",
    () =>
      withPage(async (page, server) => {
        await live(page);
        await page.locator("tr.board-row a", { hasText: "m33-1" }).first().click();
        await until("charts", async () => (await page.locator(".chart-plot canvas").count()) >= 4);
        const page_text = await page.locator("main").innerText();
        for (const word of [
          "Current run",
          "Round trip",
          "CRC errors",
          "Runs of this board",
          "first try",
          "cortex-m33",
        ]) {
          assert(page_text.includes(word), `board page lacks "${word}"`);
        }
        await page.getByRole("button", { name: "Identify" }).click();
        await until("identified", () => server.fleet.identified.length === 1);
        await until("a notice", async () =>
          (await page.locator(".notice").innerText()).includes("m33-1 blinks"),
        );
        assert(
          calls(server, "IdentifyBoard")[0].request.requestId !== "",
          "no request_id was sent",
        );
      }),
  ],
  [
    "run page is live: steps, curves, epochs, events",
    () =>
      withPage(async (page, server) => {
        await goTo(page, runPath(server, 4));
        await live(page);
        const step = async () =>
          Number(/([\d\u202f]+)\s*\/ 500/.exec(await text(page, ".run-tiles"))?.[1] ?? 0);
        const first = await until("a step", step);
        await until("later steps", async () => (await step()) >= first + 8);
        const legend = () => page.locator(".legend").first().innerText();
        const before = await legend();
        await until("the curve's end moves", async () => (await legend()) !== before);
        assert((await page.locator(".events li").count()) >= 2, "run events are missing");
        assert((await page.locator(".numbers tbody tr").count()) >= 3, "epochs are missing");
        const names = await page.locator(".legend").nth(2).innerText();
        assert(names.includes("fc1") && names.includes("fc2"), `shift lines are named ${names}`);
      }),
  ],
  [
    "a finished run shows before, after, hashes and the replay verdict",
    () =>
      withPage(async (page, server) => {
        await goTo(page, runPath(server, 0));
        await live(page);
        const all = await until("verdict", async () => {
          const t = await page.locator("main").innerText();
          return t.includes("board equals model") && t;
        });
        for (const word of [
          "11.3 %",
          "77.1 %",
          "+65.8",
          "Final weights",
          "Hyperparameters",
          "cross-entropy",
        ]) {
          assert(all.includes(word), `run page lacks "${word}"`);
        }
      }),
  ],
  [
    "every chart has a table of the same values",
    () =>
      withPage(async (page, server) => {
        await goTo(page, runPath(server, 0));
        await until(
          "four charts",
          async () => (await page.locator(".chart-plot canvas").count()) === 4,
        );
        await page.getByRole("button", { name: "Accuracy as a table" }).click();
        const table = page.getByRole("region", { name: "Accuracy, values" });
        await until("rows", async () => (await table.locator("tbody tr").count()) > 100);
        assert((await table.innerText()).includes("held-out"), "the table has no held-out column");
        await page.getByRole("button", { name: "Shift per layer as a heat-map" }).click();
        await until("a heat-map", async () => (await page.locator(".heat canvas").count()) === 1);
      }),
  ],
  [
    "a daemon without boards gets the next command",
    () =>
      withPage(
        async (page) => {
          await until(
            "the next step",
            async () =>
              (await page.locator(".empty").count()) > 0 &&
              (await text(page, ".empty")).includes("No boards yet"),
          );
          await until("the exact command", async () =>
            (await text(page, ".empty .command code")).includes(
              "odt-sim-board --connect 127.0.0.1:7420",
            ),
          );
          for (const [hash, command] of [
            ["#/runs", "odtctl train"],
            ["#/library", "odtctl model add"],
            ["#/data", "odtctl data import"],
            ["#/jobs", "odtctl"],
          ]) {
            await goTo(page, hash);
            await until(
              `${hash} offers ${command}`,
              async () =>
                (await page.locator(".empty .command").count()) > 0 &&
                (await text(page, ".empty .command")).includes(command),
            );
          }
        },
        { server: { empty: true } },
      ),
  ],
  [
    "an unknown board or run says so",
    () =>
      withPage(async (page) => {
        await live(page);
        await goTo(page, "#/board/00ff");
        await until("no board", async () =>
          (await page.locator("main").innerText()).includes("No board 00ff"),
        );
        await goTo(page, "#/run/%E0%A4%A");
        await until("a broken address leads to the fleet", async () => (await rows(page)) === 7);
        await goTo(page, "#/nowhere");
        await until("no page", async () =>
          (await page.locator("main").innerText()).includes("no such page"),
        );
      }),
  ],
  [
    "keys: ? opens the sheet, letters change the page, Esc closes",
    () =>
      withPage(async (page) => {
        await live(page);
        await page.keyboard.press("?");
        await until("the sheet", () => page.locator("dialog.sheet[open]").count());
        await page.keyboard.press("Escape");
        await until("closed", async () => (await page.locator("dialog.sheet[open]").count()) === 0);
        await page.keyboard.press("r");
        await until("runs", async () => page.url().endsWith("#/runs"));
        await until("its search", () => page.locator("#search").count());
        await page.keyboard.press("/");
        await page.keyboard.type("fl");
        assert(page.url().includes("q=fl"), "letters typed into the search changed the page");
      }),
  ],
  [
    "board strings are shown as text",
    () =>
      withPage(async (page, server) => {
        const board = [...server.fleet.boards.values()][0];
        board.name = "<img src=x onerror=window.hurt=1>";
        server.publish([["board", board]]);
        await until("the name", async () =>
          (await page.locator("main").innerText()).includes("<img src=x"),
        );
        assert(
          (await page.evaluate(() => window.hurt)) === undefined,
          "a board's name ran as script",
        );
      }),
  ],
  [
    "a long fleet draws only the rows in view",
    () =>
      withPage(
        async (page) => {
          await live(page);
          await until("1007 boards", async () =>
            (await text(page, ".bar-note")).includes("1\u202f007 boards"),
          );
          const drawn = await rows(page);
          assert(drawn > 10 && drawn < 120, `${drawn} rows are drawn`);
          await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
          await until(
            "the last row",
            async () => (await page.locator("tr.board-row", { hasText: "sim-4" }).count()) === 1,
          );
        },
        { server: { boards: 1000, still: true } },
      ),
  ],
];

for (const [scheme, width] of [
  ["light", 1400],
  ["dark", 1400],
  ["light", 390],
]) {
  viewTests.push([
    `no accessibility fault and no overflow, ${scheme} at ${width}px`,
    () =>
      withPage(
        async (page, server) => {
          await live(page);
          const board = [...server.fleet.boards.keys()][0];
          for (const hash of [
            "#/fleet",
            `#/board/${board}`,
            runPath(server, 4),
            runPath(server, 2),
            "#/runs",
            "#/models",
            "#/data",
            "#/jobs",
          ]) {
            await goTo(page, hash);
            await until(
              `content of ${hash}`,
              async () => (await page.locator("main h1").count()) === 1,
            );
            await page.waitForTimeout(400);
            const faults = await axe(page);
            assert(faults.length === 0, `${hash}: ${faults.join(" | ")}`);
            const wide = await page.evaluate(
              () => document.documentElement.scrollWidth - window.innerWidth,
            );
            assert(wide <= 0, `${hash} is ${wide}px wider than the window`);
          }
        },
        { context: { colorScheme: scheme, viewport: { width, height: 850 } } },
      ),
  ]);
}
