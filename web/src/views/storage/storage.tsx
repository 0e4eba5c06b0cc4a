import { useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import {
  DiskState,
  type GetStorageResponse,
  type PurgeResponse,
  type TrashItem,
} from "../../api/types";
import { pending } from "../../store/actions";
import { serverNowMs } from "../../store/clock";
import { bytes, clock, count, duration } from "../../store/format";
import { linkLive } from "../../store/link";
import { usToMs } from "../../store/numbers";
import {
  backup,
  checkPurge,
  loadStorage,
  loadTrash,
  prune,
  purge,
  type PurgeWish,
} from "../../store/storage";
import { untrash } from "../../store/trash";
import { loadSystemInfo, systemInfo } from "../../store/system";
import { Empty, Facts, Loading, Panel, ProblemBox, Progress } from "../parts/bits";
import { ConfirmButton } from "../parts/confirm";
import { StateMark } from "../parts/state-mark";
import { useLoad } from "../parts/use-load";
import type { Look } from "../words";

const kDisk: Record<DiskState, Look> = {
  [DiskState.UNSPECIFIED]: { word: "unknown", tone: "quiet", shape: "dashed" },
  [DiskState.OK]: { word: "room enough", tone: "ok", shape: "check" },
  [DiskState.LOW]: { word: "getting full", tone: "warn", shape: "triangle" },
  [DiskState.FULL]: { word: "full", tone: "bad", shape: "cross" },
};

/// What odtd keeps on disk, its trash with undo, purging, retention and a backup.
export function StorageView() {
  const usage = useLoad("storage", "read what is kept on disk", async () => {
    void loadSystemInfo();
    return loadStorage();
  });
  const trash = useLoad("trash", "read the trash", loadTrash);
  const reload = (): void => {
    usage.reload();
    trash.reload();
  };
  return (
    <>
      <h1 class="sr-only">Storage</h1>
      <div class="two-columns">
        <div>
          {trash.problem !== null && <ProblemBox problem={trash.problem} retry={trash.reload} />}
          <TrashPanel items={trash.value} failed={trash.problem !== null} reload={reload} />
        </div>
        <aside>
          {usage.problem !== null && <ProblemBox problem={usage.problem} retry={usage.reload} />}
          {usage.value !== null && <UsagePanel usage={usage.value} />}
          <RetentionPanel reload={reload} />
          <BackupPanel />
        </aside>
      </div>
    </>
  );
}

function TrashPanel(props: { items: TrashItem[] | null; failed: boolean; reload: () => void }) {
  const { items, failed, reload } = props;
  const [plan, setPlan] = useState<PurgeResponse | null>(null);
  const all: PurgeWish = { olderThanS: 0n };
  const ask = (wish: PurgeWish): void => {
    setPlan(null);
    void checkPurge(wish).then(setPlan, () => setPlan(null));
  };
  return (
    <Panel
      title="Trash"
      aside={
        items !== null && items.length > 0 ? (
          <>
            <span>{count(items.length)}</span>
            <ConfirmButton
              label="Purge all"
              class="small danger"
              title="Purge everything in the trash?"
              confirm="Purge for good"
              disabled={pending.value.has("purge")}
              onOpen={() => ask(all)}
              onConfirm={() => void purge(all, "the trash").then(reload)}
            >
              <PlanText plan={plan} />
            </ConfirmButton>
          </>
        ) : undefined
      }
    >
      {items === null ? (
        failed ? null : (
          <Loading what="Loading …" />
        )
      ) : items.length === 0 ? (
        <Empty title="The trash is empty" command="odtctl storage trash">
          <p>What is deleted comes here first, and goes for good after 30 days.</p>
        </Empty>
      ) : (
        <div class="table-frame">
          <table>
            <thead>
              <tr>
                <th scope="col">What</th>
                <th scope="col">Kind</th>
                <th scope="col">Deleted</th>
                <th scope="col">By</th>
                <th scope="col">Goes by itself</th>
                <th scope="col">
                  <span class="sr-only">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {items.map((item) => (
                <TrashRow
                  key={`${item.kind}/${toHex(item.key)}`}
                  item={item}
                  plan={plan}
                  ask={ask}
                  reload={reload}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

function TrashRow(props: {
  item: TrashItem;
  plan: PurgeResponse | null;
  ask: (wish: PurgeWish) => void;
  reload: () => void;
}) {
  const { item, plan, ask, reload } = props;
  const name = item.name || toHex(item.key).slice(0, 12);
  const wish: PurgeWish = { kind: item.kind, key: item.key };
  return (
    <tr>
      <th scope="row">
        {name}
        <span class="sub">{toHex(item.key).slice(0, 16)}</span>
      </th>
      <td data-label="Kind">{item.kind}</td>
      <td data-label="Deleted" class="nowrap">
        {clock(usToMs(item.trashedTimeUs), serverNowMs.value)}
      </td>
      <td data-label="By">{item.trashedBy}</td>
      <td data-label="Goes" class="nowrap">
        in {duration(usToMs(item.purgeTimeUs) - serverNowMs.value)}
      </td>
      <td>
        <span class="row">
          <button
            type="button"
            class="small"
            aria-label={`Restore ${name}`}
            disabled={!linkLive.value}
            onClick={() => void untrash(item.kind, item.key, name).then(reload)}
          >
            Restore
          </button>
          <ConfirmButton
            label="Purge"
            name={`Purge ${name}`}
            class="small danger"
            title={`Purge ${item.kind} ${name}?`}
            confirm="Purge for good"
            disabled={pending.value.has("purge")}
            onOpen={() => ask(wish)}
            onConfirm={() => void purge(wish, name).then(reload)}
          >
            <PlanText plan={plan} />
          </ConfirmButton>
        </span>
      </td>
    </tr>
  );
}

function PlanText({ plan }: { plan: PurgeResponse | null }) {
  if (plan === null) return <p class="quiet">Asking what it would free …</p>;
  return (
    <p>
      {count(plan.items)} {plan.items === 1n ? "thing goes" : "things go"} for good, with{" "}
      {count(plan.blobs)} files and {count(plan.telemetryFrames)} records of steps:{" "}
      <strong>{bytes(plan.bytesFreed)}</strong> are freed. This cannot be undone.
    </p>
  );
}

function UsagePanel({ usage: u }: { usage: GetStorageResponse }) {
  const info = systemInfo.value;
  return (
    <Panel title="Disk" aside={<StateMark look={kDisk[u.state] ?? kDisk[DiskState.UNSPECIFIED]} />}>
      {u.text !== "" && <p class="pad">{u.text}</p>}
      <Facts
        rows={[
          ["Folder", <code key="f">{info?.dataDir ?? ""}</code>],
          [
            "Telemetry",
            <span key="t">
              <Progress
                done={Number(u.telemetryUsedBytes)}
                total={Number(u.telemetryQuotaBytes)}
                label="Telemetry of its quota"
              />{" "}
              {bytes(u.telemetryUsedBytes)} of {bytes(u.telemetryQuotaBytes)}
            </span>,
          ],
          ["Telemetry file", bytes(u.telemetryBytes)],
          ["Records of steps", count(u.telemetryFrames)],
          ["Everything else", bytes(u.controlBytes)],
          ["Files by hash", `${count(u.blobCount)}, ${bytes(u.blobBytes)}`],
          ["Held back for a full disk", bytes(u.ballastBytes)],
          ["Free on the disk", bytes(u.diskFreeBytes)],
          ["Runs pinned, thinned", `${count(u.runsPinned)}, ${count(u.runsThinned)}`],
          ["Records dropped since start", count(u.framesDropped)],
        ]}
      />
    </Panel>
  );
}

function RetentionPanel({ reload }: { reload: () => void }) {
  const [plan, setPlan] = useState<{ pruned: number; bytes: bigint; kept: number } | null>(null);
  const ask = (): void => {
    setPlan(null);
    void prune(true).then(
      (p) => setPlan({ pruned: p.pruned.length, bytes: p.bytes, kept: p.kept }),
      () => setPlan(null),
    );
  };
  return (
    <Panel title="Old weights">
      <div class="pad">
        <p class="quiet">
          Moves snapshots into the trash that are not pinned, not in use, without an alias of yours,
          and not among the newest of their board.
        </p>
        <p>
          <ConfirmButton
            label="Prune weights …"
            class=""
            title="Move old weights to the trash?"
            confirm="Move to the trash"
            onOpen={ask}
            onConfirm={() => void prune(false).then(reload)}
          >
            <p>
              {plan === null
                ? "Asking which …"
                : `${count(plan.pruned)} snapshots go to the trash (a purge then frees ${bytes(plan.bytes)}); ${count(plan.kept)} stay.`}
            </p>
          </ConfirmButton>
        </p>
      </div>
    </Panel>
  );
}

function BackupPanel() {
  const [progress, setProgress] = useState<[number, number] | null>(null);
  const busy = pending.value.has("backup");
  return (
    <Panel title="Backup">
      <div class="pad">
        <p class="quiet">
          One consistent copy of everything as a tar file, while runs go on.{" "}
          <code>odtd restore FILE</code> reads it. For large stores: <code>odtctl backup FILE</code>
          .
        </p>
        <p class="row">
          <button
            type="button"
            disabled={busy || !linkLive.value}
            onClick={() =>
              void backup((got, total) => setProgress([got, total])).then(() => setProgress(null))
            }
          >
            {busy ? "Copying …" : "Download a backup"}
          </button>
          {progress !== null && (
            <>
              <Progress
                done={progress[0]}
                total={progress[1] || progress[0]}
                label="Backup received"
              />
              <span class="quiet">{bytes(progress[0])}</span>
            </>
          )}
        </p>
      </div>
    </Panel>
  );
}
