import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/// The width that an element has on the page, px: what is drawn in it keeps the size of its text.
export function useWidth<E extends Element>(first: number): [RefObject<E>, number] {
  const element = useRef<E>(null);
  const [width, setWidth] = useState(first);
  useLayoutEffect(() => {
    const e = element.current;
    if (e === null) return;
    const measure = (): void =>
      setWidth(Math.max(160, Math.round(e.getBoundingClientRect().width)));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(e);
    return () => observer.disconnect();
  }, []);
  return [element, width];
}
