import { newRequestId } from "../api/bytes";
import { kCallTimeoutMs } from "../api/clients";
import { lateClients } from "../api/late-clients";
import type { PurgeResponse, TrashItem } from "../api/types";
import { clients } from "../api/clients";
import { act } from "./actions";
import { bytes, count } from "./format";
import { saveFile } from "./files";

const options = { timeoutMs: kCallTimeoutMs };
const kPurgeMs = 120_000;
const kPage = 1000;

export const loadStorage = () => lateClients().storage.getStorage({}, options);

export async function loadTrash(): Promise<TrashItem[]> {
  const items: TrashItem[] = [];
  let pageToken = "";
  do {
    const page = await lateClients().storage.listTrash({ pageSize: kPage, pageToken }, options);
    items.push(...page.items);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return items;
}

/// One item, or all that is older than so many seconds.
export type PurgeWish = { kind: string; key: Uint8Array } | { olderThanS: bigint };

const purgeRequest = (wish: PurgeWish, dryRun: boolean) => ({
  requestId: newRequestId(),
  dryRun,
  ...("kind" in wish ? { kind: wish.kind, key: wish.key } : { olderThanS: wish.olderThanS }),
});

/// What a purge would free; nothing is done.
export const checkPurge = (wish: PurgeWish): Promise<PurgeResponse> =>
  lateClients().storage.purge(purgeRequest(wish, true), options);

export function purge(wish: PurgeWish, what: string): Promise<boolean> {
  let freed: PurgeResponse | null = null;
  return act(
    "purge",
    `purge ${what}`,
    () => `${count(freed?.items ?? 0n)} purged, ${bytes(freed?.bytesFreed ?? 0n)} freed`,
    async () => {
      freed = await lateClients().storage.purge(purgeRequest(wish, false), { timeoutMs: kPurgeMs });
    },
  );
}

/// What retention says of snapshots: with dryRun only that.
export async function prune(dryRun: boolean) {
  return clients().weights.pruneSnapshots({ requestId: newRequestId(), dryRun }, options);
}

/// One consistent copy of everything as a file on this computer.
export function backup(say: (received: number, total: number) => void): Promise<boolean> {
  return act("backup", "make a backup", "The backup is here; odtd restore reads it", async () => {
    const parts: BlobPart[] = [];
    let received = 0;
    for await (const part of lateClients().storage.backup({})) {
      parts.push(new Uint8Array(part.data));
      received += part.data.length;
      say(received, Number(part.totalBytes));
    }
    const stamp = new Date().toISOString().slice(0, 16).replace(/[:T]/g, "-");
    saveFile(`odt-fleet-${stamp}.tar`, parts, "application/x-tar");
  });
}
