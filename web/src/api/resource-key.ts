import { toHex } from "./bytes.js";
import { settingKey } from "./setting-key.js";
import type { Event } from "./types.js";
import type { RemovedKey } from "./watch-protocol.js";

/// The key as one text.
export const keyText = (key: RemovedKey): string => `${key.kind}/${key.keyHex}`;

/// Key of the resource an event carries, or null where the event is a record and not a state.
export function resourceKey(event: Event): RemovedKey | null {
  const { what } = event;
  switch (what.case) {
    case "board":
      return { kind: "board", keyHex: toHex(what.value.uid) };
    case "port":
      return { kind: "port", keyHex: what.value.path };
    case "model":
    case "snapshot":
      return { kind: what.case, keyHex: toHex(what.value.hash) };
    case "dataset":
    case "run":
    case "job":
    case "campaign":
    case "evaluation":
    case "alert":
      return { kind: what.case, keyHex: toHex(what.value.id) };
    case "setting":
      return { kind: "setting", keyHex: settingKey(what.value) };
    case "alertSettings":
      return { kind: "alertSettings", keyHex: "" };
    default:
      return null;
  }
}
