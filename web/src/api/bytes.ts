const kHex = Array.from({ length: 256 }, (_, b) => b.toString(16).padStart(2, "0"));

/// Lower-case hex of bytes: how ids and hashes are keyed and shown.
export function toHex(bytes: Uint8Array): string {
  let out = "";
  for (let i = 0; i < bytes.length; i++) out += kHex[bytes[i] ?? 0] ?? "";
  return out;
}

/// Bytes of a hex string; an odd digit or a stranger ends the result early.
export function fromHex(hex: string): Uint8Array<ArrayBuffer> {
  const pairs = /^([0-9a-f]{2})*/i.exec(hex)?.[0] ?? "";
  const out = new Uint8Array(pairs.length / 2);
  for (let i = 0; i < out.length; i++) out[i] = parseInt(pairs.slice(2 * i, 2 * i + 2), 16);
  return out;
}

/// A UUIDv4 text for request_id: a mutation repeated with it has one effect.
export function newRequestId(): string {
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  const b = crypto.getRandomValues(new Uint8Array(16));
  b[6] = ((b[6] ?? 0) & 0x0f) | 0x40;
  b[8] = ((b[8] ?? 0) & 0x3f) | 0x80;
  return toHex(b).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
