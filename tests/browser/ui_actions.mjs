// What a person asks for from the pages, and what is said when it fails.
import { assert, axe, text, until } from "./browser.mjs";
import { RpcError } from "./fake_server.mjs";
import { calls, goTo, live, runOf, runPath, withPage } from "./ui_page.mjs";

export const actionTests = [
  [
    "a run is checked by the daemon, then started from the board page",
    () =>
      withPage(async (page, server) => {
        await live(page);
        await page.locator("tr.board-row a", { hasText: "sim-4" }).first().click();
        await page.getByRole("button", { name: "Train …" }).click();
        const answer = page.locator(".train-answer");
        await until("it fits", async () =>
          (await answer.innerText()).includes("The board can do this: 500 steps"),
        );
        assert(
          calls(server, "CreateRun").every((c) => c.request.dryRun),
          "something was started by looking",
        );
        const faults = await axe(page);
        assert(faults.length === 0, faults.join(" | "));
        await page.locator(".train").getByLabel("Epochs", { exact: true }).fill("0");
        await until("it is refused", async () =>
          /epochs 0; limit[^]*Give 1 to 1000/.test(await answer.innerText()),
        );
        assert(
          await page.getByRole("button", { name: "Start run" }).isDisabled(),
          "a refused run can be started",
        );
        await page.locator(".train").getByLabel("Epochs", { exact: true }).fill("4");
        await page.locator(".train").getByLabel("Name", { exact: true }).fill("from the page");
        await page.getByRole("button", { name: "Start run" }).click();
        await until("the run's page", async () => (await text(page, "h1")) === "from the page");
        assert(
          (await text(page, ".page-head")).includes("running"),
          "the run is not shown as running",
        );
      }),
  ],
  [
    "a failed action names board, cause and remedy",
    () =>
      withPage(async (page, server) => {
        await live(page);
        await page.locator("tr.board-row a", { hasText: "m33-1" }).first().click();
        server.failNext = new RpcError(
          14,
          "board m33-1 did not answer IDENTIFY within 2 s",
          "BOARD_TIMEOUT",
          { remedy: "Check its cable." },
        );
        await page.getByRole("button", { name: "Identify" }).click();
        const said = await until(
          "a notice",
          async () =>
            (await page.locator(".notice-failed").count()) && text(page, ".notice-failed"),
        );
        for (const part of [
          "Could not identify board m33-1",
          "did not answer IDENTIFY",
          "Check its cable.",
        ]) {
          assert(said.includes(part), `notice lacks "${part}": ${said}`);
        }
      }),
  ],
  [
    "run page pauses and resumes the run",
    () =>
      withPage(async (page, server) => {
        await goTo(page, runPath(server, 4));
        await live(page);
        await page.getByRole("button", { name: "Pause" }).click();
        await until("paused", async () => (await text(page, ".page-head")).includes("paused"));
        const steps = runOf(server, "adapt m4-1").stepsDone;
        await page.getByRole("button", { name: "Resume" }).click();
        await until("running", async () => (await text(page, ".page-head")).includes("running"));
        await until("steps go on", () => runOf(server, "adapt m4-1").stepsDone > steps);
        await until("the cause is listed", async () =>
          (await text(page, ".events")).includes("asked to go on"),
        );
      }),
  ],
  [
    "an unclaimed port is adopted with one click",
    () =>
      withPage(async (page, server) => {
        await live(page);
        await page.getByRole("button", { name: "Adopt /dev/ttyACM3", exact: true }).click();
        await until("adopted", () => server.fleet.ports.get("/dev/ttyACM3").adopted);
        await until("its state", async () => (await text(page, ".ports")).includes("opening"));
        assert(
          (await text(page, ".ports")).includes("Held by minicom"),
          "the locked port does not say why",
        );
      }),
  ],
];
