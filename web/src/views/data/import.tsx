import { useRef, useState } from "preact/hooks";
import type { Problem } from "../../api/errors";
import { importDataset, kNewImport, type ImportWish } from "../../store/datasets";
import { bytes, count } from "../../store/format";
import { shortName } from "../../store/files";
import { sortFiles, type DroppedFile, type Sorted } from "../../store/import-files";
import { linkLive } from "../../store/link";
import { notices } from "../../store/notices";
import { ProblemBox, Progress } from "../parts/bits";
import { go, href } from "../router";

const kFormats = ["idx", "csv", "npy", "npz", "wav", "edge-impulse", "png"];

/// Files of a drop, folders opened; hidden ones are left out.
async function filesOf(dropped: DataTransfer): Promise<DroppedFile[]> {
  const out: DroppedFile[] = [];
  const plain = [...dropped.files].map((file) => ({ path: file.name, file }));
  const walk = async (entry: FileSystemEntry, path: string): Promise<void> => {
    if (entry.name.startsWith(".")) return;
    if (entry.isFile) {
      const file = await new Promise<File>((done, fail) =>
        (entry as FileSystemFileEntry).file(done, fail),
      );
      out.push({ path: `${path}${entry.name}`, file });
      return;
    }
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    for (;;) {
      const some = await new Promise<FileSystemEntry[]>((done, fail) =>
        reader.readEntries(done, fail),
      );
      if (some.length === 0) return;
      for (const child of some) await walk(child, `${path}${entry.name}/`);
    }
  };
  const entries = [...dropped.items].map((i) => i.webkitGetAsEntry()).filter((e) => e !== null);
  for (const entry of entries) await walk(entry, "");
  return entries.length > 0 ? out : plain; // not every source of a drop has a file system behind it
}

const stem = (name: string): string => name.replace(/(\.[a-z0-9]+)+$/i, "");

/// Drop files or a folder, or choose them; then a few questions, then it is sent and imported.
export function ImportPanel() {
  const [over, setOver] = useState(false);
  const [files, setFiles] = useState<Sorted | null>(null);
  const [name, setName] = useState("");
  const picker = useRef<HTMLInputElement>(null);
  const take = (list: DroppedFile[]): void => {
    if (list.length === 0) return;
    setName(shortName(stem(list[0]?.path.split("/")[0] ?? "")));
    setFiles(sortFiles(list));
  };
  return (
    <section
      class={`drop ${over ? "drop-over" : ""}`}
      aria-label="Import data"
      onDragOver={(e) => {
        e.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(e) => {
        e.preventDefault();
        setOver(false);
        if (e.dataTransfer !== null) void filesOf(e.dataTransfer).then(take);
      }}
    >
      {files === null ? (
        <p class="row">
          <span>Drop files or a folder here: CSV, IDX, NPY, NPZ, WAV, Edge Impulse, PNG; or</span>
          <label class="file-button">
            Choose files
            <input
              ref={picker}
              type="file"
              multiple
              disabled={!linkLive.value}
              onChange={(e) =>
                take([...(e.currentTarget.files ?? [])].map((file) => ({ path: file.name, file })))
              }
            />
          </label>
        </p>
      ) : (
        <ImportForm key={name} files={files} name={name} close={() => setFiles(null)} />
      )}
    </section>
  );
}

function ImportForm({ files, name, close }: { files: Sorted; name: string; close: () => void }) {
  const [wish, setWish] = useState<ImportWish>({ ...kNewImport, name, format: files.format });
  const [progress, setProgress] = useState<{ what: string; share: number } | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const set = (change: Partial<ImportWish>): void => setWish((w) => ({ ...w, ...change }));
  const start = async (): Promise<void> => {
    setProblem(null);
    setProgress({ what: "reading", share: 0 });
    const result = await importDataset(files, wish, (what, share) => setProgress({ what, share }));
    setProgress(null);
    if (typeof result !== "string") {
      setProblem(result);
      return;
    }
    notices.done(`${wish.name} is imported`);
    close();
    go(href("data", result));
  };
  return (
    <form
      onSubmit={(e) => {
        e.preventDefault();
        void start();
      }}
    >
      <FilesSummary files={files} />
      <OptionFields wish={wish} set={set} />
      {problem !== null && <ProblemBox problem={problem} />}
      <p class="row" aria-live="polite">
        <button
          type="submit"
          class="primary"
          disabled={
            progress !== null ||
            files.data.length === 0 ||
            wish.name.trim() === "" ||
            !linkLive.value
          }
        >
          {progress === null ? "Import" : "Importing …"}
        </button>
        <button type="button" disabled={progress !== null} onClick={close}>
          Other files
        </button>
        {progress !== null && (
          <>
            <Progress done={progress.share} total={1} label="Progress of the import" />
            <span class="quiet">{progress.what}</span>
          </>
        )}
      </p>
    </form>
  );
}

function FilesSummary({ files }: { files: Sorted }) {
  const size = files.data.reduce((sum, f) => sum + f.file.size, 0);
  const more: [string, DroppedFile | null][] = [
    ["labels", files.labels],
    ["own test set", files.testData],
    ["its labels", files.testLabels],
  ];
  return (
    <p>
      <strong>
        {files.data.length === 1 ? files.data[0]?.path : `${count(files.data.length)} files`}
      </strong>
      , {bytes(size)}
      {more.map(([what, f]) => f !== null && `; ${what}: ${f.path}`)}
      {files.left.length > 0 && (
        <span class="tone-warn">
          {" "}
          · left out, of another format: {files.left.slice(0, 5).join(", ")}
        </span>
      )}
    </p>
  );
}

function OptionFields({ wish, set }: { wish: ImportWish; set: (c: Partial<ImportWish>) => void }) {
  const text = (key: keyof ImportWish, label: string, hint: string) => (
    <label>
      {label}
      <input
        value={wish[key]}
        maxLength={key === "name" ? 64 : undefined}
        placeholder={hint}
        onInput={(e) => set({ [key]: e.currentTarget.value })}
      />
    </label>
  );
  const f = wish.format;
  const series = f === "wav" || f === "edge-impulse" || f === "csv" || f === "npy";
  return (
    <div class="fields import-fields">
      {text("name", "Name", "")}
      <label>
        Format
        <select value={f} onChange={(e) => set({ format: e.currentTarget.value })}>
          <option value="">by the file’s name</option>
          {kFormats.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
      {text("split", "Train, held-out, test", "80,10,10")}
      {text("seed", "Seed", "1")}
      {f === "csv" && text("labelColumn", "Label column", "the last")}
      {f === "csv" && text("targetColumns", "Target columns (regression)", "none")}
      {f === "csv" && (
        <label>
          Missing values
          <select value={wish.missing} onChange={(e) => set({ missing: e.currentTarget.value })}>
            <option value="">refuse</option>
            <option value="drop">drop the row</option>
            <option value="mean">mean of the column</option>
            <option value="zero">zero</option>
          </select>
        </label>
      )}
      {(f === "idx" || f === "png") && text("resize", "Resize to", "as it is, or 14x14")}
      {(f === "idx" || f === "png") &&
        text("transform", "Sensor shift", "none, inversion, rot90, flip")}
      {series && text("window", "Window", "1.5s, or steps")}
      {series && text("stride", "Stride", "the window")}
      {series && text("features", "Features", "raw, decimate:2, spectrogram")}
      {(f === "wav" || f === "edge-impulse" || f === "png") &&
        text("pattern", "Name pattern", "{label}_*.wav")}
      {series && text("groupColumn", "Group", "recording, column")}
    </div>
  );
}
