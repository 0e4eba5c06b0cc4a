// The figures of tests/bench/web in one page load each. Prints one JSON object.
//   node tests/bench/web/page.mjs --url http://real-odtd --run HEX [--seconds N] [--only a,b]
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { launch, until } from "../../browser/browser.mjs";
import { FakeServer } from "../../browser/fake_server.mjs";
import * as pb from "../../../web/test-support/pb.js";

const arg = (name, otherwise) => {
  const i = process.argv.indexOf(name);
  return i < 0 ? otherwise : process.argv[i + 1];
};
const url = arg("--url", "");
const runHex = arg("--run", "");
const seconds = Number(arg("--seconds", 60));
const kStepMs = 100; // of each board
const kPhases = 5; // the boards step in five groups, 20 ms apart, as messages of odtd come
const sorted = (list) => [...list].sort((a, b) => a - b);
const at = (list, p) => sorted(list)[Math.min(list.length - 1, Math.floor(p * list.length))];
const round = (v) => Math.round(v * 10) / 10;

/// CPU time in ms of this browser's processes by what they are: load on the machine does not change it.
function cpuTimes() {
  const kTickMs = 10; // of /proc's clock
  const stat = (pid) =>
    readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /, "")
      .split(" ");
  const isMine = (pid) => {
    for (let p = pid; p > 1; p = Number(stat(p)[1])) if (p === process.pid) return true;
    return false;
  };
  const out = {};
  for (const pid of readdirSync("/proc").map(Number).filter(Boolean)) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      if (pid === process.pid || !isMine(pid)) continue;
      const type = /--utility-sub-type=([a-z_]+)/.exec(command) ?? /--type=([a-z-]+)/.exec(command);
      const [user, system] = stat(pid).slice(11, 13).map(Number);
      out[type?.[1] ?? "browser"] = (out[type?.[1] ?? "browser"] ?? 0) + (user + system) * kTickMs;
    } catch {
      // ended meanwhile
    }
  }
  return out;
}

function bundle() {
  const dist = new URL("../../../web/dist/", import.meta.url);
  const html = readFileSync(new URL("index.html", dist), "utf8");
  const files = readdirSync(new URL("assets/", dist)).filter(
    (n) => html.includes(`/assets/${n}`) && /\.(js|css)$/.test(n),
  );
  const sizes = files.map((n) => [
    n,
    gzipSync(readFileSync(new URL(`assets/${n}`, dist)), { level: 9 }).length,
  ]);
  return {
    bundle_gzip_kB: round(sizes.reduce((s, [, n]) => s + n, 0) / 1000),
    bundle_files: Object.fromEntries(sizes),
  };
}

/// From navigation, cold cache, to the first row with a live status painted.
async function firstPaint(browser, throttle) {
  const times = [];
  for (let i = 0; i < 7; i++) {
    const context = await browser.newContext();
    const page = await context.newPage();
    const cdp = await context.newCDPSession(page);
    await cdp.send("Emulation.setCPUThrottlingRate", { rate: throttle });
    await page.addInitScript(() => {
      const look = () => {
        const live = document.querySelector(".link-pill")?.textContent?.includes("live");
        if (live && document.querySelector("tr.board-row .state-word") !== null)
          requestAnimationFrame(() => (window.paintedMs ??= performance.now()));
        else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    });
    await page.goto(url);
    times.push(await until("a row", () => page.evaluate(() => window.paintedMs), 60_000));
    await context.close();
  }
  return times.map(round);
}

/// A long run: until all charts hold data, then 20 pans and zooms.
async function longRun(browser) {
  const page = await browser.newPage();
  await page.goto(`${url}/#/fleet`);
  await until(
    "live",
    async () => (await page.locator(".link-pill").innerText()).includes("live"),
    30_000,
  );
  await page.waitForTimeout(4000); // the other pages are fetched
  await page.evaluate(() => {
    window.longTasks = [];
    new PerformanceObserver((l) =>
      l.getEntries().forEach((e) => window.longTasks.push(Math.round(e.duration))),
    ).observe({ type: "longtask" });
  });
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable");
  const threadMs = async () => {
    const { metrics } = await cdp.send("Performance.getMetrics");
    return metrics.find((m) => m.name === "ThreadTime").value * 1000;
  };
  const start = await threadMs();
  const opened = await page.evaluate(
    (hash) =>
      new Promise((done) => {
        const start = performance.now();
        location.hash = hash;
        const look = () =>
          document.querySelectorAll(".chart-plot canvas").length >= 4
            ? requestAnimationFrame(() => done(performance.now() - start))
            : requestAnimationFrame(look);
        look();
      }),
    `#/run/${runHex}`,
  );
  await page.waitForTimeout(1000);
  const note = await page.locator(".legend-x").last().innerText();
  const before = await page.evaluate(() => window.longTasks.splice(0));
  const afterOpen = await threadMs();
  const names = [
    "Zoom in",
    "Zoom in",
    "Later steps",
    "Later steps",
    "Earlier steps",
    "Zoom in",
    "Later steps",
    "Zoom out",
    "Earlier steps",
    "Zoom out",
  ];
  for (const name of [...names, ...names]) {
    // By the page itself: a search of the test's own through the whole page would count as a long task.
    await page.evaluate((word) => {
      const buttons = [...document.querySelectorAll(".range-bar button")];
      buttons.find((b) => b.textContent.includes(word) && !b.disabled)?.click();
    }, name);
    await page.waitForTimeout(250);
  }
  const tasks = await page.evaluate(() => window.longTasks);
  const afterZooms = await threadMs();
  await page.close();
  return {
    run_200k_open_ms: round(opened),
    run_200k_open_main_thread_cpu_ms: round(afterOpen - start),
    run_200k_zoom_main_thread_cpu_ms: round((afterZooms - afterOpen) / (2 * names.length)),
    run_200k_shown: note,
    run_200k_open_long_tasks_ms: before,
    run_200k_zoom_long_tasks_ms: tasks,
    run_200k_longest_task_ms: Math.max(0, ...tasks),
  };
}

/// Twelve tabs of one browser: all live, and how long a call takes then.
async function tabs(browser) {
  const context = await browser.newContext();
  const pages = [];
  for (let i = 0; i < 12; i++) {
    const page = await context.newPage();
    await page.goto(`${url}/#/fleet`);
    pages.push(page);
  }
  let live = 0;
  for (const page of pages) {
    await page.bringToFront();
    await until(
      "live",
      async () => (await page.locator(".link-pill").innerText()).includes("live"),
      30_000,
    );
    live++;
  }
  // An empty GetInfo over gRPC-Web, as the page sends it.
  const times = await pages[11].evaluate(async () => {
    const out = [];
    for (let i = 0; i < 60; i++) {
      const start = performance.now();
      const answer = await fetch("/odt.api.v1.SystemService/GetInfo", {
        method: "POST",
        headers: { "content-type": "application/grpc-web+proto", "x-grpc-web": "1" },
        body: new Uint8Array(5),
      });
      await answer.arrayBuffer();
      out.push(performance.now() - start);
    }
    return out;
  });
  await context.close();
  return {
    tabs: 12,
    tabs_live: live,
    unary_p50_ms: round(at(times, 0.5)),
    unary_p95_ms: round(at(times, 0.95)),
  };
}

/// 1,000 boards that train at 10 steps/s on a scripted daemon; the page asks for the rows in view.
async function thousand(browser) {
  const server = await new FakeServer({
    boards: 1000,
    tickMs: kStepMs / kPhases,
    phases: kPhases,
  }).start();
  const f = server.fleet;
  f.finish = () => {}; // they train as long as it takes
  f.mostFrames = 100;
  [...f.boards.values()].forEach((board, i) => {
    if (i === 0 || board.status !== pb.BoardStatus.ONLINE) return;
    const run = f.addRun(
      Date.now(),
      0,
      5000 + i,
      [...f.datasets.keys()][0],
      `run ${i}`,
      pb.RunState.RUNNING,
      [0.2, 0.7],
      0,
    );
    run.stepsTotal = 1_000_000;
    run.spec.boardUid = board.uid;
    board.runId = run.id;
  });
  let sent = 0;
  const send = server.send.bind(server);
  server.send = (w, response) => {
    const held = w.res.socket?.bytesWritten ?? 0;
    send(w, response);
    sent += Math.max(0, (w.res.socket?.bytesWritten ?? 0) - held);
  };
  // What a frame told is remembered by the time of its step: the page's figure gives its age.
  const context = await browser.newContext({ viewport: { width: 1400, height: 1000 } });
  const page = await context.newPage();
  const cdp = await context.newCDPSession(page);
  await cdp.send("Performance.enable");
  await page.goto(server.url);
  await until(
    "rows that move",
    async () => (await page.locator(".run-progress").count()) > 5,
    60_000,
  );
  await page.waitForTimeout(3000);
  const metrics = async () =>
    Object.fromEntries(
      (await cdp.send("Performance.getMetrics")).metrics.map((m) => [m.name, m.value]),
    );
  const gc = async () => {
    await cdp.send("HeapProfiler.collectGarbage");
    return metrics();
  };
  const start = { ...(await metrics()), ms: Date.now(), sent, cpu: cpuTimes() };
  const ages = [];
  const heap = [];
  const end = Date.now() + seconds * 1000;
  let nextHeap = Date.now() + seconds * 300;
  while (Date.now() < end) {
    const now = Date.now();
    const shown = await page.evaluate(() =>
      [...document.querySelectorAll("tr.board-row")]
        .slice(0, 30)
        .map((row) => [
          row.querySelector(".cell-run a")?.getAttribute("href")?.split("/").pop() ?? "",
          Number(
            (
              row
                .querySelector(".run-progress .nowrap")
                ?.textContent?.split("·")
                .pop()
                ?.split("/")[0] ?? ""
            ).replace(/\D/g, ""),
          ),
        ]),
    );
    for (const [id, step] of shown) {
      const run = f.runs.get(id);
      if (run !== undefined && step > 0 && run.state === pb.RunState.RUNNING)
        ages.push(Math.max(0, (run.stepsDone - step) * kStepMs));
    }
    if (now > nextHeap) {
      heap.push(await gc());
      nextHeap = now + seconds * 100;
    }
    await page.waitForTimeout(500);
  }
  const cpu = cpuTimes();
  const last = await gc();
  const wall = Date.now() - start.ms;
  const share = Object.fromEntries(
    Object.entries(cpu).map(([k, ms]) => [k, round(((ms - (start.cpu[k] ?? 0)) * 100) / wall)]),
  );
  const rows = await page.locator("tr.board-row").count();
  await context.close();
  await server.stop();
  const first = heap[0] ?? last;
  return {
    boards: f.boards.size,
    rows_drawn: rows,
    measured_s: round(wall / 1000),
    page_core_pct: round(Object.values(share).reduce((a, b) => a + b, 0)),
    page_core_pct_by_process: share,
    page_main_thread_pct: round(((last.ThreadTime - start.ThreadTime) * 100_000) / wall),
    page_main_thread_tasks_pct: round(((last.TaskDuration - start.TaskDuration) * 100_000) / wall),
    page_kBps: round((sent - start.sent) / wall),
    value_age_samples: ages.length,
    value_age_p50_ms: ages.length > 0 ? at(ages, 0.5) : null,
    value_age_p99_ms: ages.length > 0 ? at(ages, 0.99) : null,
    heap_first_bytes: first.JSHeapUsedSize,
    heap_last_bytes: last.JSHeapUsedSize,
    heap_growth_pct: round((last.JSHeapUsedSize / first.JSHeapUsedSize - 1) * 100),
    dom_nodes: [first.Nodes, last.Nodes],
    listeners: [first.JSEventListeners, last.JSEventListeners],
  };
}

const parts = {
  bundle: async () => bundle(),
  paint: async (b) => {
    const [plain, slow] = [await firstPaint(b, 1), await firstPaint(b, 4)];
    return {
      first_paint_ms: at(plain, 0.5),
      first_paint_all_ms: plain,
      first_paint_4x_ms: at(slow, 0.5),
      first_paint_4x_all_ms: slow,
    };
  },
  run: longRun,
  tabs,
  boards: thousand,
};
const only = arg("--only", Object.keys(parts).join()).split(",");
const browser = await launch();
const figures = {};
for (const name of only) {
  try {
    const told = await parts[name](browser);
    process.stderr.write(`${JSON.stringify(told)}\n`);
    Object.assign(figures, told);
  } catch (error) {
    process.stderr.write(`${name}: ${error.stack}\n`);
    figures[`${name}_error`] = String(error.message).split("\n")[0];
  }
  process.stderr.write(`${name} done\n`);
}
await browser.close();
console.log(JSON.stringify(figures, null, 2));
process.exit(Object.keys(figures).some((k) => k.endsWith("_error")) ? 1 : 0); // what failed may have left a server
