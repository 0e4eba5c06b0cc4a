import { until } from "../browser.mjs";

export const tests = [
  [
    "a place is adopted, shown, and released; each can be undone",
    async ({ page, ctl, go, seen }) => {
      const path = "tcp:127.0.0.1:9";
      const adopted = async () =>
        (await ctl("port", "list")).some((p) => p.path === path && p.adopted);
      await go("#/ports");
      await page.getByRole("textbox", { name: "Path" }).fill(path);
      await page.getByRole("button", { name: "Adopt", exact: true }).first().click();
      await seen("the notice", ".notice", `${path} is adopted`);
      await until("the daemon has it", adopted);
      await page.getByRole("button", { name: `Release ${path}` }).click();
      await seen("the notice", ".notice", `${path} is released`);
      await until("the daemon let it go", async () => !(await adopted()));
    },
  ],
  [
    "what is no port is refused with what to do",
    async ({ page, go, seen }) => {
      await go("#/ports");
      await page.getByRole("textbox", { name: "Path" }).fill("/etc/hostname");
      await page.getByRole("button", { name: "Adopt", exact: true }).first().click();
      await seen("the refusal", ".notice-failed", "Could not adopt port /etc/hostname");
      await page.locator(".notice-failed button").first().click();
    },
  ],
];
