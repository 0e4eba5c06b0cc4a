import { toHex } from "../api/bytes";
import { AlertState, type Alert, type Event } from "../api/types";
import { alerts } from "./fleet";
import { fleetKnown } from "./link";
import { notices } from "./notices";

/// Whether an alert has just begun to fire, and nobody has silenced it.
export function begins(before: Alert | undefined, after: Alert, nowMs: number): boolean {
  if (after.state !== AlertState.FIRING) return false;
  if (Number(after.silencedUntilTimeUs / 1000n) > nowMs) return false;
  return before?.state !== AlertState.FIRING || before.fireTimeUs !== after.fireTimeUs;
}

/// Says that an alert fires. Called before the events are put into the tables.
export function announceAlerts(events: readonly Event[]): void {
  if (!fleetKnown.value) return;
  for (const { what } of events) {
    if (what.case !== "alert") continue;
    const a = what.value;
    if (!begins(alerts.peek(toHex(a.id)), a, Date.now())) continue;
    const text = a.reason?.text || `Alert of ${a.subject}`;
    if (!location.hash.startsWith("#/alerts")) notices.alert(text, a.reason?.remedy ?? "");
    tellDesktop(text);
  }
}

function tellDesktop(text: string): void {
  if (document.visibilityState === "visible" || typeof Notification === "undefined") return;
  void import("./alerts").then(({ desktopOn }) => {
    if (desktopOn.value) new Notification("odt-fleet", { body: text, icon: "/icon.svg" });
  });
}
