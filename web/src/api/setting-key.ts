import { toHex } from "./bytes.js";
import { SettingScope, type Setting } from "./types.js";

/// What tells two settings apart, as events of deletion name it: scope, board or target, a zero byte, key; in hex.
export function settingKey(s: Setting): string {
  const text = new TextEncoder();
  const whose = s.scope === SettingScope.BOARD ? s.boardUid : text.encode(s.target);
  return toHex(Uint8Array.of(s.scope, ...whose, 0, ...text.encode(s.key)));
}
