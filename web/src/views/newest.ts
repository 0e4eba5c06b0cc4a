/// Resources by time of creation, newest first.
export const newest = <T extends { meta?: { createTimeUs: bigint } | undefined }>(list: T[]): T[] =>
  list.sort((a, b) => Number((b.meta?.createTimeUs ?? 0n) - (a.meta?.createTimeUs ?? 0n)));
