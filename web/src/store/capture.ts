// Windows of a board's sensor: begun, watched, labelled; steps for a board without a sensor of its own.
import { fromHex } from "../api/bytes";
import { clients } from "../api/clients";
import { CaptureRole, type Capture } from "../api/types";
import { act } from "./actions";
import { boardName } from "./fleet";

const options = { timeoutMs: 20_000 };
const kFeedBytes = 60_000; // the daemon takes 64 KiB

export const kDtypes: readonly [number, string, number][] = [
  [1, "s8", 1],
  [2, "u8", 1],
  [3, "s16", 2],
];

export interface CaptureWish {
  uidHex: string;
  modelHex: string;
  windowSteps: string;
  strideSteps: string;
  slots: string;
  label: string; // class of every window; "": none
  keep: CaptureRole;
  heldoutEvery: string;
  unscaled: boolean;
  channels: string; // of a fed sensor; "": the board has one
  dtype: number;
}

const whole = (text: string): number => (Number.isInteger(Number(text)) ? Number(text) : 0);

export const getCapture = async (uidHex: string): Promise<Capture | undefined> =>
  (await clients().capture.getCapture({ uid: fromHex(uidHex) }, options)).capture;

export const getWindow = (uidHex: string, id: number) =>
  clients().capture.getWindow({ uid: fromHex(uidHex), id }, options);

export function startCapture(wish: CaptureWish): Promise<boolean> {
  const name = boardName(fromHex(wish.uidHex));
  return act(
    `capture/${wish.uidHex}`,
    `start capturing on board ${name}`,
    `${name} captures`,
    async (requestId) => {
      const fed = wish.channels.trim() !== "";
      await clients().capture.startCapture(
        {
          requestId,
          uid: fromHex(wish.uidHex),
          modelHash: fromHex(wish.modelHex),
          settings: {
            windowSteps: whole(wish.windowSteps),
            strideSteps: whole(wish.strideSteps),
            slots: whole(wish.slots),
            keep: wish.keep,
            heldoutEvery: whole(wish.heldoutEvery),
            unscaled: wish.unscaled,
            ...(wish.label.trim() !== "" && { label: whole(wish.label) }),
            ...(fed && { channels: whole(wish.channels), dtype: wish.dtype }),
          },
        },
        { timeoutMs: 60_000 }, // it may load the model first
      );
    },
  );
}

export function stopCapture(uidHex: string): Promise<boolean> {
  const name = boardName(fromHex(uidHex));
  return act(
    `capture/${uidHex}`,
    `stop capturing on board ${name}`,
    `${name} captures no more; its windows stay`,
    async (requestId) => {
      await clients().capture.stopCapture({ requestId, uid: fromHex(uidHex) }, options);
    },
  );
}

export function labelWindow(
  uidHex: string,
  id: number,
  label: number,
  keep: CaptureRole,
): Promise<boolean> {
  const name = boardName(fromHex(uidHex));
  return act(
    `label/${uidHex}/${id}`,
    `label window ${id} of board ${name}`,
    "",
    async (requestId) => {
      await clients().capture.labelWindow(
        { requestId, uid: fromHex(uidHex), id, label, keep },
        options,
      );
    },
  );
}

/// Steps as text, a line each with a value for each channel, as the bytes of a dtype. Throws where a line does not fit.
export function stepBytes(text: string, channels: number, dtype: number): Uint8Array<ArrayBuffer> {
  const rows = text
    .split("\n")
    .map((l) => l.trim())
    .filter(Boolean)
    .map((l) => l.split(/[\s,;]+/).map(Number));
  const [lo, hi, size] =
    dtype === 3 ? [-32768, 32767, 2] : dtype === 2 ? [0, 255, 1] : [-128, 127, 1];
  const out = new DataView(new ArrayBuffer(rows.length * channels * size));
  rows.forEach((row, r) => {
    if (row.length !== channels)
      throw new Error(
        `step ${r + 1} has ${row.length} values; the sensor has ${channels} channels`,
      );
    row.forEach((v, c) => {
      if (!Number.isInteger(v) || v < lo || v > hi)
        throw new Error(`step ${r + 1}: ${v} is no whole number from ${lo} to ${hi}`);
      const at = (r * channels + c) * size;
      if (size === 2) out.setInt16(at, v, true);
      else out.setInt8(at, v);
    });
  });
  return new Uint8Array(out.buffer);
}

/// Hands steps to the board in place of a sensor, after those that it has.
export function feedSensor(
  uidHex: string,
  steps: Uint8Array,
  stepSize: number,
  first: bigint,
): Promise<boolean> {
  const name = boardName(fromHex(uidHex));
  const most = Math.max(1, Math.floor(kFeedBytes / stepSize)) * stepSize;
  return act(
    `feed/${uidHex}`,
    `feed board ${name}`,
    `${steps.length / stepSize} steps are with ${name}`,
    async (requestId) => {
      for (let at = 0; at < steps.length; at += most) {
        await clients().capture.feedSensor(
          {
            requestId: `${requestId.slice(0, -4)}${(at / most).toString(16).padStart(4, "0").slice(-4)}`,
            uid: fromHex(uidHex),
            first: first + BigInt(at / stepSize),
            steps: steps.subarray(at, at + most),
          },
          options,
        );
      }
    },
  );
}

/// A window's values [channels][steps] as numbers.
export function windowValues(bytes: Uint8Array, dtype: number): number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (dtype === 3)
    return Array.from({ length: bytes.length >> 1 }, (_, i) => view.getInt16(2 * i, true));
  return Array.from(bytes, (b) => (dtype === 2 ? b : (b << 24) >> 24));
}
