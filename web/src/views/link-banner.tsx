import { nowMs, serverNowMs } from "../store/clock";
import { clock, duration } from "../store/format";
import { linkStatus } from "../store/link";
import { retryNow } from "../store/session";
import { Command } from "./parts/bits";
import { StateMark } from "./parts/state-mark";
import type { Look } from "./words";

const kLooks: Record<string, Look> = {
  connecting: { word: "connecting", tone: "quiet", shape: "dashed" },
  live: { word: "live", tone: "ok", shape: "disc" },
  stale: { word: "stale", tone: "warn", shape: "triangle" },
  reconnecting: { word: "reconnecting", tone: "warn", shape: "half" },
  gone: { word: "daemon gone", tone: "bad", shape: "cross" },
};

/// The connection in the corner: always there, so that "live" is a statement and not an absence.
export function LinkPill() {
  const { phase, lastFrameMs } = linkStatus.value;
  const age = Math.max(0, nowMs.value - lastFrameMs);
  const old = phase !== "live" && lastFrameMs > 0;
  return (
    <span
      class="link-pill"
      title={old ? `Last heard of the daemon at ${clock(lastFrameMs, nowMs.value)}` : ""}
    >
      <StateMark look={kLooks[phase] ?? kLooks["connecting"]!} age={old ? duration(age) : ""} />
    </span>
  );
}

/// Says what is shown while the daemon is not heard, since when, and what happens next.
export function LinkBanner() {
  const { phase, lastFrameMs, retryAtMs, error, attempt } = linkStatus.value;
  if (phase === "live" || (phase === "connecting" && attempt === 0)) return null;
  const now = nowMs.value;
  const since =
    lastFrameMs > 0
      ? `since ${clock(lastFrameMs, serverNowMs.value)} (${duration(now - lastFrameMs)})`
      : "";
  const next =
    retryAtMs > now
      ? `Next try in ${duration(retryAtMs - now + 999)}.`
      : phase === "stale"
        ? ""
        : "Trying now …";
  return (
    <div class={`banner banner-${phase}`} role="status">
      <p>
        <strong>{headline(phase, since)}</strong> {error !== "" && <span>{sentence(error)} </span>}
        <span aria-hidden="true">{next}</span>
      </p>
      {phase === "gone" && <Command text="odtctl doctor" />}
      {phase !== "stale" && (
        <button type="button" class="small" onClick={retryNow}>
          Try now
        </button>
      )}
    </div>
  );
}

function headline(phase: string, since: string): string {
  switch (phase) {
    case "stale":
      return `Stale ${since}: the daemon is silent, what you see may have changed.`;
    case "gone":
      return since === ""
        ? "The daemon does not answer."
        : `Daemon gone ${since}. What you see is as it was then; runs go on by themselves once it is back.`;
    default:
      return since === "" ? "Connecting to the daemon …" : `Reconnecting: no live data ${since}.`;
  }
}

const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`;
