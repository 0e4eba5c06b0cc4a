// Charts draw one after the other, each in a task of its own where they take long: a page of eight stays responsive.
const kFrameMs = 8;
const waiting = new Map<object, () => void>();
let asked = false;

/// Draws in the next animation frame, or in a later one; of several wishes of one chart the newest alone.
export function drawSoon(chart: object, draw: () => void): void {
  waiting.set(chart, draw);
  ask();
}

/// The chart is gone: nothing of it is drawn any more.
export function forgetDraw(chart: object): void {
  waiting.delete(chart);
}

function ask(): void {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => void frame());
}

async function frame(): Promise<void> {
  const end = performance.now() + kFrameMs;
  try {
    do {
      const [next] = waiting;
      if (next === undefined) break;
      waiting.delete(next[0]);
      next[1]();
      await Promise.resolve(); // uPlot draws in a microtask
    } while (performance.now() < end);
  } finally {
    asked = false;
    if (waiting.size > 0) ask();
  }
}
