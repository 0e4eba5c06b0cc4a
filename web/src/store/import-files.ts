// Files that a person drops, as the daemon takes them: one file, an archive of several, labels beside the data.
export interface DroppedFile {
  path: string; // inside the folder that was dropped
  file: File;
}

export type Format = "idx" | "csv" | "npy" | "npz" | "wav" | "edge-impulse" | "png";

/// What a name says of its format; "" where it says nothing. A zip may be any of three.
export function formatOf(name: string): Format | "" {
  const n = name.toLowerCase();
  if (/\.(csv|tsv|txt)(\.gz)?$/.test(n)) return "csv";
  if (/\.npz$/.test(n)) return "npz";
  if (/\.npy$/.test(n)) return "npy";
  if (/\.wav$/.test(n)) return "wav";
  if (/\.(json|cbor)$/.test(n)) return "edge-impulse";
  if (/\.png$/.test(n)) return "png";
  return /(idx\d|ubyte)(\.gz)?$/.test(n) ? "idx" : "";
}

export interface Sorted {
  format: Format | "";
  data: DroppedFile[]; // several: they become one archive
  labels: DroppedFile | null;
  testData: DroppedFile | null;
  testLabels: DroppedFile | null;
  left: string[]; // names that are of another format
}

const isLabels = (name: string): boolean => /label|(^|[._-])y([._-]|$)/i.test(name);
const isTest = (name: string): boolean => /t10k|test/i.test(name);

/// Sorts files into data, labels and an own test set; the format is the commonest.
export function sortFiles(files: readonly DroppedFile[]): Sorted {
  const votes = new Map<Format | "", number>();
  for (const { file } of files) {
    const f = formatOf(file.name);
    if (f !== "") votes.set(f, (votes.get(f) ?? 0) + 1);
  }
  const format = [...votes].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "";
  const fits = files.filter(({ file }) => files.length === 1 || formatOf(file.name) === format);
  const left = files.filter((f) => !fits.includes(f)).map((f) => f.path);
  const none: Sorted = { format, data: [], labels: null, testData: null, testLabels: null, left };
  if ((format === "idx" || format === "npy") && fits.length > 1) {
    const pick = (labels: boolean, test: boolean): DroppedFile | null =>
      fits.find((f) => isLabels(f.file.name) === labels && isTest(f.file.name) === test) ?? null;
    const data = pick(false, false);
    const taken = [data, pick(true, false), pick(false, true), pick(true, true)];
    const others = fits.filter((f) => !taken.includes(f)).map((f) => f.path);
    return {
      ...none,
      data: data === null ? [] : [data],
      labels: pick(true, false),
      testData: pick(false, true),
      testLabels: pick(true, true),
      left: [...left, ...others],
    };
  }
  return { ...none, data: fits };
}

const kBlock = 512;

/// A header of a tar archive (ustar). Throws where the name does not fit one.
export function tarHeader(path: string, size: number): Uint8Array<ArrayBuffer> {
  const bytes = new TextEncoder().encode(path);
  const header = new Uint8Array(kBlock);
  let [prefix, name] = [new Uint8Array(), bytes];
  if (bytes.length > 100) {
    let cut = -1;
    for (let i = 0; i < Math.min(bytes.length, 156); i++) {
      if (bytes[i] === 0x2f && bytes.length - i - 1 <= 100) cut = Math.max(cut, i);
    }
    if (cut < 0) throw new Error(`${path}: the name is too long for an archive (100 bytes)`);
    [prefix, name] = [bytes.slice(0, cut), bytes.slice(cut + 1)];
  }
  const put = (at: number, text: string): void => header.set(new TextEncoder().encode(text), at);
  const octal = (value: number, digits: number): string =>
    `${value.toString(8).padStart(digits, "0")}\0`;
  header.set(name, 0);
  put(100, octal(0o644, 7));
  put(108, octal(0, 7));
  put(116, octal(0, 7));
  put(124, octal(size, 11));
  put(136, octal(0, 11)); // no time: the same files make the same archive
  put(148, "        ");
  put(156, "0");
  put(257, "ustar\0");
  put(263, "00");
  header.set(prefix, 345);
  put(
    148,
    `${octal(
      header.reduce((a, b) => a + b, 0),
      6,
    )} `,
  );
  return header;
}

/// The files as one tar archive, in order of their paths.
export function tarOf(files: readonly DroppedFile[]): Blob {
  const parts: BlobPart[] = [];
  const sorted = [...files].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
  for (const { path, file } of sorted) {
    parts.push(tarHeader(path, file.size), file);
    const rest = file.size % kBlock;
    if (rest > 0) parts.push(new Uint8Array(kBlock - rest));
  }
  parts.push(new Uint8Array(2 * kBlock));
  return new Blob(parts);
}
