import { useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import type { Campaign, CampaignUnit } from "../../api/types";
import { ParallelChart } from "../../charts/parallel";
import { importance, settingOf, trialsOf } from "../../store/campaign-figures";
import { boardName, models } from "../../store/fleet";
import { kNone, percent, significant } from "../../store/format";
import { lossPerSample } from "../../store/numbers";
import { Delta, Panel } from "../parts/bits";
import { StateMark } from "../parts/state-mark";
import { href } from "../router";
import { dark } from "../theme";
import { heldoutOf } from "./units";
import { unitLook } from "./words";

interface Trial {
  unit: CampaignUnit;
  values: string[];
  outcome: number;
}
type Sort = { by: number; down: boolean }; // by: axis, or -1: the outcome, -2: the trial

const layersOf = (hex: string): number => models.peek(hex)?.trainableLayers ?? 0;

export function SweepPanels({
  campaign: c,
  units,
}: {
  campaign: Campaign;
  units: readonly CampaignUnit[];
}) {
  const axes = c.spec?.sweep?.axes.map((a) => a.name) ?? [];
  const trials = trialsOf(units).map(
    (unit): Trial => ({
      unit,
      values: axes.map((axis) => settingOf(unit, axis, layersOf)),
      // Without classes less is better: the loss' negative keeps "up is good" on every axis.
      outcome:
        (unit.heldoutBest?.total ?? 0) > 0 ? heldoutOf(unit) : -lossPerSample(unit.heldoutBestLoss),
    }),
  );
  const [chosen, setChosen] = useState("");
  const best = units.find((u) => u.index === c.bestUnit);
  const bestKey = best === undefined ? "" : String(best.trial);
  const format = (v: number): string => (v < 0 ? `loss ${significant(-v)}` : percent(v));
  return (
    <>
      <Panel title="Trials over their settings">
        <ParallelChart
          title="Settings and outcome"
          axes={axes}
          outcomeName="held-out"
          rows={trials.map((t) => ({
            key: String(t.unit.trial),
            label: `trial ${t.unit.trial}`,
            values: t.values,
            outcome: t.outcome,
          }))}
          best={bestKey}
          format={format}
          dark={dark.value}
          chosen={chosen}
          choose={setChosen}
        />
        <Importance axes={axes} trials={trials} />
      </Panel>
      <TrialTable
        axes={axes}
        trials={trials}
        bestKey={bestKey}
        format={format}
        chosen={chosen}
        choose={setChosen}
      />
    </>
  );
}

function Importance({ axes, trials }: { axes: readonly string[]; trials: readonly Trial[] }) {
  return (
    <dl class="importance pad">
      {axes.map((axis, i) => {
        const v = importance(
          trials.map((t) => t.values[i] ?? ""),
          trials.map((t) => t.outcome),
        );
        return (
          <div key={axis}>
            <dt title="Share of the outcome's variance that lies between the values of this setting">
              {axis} explains
            </dt>
            <dd>
              {Number.isFinite(v) ? (
                <>
                  <progress
                    class="progress"
                    max={1}
                    value={v}
                    aria-label={`What ${axis} explains`}
                  />{" "}
                  {percent(v, 0)}
                </>
              ) : (
                <span class="quiet">not known yet</span>
              )}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

function TrialTable(props: {
  axes: readonly string[];
  trials: readonly Trial[];
  bestKey: string;
  format: (v: number) => string;
  chosen: string;
  choose: (key: string) => void;
}) {
  const [sort, setSort] = useState<Sort>({ by: -1, down: true });
  const compare = new Intl.Collator(undefined, { numeric: true }).compare;
  const worst = (v: number): number => (Number.isFinite(v) ? v : -Infinity);
  const ordered = [...props.trials].sort((a, b) => {
    const d =
      sort.by === -2
        ? a.unit.trial - b.unit.trial
        : sort.by === -1
          ? worst(a.outcome) - worst(b.outcome)
          : compare(a.values[sort.by] ?? "", b.values[sort.by] ?? "");
    return (sort.down ? -d : d) || a.unit.trial - b.unit.trial;
  });
  const best = props.trials.find((t) => String(t.unit.trial) === props.bestKey);
  const head = (label: string, by: number) => (
    <th scope="col" aria-sort={sort.by === by ? (sort.down ? "descending" : "ascending") : "none"}>
      <button
        type="button"
        class="sort"
        onClick={() => setSort({ by, down: sort.by === by ? !sort.down : by === -1 })}
      >
        {label}
        <span aria-hidden="true" class="sort-mark">
          {sort.by === by ? (sort.down ? "▾" : "▴") : ""}
        </span>
      </button>
    </th>
  );
  return (
    <Panel title="Trials" aside={String(props.trials.length)}>
      <div class="table-frame">
        <table class="runs trials">
          <thead>
            <tr>
              <th scope="col">State</th>
              {head("Trial", -2)}
              {props.axes.map((a, i) => head(a, i))}
              {head("Held-out", -1)}
              <th scope="col">Against the best</th>
              <th scope="col">Rung</th>
              <th scope="col">Board</th>
              <th scope="col">Run</th>
            </tr>
          </thead>
          <tbody>
            {ordered.map((t) => {
              const key = String(t.unit.trial);
              return (
                <tr key={key} class={props.chosen === key ? "chosen-row" : ""}>
                  <td>
                    <StateMark look={unitLook(t.unit.state)} />
                  </td>
                  <th scope="row">
                    <button
                      type="button"
                      class="small"
                      aria-pressed={props.chosen === key}
                      aria-label={`Show trial ${key} in the chart`}
                      onClick={() => props.choose(props.chosen === key ? "" : key)}
                    >
                      {key}
                    </button>
                    {key === props.bestKey && <span class="badge tone-ok">best</span>}
                  </th>
                  {t.values.map((v, i) => (
                    <td key={props.axes[i]} data-label={props.axes[i]}>
                      {v}
                    </td>
                  ))}
                  <td data-label="Held-out">
                    {Number.isFinite(t.outcome) ? props.format(t.outcome) : kNone}
                  </td>
                  <td data-label="Against the best">
                    {best !== undefined && Number.isFinite(t.outcome) && t.outcome >= 0 ? (
                      <Delta from={best.outcome} to={t.outcome} />
                    ) : (
                      kNone
                    )}
                  </td>
                  <td data-label="Rung">{t.unit.round + 1}</td>
                  <td data-label="Board">
                    {t.unit.boardUid.length > 0 ? boardName(t.unit.boardUid) : kNone}
                  </td>
                  <td data-label="Run">
                    {t.unit.runId.length > 0 ? (
                      <a href={href("run", toHex(t.unit.runId))}>
                        {toHex(t.unit.runId).slice(0, 12)}
                      </a>
                    ) : (
                      kNone
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
