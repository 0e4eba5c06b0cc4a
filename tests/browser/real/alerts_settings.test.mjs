// Alerts: rules, one that fires, acknowledged, silenced; settings by scope, with what a board takes of them.
import { assert, until } from "../browser.mjs";

const button = (page, name) => page.getByRole("button", { name, exact: true });
const undo = (page, words) =>
  page.locator(".notice", { hasText: words }).getByRole("button", { name: "Undo" }).click();
const rule = async (ctl, name) =>
  (await ctl("alert", "rules")).settings.rules.find((r) => r.rule === name);

export const tests = [
  [
    "a rule is switched off and on, its limit changed within its range, and put back",
    async ({ page, ctl, go, seen }) => {
      await go("#/alerts");
      await seen("the rules", ".panel", /Rules[^]*board offline[^]*checksum errors/);
      const box = page.getByRole("checkbox", { name: "Rule saturation is on" });
      const before = await box.isChecked();
      await box.click();
      await until("switched", async () => (await rule(ctl, "SATURATION")).enabled !== before);
      await undo(page, "The rule saturation is changed");
      await until("switched back", async () => (await rule(ctl, "SATURATION")).enabled === before);
      const limit = page.getByLabel(/Limit of board offline/);
      await limit.fill("-5");
      await seen("the range", "tr", /board offline[^]* to /);
      assert(await button(page, "Set the limit of board offline").isDisabled(), "it can be set");
      await limit.fill("77");
      await button(page, "Set the limit of board offline").click();
      await until("77 s", async () => Number((await rule(ctl, "OFFLINE")).threshold) === 77);
      await button(page, "Rule board offline as by default").click();
      await until("as before", async () => !(await rule(ctl, "OFFLINE")).changed);
    },
  ],
  [
    "an alert that fires is counted, acknowledged with a note, silenced and heard again",
    async ({ page, ctl, go, seen }) => {
      // All free bytes are too few: the disk's rule fires with the next look at it.
      await ctl(
        "alert",
        "rule",
        "set",
        "disk",
        "--threshold",
        String((await rule(ctl, "DISK")).max),
      );
      await go("#/alerts");
      await until(
        "it fires",
        async () =>
          (await page.locator("tbody tr", { hasText: "disk" }).count()) > 0 &&
          (await page.locator(".nav-count").count()) > 0,
        50_000,
      );
      await button(page, "Acknowledge disk of disk").click();
      await page.getByLabel("Note").fill("ordering a larger one");
      await button(page, "I look after it").click();
      await seen("who looks after it", "tbody tr", "ordering a larger one");
      await button(page, "Silence disk of disk").click();
      await button(page, "1 hour").click();
      await seen("the silence", ".silence", "disk of every board");
      await page.getByRole("button", { name: "End the silence of disk of every board" }).click();
      await seen("none", ".panel", /Silences[^]*Nothing is silenced/);
      await button(page, "Rule disk as by default").click();
      assert(await button(page, "Test the webhook").isDisabled(), "there is no webhook to test");
    },
  ],
  [
    "settings hold by scope; a board takes the most specific, and removing is undone",
    async ({ page, ctl, go, seen }) => {
      await go("#/settings");
      const form = page.locator(".panel", { hasText: "Set a default of runs" });
      const set = async (scope, key, value) => {
        await form.getByLabel("For", { exact: false }).first().selectOption({ label: scope });
        await form.getByLabel("Setting", { exact: false }).first().selectOption(key);
        await form.getByLabel("Value").fill(value);
        await button(page, "Set").click();
      };
      await set("the whole fleet", "batch", "nonsense");
      await seen("the refusal", ".notices", "batch");
      await set("the whole fleet", "batch", "8");
      await seen("it is set", "tbody tr", /batch\s+8\s+fleet/);
      await form.getByLabel("For", { exact: false }).first().selectOption({ label: "a cohort" });
      await form.getByLabel("Boards with").fill("site=lab");
      await set("a cohort", "batch", "4");
      await seen("the cohort's", "tbody tr", /batch\s+4\s+cohort site=lab/);
      await page.locator("aside select").selectOption({ label: "lab-1" });
      await seen(
        "lab-1 takes the cohort's",
        ".effective li",
        /batch 4[^]*cohort site=lab[^]*instead of 8 of fleet/,
      );
      await page.locator("aside select").selectOption({ label: "field-2" });
      await seen("field-2 takes the fleet's", ".effective li", /batch 8[^]*from fleet/);
      await button(page, "Remove batch of fleet").click();
      await until("gone", async () =>
        (await ctl("settings", "list")).every((s) => s.scope !== "FLEET"),
      );
      await undo(page, "no longer set for fleet");
      await until("back", async () =>
        (await ctl("settings", "list")).some((s) => s.scope === "FLEET"),
      );
      for (const name of ["Remove batch of fleet", "Remove batch of cohort site=lab"])
        await button(page, name).click();
      await seen("nothing", ".empty", "odtctl settings set");
    },
  ],
];
