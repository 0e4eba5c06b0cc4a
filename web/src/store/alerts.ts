// Alerts: acknowledged, silenced, their rules; told on the page and, where a person wants it, on the desktop.
import { computed, signal } from "@preact/signals";
import { toHex } from "../api/bytes";
import { kCallTimeoutMs } from "../api/clients";
import { lateClients } from "../api/late-clients";
import {
  AlertRuleKind,
  AlertState,
  type Alert,
  type AlertRule,
  type AlertSilence,
} from "../api/types";
import { act } from "./actions";
import { alerts, alertSettings } from "./fleet";

const options = { timeoutMs: kCallTimeoutMs };

const kRuleNames: Record<AlertRuleKind, string> = {
  [AlertRuleKind.UNSPECIFIED]: "any",
  [AlertRuleKind.OFFLINE]: "board offline",
  [AlertRuleKind.STUCK]: "run stuck",
  [AlertRuleKind.ACCURACY_DROP]: "accuracy drop",
  [AlertRuleKind.DEAD_LAYER]: "dead layer",
  [AlertRuleKind.SATURATION]: "saturation",
  [AlertRuleKind.CRC_RATE]: "checksum errors",
  [AlertRuleKind.DISK]: "disk",
  [AlertRuleKind.FIRMWARE_SKEW]: "firmware skew",
};
export const ruleName = (rule: AlertRuleKind): string => kRuleNames[rule] ?? "alert";

export const isFiring = (a: Alert): boolean => a.state === AlertState.FIRING;

/// A value in its rule's unit: parts per million as per cent.
export function withUnit(value: bigint, unit: string): string {
  if (unit === "ppm")
    return `${(Number(value) / 10_000).toFixed(Number(value) % 10_000 === 0 ? 0 : 2)} %`;
  return unit === "" ? String(value) : `${value} ${unit}`;
}

/// Rules, silences and the state of the webhook; also keeps the first two up to date.
export async function loadRules() {
  const answer = await lateClients().alert.listAlertRules({}, options);
  if (answer.settings !== undefined) alertSettings.value = answer.settings;
  return answer;
}

export function acknowledge(a: Alert, note: string): Promise<boolean> {
  return act(
    `ack/${toHex(a.id)}`,
    `acknowledge the alert of ${a.subject}`,
    "",
    async (requestId) => {
      const answer = await lateClients().alert.acknowledgeAlert(
        { requestId, id: a.id, note },
        options,
      );
      if (answer.alert !== undefined) alerts.set(toHex(a.id), answer.alert);
    },
  );
}

export function silence(
  rule: AlertRuleKind,
  boardUid: Uint8Array,
  untilMs: number,
  what: string,
): Promise<boolean> {
  let made: AlertSilence | undefined;
  return act(
    "silence",
    `silence ${what}`,
    `${what} is silent until ${new Date(untilMs).toLocaleString()}`,
    async (requestId) => {
      const untilTimeUs = BigInt(Math.round(untilMs)) * 1000n;
      made = (
        await lateClients().alert.silenceAlerts({ requestId, rule, boardUid, untilTimeUs }, options)
      ).silence;
    },
    { label: "Undo", run: () => made !== undefined && void unsilence(made) },
  );
}

export function unsilence(s: AlertSilence): Promise<boolean> {
  return act(
    `unsilence/${toHex(s.id)}`,
    "end the silence",
    "The silence is over",
    async (requestId) => {
      await lateClients().alert.unsilenceAlerts({ requestId, id: s.id }, options);
    },
  );
}

interface RuleChange {
  enabled?: boolean;
  threshold?: bigint;
  reset?: boolean;
}
export function updateRule(rule: AlertRule, change: RuleChange): Promise<boolean> {
  const name = ruleName(rule.rule);
  const undo =
    change.reset === true
      ? undefined
      : {
          label: "Undo",
          run: () => void updateRule(rule, { enabled: rule.enabled, threshold: rule.threshold }),
        };
  return act(
    `rule/${rule.rule}`,
    `change the rule ${name}`,
    `The rule ${name} is changed`,
    async (requestId) => {
      await lateClients().alert.updateAlertRule(
        {
          requestId,
          rule: rule.rule,
          reset: change.reset === true,
          ...(change.enabled !== undefined && { enabled: change.enabled }),
          // A rule without a unit has no threshold.
          ...(change.threshold !== undefined &&
            rule.unit !== "" && { threshold: change.threshold }),
        },
        options,
      );
      await loadRules();
    },
    undo,
  );
}

export function testWebhook(retryDead: boolean): Promise<boolean> {
  let said = "";
  return act(
    "webhook",
    "reach the webhook",
    () => said,
    async (requestId) => {
      const a = await lateClients().alert.testWebhook(
        { requestId, retryDead },
        { timeoutMs: 40_000 },
      );
      if (!a.delivered)
        throw new Error(`the webhook did not take it: ${a.error || `HTTP ${a.httpStatus}`}`);
      said = `The webhook took it, ${a.tookMs} ms${a.retried > 0 ? `; ${a.retried} are tried again` : ""}`;
    },
  );
}

const kDesktopKey = "odt-desktop-alerts";
const stored = (): boolean => {
  try {
    return localStorage.getItem(kDesktopKey) === "on";
  } catch {
    return false; // storage is forbidden here
  }
};
const desktopWanted = signal(stored());
/// Whether this browser can and may tell of alerts while the page is in the background.
export const desktopPossible = typeof Notification !== "undefined" && self.isSecureContext;
export const desktopOn = computed(
  () => desktopWanted.value && desktopPossible && Notification.permission === "granted",
);

export async function setDesktop(on: boolean): Promise<void> {
  const granted = !on || (await Notification.requestPermission()) === "granted";
  desktopWanted.value = on && granted;
  try {
    localStorage.setItem(kDesktopKey, desktopWanted.value ? "on" : "off");
  } catch {
    // Kept for this visit only.
  }
}
