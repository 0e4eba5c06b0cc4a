import { useState } from "preact/hooks";
import { fromHex, toHex } from "../../api/bytes";
import { clients } from "../../api/clients";
import type { Snapshot } from "../../api/types";
import { pending } from "../../store/actions";
import { serverNowMs } from "../../store/clock";
import { boardName, modelName, runs, snapshots } from "../../store/fleet";
import { bytes, clock, count, kNone } from "../../store/format";
import { fleetKnown, linkLive } from "../../store/link";
import { usToMs } from "../../store/numbers";
import { snapshotName } from "../../store/snapshot-tree";
import { trash } from "../../store/trash";
import { exportOnnx, exportSnapshot, kFormats, updateSnapshot } from "../../store/weights";
import { newest } from "../newest";
import { Empty, Facts, Hash, Loading, Panel, ProblemBox } from "../parts/bits";
import { ConfirmButton } from "../parts/confirm";
import { useLoad } from "../parts/use-load";
import { go, href } from "../router";
import { heldout } from "./list";
import { LogPanel } from "./log";
import { RestorePanel } from "./restore";

const options = { timeoutMs: 15_000 };

export function SnapshotView({ hex }: { hex: string }) {
  const fromTable = snapshots.get(hex).value;
  // The stream brings the newest thousand; older ones are asked for.
  const asked = useLoad(
    fromTable === undefined && fleetKnown.value ? hex : "",
    `read weights ${hex}`,
    () => clients().weights.getSnapshot({ hash: fromHex(hex) }, options),
  );
  const s = fromTable ?? asked.value?.snapshot;
  if (s !== undefined) return <Known snapshot={s} hex={hex} />;
  if (asked.problem !== null || (fleetKnown.value && hex.length !== 64)) {
    return (
      <>
        <h1 class="sr-only">Weights</h1>
        <Empty title={`No weights ${hex.slice(0, 16)}`} command="odtctl weights list">
          <p>
            They were never kept here, or they are in the <a href={href("storage")}>trash</a>.{" "}
            <a href={href("weights")}>All weights</a>
          </p>
        </Empty>
      </>
    );
  }
  return <Loading page="Weights" what="Waiting for the daemon …" />;
}

function Known({ snapshot: s, hex }: { snapshot: Snapshot; hex: string }) {
  const used = useLoad(`${hex}/${s.meta?.etag ?? 0n}`, "read what uses these weights", () =>
    clients().weights.getSnapshot({ hash: s.hash }, options),
  );
  const usedBy = used.value?.usedBy ?? [];
  return (
    <>
      <Head snapshot={s} usedBy={usedBy} />
      <div class="two-columns">
        <div>
          <RestorePanel key={hex} snapshot={s} />
          <LogPanel hex={hex} />
        </div>
        <aside>
          <DetailPanel snapshot={s} usedBy={usedBy} />
          <NamesPanel key={hex} snapshot={s} />
          <ExportPanel snapshot={s} />
          <ComparePanel snapshot={s} />
        </aside>
      </div>
      {used.problem !== null && <ProblemBox problem={used.problem} retry={used.reload} />}
    </>
  );
}

function Head({ snapshot: s, usedBy }: { snapshot: Snapshot; usedBy: readonly string[] }) {
  const name = snapshotName(s);
  const busy = pending.value.has(`snapshot/${toHex(s.hash)}`) || !linkLive.value;
  const remove = async (): Promise<void> => {
    if (await trash("snapshot", s.hash, name)) go(href("weights"));
  };
  return (
    <header class="page-head">
      <nav aria-label="Where this is" class="crumbs">
        <a href={href("weights")}>Weights</a> <span aria-hidden="true">/</span>
      </nav>
      <h1>{name}</h1>
      {s.pinned && <span class="badge">pinned</span>}
      <span class="quiet head-note">
        {[modelName(s.modelHash), s.origin, heldout(s) === kNone ? "" : `held-out ${heldout(s)}`]
          .filter(Boolean)
          .join(" · ")}
      </span>
      <div class="page-actions">
        <button
          type="button"
          disabled={busy}
          onClick={() =>
            void updateSnapshot(
              s,
              { pinned: !s.pinned },
              s.pinned ? `${name} is no longer pinned` : `${name} is pinned`,
              { pinned: s.pinned },
            )
          }
        >
          {s.pinned ? "Unpin" : "Pin"}
        </button>
        <ConfirmButton
          label="Delete"
          title={`Move ${name} to the trash?`}
          confirm="Move to the trash"
          disabled={busy || usedBy.length > 0}
          hint={usedBy.length > 0 ? `In use: ${usedBy.join(", ")}` : ""}
          onConfirm={() => void remove()}
        >
          <p>It can be brought back for 30 days.</p>
        </ConfirmButton>
      </div>
    </header>
  );
}

function DetailPanel({ snapshot: s, usedBy }: { snapshot: Snapshot; usedBy: readonly string[] }) {
  const run = runs.get(toHex(s.runId)).value;
  return (
    <Panel title="Where it comes from">
      <Facts
        rows={[
          ["Hash", <Hash key="h" value={s.hash} label="hash of these weights" />],
          ["Model", <a href={href("models", toHex(s.modelHash))}>{modelName(s.modelHash)}</a>],
          [
            "Board",
            s.boardUid.length === 0 ? (
              kNone
            ) : (
              <a href={href("board", toHex(s.boardUid))}>{boardName(s.boardUid)}</a>
            ),
          ],
          [
            "Run",
            s.runId.length === 0 ? (
              kNone
            ) : (
              <a href={href("run", toHex(s.runId))}>
                {run?.spec?.name || toHex(s.runId).slice(0, 12)}
              </a>
            ),
          ],
          ["Step", s.step > 0 ? `${count(s.step)}, attempt ${s.attempt}` : kNone],
          ["Held-out", heldout(s)],
          ["How", s.origin || kNone],
          ["When", clock(usToMs(s.meta?.createTimeUs ?? 0n), serverNowMs.value)],
          ["By", s.meta?.createdBy || kNone],
          ["Size", bytes(s.bytes)],
          ["Chain", <Hash key="c" value={s.chain} label="link of the hash chain" />],
          ["Used by", usedBy.length === 0 ? "nothing" : usedBy.join(", ")],
        ]}
      />
    </Panel>
  );
}

function NamesPanel({ snapshot: s }: { snapshot: Snapshot }) {
  const [alias, setAlias] = useState("");
  const [note, setNote] = useState(s.note);
  const name = snapshotName(s);
  const off = !linkLive.value;
  return (
    <Panel title="Aliases and note">
      <div class="pad">
        <ul class="alias-list">
          {s.aliases.length === 0 && <li class="quiet">No alias yet</li>}
          {s.aliases.map((a) => (
            <li key={a}>
              <span class="label">{a}</span>
              <button
                type="button"
                class="small"
                disabled={off}
                aria-label={`Remove alias ${a}`}
                onClick={() =>
                  void updateSnapshot(s, { removeAliases: [a] }, `${name} is no longer ${a}`, {
                    addAliases: [a],
                  })
                }
              >
                Remove
              </button>
            </li>
          ))}
        </ul>
        <form
          class="inline-form"
          onSubmit={(e) => {
            e.preventDefault();
            const given = alias.trim();
            void updateSnapshot(s, { addAliases: [given] }, `${name} is now ${given}`).then(
              (done) => done && setAlias(""),
            );
          }}
        >
          <label>
            New alias
            <input
              value={alias}
              maxLength={64}
              placeholder="golden"
              onInput={(e) => setAlias(e.currentTarget.value)}
            />
          </label>
          <button type="submit" disabled={off || alias.trim() === ""}>
            Give it
          </button>
        </form>
        <form
          class="inline-form"
          onSubmit={(e) => {
            e.preventDefault();
            void updateSnapshot(s, { note }, "The note is kept", { note: s.note });
          }}
        >
          <label>
            Note
            <input value={note} maxLength={500} onInput={(e) => setNote(e.currentTarget.value)} />
          </label>
          <button type="submit" disabled={off || note === s.note}>
            Keep note
          </button>
        </form>
      </div>
    </Panel>
  );
}

function ExportPanel({ snapshot: s }: { snapshot: Snapshot }) {
  const off = !linkLive.value || pending.value.has(`export/${toHex(s.hash)}`);
  return (
    <Panel title="Download">
      <div class="row pad">
        {kFormats.map(([format, label, extension]) => (
          <button
            key={label}
            type="button"
            disabled={off}
            onClick={() => void exportSnapshot(s, format, extension)}
          >
            {label}
          </button>
        ))}
        <button type="button" disabled={off} onClick={() => void exportOnnx(s)}>
          ONNX
        </button>
      </div>
    </Panel>
  );
}

function ComparePanel({ snapshot: s }: { snapshot: Snapshot }) {
  const hex = toHex(s.hash);
  const model = toHex(s.modelHash);
  const others = newest(
    snapshots.all().filter((o) => toHex(o.modelHash) === model && toHex(o.hash) !== hex),
  );
  const [other, setOther] = useState("");
  const chosen = other || toHex(others[0]?.hash ?? new Uint8Array());
  return (
    <Panel title="Compare">
      {others.length === 0 ? (
        <p class="pad quiet">There are no other weights of this model.</p>
      ) : (
        <div class="inline-form pad">
          <label>
            With
            <select value={chosen} onChange={(e) => setOther(e.currentTarget.value)}>
              {others.map((o) => (
                <option key={toHex(o.hash)} value={toHex(o.hash)}>
                  {snapshotName(o)} ({toHex(o.hash).slice(0, 8)})
                </option>
              ))}
            </select>
          </label>
          <a
            class="button"
            href={href("weights", "diff", new URLSearchParams({ a: hex, b: chosen }))}
          >
            Show
          </a>
        </div>
      )}
    </Panel>
  );
}
