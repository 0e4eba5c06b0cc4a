import { toHex } from "../api/bytes";
import {
  AptMode,
  Policy,
  type EpochResult,
  type HyperParams,
  type LayerEpoch,
  type Loss,
  type Run,
} from "../api/types";
import { serverNowMs } from "../store/clock";
import { clock, count, decimal, kNone, percent, significant, uuid } from "../store/format";
import { fraction, hasClasses, lossPerSample, squaredError, usToMs } from "../store/numbers";
import type { RunDetail } from "../store/run-detail";
import { Facts, Hash, Panel } from "./parts/bits";
import { ReplayBadge } from "./parts/run-bits";
import { StateMark } from "./parts/state-mark";
import {
  alarmWords,
  lossName,
  policyName,
  roundingName,
  ruleSetName,
  runLook,
  shiftSourceName,
} from "./words";

const kRows = 200; // more, on request
const kEachLayer = 3;

/// A figure of each layer; of many their range, the layers page has each.
function perLayer(epoch: EpochResult, of: (l: LayerEpoch) => number, unit = ""): string {
  const values = epoch.layers.map(of);
  const text = (v: number): string => count(Math.round(v));
  if (values.length === 0) return kNone;
  if (values.length <= kEachLayer) return values.map((v) => `${text(v)}${unit}`).join(" · ");
  const [lo, hi] = [Math.min(...values), Math.max(...values)].map(text);
  return lo === hi ? `${lo}${unit}` : `${lo} to ${hi}${unit}`;
}

export function EpochsPanel({ run, detail }: { run: Run; detail: RunDetail }) {
  const epochs = detail.recent.value;
  const done = Math.max(detail.epochsDone.value, epochs.length);
  const classes = hasClasses(run.outputs);
  const error = (loss: Loss | undefined): string => significant(squaredError(loss, run.outputs));
  return (
    <Panel title="Epochs" aside={done > 0 ? `${count(done)} done` : undefined}>
      {epochs.length === 0 ? (
        <p class="quiet pad">
          {detail.loaded.value && done === 0 ? "No epoch is complete yet." : "Loading …"}
        </p>
      ) : (
        <div class="table-frame scroll" tabIndex={0} role="region" aria-label="Epochs">
          <table class="numbers">
            <thead>
              <tr>
                <th scope="col">Epoch</th>
                <th scope="col">Step</th>
                {classes && <th scope="col">Loss</th>}
                <th scope="col">{classes ? "Train" : "Train mse"}</th>
                <th scope="col">{classes ? "Held-out" : "Held-out mse"}</th>
                <th scope="col">Zero updates</th>
                <th scope="col">Saturated</th>
                <th scope="col">Dead units</th>
                <th scope="col">Alarms</th>
              </tr>
            </thead>
            <tbody>
              {[...epochs].reverse().map((e) => (
                <tr key={e.epoch}>
                  <th scope="row">
                    {e.epoch + 1}
                    {e.bestStep === e.step && e.step === run.bestStep && (
                      <span class="badge tone-ok">best</span>
                    )}
                  </th>
                  <td>{count(e.step)}</td>
                  {classes && <td>{decimal(lossPerSample(e.loss))}</td>}
                  <td>{classes ? percent(fraction(e.train)) : error(e.loss)}</td>
                  <td class="strong">
                    {classes ? percent(fraction(e.heldout)) : error(e.heldoutLoss)}
                  </td>
                  <td>{perLayer(e, (l) => 100 * (1 - l.nonzeroDeltasPpm / 1e6), " %")}</td>
                  <td>{perLayer(e, (l) => Number(l.saturated))}</td>
                  <td>{perLayer(e, (l) => l.deadUnits)}</td>
                  <td class={e.alarms === 0 ? "quiet" : "tone-warn"}>
                    {alarmWords(e.alarms) || "none"}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          {epochs.length < done && (
            <p class="pad row">
              <span class="quiet">
                the newest {count(epochs.length)} of {count(done)} epochs
              </span>
              <button type="button" class="small" onClick={() => void detail.readRecent(kRows)}>
                {kRows} more
              </button>
            </p>
          )}
        </div>
      )}
    </Panel>
  );
}

export function EventsPanel({ detail }: { detail: RunDetail }) {
  const events = detail.events.value;
  if (events.length === 0) return null;
  return (
    <Panel title="What happened">
      <ol class="events" reversed>
        {[...events].reverse().map((e) => (
          <li key={e.seq}>
            <time class="quiet">{clock(usToMs(e.timeUs), serverNowMs.value)}</time>
            <StateMark look={runLook(e.to)} />
            <span>
              {e.cause}
              {e.actor !== "" && <span class="quiet"> · {e.actor}</span>}
            </span>
          </li>
        ))}
      </ol>
    </Panel>
  );
}

const q8 = (v: number | undefined, h: HyperParams): string =>
  v === undefined || h.apt === AptMode.UNSPECIFIED ? "" : (v / 256).toFixed(2);
export type Setting = [string, (h: HyperParams) => string];
const optional = (v: number | boolean | undefined): string =>
  v === undefined ? "" : typeof v === "boolean" ? (v ? "on" : "off") : String(v);
export const kSettings: readonly Setting[] = [
  ["Policy", (h) => (h.policy === Policy.UNSPECIFIED ? "" : policyName(h.policy))],
  ["mu weight", (h) => h.muWeight.join(" → ")],
  ["mu offset", (h) => optional(h.muOffset)],
  ["k", (h) => optional(h.k)],
  ["Batch", (h) => optional(h.batch)],
  ["Epochs", (h) => optional(h.epochs)],
  ["k by layer", (h) => (h.layerK.some((k) => k !== 0) ? h.layerK.join(", ") : "")],
  [
    "Precision adapts",
    (h) =>
      h.apt === AptMode.UNSPECIFIED
        ? ""
        : `${h.apt === AptMode.QUARTERS ? "each quarter" : "each epoch"}${h.aptKMax === undefined ? "" : `, to ${h.aptKMax}`}`,
  ],
  ["Tmin", (h) => q8(h.aptTMinQ8, h)],
  ["Tmax", (h) => (h.aptTMaxQ8 === 0 ? "" : q8(h.aptTMaxQ8, h))],
  ["Rate", (h) => (h.lrM.length === 0 ? "" : `${h.lrM.join(" → ")} × 2^-${h.lrS ?? 0}`)],
  ["Loss", (h) => (h.loss === 0 ? "" : lossName(h.loss))],
  ["Rounding", (h) => (h.rounding === 0 ? "" : roundingName(h.rounding))],
  ["Rule set", (h) => (h.ruleSet === 0 ? "" : ruleSetName(h.ruleSet))],
  ["Shift source", (h) => (h.shiftSource === 0 ? "" : shiftSourceName(h.shiftSource))],
  ["Dead zone", (h) => optional(h.deadZone)],
  ["Guard", (h) => optional(h.guard)],
  ["Best weights", (h) => (h.bestOnHost === true ? "kept on the host" : "")],
  ["Order seed", (h) => optional(h.orderSeed)],
  ["SR seed", (h) => optional(h.srSeed)],
  ["Samples", (h) => (h.streamed === undefined ? "" : h.streamed ? "streamed" : "resident")],
  ["Telemetry every", (h) => optional(h.telemetryEvery)],
  [
    "State to host every",
    (h) =>
      h.checkpointEpochs === undefined
        ? ""
        : h.checkpointEpochs === 1
          ? "epoch"
          : `${h.checkpointEpochs} epochs`,
  ],
];

/// What the board was told, and beside it what was asked for where that differs.
export function HyperPanel({ run }: { run: Run }) {
  const told = run.effective;
  const asked = run.spec?.hyper;
  return (
    <Panel title="Hyperparameters">
      {told === undefined && <p class="quiet pad">As asked; settled when the run starts.</p>}
      <Facts
        rows={kSettings.map(([label, read]) => {
          const a = asked === undefined ? "" : read(asked);
          const t = told === undefined ? a : read(told);
          const note = told !== undefined && a !== "" && a !== t ? `asked: ${a}` : "";
          return [
            label,
            <>
              {t || kNone} {note !== "" && <span class="sub">{note}</span>}
            </>,
          ];
        })}
      />
    </Panel>
  );
}

export function HashesPanel({ run }: { run: Run }) {
  return (
    <Panel title="Identity">
      <Facts
        rows={[
          ["Run", <Hash value={uuid(toHex(run.id))} label="run id" />],
          ["Model", <Hash value={run.spec?.modelHash ?? ""} label="model hash" />],
          ["Dataset", <Hash value={run.spec?.datasetId ?? ""} label="dataset id" />],
          ["Start weights", <Hash value={run.spec?.startSnapshot ?? ""} label="start snapshot" />],
          ["Final state", <Hash value={run.finalStateHash} label="final state hash" />],
          ["Final weights", <Hash value={run.finalWeightsHash} label="final weights hash" />],
          ["Rules version", run.rulesVersion],
          ["Replay", run.replay === 0 ? "not replayed" : <ReplayBadge run={run} />],
          ["Created by", run.meta?.createdBy || kNone],
          ["Started", clock(usToMs(run.startTimeUs), serverNowMs.value)],
          ["Ended", clock(usToMs(run.endTimeUs), serverNowMs.value)],
        ]}
      />
    </Panel>
  );
}
