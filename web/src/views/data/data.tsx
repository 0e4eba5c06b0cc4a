import { toHex } from "../../api/bytes";
import type { Dataset } from "../../api/types";
import { datasets } from "../../store/fleet";
import { bytes, count } from "../../store/format";
import { fleetKnown } from "../../store/link";
import { Empty, Hash, Panel } from "../parts/bits";
import { newest } from "../newest";

export function DataView() {
  if (!fleetKnown.value && datasets.keys.value.length === 0) {
    return (
      <p class="loading" aria-busy="true">
        Waiting for the daemon’s first snapshot …
      </p>
    );
  }
  return (
    <>
      <h1 class="sr-only">Data</h1>
      <Datasets />
    </>
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
