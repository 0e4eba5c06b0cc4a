import { batch, computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";

// Lists are sorted, filtered and counted anew at most once in this time, however many of their rows change.
const kSettleMs = 1000;

/// Rows by key, each its own signal, so that a change of one row redraws one row, at once. Keys come and
/// go through `keys`, at once too. `version` is for views over the whole: it moves with the first change
/// after a pause, then at most once a second.
export class Table<T> {
  private readonly rows = new Map<string, Signal<T | undefined>>(); // undefined: just taken out
  private readonly absent: Signal<undefined> = signal(undefined);
  private readonly comings = signal(0);
  private movedMs = -Infinity;
  private timer: ReturnType<typeof setTimeout> | null = null;
  readonly keys: ReadonlySignal<readonly string[]> = computed(() => {
    void this.comings.value;
    return [...this.rows.keys()];
  });
  readonly version = signal(0);

  set(key: string, value: T): void {
    const row = this.rows.get(key);
    if (row !== undefined) {
      row.value = value;
    } else {
      this.rows.set(key, signal<T | undefined>(value));
      this.comings.value++;
    }
    this.settle(row === undefined);
  }

  delete(key: string): void {
    const row = this.rows.get(key);
    if (row === undefined) return;
    this.rows.delete(key);
    batch(() => {
      row.value = undefined; // who shows it hears of its going
      this.comings.value++;
      this.settle(true);
    });
  }

  clear(): void {
    const all = [...this.rows.values()];
    this.rows.clear();
    batch(() => {
      for (const row of all) row.value = undefined;
      this.comings.value++;
      this.settle(true);
    });
  }

  /// The row's signal; reading it also subscribes to its coming and going.
  get(key: string): ReadonlySignal<T | undefined> {
    const row = this.rows.get(key);
    if (row !== undefined) return row;
    void this.comings.value;
    return this.absent;
  }

  peek(key: string): T | undefined {
    return this.rows.get(key)?.peek();
  }

  /// All values now. Subscribes to `version`.
  all(): T[] {
    void this.version.value;
    return [...this.rows.values()].map((row) => row.peek() as T);
  }

  private settle(now: boolean): void {
    const wait = this.movedMs + kSettleMs - performance.now();
    if (now || wait <= 0) {
      if (this.timer !== null) clearTimeout(this.timer);
      this.timer = null;
      this.movedMs = performance.now();
      this.version.value++;
    } else {
      this.timer ??= setTimeout(() => this.settle(true), wait);
    }
  }
}
