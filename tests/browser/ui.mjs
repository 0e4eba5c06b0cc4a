// The dashboard in a real browser against the scripted fleet. Run: node tests/browser/ui.mjs [--only TEXT]
import { runTests } from "./browser.mjs";
import { actionTests } from "./ui_actions.mjs";
import { curveStateTests } from "./ui_curve_states.mjs";
import { linkTests } from "./ui_link.mjs";
import { stateTests } from "./ui_states.mjs";
import { browser } from "./ui_page.mjs";
import { viewTests } from "./ui_views.mjs";

const failed = await runTests("browser/ui", [
  ...viewTests,
  ...actionTests,
  ...linkTests,
  ...curveStateTests,
  ...stateTests,
]);
await browser.close();
process.exit(failed === 0 ? 0 : 1);
