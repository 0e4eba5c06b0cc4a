import { toHex } from "../api/bytes";
import type { Dataset, Model } from "../api/types";
import { datasets, models } from "../store/fleet";
import { bytes, count, kNone, percent } from "../store/format";
import { fleetKnown } from "../store/link";
import { fraction, hasClasses } from "../store/numbers";
import { Empty, Hash, Panel } from "./parts/bits";

export function LibraryView() {
  if (!fleetKnown.value && models.keys.value.length + datasets.keys.value.length === 0) {
    return (
      <p class="loading" aria-busy="true">
        Waiting for the daemon’s first snapshot …
      </p>
    );
  }
  return (
    <>
      <h1 class="sr-only">Library</h1>
      <Models />
      <Datasets />
    </>
  );
}

const newest = <T extends { meta?: { createTimeUs: bigint } | undefined }>(list: T[]): T[] =>
  list.sort((a, b) => Number((b.meta?.createTimeUs ?? 0n) - (a.meta?.createTimeUs ?? 0n)));

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

function Datasets() {
  const list = newest(datasets.all());
  return (
    <Panel title="Datasets" aside={list.length > 0 ? count(list.length) : undefined}>
      {list.length === 0 ? (
        <Empty title="No datasets yet" command="odtctl data import samples.csv --name NAME">
          <p>CSV with a label column, or IDX images with their labels.</p>
        </Empty>
      ) : (
        <div class="table-frame">
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Sample</th>
                <th scope="col">Train</th>
                <th scope="col">Held-out</th>
                <th scope="col">Test</th>
                <th scope="col">Classes</th>
                <th scope="col">Size</th>
                <th scope="col">Content</th>
              </tr>
            </thead>
            <tbody>
              {list.map((d) => (
                <DatasetRow key={toHex(d.id)} dataset={d} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

function DatasetRow({ dataset }: { dataset: Dataset }) {
  return (
    <tr>
      <th scope="row">
        {dataset.name}
        <span class="sub wrap">{dataset.source}</span>
      </th>
      <td data-label="Sample">
        {dataset.shape.join(" × ")} {dataset.dtype}
      </td>
      <td data-label="Train">{count(dataset.train)}</td>
      <td data-label="Held-out">{count(dataset.heldout)}</td>
      <td data-label="Test">{count(dataset.test)}</td>
      <td data-label="Classes">
        <ClassBalance dataset={dataset} />
      </td>
      <td data-label="Size">{bytes(dataset.bytes)}</td>
      <td data-label="Content">
        <Hash value={dataset.contentHash} label={`content hash of ${dataset.name}`} />
      </td>
    </tr>
  );
}

/// One bar per class: an unbalanced set is seen at once.
function ClassBalance({ dataset }: { dataset: Dataset }) {
  const counts = dataset.classCounts;
  if (counts.length === 0) return <>{dataset.nClasses}</>;
  const most = Math.max(...counts, 1);
  const name = (i: number): string => dataset.classNames[i] ?? `class ${i}`;
  const text = counts.map((n, i) => `${name(i)} ${n}`).join(", ");
  const width = 5 * counts.length;
  return (
    <span class="row">
      {dataset.nClasses}
      <svg class="balance" viewBox={`0 0 ${width} 18`} width={width} role="img" aria-label={text}>
        <title>{text}</title>
        {counts.map((n, i) => {
          const h = Math.max(1, (n / most) * 18);
          return <rect key={i} x={i * 5} y={18 - h} width="4" height={h} fill="currentColor" />;
        })}
      </svg>
    </span>
  );
}
