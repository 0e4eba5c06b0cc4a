import { count, percent } from "../../store/format";

export interface Cell {
  label: number;
  said: number;
}

const kSteps = 5; // shades; the figure stands in every cell

/// Labels down, what was said across. A cell's shade is its share of the row; pressing one shows its samples.
export function ConfusionMatrix(props: {
  matrix: readonly number[];
  n: number;
  name: (label: number) => string;
  cell: Cell | null;
  choose: (cell: Cell | null) => void;
}) {
  const { matrix, n, name } = props;
  const labels = Array.from({ length: n }, (_, i) => i);
  const total = (row: number): number =>
    labels.reduce((sum, c) => sum + (matrix[row * n + c] ?? 0), 0);
  return (
    <div
      class="table-frame scroll confusion-frame"
      tabIndex={0}
      role="region"
      aria-label="Confusion matrix"
    >
      <table class="confusion">
        <caption class="sr-only">Rows are labels, columns what was said</caption>
        <thead>
          <tr>
            <th scope="col">Label \ said</th>
            {labels.map((c) => (
              <th scope="col" key={c}>
                {name(c)}
              </th>
            ))}
            <th scope="col">Right</th>
          </tr>
        </thead>
        <tbody>
          {labels.map((row) => {
            const sum = total(row);
            return (
              <tr key={row}>
                <th scope="row">{name(row)}</th>
                {labels.map((c) => (
                  <MatrixCell key={c} {...props} row={row} column={c} sum={sum} />
                ))}
                <td class="nowrap">{percent((matrix[row * n + row] ?? 0) / sum)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function MatrixCell(props: {
  matrix: readonly number[];
  n: number;
  name: (label: number) => string;
  cell: Cell | null;
  choose: (cell: Cell | null) => void;
  row: number;
  column: number;
  sum: number;
}) {
  const { row, column, name } = props;
  const value = props.matrix[row * props.n + column] ?? 0;
  const share = props.sum > 0 ? value / props.sum : 0;
  const shade = value === 0 ? 0 : Math.max(1, Math.ceil(share * kSteps));
  const right = row === column;
  const chosen = props.cell?.label === row && props.cell.said === column;
  const words = `${count(value)} of ${name(row)} ${right ? "rightly" : `taken for ${name(column)}`}`;
  if (value === 0) return <td class="quiet">·</td>;
  return (
    <td class={`shade-${right ? "right" : "wrong"}-${shade}`} title={`${words}, ${percent(share)}`}>
      {right ? (
        count(value)
      ) : (
        <button
          type="button"
          class="cell-button"
          aria-pressed={chosen}
          aria-label={words}
          onClick={() => props.choose(chosen ? null : { label: row, said: column })}
        >
          {count(value)}
        </button>
      )}
    </td>
  );
}
