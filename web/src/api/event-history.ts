import { clients } from "./clients.js";
import { Topic_Kind, type Event } from "./types.js";

const kReadMs = 20_000;

/// The newest events before now, oldest first, read from the daemon's record of them by a Watch that ends with it.
/// Events that are no longer recorded are left out.
export async function readEventHistory(most: number): Promise<Event[]> {
  const { storeEpoch, nextEventSeq } = await clients().system.getInfo({}, { timeoutMs: kReadMs });
  for (let want = most; want >= 1; want = Math.floor(want / 4)) {
    const after = nextEventSeq - 1n - BigInt(want);
    const events = await readFrom(storeEpoch, after > 0n ? after : 0n);
    if (events !== null) return events;
  }
  return [];
}

/// null: the daemon no longer has events from there on.
async function readFrom(storeEpoch: bigint, after: bigint): Promise<Event[] | null> {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), kReadMs);
  const events: Event[] = [];
  try {
    const stream = clients().watch.watch(
      {
        topics: [{ kind: Topic_Kind.ALL_EVENTS, lossless: true }],
        resumeStoreEpoch: storeEpoch,
        resumeEventSeq: after,
      },
      { signal: abort.signal },
    );
    for await (const response of stream) {
      if (response.resync) return null;
      events.push(...response.events);
      if (response.snapshotDone) return events;
    }
    return events;
  } finally {
    clearTimeout(timer);
    abort.abort();
  }
}
