// Fleet, board, run, compare and layers without anything in them, with a daemon that refuses, and with one that says
// nothing more: accessible in both schemes, and never showing as live what is not.
import { assertAccessible } from "./a11y.mjs";
import { assert, text, until } from "./browser.mjs";
import { live, pill, rows, withPage } from "./ui_page.mjs";

const kFull = process.env.ODT_FULL === "1";
const kSchemes = kFull ? ["light", "dark"] : ["light"];
const kStaleMs = 30_000; // heartbeat 10 s, stale after 12.5 s

function views(server) {
  const boards = [...server.fleet.boards.keys()];
  const runs = [...server.fleet.runs.keys()];
  if (runs.length === 0)
    return ["#/fleet", "#/board/00ff", "#/run/00ff", "#/compare", "#/layers/00ff"];
  return [
    "#/fleet",
    `#/board/${boards[0]}`,
    `#/run/${runs[4]}`,
    `#/run/${runs[2]}`,
    `#/compare?runs=${runs[0]},${runs[4]}`,
    `#/layers/${runs[0]}?step=3`,
  ];
}

const kRefused = { message: "disk I/O error", reason: "DISK_FULL", remedy: "free some room" };

async function saysWhatFailed(page, hash) {
  if (!/#\/(run|layers|compare)/.test(hash)) return [];
  await until(
    `${hash} tells the error`,
    async () => (await page.locator("main .problem").count()) > 0,
  );
  const said = (await page.locator("main .problem").allInnerTexts()).join(" ");
  return /disk I\/O error/.test(said) && /free some room/.test(said) ? [] : [`it says ${said}`];
}

async function saysItWas(page, hash) {
  const faults = [];
  if (!(await pill(page)).includes("stale")) faults.push(`the corner says ${await pill(page)}`);
  if ((await page.locator(".banner").count()) !== 1) faults.push("no banner");
  if (hash !== "#/fleet") return faults;
  const states = await page.locator("tr.board-row .cell-status").allInnerTexts();
  return states.every((s) => /^was /.test(s)) ? faults : [...faults, `boards are ${states}`];
}

async function nothingMore(page, server) {
  server.silent = true;
  await until("stale", async () => (await pill(page)).includes("stale"), kStaleMs);
}

const kStates = [
  ["empty", { empty: true }, null, null],
  ["refused", { refuse: kRefused }, null, saysWhatFailed],
  ["stale", {}, nothingMore, saysItWas],
];

// Until a page says stale 12.5 s go by: not in everyday runs, of which ui_link.mjs has one.
const kTold = kFull ? kStates : kStates.filter(([state]) => state !== "stale");

export const curveStateTests = kTold.flatMap(([state, options, before, also]) =>
  kSchemes.map((scheme) => [
    `fleet, board, run, compare, layers ${state} are accessible, ${scheme}`,
    () =>
      withPage(
        async (page, server) => {
          await live(page);
          if (!options.empty) await until("rows", async () => (await rows(page)) > 0);
          else
            await until("the next command", async () =>
              (await text(page, ".empty .command code")).includes("odt-sim-board"),
            );
          await page.waitForLoadState("networkidle").catch(() => {}); // the parts of all pages are here
          await before?.(page, server);
          await assertAccessible(page, views(server), { scheme, also: also ?? undefined });
          assert(page.faults.length === 0, `the page reported: ${page.faults.join("; ")}`);
        },
        { server: options, mayFail: true },
      ),
  ]),
);
