import { computed, signal } from "@preact/signals";
import type { LinkStatus } from "../api/watch-protocol";

/// How the connection to the daemon is. What is not "live" is shown as what it was, with its age.
export const linkStatus = signal<LinkStatus>({
  phase: "connecting",
  sinceMs: Date.now(),
  lastFrameMs: 0,
  attempt: 0,
  retryAtMs: 0,
  error: "",
  clockOffsetMs: 0,
});
export const linkLive = computed(() => linkStatus.value.phase === "live");

/// A whole snapshot has arrived at least once: empty lists are then really empty.
export const fleetKnown = signal(false);
