import { assert, axe, until } from "../browser.mjs";
import { layoutFaults } from "../layout.mjs";

// Colours are what the dark look changes, and the width what the phone does.
const kLooks = [
  ["light", 1400, undefined],
  ["dark", 1400, ["color-contrast"]],
  ["dark", 390, []],
];

/// Every view that has an address, filled.
async function views({ ctl, runId }) {
  const board = (await ctl("board", "list")).find((b) => b.name === "lab-2").uid;
  const [apt, fixed, long] = await Promise.all(["apt", "fixed8", "long"].map(runId));
  const id = (item) => (item.id ?? item.hash).replaceAll("-", "");
  const newest = async (noun, view) =>
    (await ctl(noun, "list")).slice(-1).map((i) => `#/${view}/${id(i)}`);
  return [
    "#/fleet",
    "#/fleet?q=nothing-like-it",
    `#/board/${board}`,
    "#/board/00ff",
    "#/ports",
    `#/launch?boards=${board}`,
    "#/runs",
    `#/run/${long}`,
    `#/run/${apt}`,
    `#/layers/${apt}`,
    "#/compare",
    `#/compare?runs=${apt},${fixed},${long}`,
    `#/report/${apt}`,
    `#/layers/${apt}?step=7`,
    "#/campaigns",
    "#/weights",
    "#/evaluate",
    "#/data",
    "#/models",
    "#/storage",
    "#/settings",
    "#/jobs",
    ...(await newest("campaign", "campaign")),
    ...(await newest("weights", "weights")),
    ...(await newest("data", "data")),
    ...(await newest("model", "models")),
  ];
}

const kParts = 4; // each within the time of one test, also on a busy machine
const kTests = kLooks.flatMap((look) =>
  Array.from({ length: kParts }, (_, part) => [...look, part]),
);

export const tests = kTests.map(([scheme, width, rules, part]) => [
  `every view fits and is accessible, ${scheme} at ${width} px, ${part + 1} of ${kParts}`,
  async (world) => {
    const { page, go } = world;
    const before = page.viewportSize();
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    await page.setViewportSize({ width, height: 900 });
    const faults = [];
    const mine = (await views(world)).filter((_, i) => i % kParts === part);
    for (const hash of mine) {
      await page.evaluate((h) => (location.hash = h), hash);
      await until(
        `content of ${hash}`,
        async () => (await page.locator("main h1").count()) === 1,
        20_000,
      );
      await until(
        "it is there",
        async () => (await page.locator("main .loading, main [aria-busy=true]").count()) === 0,
        20_000,
      );
      await page.waitForTimeout(250); // charts
      const refused = rules?.length === 0 ? [] : await axe(page, rules);
      for (const fault of [...refused, ...(await layoutFaults(page))])
        faults.push(`${hash}: ${fault}`);
    }
    await page.emulateMedia({ colorScheme: "light", reducedMotion: null });
    await page.setViewportSize(before);
    await go("#/fleet");
    assert(faults.length === 0, `${faults.length} faults: ${faults.join(" | ")}`);
  },
]);
