import { toHex } from "../../api/bytes";
import type { Dataset } from "../../api/types";
import { datasets } from "../../store/fleet";
import { bytes, count } from "../../store/format";
import { fleetKnown } from "../../store/link";
import { parseFilter, toFields } from "../filter";
import { newest } from "../newest";
import { Empty, Hash, Loading } from "../parts/bits";
import { NoMatch, SearchBox, ShownNote } from "../parts/search-box";
import { href, route } from "../router";
import { ImportPanel } from "./import";

export function DatasetList() {
  if (!fleetKnown.value && datasets.keys.value.length === 0) {
    return <Loading page="Data" />;
  }
  const all = newest(datasets.all());
  const query = route.value.query.get("q") ?? "";
  const test = parseFilter(query);
  const shown = all.filter((d) =>
    test(toFields({ name: d.name, source: d.source, dtype: d.dtype, shape: d.shape.join("x") })),
  );
  return (
    <>
      <h1 class="sr-only">Data</h1>
      <div class="bar">
        <SearchBox label="Search datasets" placeholder="Search, dtype=u8, -inverted" />
        <a class="button" href={href("data", "capture")}>
          Capture from a board
        </a>
        <ShownNote shown={shown.length} total={all.length} what="dataset" />
      </div>
      <ImportPanel />
      {all.length === 0 ? (
        <Empty title="No datasets yet" command="odtctl data import samples.csv --name NAME">
          <p>
            CSV with a label column, IDX images with labels, NPZ, WAV folders, PNG: drop them above.
          </p>
        </Empty>
      ) : shown.length === 0 ? (
        <NoMatch view="data" what="dataset" total={all.length} />
      ) : (
        <Table list={shown} />
      )}
    </>
  );
}

function Table({ list }: { list: readonly Dataset[] }) {
  return (
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
            <tr key={toHex(d.id)}>
              <th scope="row">
                <a href={href("data", toHex(d.id))}>{d.name}</a>
                {d.warnings.length > 0 && (
                  <span class="badge tone-warn" title={d.warnings.join("\n")}>
                    {d.warnings.length} warning{d.warnings.length === 1 ? "" : "s"}
                  </span>
                )}
                <span class="sub wrap">{d.source}</span>
              </th>
              <td data-label="Sample">
                {d.shape.join(" × ")} {d.dtype}
              </td>
              <td data-label="Train">{count(d.train)}</td>
              <td data-label="Held-out">{count(d.heldout)}</td>
              <td data-label="Test">{count(d.test)}</td>
              <td data-label="Classes">
                <ClassBalance dataset={d} />
              </td>
              <td data-label="Size">{bytes(d.bytes)}</td>
              <td data-label="Content">
                <Hash value={d.contentHash} label={`content hash of ${d.name}`} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/// One bar per class: an unbalanced set is seen at once.
function ClassBalance({ dataset }: { dataset: Dataset }) {
  const counts = dataset.classCounts;
  if (counts.length === 0) return <>{dataset.nClasses || `${dataset.outputs} targets`}</>;
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
