// What the dashboard says when the daemon is silent, gone or another one, and that a browser holds one stream.
import { assert, openPage, until } from "./browser.mjs";
import { calls, live, pill, rows, withPage } from "./ui_page.mjs";

export const linkTests = [
  [
    "two tabs share one stream, and the second is whole at once",
    () =>
      withPage(async (page, server, context) => {
        await live(page);
        const second = await openPage(context, server.url);
        await live(second);
        await until("rows in the second tab", async () => (await rows(second)) === 7);
        assert(server.watches.size === 1, `${server.watches.size} streams are open`);
        assert(calls(server, "Watch").length === 1, "Watch was called more than once");
      }),
  ],
  [
    "without a SharedWorker the tab holds a stream of its own",
    () =>
      withPage(async (page, server, context) => {
        await context.addInitScript(() => delete window.SharedWorker);
        await page.reload();
        await live(page);
        await until("rows", async () => (await rows(page)) === 7);
        const cell = page.locator("tr.board-row", { hasText: "m4-1" }).locator(".run-progress");
        const first = await cell.innerText();
        await until("it moves", async () => (await cell.innerText()) !== first);
        await until("the worker's stream is gone", () => server.watches.size === 1);
      }),
  ],
  [
    "a silent daemon is shown as stale, never as live",
    () =>
      withPage(
        async (page, server) => {
          await live(page);
          await until("rows", async () => (await rows(page)) === 7);
          server.silent = true;
          const said = await until(
            "stale",
            async () => {
              const banner = page.locator(".banner-stale");
              return (await banner.count()) === 1 && banner.innerText();
            },
            20_000,
          );
          assert(/Stale since/.test(said), `banner says "${said}"`);
          const row = await page.locator("tr.board-row", { hasText: "m33-1" }).innerText();
          assert(/was online/.test(row) && /seen .* ago/.test(row), `row still says ${row}`);
          server.silent = false;
          server.heartbeat();
          await live(page);
          assert(
            (await page.locator(".banner").count()) === 0,
            "the banner stays although the daemon is back",
          );
        },
        { server: { tickMs: 500 } },
      ),
  ],
  [
    "a killed daemon is noticed at once, and the page resumes where it was",
    () =>
      withPage(async (page, server) => {
        await live(page);
        await until("rows", async () => (await rows(page)) === 7);
        const seq = server.fleet.seq;
        await server.stop();
        await until("the banner", async () => (await page.locator(".banner").count()) === 1, 3000);
        assert(!(await pill(page)).includes("live"), "still says live");
        await until("rows tell the past", async () =>
          (await page.locator("tr.board-row").first().innerText()).includes("was "),
        );
        await server.restart();
        await page
          .getByRole("button", { name: "Try now" })
          .click({ timeout: 1000 })
          .catch(() => {});
        await live(page);
        const again = calls(server, "Watch").at(-1).request;
        assert(again.resumeStoreEpoch === server.fleet.storeEpoch, "did not resume by store epoch");
        assert(again.resumeEventSeq >= seq, `resumed at ${again.resumeEventSeq}, was at ${seq}`);
        await until(
          "progress goes on",
          async () => (await page.locator(".run-progress").count()) > 0,
        );
      }),
  ],
  [
    "another database replaces everything",
    () =>
      withPage(async (page, server) => {
        await live(page);
        await until("rows", async () => (await rows(page)) === 7);
        await server.stop();
        server.fleet.storeEpoch = 99n;
        for (const [key, board] of server.fleet.boards)
          if (board.name !== "m4-1") server.fleet.boards.delete(key);
        await server.restart();
        await until(
          "only the boards of the new store",
          async () => (await rows(page)) === 1,
          20_000,
        );
      }),
  ],
];
