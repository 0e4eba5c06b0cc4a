import { signal } from "@preact/signals";

/// Rows ticked in a list, by key, in the order in which they were ticked.
export class Selection {
  readonly keys = signal<ReadonlySet<string>>(new Set());
  private last = "";

  has(key: string): boolean {
    return this.keys.value.has(key);
  }
  /// Ticks or unticks; with `through` (the list as shown) everything from the row ticked before to this one.
  toggle(key: string, on: boolean, through?: readonly string[]): void {
    const next = new Set(this.keys.value);
    const [from, to] = [through?.indexOf(this.last) ?? -1, through?.indexOf(key) ?? -1];
    const range =
      through !== undefined && from >= 0 && to >= 0
        ? through.slice(Math.min(from, to), Math.max(from, to) + 1)
        : [key];
    for (const k of range) {
      if (on) next.add(k);
      else next.delete(k);
    }
    this.last = key;
    this.keys.value = next;
  }
  set(keys: readonly string[]): void {
    this.keys.value = new Set(keys);
  }
  clear(): void {
    this.keys.value = new Set();
  }
}

export const selectedBoards = new Selection();
export const selectedRuns = new Selection();
