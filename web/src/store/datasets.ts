import { newRequestId, toHex } from "../api/bytes";
import { clients, kCallTimeoutMs } from "../api/clients";
import { describeError, type Problem } from "../api/errors";
import { jobs } from "./fleet";
import { uploadFile } from "./files";
import { tarOf, type DroppedFile, type Sorted } from "./import-files";
import { jobEnd } from "./job-end";

/// Options of an import as a person types them; empty: the daemon's default.
export interface ImportWish {
  name: string;
  format: string;
  labelColumn: string;
  targetColumns: string;
  groupColumn: string;
  missing: string;
  split: string; // "80,10,10"
  seed: string;
  resize: string; // "14x14"
  transform: string;
  window: string; // "1.5s" or "104"
  stride: string;
  features: string;
  pattern: string;
}
export const kNewImport: ImportWish = {
  name: "",
  format: "",
  labelColumn: "",
  targetColumns: "",
  groupColumn: "",
  missing: "",
  split: "",
  seed: "1",
  resize: "",
  transform: "",
  window: "",
  stride: "",
  features: "",
  pattern: "",
};

const list = (text: string, by = /,/): string[] =>
  text
    .split(by)
    .map((t) => t.trim())
    .filter(Boolean);

/// "1.5s" is in seconds, "104" in steps.
export function lengthOf(text: string): { seconds: number; steps: number } {
  const t = text.trim();
  const value = Number(t.replace(/s$/, ""));
  if (t === "" || !Number.isFinite(value)) return { seconds: 0, steps: 0 };
  return t.endsWith("s") ? { seconds: value, steps: 0 } : { seconds: 0, steps: value };
}

export function optionsOf(wish: ImportWish) {
  const [window, stride] = [lengthOf(wish.window), lengthOf(wish.stride)];
  return {
    name: wish.name.trim(),
    format: wish.format,
    seed: Number(wish.seed) || 0,
    split: list(wish.split).map(Number),
    resize: list(wish.resize, /x/i).map(Number),
    transform: wish.transform.trim(),
    labelColumn: wish.labelColumn.trim(),
    targetColumns: list(wish.targetColumns),
    groupColumn: wish.groupColumn.trim(),
    missing: wish.missing,
    windowS: window.seconds,
    windowSteps: window.steps,
    strideS: stride.seconds,
    strideSteps: stride.steps,
    features: wish.features.trim(),
    pattern: wish.pattern.trim(),
  };
}

const only = (f: DroppedFile | null) => (f === null ? null : { blob: f.file, name: f.file.name });

/// Sends the files and imports them; the dataset's hex or what went wrong. `say` tells what happens now.
export async function importDataset(
  files: Sorted,
  wish: ImportWish,
  say: (what: string, share: number) => void,
): Promise<string | Problem> {
  const first = files.data[0];
  const title = `Could not import ${wish.name || first?.file.name || "the files"}`;
  try {
    if (first === undefined) throw new Error("there is no data among the files");
    const several = files.data.length > 1;
    const data = several
      ? { blob: tarOf(files.data), name: `${wish.name || "files"}.tar` }
      : only(first);
    const blobs: Uint8Array[] = [];
    for (const part of [data, only(files.labels), only(files.testData), only(files.testLabels)]) {
      blobs.push(
        part === null
          ? new Uint8Array()
          : await uploadFile(part.blob, part.name, (p) =>
              say(`${p.what} ${part.name}`, p.total > 0 ? p.done / p.total : 0),
            ),
      );
    }
    const [dataBlob, labelBlob, testDataBlob, testLabelBlob] = blobs as [
      Uint8Array,
      Uint8Array,
      Uint8Array,
      Uint8Array,
    ];
    const { job } = await clients().dataset.importDataset(
      {
        requestId: newRequestId(),
        options: optionsOf(wish),
        dataBlob,
        labelBlob,
        testDataBlob,
        testLabelBlob,
      },
      { timeoutMs: kCallTimeoutMs },
    );
    if (job === undefined) throw new Error("the daemon answered without a job");
    jobs.set(toHex(job.id), job);
    say("importing", 1);
    return toHex((await jobEnd(job)).resultKey);
  } catch (error) {
    return describeError(error, title);
  }
}
