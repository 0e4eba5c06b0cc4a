// Files from and to the person's disk, and uploads.
import { newRequestId, toHex } from "../api/bytes";
import { clients } from "../api/clients";
import { TroubleError } from "../api/errors";
import { Sha256 } from "./sha256";

const kChunkBytes = 384 * 1024; // the daemon takes 512 KiB
const kChunkMs = 60_000;
const kReleaseMs = 60_000;

/// Offers bytes as a download.
export function saveFile(name: string, parts: BlobPart[], type = "application/octet-stream"): void {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), kReleaseMs);
}

/// A blob of the daemon as a download under this name.
export async function saveBlob(hash: Uint8Array, name: string): Promise<void> {
  const answer = await fetch(`/v1/blobs/${toHex(hash)}`);
  if (!answer.ok) throw new Error(`the daemon answered ${answer.status} for the file`);
  saveFile(name, [await answer.blob()]);
}

/// A name that any file system takes.
export const fileName = (text: string, extension: string): string =>
  `${text.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[-.]+/, "") || "file"}.${extension}`;

/// The beginning of a text, of at most so many bytes in UTF-8: what the daemon takes as a name.
export function shortName(text: string, bytes = 64): string {
  let out = "";
  for (const c of text) {
    if (new TextEncoder().encode(out + c).length > bytes) break;
    out += c;
  }
  return out;
}

export interface Progress {
  done: number; // bytes
  total: number;
  what: "reading" | "sending";
}

/// Sends a file; its content is then a blob by the hash that comes back. What is there already is not sent again, and
/// an upload that was cut goes on where it was.
export async function uploadFile(
  file: Blob,
  name: string,
  onProgress: (p: Progress) => void,
): Promise<Uint8Array> {
  if (file.size === 0)
    throw new TroubleError(`${name} is empty: 0 bytes`, "Choose a file that has something in it.");
  const sha256 = await hashOf(file, onProgress);
  const { upload: api } = clients();
  const size = BigInt(file.size);
  const { upload } = await api.createUpload(
    { requestId: newRequestId(), name, size, sha256 },
    { timeoutMs: kChunkMs },
  );
  if (upload === undefined) throw new Error("the daemon answered without an upload");
  let at = Number(upload.received);
  if (at === file.size) return sha256;
  while (at < file.size) {
    onProgress({ done: at, total: file.size, what: "sending" });
    const data = new Uint8Array(await file.slice(at, at + kChunkBytes).arrayBuffer());
    const { received } = await api.writeChunk(
      { uploadId: upload.id, offset: BigInt(at), data },
      { timeoutMs: kChunkMs },
    );
    at = Number(received);
  }
  const { blob } = await api.finishUpload(
    { requestId: newRequestId(), id: upload.id },
    { timeoutMs: kChunkMs },
  );
  return blob;
}

async function hashOf(file: Blob, onProgress: (p: Progress) => void): Promise<Uint8Array> {
  const sha = new Sha256();
  const step = 4 * 1024 * 1024;
  for (let at = 0; at < file.size; at += step) {
    onProgress({ done: at, total: file.size, what: "reading" });
    sha.update(new Uint8Array(await file.slice(at, at + step).arrayBuffer()));
  }
  return sha.digest();
}
