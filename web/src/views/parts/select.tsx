import type { ComponentChildren } from "preact";
import { bulkProgress } from "../../store/bulk";
import { count } from "../../store/format";
import type { Selection } from "../../store/selection";
import { Progress } from "./bits";

/// The tick of a row. Shift ticks everything since the row ticked before.
export function SelectCell(props: {
  selection: Selection;
  row: string;
  name: string;
  shown: readonly string[];
}) {
  const { selection, row } = props;
  return (
    <td class="cell-select">
      <input
        type="checkbox"
        aria-label={`Select ${props.name}`}
        checked={selection.has(row)}
        onClick={(e) =>
          selection.toggle(row, e.currentTarget.checked, e.shiftKey ? props.shown : undefined)
        }
      />
    </td>
  );
}

export function SelectHead(props: {
  selection: Selection;
  shown: readonly string[];
  what: string;
}) {
  const { selection, shown } = props;
  const n = shown.filter((k) => selection.has(k)).length;
  return (
    <th scope="col" class="cell-select">
      <input
        type="checkbox"
        aria-label={`Select all ${count(shown.length)} ${props.what} shown`}
        checked={n > 0 && n === shown.length}
        ref={(box) => {
          if (box !== null) box.indeterminate = n > 0 && n < shown.length;
        }}
        onClick={(e) => selection.set(e.currentTarget.checked ? shown : [])}
      />
    </th>
  );
}

/// What can be done with the rows that are ticked; there only while some are.
export function BulkBar(props: {
  selection: Selection;
  n: number;
  what: string;
  children: ComponentChildren;
}) {
  const progress = bulkProgress.value;
  if (props.n === 0) return null;
  return (
    <div class="bulk" role="region" aria-label={`Selected ${props.what}`}>
      <strong aria-live="polite">
        {count(props.n)} {props.n === 1 ? props.what.replace(/s$/, "") : props.what} selected
      </strong>
      {props.children}
      {progress !== null && (
        <Progress done={progress.done} total={progress.total} label="Done of the selected" />
      )}
      <button type="button" class="bulk-clear" onClick={() => props.selection.clear()}>
        Clear
      </button>
    </div>
  );
}
