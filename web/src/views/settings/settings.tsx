import { useState } from "preact/hooks";
import { fromHex, toHex } from "../../api/bytes";
import { settingKey } from "../../api/setting-key";
import { SettingScope, type EffectiveSetting, type Setting } from "../../api/types";
import { pending } from "../../store/actions";
import { serverNowMs } from "../../store/clock";
import { boards, settings } from "../../store/fleet";
import { clock, count, kNone } from "../../store/format";
import { fleetKnown, linkLive } from "../../store/link";
import { usToMs } from "../../store/numbers";
import { loadEffective, scopeName, setSetting, unsetSetting, whereOf } from "../../store/settings";
import { Empty, Loading, Panel, ProblemBox } from "../parts/bits";
import { useLoad } from "../parts/use-load";
import { href, route, setQuery } from "../router";

const kScopes = [
  SettingScope.FLEET,
  SettingScope.BOARD_TYPE,
  SettingScope.COHORT,
  SettingScope.BOARD,
];

/// Defaults of runs, from the fleet down to a board, and what a board would take of them.
export function SettingsView() {
  const first = toHex(boards.all()[0]?.uid ?? new Uint8Array());
  const uidHex = route.value.query.get("board") ?? first;
  const version = settings.version.value;
  const effective = useLoad(
    uidHex === "" ? "" : uidHex,
    "read the board’s settings",
    () => loadEffective(uidHex),
    version,
  );
  if (!fleetKnown.value) {
    return <Loading page="Settings" />;
  }
  const keys = effective.value?.settings.map((s) => s.key) ?? [];
  return (
    <>
      <h1 class="sr-only">Settings</h1>
      <div class="two-columns settings">
        <div>
          <SetPanel keys={keys} />
          <ListPanel />
        </div>
        <aside>
          <EffectivePanel
            uidHex={uidHex}
            rows={effective.value?.settings ?? []}
            runId={effective.value?.runId ?? new Uint8Array()}
          />
          {effective.problem !== null && (
            <ProblemBox problem={effective.problem} retry={effective.reload} />
          )}
        </aside>
      </div>
    </>
  );
}

function SetPanel({ keys }: { keys: readonly string[] }) {
  const [scope, setScope] = useState(SettingScope.FLEET);
  const [target, setTarget] = useState("");
  const [uid, setUid] = useState("");
  const [key, setKey] = useState("mu_weight");
  const [value, setValue] = useState("");
  const list = boards
    .all()
    .sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
  const types = [...new Set(list.map((b) => b.boardType))].filter(Boolean).sort();
  const boardUid =
    scope === SettingScope.BOARD
      ? fromHex(uid || toHex(list[0]?.uid ?? new Uint8Array()))
      : new Uint8Array();
  const where =
    scope === SettingScope.BOARD_TYPE
      ? target || (types[0] ?? "")
      : scope === SettingScope.COHORT
        ? target.trim()
        : "";
  const save = async (): Promise<void> => {
    const wish = { scope, target: where, boardUid, key, value: value.trim() };
    const old = settings.peek(settingKey({ ...wish } as Setting));
    const undo = (): void => {
      if (old !== undefined) void setSetting({ ...wish, value: old.value });
      else void unsetSetting(wish as Setting);
    };
    if (await setSetting(wish, undo)) setValue("");
  };
  return (
    <Panel title="Set a default of runs">
      <form
        class="pad"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        <div class="fields">
          <label>
            For
            <select value={scope} onChange={(e) => setScope(Number(e.currentTarget.value))}>
              {kScopes.map((s) => (
                <option key={s} value={s}>
                  {s === SettingScope.FLEET ? "the whole fleet" : `a ${scopeName(s)}`}
                </option>
              ))}
            </select>
          </label>
          {scope === SettingScope.BOARD_TYPE && (
            <label>
              Board type
              <select value={where} onChange={(e) => setTarget(e.currentTarget.value)}>
                {types.map((t) => (
                  <option key={t} value={t}>
                    {t}
                  </option>
                ))}
              </select>
            </label>
          )}
          {scope === SettingScope.COHORT && (
            <label>
              Boards with
              <input
                value={target}
                placeholder="site=lab,!broken"
                onInput={(e) => setTarget(e.currentTarget.value)}
              />
            </label>
          )}
          {scope === SettingScope.BOARD && (
            <label>
              Board
              <select value={toHex(boardUid)} onChange={(e) => setUid(e.currentTarget.value)}>
                {list.map((b) => (
                  <option key={toHex(b.uid)} value={toHex(b.uid)}>
                    {b.name}
                  </option>
                ))}
              </select>
            </label>
          )}
          <label>
            Setting
            <select value={key} onChange={(e) => setKey(e.currentTarget.value)}>
              {(keys.length > 0 ? keys : ["mu_weight", "epochs", "batch", "k"]).map((k) => (
                <option key={k} value={k}>
                  {k}
                </option>
              ))}
            </select>
          </label>
          <label>
            Value
            <input
              value={value}
              placeholder="2, 1/-1/-3, half-up, on"
              onInput={(e) => setValue(e.currentTarget.value)}
            />
          </label>
        </div>
        <p class="row try-buttons">
          <button
            type="submit"
            class="primary"
            disabled={!linkLive.value || value.trim() === "" || pending.value.has("set-setting")}
          >
            Set
          </button>
          <span class="quiet">
            What a run asks for itself comes first; runs of campaigns take no settings.
          </span>
        </p>
      </form>
    </Panel>
  );
}

function ListPanel() {
  const list = settings
    .all()
    .sort(
      (a, b) => a.scope - b.scope || a.target.localeCompare(b.target) || a.key.localeCompare(b.key),
    );
  return (
    <Panel title="Set by scope" aside={list.length > 0 ? count(list.length) : undefined}>
      {list.length === 0 ? (
        <Empty title="Nothing is set" command="odtctl settings set --cohort site=lab mu_weight=2">
          <p>Runs take the defaults of their policy.</p>
        </Empty>
      ) : (
        <div class="table-frame">
          <table>
            <thead>
              <tr>
                <th scope="col">Setting</th>
                <th scope="col">Value</th>
                <th scope="col">For</th>
                <th scope="col">By</th>
                <th scope="col">When</th>
                <th scope="col">
                  <span class="sr-only">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {list.map((s) => (
                <tr key={settingKey(s)}>
                  <th scope="row">{s.key}</th>
                  <td data-label="Value">{s.value}</td>
                  <td data-label="For" class="wrap">
                    {whereOf(s)}
                  </td>
                  <td data-label="By">{s.meta?.createdBy || kNone}</td>
                  <td data-label="When" class="nowrap">
                    {clock(usToMs(s.meta?.createTimeUs ?? 0n), serverNowMs.value)}
                  </td>
                  <td>
                    <button
                      type="button"
                      class="small"
                      disabled={!linkLive.value}
                      aria-label={`Remove ${s.key} of ${whereOf(s)}`}
                      onClick={() => void unsetSetting(s)}
                    >
                      Remove
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

function EffectivePanel(props: {
  uidHex: string;
  rows: readonly EffectiveSetting[];
  runId: Uint8Array;
}) {
  const [all, setAll] = useState(false);
  const set = props.rows.filter((r) => r.desired !== "" || r.overridden.length > 0);
  const shown = all ? props.rows : set;
  return (
    <Panel
      title="What a board takes"
      aside={
        <label>
          <span class="sr-only">Board</span>
          <select value={props.uidHex} onChange={(e) => setQuery("board", e.currentTarget.value)}>
            {boards.all().map((b) => (
              <option key={toHex(b.uid)} value={toHex(b.uid)}>
                {b.name}
              </option>
            ))}
          </select>
        </label>
      }
    >
      {shown.length === 0 ? (
        <p class="pad quiet">Nothing is set for it: its runs take the defaults of their policy.</p>
      ) : (
        <ul class="effective">
          {shown.map((r) => (
            <li key={r.key}>
              <p>
                <strong>{r.key}</strong> {r.desired || <span class="quiet">by policy</span>}
              </p>
              <p class="sub">
                {r.source !== undefined ? `from ${whereOf(r.source)}` : "not set"}
                {r.overridden.map((o) => `; instead of ${o.value} of ${whereOf(o)}`).join("")}
              </p>
              <p class="sub">
                {r.reported === ""
                  ? "no run has told yet"
                  : `its last run had ${r.reported}${r.asked ? ", asked for with the run" : ""}`}
              </p>
            </li>
          ))}
        </ul>
      )}
      <p class="row pad">
        <button type="button" class="small" aria-pressed={all} onClick={() => setAll(!all)}>
          {all ? "Only what is set" : `All ${count(props.rows.length)} settings`}
        </button>
        {props.runId.length > 0 && <a href={href("run", toHex(props.runId))}>its last run</a>}
      </p>
    </Panel>
  );
}
