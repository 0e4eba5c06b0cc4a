// Files that a person takes away: read from the daemon, put together in the browser, saved under a name.
import { signal } from "@preact/signals";
import { fromHex } from "../api/bytes";
import { lateClients } from "../api/late-clients";
import { describeError } from "../api/errors";
import { ExportFormat } from "../api/types";
import { bytes } from "./format";
import { notices } from "./notices";

/// Bytes read so far of the export under way, by run; absent: none.
export const exporting = signal<ReadonlyMap<string, number>>(new Map());

export function save(name: string, type: string, parts: BlobPart[]): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/// A name as part of a file's name.
export const fileName = (text: string): string => text.replace(/[^\p{L}\p{N}._-]+/gu, "-");

function progress(runHex: string, held: number | null): void {
  const next = new Map(exporting.value);
  if (held === null) next.delete(runHex);
  else next.set(runHex, held);
  exporting.value = next;
}

/// Every raw record of a run, never the buckets of a chart.
export async function exportRaw(
  runHex: string,
  label: string,
  format: "csv" | "jsonl",
): Promise<void> {
  if (exporting.value.has(runHex)) return;
  progress(runHex, 0);
  const parts: BlobPart[] = [];
  let held = 0;
  try {
    const answer = lateClients().storage.exportTelemetry({
      runId: fromHex(runHex),
      format: format === "csv" ? ExportFormat.CSV : ExportFormat.JSONL,
    });
    for await (const { data } of answer) {
      parts.push(data.slice());
      held += data.length;
      progress(runHex, held);
    }
    const name = `${fileName(label)}.${format}`;
    save(name, format === "csv" ? "text/csv" : "application/jsonl", parts);
    notices.done(`${name}: ${bytes(held)} of raw records`);
  } catch (error) {
    notices.fail(describeError(error, `Could not export the records of ${label}`));
  } finally {
    progress(runHex, null);
  }
}
