import { useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import type { AlertRule, AlertSettings } from "../../api/types";
import { pending } from "../../store/actions";
import {
  desktopOn,
  desktopPossible,
  ruleName,
  setDesktop,
  testWebhook,
  unsilence,
  updateRule,
  withUnit,
} from "../../store/alerts";
import { serverNowMs } from "../../store/clock";
import { boardName } from "../../store/fleet";
import { clock, kNone } from "../../store/format";
import { linkLive } from "../../store/link";
import { usToMs } from "../../store/numbers";
import { Facts, Panel } from "../parts/bits";

export function RulesPanel({ settings }: { settings: AlertSettings }) {
  return (
    <Panel title="Rules">
      <div class="table-frame">
        <table>
          <thead>
            <tr>
              <th scope="col">On</th>
              <th scope="col">Rule</th>
              <th scope="col">Limit</th>
              <th scope="col">Default</th>
              <th scope="col">
                <span class="sr-only">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {settings.rules.map((r) => (
              <RuleRow key={`${r.rule}/${r.threshold}`} rule={r} />
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function RuleRow({ rule: r }: { rule: AlertRule }) {
  // Parts per million are percent for people.
  const [unit, scale] = r.unit === "ppm" ? ["%", 10_000] : [r.unit, 1];
  const shown = (n: bigint): string => String(Number(n) / scale);
  const [value, setValue] = useState(shown(r.threshold));
  const name = ruleName(r.rule);
  const off = !linkLive.value || pending.value.has(`rule/${r.rule}`);
  const parsed = value.trim() === "" ? NaN : Number(value) * scale;
  const whole = Math.round(parsed);
  const n = Math.abs(parsed - whole) < 1e-6 ? BigInt(whole) : null; // NaN fails, too
  const fits = n !== null && n >= r.min && n <= r.max;
  return (
    <tr>
      <td>
        <input
          type="checkbox"
          checked={r.enabled}
          disabled={off}
          aria-label={`Rule ${name} is on`}
          onChange={(e) => void updateRule(r, { enabled: e.currentTarget.checked })}
        />
      </td>
      <th scope="row">
        {name}
        <span class="sub wrap">{r.text}</span>
      </th>
      <td data-label="Limit">
        {r.unit === "" ? (
          kNone
        ) : (
          <form
            class="row"
            onSubmit={(e) => {
              e.preventDefault();
              if (fits && n !== null) void updateRule(r, { threshold: n });
            }}
          >
            <input
              class="limit"
              inputMode="decimal"
              value={value}
              aria-label={`Limit of ${name}, ${unit}`}
              aria-invalid={!fits}
              onInput={(e) => setValue(e.currentTarget.value)}
            />
            <span class="quiet">{unit}</span>
            <button
              type="submit"
              class="small"
              disabled={off || !fits || n === r.threshold}
              aria-label={`Set the limit of ${name}`}
            >
              Set
            </button>
            {!fits && (
              <span class="tone-bad">
                {shown(r.min)} to {shown(r.max)} {unit}
              </span>
            )}
          </form>
        )}
      </td>
      <td data-label="Default" class="nowrap">
        {r.unit === "" ? (r.defaultEnabled ? "on" : "off") : withUnit(r.defaultThreshold, r.unit)}
      </td>
      <td>
        {r.changed && (
          <button
            type="button"
            class="small"
            disabled={off}
            aria-label={`Rule ${name} as by default`}
            onClick={() => void updateRule(r, { reset: true })}
          >
            Default
          </button>
        )}
      </td>
    </tr>
  );
}

export function WebhookPanel(props: {
  settings: AlertSettings;
  pending: number;
  dead: number;
  reload: () => void;
}) {
  const { settings: s, dead, reload } = props;
  const off = !linkLive.value || pending.value.has("webhook") || s.webhook === "";
  return (
    <Panel title="Where it tells">
      <Facts
        rows={[
          ["Webhook", s.webhook || "none: set [alerts] webhook in odtd.toml"],
          ["Waiting to be sent", String(props.pending)],
          ["Given up", String(dead)],
        ]}
      />
      <p class="row pad">
        <button type="button" disabled={off} onClick={() => void testWebhook(false).then(reload)}>
          Test the webhook
        </button>
        {dead > 0 && (
          <button type="button" disabled={off} onClick={() => void testWebhook(true).then(reload)}>
            Send again what was given up
          </button>
        )}
      </p>
      <p class="pad">
        <label class="check">
          <input
            type="checkbox"
            checked={desktopOn.value}
            disabled={!desktopPossible}
            onChange={(e) => void setDesktop(e.currentTarget.checked)}
          />{" "}
          also on this desktop, while the page is in the background
        </label>
        {!desktopPossible && <span class="sub">This needs https, or the daemon’s own host.</span>}
      </p>
    </Panel>
  );
}

export function SilencesPanel({ settings }: { settings: AlertSettings }) {
  const now = serverNowMs.value;
  const list = settings.silences.filter((s) => usToMs(s.untilTimeUs) > now);
  return (
    <Panel title="Silences">
      {list.length === 0 ? (
        <p class="pad quiet">Nothing is silenced.</p>
      ) : (
        <ul class="pad">
          {list.map((s) => {
            const what = `${ruleName(s.rule)} of ${s.boardUid.length > 0 ? boardName(s.boardUid) : "every board"}`;
            return (
              <li key={toHex(s.id)} class="silence">
                <span>
                  {what}
                  <span class="sub">
                    until {clock(usToMs(s.untilTimeUs), now)}, by {s.createdBy} {s.note}
                  </span>
                </span>
                <button
                  type="button"
                  class="small"
                  disabled={!linkLive.value}
                  aria-label={`End the silence of ${what}`}
                  onClick={() => void unsilence(s)}
                >
                  End
                </button>
              </li>
            );
          })}
        </ul>
      )}
    </Panel>
  );
}
