import { computed, signal } from "@preact/signals";
import { linkStatus } from "./link";

/// The local clock, once a second while the page is looked at: every shown age is computed from it.
export const nowMs = signal(Date.now());
/// The daemon's clock at the same moment.
export const serverNowMs = computed(() => nowMs.value + linkStatus.value.clockOffsetMs);

export function startClock(): void {
  const tick = (): void => {
    if (document.visibilityState === "visible") nowMs.value = Date.now();
  };
  setInterval(tick, 1000);
  document.addEventListener("visibilitychange", tick);
}
