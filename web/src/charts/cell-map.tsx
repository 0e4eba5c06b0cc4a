import { useState } from "preact/hooks";
import { heatColour } from "./heatmap";

export interface CellMapProps {
  title: string;
  values: readonly number[]; // one cell each, row by row
  label: (index: number) => string; // "channel 3"
  valueName: string; // "share changed"
  format: (value: number) => string;
  columns?: number; // default: as square as it gets, twice as wide as high
  max?: number; // of the scale; default: the largest value
  dark: boolean;
}

const kCell = 14; // px
const kMostCells = 4096;

/// Values as a map of coloured cells, and the same as a table.
export function CellMap(props: CellMapProps) {
  const [asTable, setAsTable] = useState(false);
  const shown = props.values.slice(0, kMostCells);
  const columns = Math.max(
    1,
    props.columns ?? Math.min(shown.length, Math.max(16, Math.ceil(Math.sqrt(shown.length * 2)))),
  );
  const rows = Math.ceil(shown.length / columns);
  const hi = props.max ?? Math.max(...shown, 0);
  const lowest = shown.length === 0 ? 0 : Math.min(...shown);
  return (
    <figure class="chart cell-map">
      <figcaption>
        <span class="chart-title">{props.title}</span>
        <button
          type="button"
          class="small"
          aria-pressed={asTable}
          aria-label={`${props.title} as a table`}
          onClick={() => setAsTable(!asTable)}
        >
          Table
        </button>
      </figcaption>
      {asTable ? (
        <CellTable {...props} />
      ) : (
        <svg
          viewBox={`0 0 ${columns * kCell} ${rows * kCell}`}
          width={columns * kCell}
          role="img"
          aria-label={`${props.title}: ${shown.length} cells, from ${props.format(lowest)} to ${props.format(Math.max(...shown, 0))}; the table has the values`}
        >
          {shown.map((v, i) => (
            <rect
              key={i}
              x={(i % columns) * kCell}
              y={Math.floor(i / columns) * kCell}
              width={kCell - 1}
              height={kCell - 1}
              fill={heatColour(hi > 0 ? v / hi : 0, props.dark)}
            >
              <title>{`${props.label(i)}: ${props.format(v)}`}</title>
            </rect>
          ))}
        </svg>
      )}
      <p class="heat-scale legend-x">
        <span>
          {props.valueName}
          {shown.length < props.values.length &&
            `, first ${kMostCells} of ${props.values.length}; the table has all`}
        </span>
        <span class="heat-key" aria-hidden="true">
          {props.format(0)}
          {[0, 0.25, 0.5, 0.75, 1].map((t) => (
            <i key={t} style={{ background: heatColour(t, props.dark) }} />
          ))}
          {props.format(hi)}
        </span>
      </p>
    </figure>
  );
}

function CellTable({ title, values, label, valueName, format }: CellMapProps) {
  return (
    <div class="chart-table" tabIndex={0} role="region" aria-label={`${title}, values`}>
      <table>
        <caption class="sr-only">{title}</caption>
        <thead>
          <tr>
            <th scope="col">Cell</th>
            <th scope="col">{valueName}</th>
          </tr>
        </thead>
        <tbody>
          {values.map((v, i) => (
            <tr key={i}>
              <th scope="row">{label(i)}</th>
              <td>{format(v)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
