import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const kAlwaysWhole = 200; // rows: below, the whole table is simply there
const kMargin = 4; // rows drawn on either side: what they show costs as much as what is seen

/// Which rows of a long table to draw, by what the window shows. Heights are those of one row.
function useRowWindow(
  body: RefObject<HTMLElement>,
  rows: number,
  rowHeight: number,
): { first: number; last: number } {
  const whole = rows <= kAlwaysWhole;
  const [range, setRange] = useState({ first: 0, last: 60 });
  useEffect(() => {
    if (whole) return;
    const update = (): void => {
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const first = Math.max(0, Math.floor(-top / rowHeight) - kMargin);
      const last = Math.ceil((window.innerHeight - top) / rowHeight) + kMargin;
      setRange((old) => (old.first === first && old.last === last ? old : { first, last }));
    };
    update();
    window.addEventListener("scroll", update, { passive: true });
    window.addEventListener("resize", update);
    return () => {
      window.removeEventListener("scroll", update);
      window.removeEventListener("resize", update);
    };
  }, [whole, rows, rowHeight]);
  return whole
    ? { first: 0, last: rows }
    : { first: range.first, last: Math.min(rows, range.last) };
}

interface Props {
  keys: readonly string[];
  columns: number;
  rowHeight: number; // px
  row: (key: string) => ComponentChildren;
}

/// The body of a long table: only the rows in view are drawn, space stands for the others.
export function WindowBody({ keys, columns, rowHeight, row }: Props) {
  const body = useRef<HTMLTableSectionElement>(null);
  const { first, last } = useRowWindow(body, keys.length, rowHeight);
  const space = (rows: number) =>
    rows > 0 && (
      <tr aria-hidden="true" class="spacer">
        <td colSpan={columns} style={{ height: `${rows * rowHeight}px` }} />
      </tr>
    );
  return (
    <tbody ref={body}>
      {space(first)}
      {keys.slice(first, last).map(row)}
      {space(keys.length - last)}
    </tbody>
  );
}
