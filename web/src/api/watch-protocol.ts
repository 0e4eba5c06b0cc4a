// What a tab and the hub that holds the browser's one Watch stream say to each other.
import type { Event, TelemetryFrame } from "./types.js";
import { Topic_Kind } from "./types.js";

export type LinkPhase = "connecting" | "live" | "stale" | "reconnecting" | "gone";

export interface LinkStatus {
  phase: LinkPhase;
  sinceMs: number; // when the phase began, local clock
  lastFrameMs: number; // last frame of any kind, local clock; 0: never
  attempt: number; // failed attempts since the last frame
  retryAtMs: number; // next attempt, local clock; 0: none planned
  error: string; // why the last attempt failed
  clockOffsetMs: number; // server clock - local clock
}

/// `${Topic_Kind}:${hex key}`: the same topic wanted by two tabs is one topic of the stream.
export type StreamTopic = `${number}:${string}`;
/// What a tab wants: a topic of the stream, or of a run's frames the newest step alone.
export type TopicKey = StreamTopic | `progress:${string}`;

export const kGlobalTopics: readonly StreamTopic[] = [
  `${Topic_Kind.FLEET}:`,
  `${Topic_Kind.RUNS}:`,
  `${Topic_Kind.LIBRARY}:`,
  `${Topic_Kind.JOBS}:`,
  `${Topic_Kind.CAMPAIGNS}:`,
  `${Topic_Kind.ALERTS}:`,
  `${Topic_Kind.SETTINGS}:`,
];
export const kEverything: StreamTopic = `${Topic_Kind.ALL_EVENTS}:`;
export const runTopic = (runHex: string): StreamTopic => `${Topic_Kind.RUN}:${runHex}`;
export const telemetryTopic = (runHex: string): StreamTopic => `${Topic_Kind.TELEMETRY}:${runHex}`;
export const progressTopic = (runHex: string): TopicKey => `progress:${runHex}`;

/// The topic of the stream that brings it.
export const streamTopic = (topic: TopicKey): StreamTopic =>
  topic.startsWith("progress:")
    ? telemetryTopic(topic.slice("progress:".length))
    : (topic as StreamTopic);

export interface RemovedKey {
  kind: string;
  keyHex: string;
}

/// The newest step of a run, for a row of a list.
export interface Progress {
  run: string; // hex
  steps: number; // done
  timeMs: number; // of that step, daemon's clock
}

export type TabMessage =
  | { type: "topics"; topics: TopicKey[] }
  | { type: "visible"; hiddenMs: number }
  | { type: "hidden" }
  | { type: "retry" }
  | { type: "alive" }
  | { type: "bye" };

export type HubMessage =
  | { type: "status"; status: LinkStatus }
  | {
      type: "data";
      events: Event[];
      telemetry: TelemetryFrame[];
      progress: Progress[];
      removed: RemovedKey[];
      dropped: number; // telemetry frames conflated away: charts may fetch them
    }
  | { type: "ready" } // a whole snapshot has been delivered
  | { type: "reconnected" } // the stream was down: unary histories may have a hole
  | { type: "new-store" }; // another database: forget every run's details
