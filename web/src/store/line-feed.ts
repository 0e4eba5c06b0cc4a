// Lines that the daemon keeps, a window of them in the browser: the newest, those that come, older ones on demand.
import { signal } from "@preact/signals";
import { describeError, type Problem } from "../api/errors";

export interface FeedLine {
  seq: bigint;
}
export interface FeedPage<L> {
  lines: L[]; // ascending
  older: string; // where those before begin; "": there are none
  newest: bigint; // of the daemon's record, whether it matches or not
  epoch: bigint; // of that record; another one numbers anew
  more: boolean; // of after(): there are later ones already
}
export interface FeedSource<L> {
  newest(): Promise<FeedPage<L>>;
  before(older: string): Promise<FeedPage<L>>;
  after(seq: bigint): Promise<FeedPage<L>>;
}

/// Lines kept in the browser. Those that come push out the oldest; while older ones are looked at, the newest.
export const kMostLines = 10_000;

export class LineFeed<L extends FeedLine> {
  readonly lines = signal<readonly L[]>([]);
  readonly older = signal(""); // "": the first line is here
  readonly problem = signal<Problem | null>(null);
  readonly ready = signal(false); // has been read once
  readonly busy = signal(false);
  readonly atEnd = signal(true); // the newest lines are among them
  readonly added = signal(0); // lines put before the others by readOlder, all together
  private seen = 0n;
  private epoch = 0n;
  private ended = false;
  private again = false; // asked for the newest while another answer was awaited

  constructor(
    private readonly source: FeedSource<L>,
    private readonly what: string,
    private readonly most = kMostLines,
  ) {}

  /// The newest lines, and nothing else.
  restart(): Promise<void> {
    return this.ask(async () => {
      const page = await this.source.newest();
      this.epoch = page.epoch;
      this.seen = page.newest;
      this.older.value = page.older;
      this.atEnd.value = true;
      this.lines.value = page.lines;
      this.ready.value = true;
    });
  }

  /// What has come since. Nothing while the newest lines are not among them.
  async poll(): Promise<void> {
    if (this.busy.value) {
      this.again = true;
      return;
    }
    if (!this.ready.value) return this.restart();
    if (!this.atEnd.value) return;
    let changed = false;
    await this.ask(async () => {
      for (let more = true; more && !this.ended; ) {
        const page = await this.source.after(this.seen);
        changed = page.epoch !== this.epoch || page.newest < this.seen;
        if (changed) return;
        const last = page.lines[page.lines.length - 1]?.seq ?? 0n;
        this.seen = page.more ? last : page.newest;
        this.append(page.lines, page.older);
        more = page.more;
      }
    });
    if (changed) await this.restart();
  }

  readOlder(): Promise<void> {
    const from = this.older.value;
    if (from === "" || this.busy.value) return Promise.resolve();
    return this.ask(async () => {
      const page = await this.source.before(from);
      this.older.value = page.older;
      const all = [...page.lines, ...this.lines.value];
      if (all.length > this.most) this.atEnd.value = false;
      this.lines.value = all.slice(0, this.most);
      this.added.value += page.lines.length;
    });
  }

  end(): void {
    this.ended = true;
  }

  private append(fresh: L[], cursor: string): void {
    if (fresh.length === 0) return;
    const all = [...this.lines.value, ...fresh];
    const over = all.length - this.most;
    this.lines.value = over > 0 ? all.slice(over) : all;
    if (over > 0) this.older.value = String(this.lines.value[0]?.seq ?? cursor);
  }

  private async ask(body: () => Promise<void>): Promise<void> {
    if (this.busy.value || this.ended) return;
    this.busy.value = true;
    try {
      await body();
      this.problem.value = null;
    } catch (error) {
      this.problem.value = describeError(error, `Could not ${this.what}`);
    } finally {
      this.busy.value = false;
    }
    if (this.again && !this.ended) {
      this.again = false;
      await this.poll();
    }
  }
}
