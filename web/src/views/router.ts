import { computed, signal } from "@preact/signals";

/// Where the page is: `#/board/<uid>?…`. Everything a person would want to send to a colleague is here.
export interface Route {
  view: string;
  id: string;
  query: URLSearchParams;
}

function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view = "", id = ""] = path.split("/").map(decodeURIComponent);
  return { view: view || "fleet", id, query: new URLSearchParams(query) };
}

const hash = signal(location.hash);
window.addEventListener("hashchange", () => {
  hash.value = location.hash;
});

export const route = computed(() => {
  try {
    return parse(hash.value);
  } catch {
    return parse(""); // a broken %-escape
  }
});

export function href(view: string, id = "", query?: URLSearchParams): string {
  const q = query === undefined || query.size === 0 ? "" : `?${query.toString()}`;
  return `#/${view}${id === "" ? "" : `/${encodeURIComponent(id)}`}${q}`;
}

export function go(to: string): void {
  location.hash = to;
}

/// Changes one query value in place: no new step in the browser's history.
export function setQuery(name: string, value: string): void {
  const { view, id, query } = route.value;
  const next = new URLSearchParams(query);
  if (value === "") next.delete(name);
  else next.set(name, value);
  history.replaceState(null, "", href(view, id, next));
  hash.value = location.hash;
}
