import { signal, type ReadonlySignal, type Signal } from "@preact/signals";

/// Rows by key, each its own signal, so that a change of one row redraws one row. Keys come and go
/// through `keys`; `version` counts every change, for views over the whole.
export class Table<T> {
  private readonly rows = new Map<string, Signal<T>>();
  private readonly absent: Signal<undefined> = signal(undefined);
  readonly keys: Signal<readonly string[]> = signal([]);
  readonly version = signal(0);

  set(key: string, value: T): void {
    const row = this.rows.get(key);
    if (row !== undefined) {
      row.value = value;
    } else {
      this.rows.set(key, signal(value));
      this.keys.value = [...this.keys.value, key];
    }
    this.version.value++;
  }

  delete(key: string): void {
    if (!this.rows.delete(key)) return;
    this.keys.value = this.keys.value.filter((k) => k !== key);
    this.version.value++;
  }

  clear(): void {
    this.rows.clear();
    this.keys.value = [];
    this.version.value++;
  }

  /// The row's signal; reading it also subscribes to its coming and going.
  get(key: string): ReadonlySignal<T | undefined> {
    const row = this.rows.get(key);
    if (row !== undefined) return row;
    void this.keys.value;
    return this.absent;
  }

  peek(key: string): T | undefined {
    return this.rows.get(key)?.peek();
  }

  /// All values now. Subscribes to every change.
  all(): T[] {
    void this.version.value;
    return [...this.rows.values()].map((row) => row.peek());
  }
}
