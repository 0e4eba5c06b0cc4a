import { useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import { AlertDelivery_State as Delivery, AlertSeverity, type Alert } from "../../api/types";
import { pending } from "../../store/actions";
import { acknowledge, isFiring, loadRules, ruleName, silence, withUnit } from "../../store/alerts";
import { serverNowMs } from "../../store/clock";
import { alerts, alertSettings } from "../../store/fleet";
import { clock, count, duration } from "../../store/format";
import { fleetKnown, linkLive } from "../../store/link";
import { usToMs } from "../../store/numbers";
import { parseFilter, toFields } from "../filter";
import { Empty, Loading, ProblemBox } from "../parts/bits";
import { SearchBox, ShownNote } from "../parts/search-box";
import { Sheet } from "../parts/confirm";
import { StateMark } from "../parts/state-mark";
import { useLoad } from "../parts/use-load";
import { href, route, setQuery } from "../router";
import type { Look } from "../words";
import "./alerts.css";
import { RulesPanel, SilencesPanel, WebhookPanel } from "./rules";

const kHourMs = 3_600_000;
const kSilences: [string, number][] = [
  ["1 hour", kHourMs],
  ["8 hours", 8 * kHourMs],
  ["1 day", 24 * kHourMs],
  ["7 days", 168 * kHourMs],
];

/// What fires, what fired before, the rules and where they tell.
export function AlertsView() {
  const rules = useLoad("rules", "read the rules of alerts", loadRules);
  const query = route.value.query;
  const all = alerts.all().sort((a, b) => Number(b.fireTimeUs - a.fireTimeUs));
  const over = query.get("show") === "all";
  const test = parseFilter(query.get("q") ?? "");
  const shown = all.filter(
    (a) =>
      (over || isFiring(a)) &&
      test(toFields({ subject: a.subject, rule: ruleName(a.rule), text: a.reason?.text ?? "" })),
  );
  if (!fleetKnown.value) {
    return <Loading page="Alerts" />;
  }
  return (
    <>
      <h1 class="sr-only">Alerts</h1>
      <div class="bar">
        <SearchBox label="Search alerts" placeholder="Search, subject=m33-1, -disk" />
        <div class="chips" role="group" aria-label="Show">
          <button
            type="button"
            class="chip"
            aria-pressed={!over}
            onClick={() => setQuery("show", "")}
          >
            firing <span class="chip-count">{all.filter(isFiring).length}</span>
          </button>
          <button
            type="button"
            class="chip"
            aria-pressed={over}
            onClick={() => setQuery("show", "all")}
          >
            all <span class="chip-count">{all.length}</span>
          </button>
        </div>
        <ShownNote shown={shown.length} total={all.length} what="alert" />
      </div>
      {shown.length === 0 ? (
        <Empty
          title={all.length === 0 ? "No alert yet" : over ? "No alert matches" : "Nothing fires"}
          command="odtctl alert list"
        >
          <p>
            odtd watches boards that go away, runs that stick, accuracy that drops, dead and
            saturated layers, checksum errors and the disk.
          </p>
        </Empty>
      ) : (
        <div class="table-frame">
          <table>
            <thead>
              <tr>
                <th scope="col">State</th>
                <th scope="col">Of</th>
                <th scope="col">What</th>
                <th scope="col">Value, limit</th>
                <th scope="col">Since</th>
                <th scope="col">Told</th>
                <th scope="col">Who looks after it</th>
                <th scope="col">
                  <span class="sr-only">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.map((a) => (
                <AlertRow key={toHex(a.id)} alert={a} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {rules.problem !== null && <ProblemBox problem={rules.problem} retry={rules.reload} />}
      {alertSettings.value !== null && (
        <div class="two-columns">
          <div>
            <RulesPanel settings={alertSettings.value} />
          </div>
          <aside>
            <WebhookPanel
              settings={alertSettings.value}
              pending={rules.value?.pending ?? 0}
              dead={rules.value?.dead ?? 0}
              reload={rules.reload}
            />
            <SilencesPanel settings={alertSettings.value} />
          </aside>
        </div>
      )}
    </>
  );
}

function alertLook(a: Alert): Look {
  if (!isFiring(a)) return { word: "over", tone: "quiet", shape: "check" };
  if (a.severity === AlertSeverity.CRITICAL)
    return { word: "critical", tone: "bad", shape: "cross" };
  return { word: "warning", tone: "warn", shape: "triangle" };
}

const kTold: Record<Delivery, string> = {
  [Delivery.UNSPECIFIED]: "not sent",
  [Delivery.PENDING]: "being sent",
  [Delivery.DELIVERED]: "delivered",
  [Delivery.DEAD]: "given up",
};

const unitOf = (a: Alert): string =>
  alertSettings.value?.rules.find((r) => r.rule === a.rule)?.unit ?? "";

function AlertRow({ alert: a }: { alert: Alert }) {
  const now = serverNowMs.value;
  const silent = usToMs(a.silencedUntilTimeUs) > now;
  const unit = unitOf(a);
  return (
    <tr>
      <td>
        <StateMark look={alertLook(a)} />
        {silent && (
          <span class="sub">silent until {clock(usToMs(a.silencedUntilTimeUs), now)}</span>
        )}
      </td>
      <th scope="row">
        {a.boardUid.length > 0 ? (
          <a href={href("board", toHex(a.boardUid))}>{a.subject}</a>
        ) : (
          a.subject
        )}
        <span class="sub">{ruleName(a.rule)}</span>
      </th>
      <td data-label="What" class="wrap">
        {a.reason?.text}
        <span class="sub wrap">{isFiring(a) ? a.reason?.remedy : a.resolution}</span>
        {a.runId.length > 0 && (
          <a class="sub" href={href("run", toHex(a.runId))}>
            its run
          </a>
        )}
      </td>
      <td data-label="Value, limit" class="nowrap">
        {withUnit(a.value, unit)}
        <span class="sub">limit {withUnit(a.threshold, unit)}</span>
      </td>
      <td data-label="Since" class="nowrap">
        {clock(usToMs(a.fireTimeUs), now)}
        <span class="sub">
          {isFiring(a)
            ? `for ${duration(now - usToMs(a.fireTimeUs))}`
            : `over ${clock(usToMs(a.resolveTimeUs), now)}`}
          , {count(a.count)}×
        </span>
      </td>
      <td data-label="Told" class="wrap">
        {kTold[a.delivery?.state ?? Delivery.UNSPECIFIED]}
        <span class="sub wrap">{a.delivery?.error}</span>
      </td>
      <td data-label="Who" class="wrap">
        {a.ackTimeUs > 0n ? (
          <>
            {a.ackBy || "somebody"}
            <span class="sub wrap">{a.ackNote}</span>
          </>
        ) : (
          <span class="quiet">nobody yet</span>
        )}
      </td>
      <td>
        <AlertActions alert={a} />
      </td>
    </tr>
  );
}

function AlertActions({ alert: a }: { alert: Alert }) {
  const [open, setOpen] = useState<"" | "ack" | "silence">("");
  const [note, setNote] = useState("");
  const off = !linkLive.value;
  return (
    <span class="row">
      {isFiring(a) && a.ackTimeUs === 0n && (
        <button
          type="button"
          class="small"
          disabled={off || pending.value.has(`ack/${toHex(a.id)}`)}
          aria-label={`Acknowledge ${ruleName(a.rule)} of ${a.subject}`}
          onClick={() => setOpen("ack")}
        >
          Acknowledge
        </button>
      )}
      <button
        type="button"
        class="small"
        disabled={off}
        aria-label={`Silence ${ruleName(a.rule)} of ${a.subject}`}
        onClick={() => setOpen("silence")}
      >
        Silence
      </button>
      {open === "ack" && (
        <Sheet title={`Look after ${ruleName(a.rule)} of ${a.subject}`} close={() => setOpen("")}>
          <form
            class="inline-form"
            onSubmit={(e) => {
              e.preventDefault();
              setOpen("");
              void acknowledge(a, note);
            }}
          >
            <label>
              Note
              <input value={note} maxLength={300} onInput={(e) => setNote(e.currentTarget.value)} />
            </label>
            <button type="submit" class="primary">
              I look after it
            </button>
          </form>
        </Sheet>
      )}
      {open === "silence" && (
        <Sheet title={`Silence ${ruleName(a.rule)} of ${a.subject}`} close={() => setOpen("")}>
          <p class="quiet">The webhook hears nothing of it for</p>
          <p class="row pad">
            {kSilences.map(([word, ms]) => (
              <button
                key={word}
                type="button"
                onClick={() => {
                  setOpen("");
                  void silence(
                    a.rule,
                    a.boardUid,
                    serverNowMs.value + ms,
                    `${ruleName(a.rule)} of ${a.subject}`,
                  );
                }}
              >
                {word}
              </button>
            ))}
          </p>
        </Sheet>
      )}
    </span>
  );
}
