import { useState } from "preact/hooks";
import { toHex } from "../api/bytes";
import { BoardStatus, RunState, type Board, type Run } from "../api/types";
import {
  bulkProgress,
  changeRuns,
  identifyAll,
  labelAll,
  retryRuns,
  trashAll,
} from "../store/bulk";
import { boards } from "../store/fleet";
import { linkLive } from "../store/link";
import { selectedBoards } from "../store/selection";
import { runOfBoard } from "./board-state";
import { ConfirmButton } from "./parts/confirm";
import { BulkBar } from "./parts/select";
import { href } from "./router";
import { isOver } from "./words";

const kLabel = /^([A-Za-z0-9_.-]+)(?:=(.*)|(-))$/;

/// "key=value", or "key-" to take it away.
export function parseLabel(text: string): { key: string; value: string | null } | null {
  const match = kLabel.exec(text.trim());
  if (match === null) return null;
  // "site-" could be a key; the dash at the end is the sign of taking away, as on the command line.
  const [, key = "", value] = match;
  return value === undefined ? { key: key.replace(/-$/, ""), value: null } : { key, value };
}

/// Actions on the boards that are ticked and shown.
export function FleetBulk({ shown }: { shown: readonly string[] }) {
  const list = shown.flatMap((k) => (selectedBoards.has(k) ? (boards.get(k).value ?? []) : []));
  const runs = list.flatMap((b) => runOfBoard(b) ?? []);
  const open = runs.filter((r) => !isOver(r.state));
  const paused = open.filter((r) => r.state === RunState.PAUSED);
  const going = open.filter((r) => r.state !== RunState.PAUSED);
  const failed = runs.filter((r) => r.state === RunState.FAILED || r.state === RunState.CANCELLED);
  const offline = list.filter((b) => b.status === BoardStatus.OFFLINE);
  const here = list.filter(
    (b) => b.status === BoardStatus.ONLINE || b.status === BoardStatus.SUSPECT,
  );
  const busy = bulkProgress.value !== null || !linkLive.value;
  return (
    <BulkBar selection={selectedBoards} n={list.length} what="boards">
      <a
        class="button"
        href={href(
          "launch",
          "",
          new URLSearchParams({ boards: list.map((b) => toHex(b.uid)).join() }),
        )}
      >
        Train …
      </a>
      <Act n={here.length} label="Identify" busy={busy} run={() => identifyAll(here)} />
      <LabelForm list={list} busy={busy} />
      <Act n={going.length} label="Pause" busy={busy} run={() => changeRuns(going, "pause")} />
      <Act n={paused.length} label="Resume" busy={busy} run={() => changeRuns(paused, "resume")} />
      <Act n={failed.length} label="Retry failed" busy={busy} run={() => retryRuns(failed)} />
      <CancelRuns list={open} busy={busy} />
      {offline.length > 0 && (
        <Act
          n={offline.length}
          label="Forget offline"
          busy={busy}
          run={() =>
            trashAll(
              "board",
              offline.map((b) => ({ key: b.uid, name: nameOf(b) })),
            )
          }
        />
      )}
    </BulkBar>
  );
}

const nameOf = (b: Board): string => b.name || toHex(b.uid).slice(-8);

/// A button that says of how many it is, and is there only where it fits some.
export function Act(props: { n: number; label: string; busy: boolean; run: () => unknown }) {
  if (props.n === 0) return null;
  return (
    <button type="button" disabled={props.busy} onClick={() => void props.run()}>
      {props.label} <span class="chip-count">{props.n}</span>
    </button>
  );
}

export function CancelRuns({ list, busy }: { list: readonly Run[]; busy: boolean }) {
  if (list.length === 0) return null;
  const what = list.length === 1 ? "1 run" : `${list.length} runs`;
  return (
    <ConfirmButton
      label={`Cancel ${what} …`}
      title={`Cancel ${what}?`}
      confirm={`Cancel ${what}`}
      disabled={busy}
      onConfirm={() => void changeRuns(list, "cancel")}
    >
      <p>
        Boards stop at the end of their step. What they learned so far is kept as their last state;
        a cancelled run does not go on, but can be run again from the start.
      </p>
    </ConfirmButton>
  );
}

function LabelForm({ list, busy }: { list: readonly Board[]; busy: boolean }) {
  const [open, setOpen] = useState(false);
  const [text, setText] = useState("");
  const label = parseLabel(text);
  if (!open) {
    return (
      <button type="button" disabled={busy} onClick={() => setOpen(true)}>
        Label …
      </button>
    );
  }
  return (
    <form
      class="row"
      onSubmit={(e) => {
        e.preventDefault();
        if (label === null) return;
        void labelAll(list, label.key, label.value);
        setOpen(false);
        setText("");
      }}
      onKeyDown={(e) => e.key === "Escape" && setOpen(false)}
    >
      <input
        value={text}
        aria-label="Label"
        placeholder="site=lab, or site- to remove"
        pattern="[A-Za-z0-9_.\-]+(=.*|-)"
        title="key=value, or key- to take it away"
        autofocus
        size={24}
        onInput={(e) => setText(e.currentTarget.value)}
      />
      <button type="submit" disabled={label === null || busy}>
        Set
      </button>
      <button type="button" onClick={() => setOpen(false)}>
        Cancel
      </button>
    </form>
  );
}
