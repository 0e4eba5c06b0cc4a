import { toHex } from "../../api/bytes";
import type { Model } from "../../api/types";
import { models } from "../../store/fleet";
import { bytes, count, kNone, percent } from "../../store/format";
import { fleetKnown } from "../../store/link";
import { fraction, hasClasses } from "../../store/numbers";
import { Empty, Hash, Panel } from "../parts/bits";
import { newest } from "../newest";

export function ModelsView() {
  if (!fleetKnown.value && models.keys.value.length === 0) {
    return (
      <p class="loading" aria-busy="true">
        Waiting for the daemon’s first snapshot …
      </p>
    );
  }
  return (
    <>
      <h1 class="sr-only">Models</h1>
      <Models />
    </>
  );
}

function Models() {
  const list = newest(models.all());
  return (
    <Panel title="Models" aside={list.length > 0 ? count(list.length) : undefined}>
      {list.length === 0 ? (
        <Empty title="No models yet" command="odtctl model add model.onnx --trainable 2">
          <p>A quantised ONNX file is compiled into an image that every board can load.</p>
        </Empty>
      ) : (
        <div class="table-frame">
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Input</th>
                <th scope="col">Layers</th>
                <th scope="col">Own accuracy</th>
                <th scope="col">Image</th>
                <th scope="col">RAM to train, k ≤ 8</th>
                <th scope="col">k &gt; 8</th>
                <th scope="col">Hash</th>
              </tr>
            </thead>
            <tbody>
              {list.map((m) => (
                <ModelRow key={toHex(m.hash)} model={m} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

function ModelRow({ model }: { model: Model }) {
  return (
    <tr>
      <th scope="row">
        {model.name}
        <span class="sub">{model.nClasses} classes</span>
      </th>
      <td data-label="Input">{model.inputShape.join(" × ") || kNone}</td>
      <td data-label="Layers">
        <ul class="layer-list">
          {model.layers.map((l, i) => (
            <li
              key={i}
              title={`${l.kind}, ${count(l.weights)} weights, ${count(l.macs)} MACs a sample`}
            >
              <span class={l.trainable ? "layer trainable" : "layer"}>
                {l.name || l.kind} {l.weightShape.join("×")}
                {l.trainable ? "" : " frozen"}
              </span>
            </li>
          ))}
        </ul>
      </td>
      <td data-label="Own accuracy">
        {hasClasses(model.outputs) ? percent(fraction(model.sourceAccuracy)) : kNone}
      </td>
      <td data-label="Image">{bytes(model.imageBytes)}</td>
      <td data-label="RAM, k ≤ 8">{bytes(model.ramK8Bytes)}</td>
      <td data-label="RAM, k > 8">{bytes(model.ramK16Bytes)}</td>
      <td data-label="Hash">
        <Hash value={model.hash} label={`hash of model ${model.name}`} />
      </td>
    </tr>
  );
}
