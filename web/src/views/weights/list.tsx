import { useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import type { Snapshot } from "../../api/types";
import { serverNowMs } from "../../store/clock";
import { boardName, boards, modelName, runs, snapshots } from "../../store/fleet";
import { bytes, clock, count, duration, kNone, percent, significant } from "../../store/format";
import { fleetKnown, linkLive } from "../../store/link";
import { fraction, lossPerSample, usToMs } from "../../store/numbers";
import { snapshotName, snapshotTree, type TreeRow } from "../../store/snapshot-tree";
import { addSnapshot, pullWeights } from "../../store/weights";
import { parseFilter, toFields } from "../filter";
import { Empty, Loading } from "../parts/bits";
import { SearchBox, ShownNote } from "../parts/search-box";
import { Sheet } from "../parts/confirm";
import { WindowBody } from "../parts/window";
import { go, href, route, setQuery } from "../router";

const kRowHeight = 49;

function fieldsOf(s: Snapshot) {
  return toFields({
    name: snapshotName(s),
    hash: toHex(s.hash),
    model: modelName(s.modelHash),
    board: s.boardUid.length > 0 ? boardName(s.boardUid) : "",
    origin: s.origin,
    note: s.note,
    pinned: s.pinned ? "pinned" : "",
    aliases: s.aliases.join(" "),
  });
}

export function SnapshotList() {
  const all = snapshots.all();
  const query = route.value.query;
  const test = parseFilter(query.get("q") ?? "");
  const rows = snapshotTree(all.filter((s) => test(fieldsOf(s))));
  const chosen = (query.get("compare") ?? "").split(",").filter((hex) => snapshots.peek(hex));
  if (all.length === 0) return <NoSnapshots />;
  const byHex = new Map(rows.map((r) => [toHex(r.snapshot.hash), r]));
  const choose = (hex: string, on: boolean): void => {
    const rest = chosen.filter((h) => h !== hex);
    setQuery("compare", (on ? [...rest, hex].slice(-2) : rest).join(","));
  };
  return (
    <>
      <h1 class="sr-only">Weights</h1>
      <ListBar shown={rows.length} total={all.length} chosen={chosen} />
      {rows.length === 0 ? (
        <Empty title="No weights match">
          <p>
            <a href={href("weights")}>Clear the search</a> to see all {all.length}.
          </p>
        </Empty>
      ) : (
        <div class="table-frame">
          <table class="snapshots">
            <thead>
              <tr>
                <th scope="col">
                  <span class="sr-only">Compare</span>
                </th>
                <th scope="col">Weights</th>
                <th scope="col">Model</th>
                <th scope="col">From</th>
                <th scope="col">Step</th>
                <th scope="col">Held-out</th>
                <th scope="col">How</th>
                <th scope="col">Size</th>
                <th scope="col">Note</th>
              </tr>
            </thead>
            <WindowBody
              keys={[...byHex.keys()]}
              columns={9}
              rowHeight={kRowHeight}
              row={(hex) => (
                <SnapshotRow
                  key={hex}
                  row={byHex.get(hex)!}
                  chosen={chosen.includes(hex)}
                  choose={choose}
                />
              )}
            />
          </table>
        </div>
      )}
    </>
  );
}

function SnapshotRow(props: {
  row: TreeRow;
  chosen: boolean;
  choose: (hex: string, on: boolean) => void;
}) {
  const { snapshot: s, depth } = props.row;
  const hex = toHex(s.hash);
  const run = runs.get(toHex(s.runId)).value;
  return (
    <tr>
      <td class="cell-check">
        <input
          type="checkbox"
          aria-label={`Compare ${snapshotName(s)}`}
          checked={props.chosen}
          onChange={(e) => props.choose(hex, e.currentTarget.checked)}
        />
      </td>
      <th scope="row">
        <span class="tree-line" style={{ paddingLeft: `${Math.min(depth, 12) * 16}px` }}>
          {depth > 0 && (
            <span aria-hidden="true" class="tree-branch">
              └
            </span>
          )}
          <span>
            <a href={href("weights", hex)}>{snapshotName(s)}</a>
            {s.pinned && (
              <span class="badge" title="Never pruned or deleted">
                pinned
              </span>
            )}
            <span class="sub">
              <code>{hex.slice(0, 12)}</code>
              {s.aliases
                .filter((a) => a !== snapshotName(s))
                .map((a) => (
                  <span key={a} class="label">
                    {a}
                  </span>
                ))}
              {depth > 0 && <span class="sr-only">, child of the one above, depth {depth}</span>}
            </span>
          </span>
        </span>
      </th>
      <td data-label="Model">{modelName(s.modelHash)}</td>
      <td data-label="From">
        {s.boardUid.length === 0 ? (
          <span class="quiet">{kNone}</span>
        ) : (
          <a href={href("board", toHex(s.boardUid))}>{boardName(s.boardUid)}</a>
        )}
        {s.runId.length > 0 && (
          <a class="sub" href={href("run", toHex(s.runId))}>
            run {run?.spec?.name || toHex(s.runId).slice(0, 12)}
          </a>
        )}
      </td>
      <td data-label="Step">{s.step > 0 ? count(s.step) : kNone}</td>
      <td data-label="Held-out">{heldout(s)}</td>
      <td data-label="How">
        {s.origin || kNone}
        <span class="sub">{clock(usToMs(s.meta?.createTimeUs ?? 0n), serverNowMs.value)}</span>
      </td>
      <td data-label="Size">{bytes(s.bytes)}</td>
      <td class="wrap cell-note" data-label="Note">
        {s.note}
      </td>
    </tr>
  );
}

/// Accuracy, or squared error where there are no classes.
export function heldout(s: Snapshot): string {
  if ((s.heldout?.total ?? 0) > 0) return percent(fraction(s.heldout));
  return (s.heldoutLoss?.count ?? 0) > 0
    ? `loss ${significant(lossPerSample(s.heldoutLoss))}`
    : kNone;
}

function ListBar(props: { shown: number; total: number; chosen: string[] }) {
  const [adding, setAdding] = useState(false);
  const [a = "", b = ""] = props.chosen;
  return (
    <div class="bar">
      <SearchBox label="Search weights" placeholder="Search, board=m33-1, model=fmnist, -pull" />
      <button type="button" disabled={!linkLive.value} onClick={() => setAdding(true)}>
        Keep weights …
      </button>
      <button
        type="button"
        disabled={b === ""}
        title="Tick two of them"
        onClick={() => go(href("weights", "diff", new URLSearchParams({ a, b })))}
      >
        Compare {props.chosen.length} of 2
      </button>
      <ShownNote shown={props.shown} total={props.total} what="snapshot" />
      {adding && <KeepDialog close={() => setAdding(false)} />}
    </div>
  );
}

/// Reads what a board holds, or takes a file.
function KeepDialog({ close }: { close: () => void }) {
  const list = boards.all();
  const [uid, setUid] = useState(toHex(list[0]?.uid ?? new Uint8Array()));
  const [alias, setAlias] = useState("");
  const [busy, setBusy] = useState("");
  const done = (hex: string): void => {
    setBusy("");
    if (hex === "") return;
    close();
    go(href("weights", hex));
  };
  const upload = async (file: File | undefined): Promise<void> => {
    if (file === undefined) return;
    const started = Date.now();
    done(
      await addSnapshot(file, alias.trim(), (p) =>
        setBusy(
          `${p.what} ${bytes(p.done)} of ${bytes(p.total)}, ${duration(Date.now() - started)}`,
        ),
      ),
    );
  };
  return (
    <Sheet title="Keep weights" close={close} class="train">
      <form
        onSubmit={(e) => {
          e.preventDefault();
          setBusy("reading the board …");
          void pullWeights(uid, alias.trim()).then(done);
        }}
      >
        <div class="fields">
          <label>
            Board
            <select value={uid} onChange={(e) => setUid(e.currentTarget.value)}>
              {list.map((board) => (
                <option key={toHex(board.uid)} value={toHex(board.uid)}>
                  {board.name}
                </option>
              ))}
            </select>
          </label>
          <label>
            Alias
            <input
              value={alias}
              maxLength={64}
              placeholder="none"
              onInput={(e) => setAlias(e.currentTarget.value)}
            />
          </label>
        </div>
        <p class="train-answer quiet" aria-live="polite">
          {busy || "What the board holds now is read and kept under its hash."}
        </p>
        <div class="row train-buttons">
          <button
            type="submit"
            class="primary"
            disabled={busy !== "" || uid === "" || !linkLive.value}
          >
            Read from the board
          </button>
          <label class="file-button">
            Take a file (.odtw)
            <input
              type="file"
              disabled={busy !== ""}
              onChange={(e) => void upload(e.currentTarget.files?.[0])}
            />
          </label>
        </div>
      </form>
    </Sheet>
  );
}

function NoSnapshots() {
  const [adding, setAdding] = useState(false);
  if (!fleetKnown.value) {
    return <Loading page="Weights" />;
  }
  return (
    <>
      <h1 class="sr-only">Weights</h1>
      <Empty title="No weights are kept yet" command="odtctl weights pull --board BOARD">
        <p>
          Every finished run keeps what it ended with. What a board holds can be read at any time.
        </p>
        <p>
          <button type="button" disabled={!linkLive.value} onClick={() => setAdding(true)}>
            Keep weights …
          </button>
        </p>
      </Empty>
      {adding && <KeepDialog close={() => setAdding(false)} />}
    </>
  );
}
