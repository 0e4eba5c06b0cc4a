import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

/// Width of an element in px as it is now: drawings are made at their size, so that text keeps its own.
export function useWidth(element: RefObject<Element>, most: number): number {
  const [width, setWidth] = useState(most);
  useLayoutEffect(() => {
    const target = element.current;
    if (target === null) return;
    const update = (): void => setWidth(Math.max(160, Math.min(most, target.clientWidth)));
    update();
    const observer = new ResizeObserver(update);
    observer.observe(target);
    return () => observer.disconnect();
  }, [most]);
  return width;
}
