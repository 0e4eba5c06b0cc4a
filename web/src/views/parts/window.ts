import { useEffect, useState } from "preact/hooks";
import type { RefObject } from "preact";

const kAlwaysWhole = 200; // rows: below, the whole table is simply there
const kMargin = 12;

/// Which rows of a long table to draw, by what the window shows. Heights are those of one row.
export function useRowWindow(
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
