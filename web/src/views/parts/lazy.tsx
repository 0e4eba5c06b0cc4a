import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import type { Problem } from "../../api/errors";
import { ProblemBox } from "./bits";

export interface LazyView<P> {
  (props: P): preact.JSX.Element;
  /// Fetches the part now, so that it is there when it is wanted.
  preload(): void;
}

/// A part of the page that is fetched when it is first shown: lazy(() => import("./x").then((m) => m.X)).
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): LazyView<P> {
  const part = signal<ComponentType<P> | null>(null);
  const problem = signal<Problem | null>(null);
  let loading = false;
  const start = (): void => {
    if (part.peek() !== null || loading) return;
    loading = true;
    problem.value = null;
    load()
      .then((component) => (part.value = component))
      .catch((error: unknown) => (problem.value = partProblem(error)))
      .finally(() => (loading = false));
  };
  const view = (props: P) => {
    useEffect(start, []);
    const Part = part.value;
    if (Part !== null) return <Part {...props} />;
    if (problem.value !== null) return <ProblemBox problem={problem.value} retry={start} />;
    return (
      <p class="loading" aria-busy="true">
        Loading …
      </p>
    );
  };
  return Object.assign(view, { preload: start });
}

function partProblem(error: unknown): Problem {
  return {
    title: "This page could not be loaded",
    cause: error instanceof Error ? error.message : String(error),
    remedy:
      "Check that odtd is running (odtctl doctor). After an update of the daemon, reload the page.",
    code: "PART_NOT_LOADED",
  };
}
