import { signal } from "@preact/signals";
import type { Problem } from "../api/errors";
import type { Warning } from "../api/types";
import { boardName } from "./fleet";

/// What a notice offers, e.g. taking back what was done.
export interface NoticeAction {
  label: string;
  run: () => void;
}
export interface Notice {
  id: number;
  kind: "done" | "warning" | "failed";
  title: string;
  cause: string;
  remedy: string;
  action?: NoticeAction | undefined;
}

const kMost = 4; // older ones give way
const kDoneMs = 6000; // what needs no action goes by itself
const kUndoMs = 20_000; // time to take back

class Notices {
  readonly list = signal<readonly Notice[]>([]);
  private nextId = 1;

  done(title: string, action?: NoticeAction): void {
    const id = this.push({ kind: "done", title, cause: "", remedy: "", action });
    setTimeout(() => this.dismiss(id), action === undefined ? kDoneMs : kUndoMs);
  }

  fail(problem: Problem): void {
    this.push({ kind: "failed", ...problem });
  }

  warn(warning: Warning): void {
    const who = warning.boardUid.length > 0 ? `${boardName(warning.boardUid)}: ` : "";
    const { text = "", remedy = "", code = "" } = warning.reason ?? {};
    this.push({ kind: "warning", title: `${who}${text || code}`, cause: "", remedy });
  }

  /// It stands among the alerts too, so it goes by itself.
  alert(title: string, remedy: string): void {
    const id = this.push({ kind: "warning", title, cause: "", remedy });
    setTimeout(() => this.dismiss(id), kUndoMs);
  }

  dismiss(id: number): void {
    this.list.value = this.list.value.filter((n) => n.id !== id);
  }

  private push(notice: Omit<Notice, "id">): number {
    const id = this.nextId++;
    const { kind, title, cause, remedy, action } = notice;
    const same = (n: Notice): boolean => n.title === title && n.cause === cause;
    const rest = this.list.value.filter((n) => !same(n)).slice(-(kMost - 1));
    this.list.value = [...rest, { id, kind, title, cause, remedy, action }];
    return id;
  }
}

export const notices = new Notices();
