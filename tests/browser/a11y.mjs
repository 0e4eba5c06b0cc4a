// Axe over many views: each is gone to, waited for, and looked at. Shared by the tests of both suites.
import { assert, axe, until } from "./browser.mjs";

export const kRules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"];
const kWaitMs = 20_000;

/// Goes to a view of the page and waits until it shows what it has: content, an empty state or an error.
export async function goToView(page, hash) {
  await page.evaluate((h) => (location.hash = h), hash);
  await until(
    `content of ${hash}`,
    async () => (await page.locator("main h1").count()) === 1,
    kWaitMs,
  );
  await until(
    `${hash} is no longer loading`,
    async () => (await page.locator("main .loading, main [aria-busy=true]").count()) === 0,
    kWaitMs,
  );
}

/// No violation on any of the views. `scheme`: "light" or "dark", which only changes colours; `also`: what else has to
/// hold on each (async (page, hash) => faults).
export async function assertAccessible(page, hashes, { scheme = "light", also } = {}) {
  await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
  const faults = [];
  for (const hash of hashes) {
    await goToView(page, hash);
    const found = await axe(page, scheme === "light" ? kRules : ["color-contrast"]);
    if (also !== undefined) found.push(...(await also(page, hash)));
    faults.push(...found.map((f) => `${hash}: ${f}`));
  }
  await page.emulateMedia({ colorScheme: "light", reducedMotion: null });
  assert(faults.length === 0, `${faults.length} faults: ${faults.join(" | ")}`);
}
