// The pictures of the README, from a fleet of real_fleet.py with a sweep and an evaluation beside its runs.
//   /usr/bin/python3 tests/browser/real_fleet.py build/bin /tmp/fleet      (prints URL and socket)
//   node tests/browser/screenshots.mjs --url URL --ctl "build/bin/odtctl --address unix:SOCKET" --to web/screenshots
import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { promisify } from "node:util";
import { launch, until } from "./browser.mjs";

const arg = (name) => process.argv[process.argv.indexOf(name) + 1];
const [program, ...first] = arg("--ctl").split(" ");
const ctl = async (...args) => {
  const { stdout } = await promisify(execFile)(program, [...first, "--json", ...args]);
  return JSON.parse(stdout.trim().startsWith("[") ? stdout : stdout.trim().split("\n").pop());
};
const kTrain = ["--model", "fmnist", "--data", "fmnist-inversion", "--policy", "fixed"];
const kSweep = [
  "--sweep",
  "mu_weight=0,1,2",
  "--sweep",
  "batch=4,8,16",
  ...kTrain,
  "--epochs",
  "3",
];

if ((await ctl("campaign", "list")).length === 0) {
  const boards = ["--board", "lab-1", "--board", "lab-2", "--board", "field-2"];
  await ctl("campaign", "create", ...boards, ...kSweep, "--name", "mu and batch");
  await ctl(
    "eval",
    "--board",
    "lab-1",
    "--weights",
    "final/apt",
    "--data",
    "fmnist-inversion",
    "--wrong",
    "20",
  );
}
const runs = Object.fromEntries(
  (await ctl("run", "list")).map((r) => [r.spec.name, r.id.replaceAll("-", "")]),
);
const campaign = (await ctl("campaign", "list"))[0].id.replaceAll("-", "");
const four = ["auto", "fixed8", "apt", "apt-high"].map((n) => runs[n]).join();

const kShots = [
  ["fleet", "#/fleet", "light", 1280, 420],
  ["run", `#/run/${runs.long}`, "light", 1280, 860],
  ["layers", `#/layers/${runs.apt}`, "dark", 1280, 860],
  ["compare", `#/compare?runs=${four}`, "light", 1280, 900],
  ["campaign", `#/campaign/${campaign}`, "light", 1280, 860],
  ["evaluate", "#/evaluate", "light", 1280, 860],
];

mkdirSync(arg("--to"), { recursive: true });
const browser = await launch();
for (const [name, hash, colorScheme, width, height] of kShots) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme });
  const page = await context.newPage();
  await page.goto(`${arg("--url")}/${hash}`);
  await until(
    "live",
    async () => (await page.locator(".link-pill").innerText()).includes("live"),
    30_000,
  );
  if (name === "evaluate") await page.locator("tbody a[href*='#/evaluate/']").first().click();
  await page.waitForTimeout(2500);
  await page.screenshot({ path: `${arg("--to")}/${name}.png` });
  await context.close();
}
await browser.close();
