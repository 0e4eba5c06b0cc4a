import { toHex } from "../../api/bytes";
import type { Model } from "../../api/types";
import { serverNowMs } from "../../store/clock";
import { models, runs, snapshots } from "../../store/fleet";
import { bytes, clock, count, kNone, percent } from "../../store/format";
import { fleetKnown } from "../../store/link";
import { fraction, hasClasses, usToMs } from "../../store/numbers";
import { trash } from "../../store/trash";
import { Empty, Facts, Hash, Loading, Panel } from "../parts/bits";
import { ConfirmButton } from "../parts/confirm";
import { go, href } from "../router";
import { FitPanel } from "./fit";

export function ModelView({ hex }: { hex: string }) {
  const m = models.get(hex).value;
  if (m !== undefined) return <Known model={m} />;
  if (!fleetKnown.value) {
    return <Loading page="Models" />;
  }
  return (
    <>
      <h1 class="sr-only">Model</h1>
      <Empty title={`No model ${hex.slice(0, 16)}`} command="odtctl model list">
        <p>
          It was never added here, or it is in the <a href={href("storage")}>trash</a>.{" "}
          <a href={href("models")}>All models</a>
        </p>
      </Empty>
    </>
  );
}

function Known({ model: m }: { model: Model }) {
  const hex = toHex(m.hash);
  const remove = async (): Promise<void> => {
    if (await trash("model", m.hash, m.name)) go(href("models"));
  };
  const used = runs
    .all()
    .filter((r) => toHex(r.spec?.modelHash ?? new Uint8Array()) === hex).length;
  const kept = snapshots.all().filter((s) => toHex(s.modelHash) === hex).length;
  return (
    <>
      <header class="page-head">
        <nav aria-label="Where this is" class="crumbs">
          <a href={href("models")}>Models</a> <span aria-hidden="true">/</span>
        </nav>
        <h1>{m.name}</h1>
        <span class="quiet head-note">
          {hasClasses(m.outputs) ? `${m.nClasses} classes` : `${m.outputs?.count ?? 0} outputs`}
          {m.arithmetic === 1 ? ", DFP16" : ", 8-bit integers"}
        </span>
        <div class="page-actions">
          {m.onnxHash.length > 0 && (
            <a class="button" href={`/v1/blobs/${toHex(m.onnxHash)}`} download={`${m.name}.onnx`}>
              ONNX source
            </a>
          )}
          <ConfirmButton
            label="Delete"
            title={`Move model ${m.name} to the trash?`}
            confirm="Move to the trash"
            onConfirm={() => void remove()}
          >
            <p>It can be brought back for 30 days. What uses it refuses to let it go.</p>
          </ConfirmButton>
        </div>
      </header>
      <div class="two-columns">
        <div>
          <Graph model={m} />
          <FitPanel model={m} />
        </div>
        <aside>
          <Panel title="What it is">
            <Facts
              rows={[
                ["Input", m.inputShape.join(" × ") || kNone],
                [
                  "Own accuracy",
                  hasClasses(m.outputs) ? percent(fraction(m.sourceAccuracy)) : kNone,
                ],
                [
                  "Trainable layers",
                  String(m.trainableLayers || m.layers.filter((l) => l.trainable).length),
                ],
                ["Weights", count(m.layers.reduce((sum, l) => sum + l.weights, 0))],
                ["MACs of a sample", count(m.layers.reduce((sum, l) => sum + l.macs, 0n))],
                ["Image", bytes(m.imageBytes)],
                ["RAM to train, k ≤ 8", bytes(m.ramK8Bytes)],
                ["RAM to train, k > 8", bytes(m.ramK16Bytes)],
                [
                  "Runs",
                  <a href={href("runs", "", new URLSearchParams({ q: m.name }))}>{count(used)}</a>,
                ],
                [
                  "Weights kept",
                  <a href={href("weights", "", new URLSearchParams({ q: `model=${m.name}` }))}>
                    {count(kept)}
                  </a>,
                ],
                ["Added", clock(usToMs(m.meta?.createTimeUs ?? 0n), serverNowMs.value)],
                ["Hash", <Hash key="h" value={m.hash} label="hash of the image" />],
                ["ONNX", <Hash key="o" value={m.onnxHash} label="hash of the ONNX source" />],
              ]}
            />
          </Panel>
        </aside>
      </div>
    </>
  );
}

/// The layers in order, each with its shapes, weights and work; what is trained stands out.
function Graph({ model: m }: { model: Model }) {
  const most = m.layers.reduce((a, l) => (l.macs > a ? l.macs : a), 1n);
  return (
    <Panel title="Graph" aside={`${m.layers.length} layers`}>
      <ol class="graph">
        <li class="graph-end">
          input <code>{m.inputShape.join(" × ")}</code>
        </li>
        {m.layers.map((l, i) => (
          <li key={i} class={l.trainable ? "graph-layer trainable" : "graph-layer"}>
            <p>
              <strong>{l.name || `layer ${i}`}</strong> <span class="quiet">{l.kind}</span>
              {l.trainable ? (
                <span class="badge tone-ok">trained</span>
              ) : (
                <span class="badge">frozen</span>
              )}
            </p>
            <dl class="graph-facts">
              <div>
                <dt>weights</dt>
                <dd>
                  <code>{l.weightShape.join(" × ") || kNone}</code>{" "}
                  {l.weights > 0 && <span class="quiet">= {count(l.weights)}</span>}
                </dd>
              </div>
              <div>
                <dt>output</dt>
                <dd>
                  <code>{l.outputShape.join(" × ") || kNone}</code>
                </dd>
              </div>
              <div>
                <dt>MACs</dt>
                <dd>
                  <progress
                    class="progress"
                    max={Number(most)}
                    value={Number(l.macs)}
                    aria-label={`MACs of ${l.name || l.kind}`}
                  />{" "}
                  {count(l.macs)}
                </dd>
              </div>
              {l.kOutMax > 0 && (
                <div>
                  <dt>output shift k</dt>
                  <dd>{l.kOutMin === l.kOutMax ? l.kOutMin : `${l.kOutMin} to ${l.kOutMax}`}</dd>
                </div>
              )}
            </dl>
          </li>
        ))}
        <li class="graph-end">
          output <code>{m.outputs?.count ?? m.nClasses}</code>
        </li>
      </ol>
    </Panel>
  );
}
