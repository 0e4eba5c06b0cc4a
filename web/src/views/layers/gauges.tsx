import { useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import type { EpochResult, LayerEpoch, LayerInfo, Run } from "../../api/types";
import { Spark } from "../../charts/spark";
import { models } from "../../store/fleet";
import { count, kNone, percent } from "../../store/format";
import type { RunDetail } from "../../store/run-detail";
import { Empty, Panel } from "../parts/bits";
import { href } from "../router";
import { layerNames } from "../run-charts";
import { adviceOn, zeroUpdates } from "./advice";

/// The trainable layers of the run's model, first to last.
export function trainableLayers(run: Run): LayerInfo[] {
  const model = run.spec === undefined ? undefined : models.get(toHex(run.spec.modelHash)).value;
  return model?.layers.filter((l) => l.trainable) ?? [];
}

const unitsOf = (l: LayerInfo | undefined): number => l?.outputShape[0] ?? 0;
const q8 = (v: number | bigint): number => Number(v) / 256;
const figure = (v: number): string =>
  Number.isFinite(v) ? v.toFixed(Math.abs(v) < 10 ? 2 : 0) : kNone;

function Meter({ share, limit, text }: { share: number; limit: number; text: string }) {
  if (!Number.isFinite(share)) return <span class="quiet">{kNone}</span>;
  const high = share > limit;
  return (
    <span class="meter">
      <span class="meter-track" aria-hidden="true">
        <span
          class={`meter-fill ${high ? "high" : ""}`}
          style={{ width: `${Math.min(100, share * 100)}%` }}
        />
      </span>
      <span class={high ? "tone-bad" : ""}>
        {text}
        {high && ` (over ${percent(limit, 0)})`}
      </span>
    </span>
  );
}

/// How each layer fared in one epoch: the newest, or one picked.
export function GaugesPanel({ run, detail }: { run: Run; detail: RunDetail }) {
  const epochs = detail.epochs.value;
  const [picked, setPicked] = useState<number | null>(null);
  const at = Math.min(picked ?? epochs.length - 1, epochs.length - 1);
  const epoch = epochs[at];
  const info = trainableLayers(run);
  if (epoch === undefined) {
    return (
      <Panel title="Layers">
        <Empty title={detail.loaded.value ? "No epoch is complete yet" : "Loading …"}>
          <p>Boards tell of their layers at the end of each epoch.</p>
        </Empty>
      </Panel>
    );
  }
  const names = layerNames(run, epoch.layers.length);
  return (
    <Panel
      title={`Layers in epoch ${epoch.epoch + 1}`}
      aside={
        epochs.length > 1 && (
          <label class="row">
            Epoch
            <input
              type="range"
              min={0}
              max={epochs.length - 1}
              value={at}
              aria-valuetext={`epoch ${epoch.epoch + 1}`}
              onInput={(e) => {
                const to = Number(e.currentTarget.value);
                setPicked(to === epochs.length - 1 ? null : to);
              }}
            />
            {picked === null ? "newest" : `${epoch.epoch + 1} of ${count(detail.epochsDone.value)}`}
          </label>
        )
      }
    >
      <AdviceList run={run} epoch={epoch} names={names} />
      <div class="table-frame">
        <table class="numbers gauges">
          <thead>
            <tr>
              {[
                "Layer",
                "Weights",
                "k",
                "Zero updates",
                "Over the run",
                "At the limit",
                "Silent units",
                "U",
                "Gavg",
                "mu",
              ].map((h) => (
                <th scope="col" key={h}>
                  {h}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {epoch.layers.map((l, i) => (
              <GaugeRow
                key={i}
                layer={l}
                name={names[i] ?? ""}
                info={info[i]}
                course={epochs
                  .map((e) => e.layers[i])
                  .filter((x): x is LayerEpoch => x !== undefined)}
              />
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function GaugeRow(props: {
  layer: LayerEpoch;
  name: string;
  info: LayerInfo | undefined;
  course: readonly LayerEpoch[];
}) {
  const { layer: l, info, name } = props;
  const weights = info?.weights ?? 0;
  const units = unitsOf(info);
  const saturated = weights > 0 ? l.saturated / weights : NaN;
  const dead = units > 0 ? l.deadUnits / units : NaN;
  const zero = props.course.map(zeroUpdates);
  return (
    <tr>
      <th scope="row">
        {name}
        <span class="sub">
          {info !== undefined && `${info.kind.toLowerCase()} ${info.weightShape.join("×")}`}
        </span>
      </th>
      <td data-label="Weights">
        {count(weights)}
        <span class="sub">
          {l.wMin} to {l.wMax}
        </span>
      </td>
      <td data-label="k">{l.k}</td>
      <td data-label="Zero updates">
        <Meter share={zeroUpdates(l)} limit={0.95} text={percent(zeroUpdates(l), 1)} />
      </td>
      <td data-label="Over the run">
        <Spark
          values={zero}
          label={`Zero updates of ${name} by epoch: ${percent(zero[0] ?? NaN, 0)} to ${percent(zero.at(-1) ?? NaN, 0)}`}
        />
      </td>
      <td data-label="At the limit">
        <Meter
          share={saturated}
          limit={0.05}
          text={`${percent(saturated, 1)}, ${count(l.saturated)}`}
        />
      </td>
      <td data-label="Silent units">
        <Meter share={dead} limit={0.9} text={`${count(l.deadUnits)} of ${count(units)}`} />
      </td>
      <td data-label="U">{figure(q8(l.uQ8))}</td>
      <td data-label="Gavg">{l.gavgQ8 === 0n ? kNone : figure(q8(l.gavgQ8))}</td>
      <td data-label="mu">
        {l.mu}
        {l.muClamped && <span class="sub tone-warn">clamped</span>}
      </td>
    </tr>
  );
}

/// What a layer lacks, what to try, and the trial with one click.
function AdviceList(props: { run: Run; epoch: EpochResult; names: readonly string[] }) {
  const { run } = props;
  const info = trainableLayers(run);
  const list = adviceOn(
    props.epoch,
    run.effective,
    props.names,
    info.map((l) => l.weights),
    info.map(unitsOf),
  );
  if (list.length === 0 || run.spec === undefined) return null;
  const trial = (change: { muWeight?: string; k?: string }): string => {
    const query = new URLSearchParams({ like: toHex(run.id) });
    for (const [key, value] of Object.entries(change)) if (value) query.set(key, value);
    return href("launch", "", query);
  };
  return (
    <ul class="advice">
      {list.map((a) => (
        <li key={a.layer}>
          <strong>{a.text}.</strong> {a.remedy} <a href={trial(a.change)}>Try it in a run</a>
        </li>
      ))}
    </ul>
  );
}
