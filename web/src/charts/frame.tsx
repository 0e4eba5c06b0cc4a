import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

export interface TableData {
  head: readonly string[];
  rows: readonly (readonly string[])[];
}

interface FrameProps {
  title: string;
  note?: string;
  table: TableData; // the same figures as text
  empty: string; // what to say without any
  tools?: ComponentChildren;
  children: ComponentChildren; // the drawing
}

export function DataTable({ title, table }: { title: string; table: TableData }) {
  return (
    <div class="chart-table" tabIndex={0} role="region" aria-label={`${title}, values`}>
      <table>
        <caption class="sr-only">{title}</caption>
        <thead>
          <tr>
            {table.head.map((h) => (
              <th scope="col" key={h}>
                {h}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, i) => (
            <tr key={i}>
              {row.map((cell, c) => (c === 0 ? <th scope="row">{cell}</th> : <td>{cell}</td>))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/// A drawing with its title, a note, and the table of what it shows.
export function ChartFrame(props: FrameProps) {
  const [asTable, setAsTable] = useState(false);
  const some = props.table.rows.length > 0;
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{props.title}</span>
        <span class="chart-tools">
          {props.tools}
          {some && (
            <button
              type="button"
              class="small"
              aria-pressed={asTable}
              aria-label={`${props.title} as a table`}
              onClick={() => setAsTable(!asTable)}
            >
              Table
            </button>
          )}
        </span>
      </figcaption>
      {!some ? (
        <div class="chart-empty framed-empty">{props.empty}</div>
      ) : asTable ? (
        <DataTable title={props.title} table={props.table} />
      ) : (
        props.children
      )}
      {props.note !== undefined && props.note !== "" && <p class="chart-note">{props.note}</p>}
    </figure>
  );
}
