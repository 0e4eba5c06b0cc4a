import { fromHex } from "../api/bytes";
import { kCallTimeoutMs } from "../api/clients";
import { lateClients } from "../api/late-clients";
import { settingKey } from "../api/setting-key";
import { SettingScope, type Setting } from "../api/types";
import { act } from "./actions";
import { boardName, settings } from "./fleet";

const options = { timeoutMs: kCallTimeoutMs };

const kScopes: Record<SettingScope, string> = {
  [SettingScope.UNSPECIFIED]: "unknown",
  [SettingScope.FLEET]: "fleet",
  [SettingScope.BOARD_TYPE]: "board type",
  [SettingScope.COHORT]: "cohort",
  [SettingScope.BOARD]: "board",
};
export const scopeName = (s: SettingScope): string => kScopes[s] ?? "unknown";

/// Where a setting holds, for people.
export function whereOf(s: Setting): string {
  if (s.scope === SettingScope.BOARD) return `board ${boardName(s.boardUid)}`;
  return s.target === "" ? scopeName(s.scope) : `${scopeName(s.scope)} ${s.target}`;
}

type SettingWish = Pick<Setting, "scope" | "target" | "boardUid" | "key" | "value">;

export function setSetting(wish: SettingWish, undo?: () => void): Promise<boolean> {
  let boards = 0;
  return act(
    "set-setting",
    `set ${wish.key}`,
    () => `${wish.key} is ${wish.value} on ${boards} board${boards === 1 ? "" : "s"}`,
    async (requestId) => {
      const answer = await lateClients().settings.setSetting({ requestId, setting: wish }, options);
      boards = answer.boards;
      if (answer.setting !== undefined) settings.set(settingKey(answer.setting), answer.setting);
    },
    undo === undefined ? undefined : { label: "Undo", run: undo },
  );
}

export function unsetSetting(s: Setting): Promise<boolean> {
  const { scope, target, boardUid, key, value } = s;
  return act(
    `unset/${settingKey(s)}`,
    `remove ${key} of ${whereOf(s)}`,
    `${key} is no longer set for ${whereOf(s)}`,
    async (requestId) => {
      await lateClients().settings.unsetSetting(
        { requestId, setting: { scope, target, boardUid, key } },
        options,
      );
      settings.delete(settingKey(s));
    },
    { label: "Undo", run: () => void setSetting({ scope, target, boardUid, key, value }) },
  );
}

export const loadEffective = (uidHex: string) =>
  lateClients().settings.getEffectiveSettings({ boardUid: fromHex(uidHex) }, options);
