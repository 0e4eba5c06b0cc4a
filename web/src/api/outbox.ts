import { toHex } from "./bytes.js";
import { keyText, resourceKey } from "./resource-key.js";
import type { Event, TelemetryFrame } from "./types.js";
import type { HubMessage, LinkStatus, Progress, RemovedKey } from "./watch-protocol.js";

/// What came from the stream at once, for all tabs.
export interface Arrival {
  events: readonly Event[];
  telemetry: readonly TelemetryFrame[];
  removed: readonly RemovedKey[];
  dropped: number;
}

/// What a tab wants of it.
export interface Wants {
  everyEvent: boolean; // each one, not the newest of each resource
  frames: ReadonlySet<string>; // runs, as hex, whose every frame is wanted
  progress: ReadonlySet<string>; // runs of which the newest step is enough
}

const kUsPerMs = 1000n;

/// Key under which a newer event takes an older one's place; null: each is a record of its own.
function placeOf(event: Event): string | null {
  const key =
    event.what.case === "deleted"
      ? { kind: event.what.value.kind, keyHex: toHex(event.what.value.key) }
      : resourceKey(event);
  return key === null ? null : keyText(key);
}

/// One tab's messages. Purpose: a tab is woken a few times a second at most, however much changes.
/// Operation: what comes after a pause goes at once, the rest is gathered until the pace is over; of a
/// resource only its newest state, of a run that a row shows only its newest step.
/// Concurrency: one event loop; close() ends the timer.
export class Outbox {
  private readonly events = new Map<string, Event>();
  private readonly progress = new Map<string, Progress>();
  private telemetry: TelemetryFrame[] = [];
  private removed: RemovedKey[] = [];
  private dropped = 0;
  private records = 0;
  private status: LinkStatus | null = null;
  private phase = "";
  private sentMs = 0;
  private timer: ReturnType<typeof setTimeout> | null = null;

  constructor(
    private readonly post: (message: HubMessage) => void,
    private readonly now: () => number,
    private readonly paceMs: () => number,
  ) {}

  put(arrival: Arrival, wants: Wants): void {
    for (const event of arrival.events) {
      const place = wants.everyEvent ? null : placeOf(event);
      const key = place ?? `#${this.records++}`;
      this.events.delete(key); // a newer state comes after what it may refer to
      this.events.set(key, event);
    }
    for (const frame of arrival.telemetry) {
      const run = toHex(frame.runId);
      if (wants.frames.has(run)) this.telemetry.push(frame);
      else if (wants.progress.has(run)) this.putProgress(run, frame);
    }
    this.removed.push(...arrival.removed);
    if (this.telemetry.length > 0) this.dropped += arrival.dropped;
    if (arrival.removed.length > 0) this.flush();
    else if (this.holds()) this.flushInTime();
  }

  /// The link's state. A change of phase goes at once; the time of the last frame with the next data.
  putStatus(status: LinkStatus): void {
    this.status = status;
    if (status.phase !== this.phase) this.flush();
    else this.flushInTime();
  }

  /// A message that follows everything put before, at once.
  send(message: HubMessage): void {
    this.flush();
    this.post(message);
  }

  flush(): void {
    this.close();
    if (this.status !== null) {
      this.phase = this.status.phase;
      this.post({ type: "status", status: this.status });
      this.status = null;
    }
    if (!this.holds()) return;
    this.sentMs = this.now();
    this.post({
      type: "data",
      events: [...this.events.values()],
      telemetry: this.telemetry,
      progress: [...this.progress.values()],
      removed: this.removed,
      dropped: this.dropped,
    });
    this.events.clear();
    this.progress.clear();
    this.telemetry = [];
    this.removed = [];
    this.dropped = 0;
    this.records = 0;
  }

  close(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }

  private putProgress(run: string, frame: TelemetryFrame): void {
    if (frame.gap !== 0) return;
    const held = this.progress.get(run);
    if (held !== undefined && held.steps > frame.step) return;
    this.progress.set(run, {
      run,
      steps: frame.step + 1,
      timeMs: Number(frame.timeUs / kUsPerMs),
    });
  }

  private holds(): boolean {
    return this.events.size + this.telemetry.length + this.progress.size + this.removed.length > 0;
  }

  private flushInTime(): void {
    if (this.timer !== null) return;
    const wait = this.sentMs + this.paceMs() - this.now();
    if (wait <= 0) this.flush();
    else this.timer = setTimeout(() => this.flush(), wait);
  }
}
