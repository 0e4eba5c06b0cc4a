// A page on a scripted fleet of its own, and what is asked of it again and again.
import { assert, launch, openPage, text, until } from "./browser.mjs";
import { FakeServer } from "./fake_server.mjs";

export const browser = await launch();

/// A server and a page of its own for a test.
export async function withPage(
  body,
  { path = "", server: options = {}, context: contextOptions = {}, mayFail = false } = {},
) {
  const server = await new FakeServer(options).start();
  const context = await browser.newContext({
    viewport: { width: 1400, height: 900 },
    ...contextOptions,
  });
  try {
    const page = await openPage(context, `${server.url}/${path}`);
    await body(page, server, context);
    assert(mayFail || page.faults.length === 0, `the page reported: ${page.faults.join("; ")}`);
  } finally {
    await context.close();
    await server.stop();
  }
}

export const pill = (page) => text(page, ".link-pill");
export const live = (page) => until("live", async () => (await pill(page)).includes("live"));
export const rows = (page) => page.locator("tr.board-row").count();
export const runPath = (server, index) => `#/run/${[...server.fleet.runs.keys()][index]}`;
export const runOf = (server, name) =>
  [...server.fleet.runs.values()].find((r) => r.spec.name === name);
export const calls = (server, method) => server.log.filter((c) => c.method === method);

export async function goTo(page, hash) {
  await page.evaluate((h) => (location.hash = h), hash);
}
