import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { count } from "../../store/format";
import { href, route, setQuery } from "../router";
import { Empty } from "./bits";

/// The search of a page (`/` goes to it), kept in its address as `q`. With `delayMs` the address follows when nothing
/// was typed for so long: for searches that the daemon carries out.
export function SearchBox(props: {
  label: string;
  placeholder: string;
  title?: string;
  delayMs?: number;
}) {
  const value = route.value.query.get("q") ?? "";
  const [typed, setTyped] = useState<string | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (text: string): void => {
    if (props.delayMs === undefined) return setQuery("q", text);
    setTyped(text);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      setQuery("q", text);
      setTyped(null);
    }, props.delayMs);
  };
  return (
    <input
      type="search"
      id="search"
      class="search"
      aria-label={props.label}
      placeholder={props.placeholder}
      title={props.title}
      maxLength={200}
      value={typed ?? value}
      onInput={(e) => type(e.currentTarget.value)}
    />
  );
}

/// How many of a list are shown: "12 runs", "3 of 12 runs".
export function ShownNote(props: {
  shown: number;
  total: number;
  what: string; // one of them
  children?: ComponentChildren;
}) {
  const noun = props.total === 1 ? props.what : `${props.what}s`;
  const n = props.shown === props.total ? "" : `${count(props.shown)} of `;
  return (
    <p class="bar-note">
      {n}
      {count(props.total)} {noun}
      {props.children}
    </p>
  );
}

/// A search that nothing matches, and the way back.
export function NoMatch(props: { view: string; what: string; total: number }) {
  return (
    <Empty title={`No ${props.what} matches`}>
      <p>
        <a href={href(props.view)}>Clear the search</a> to see all {count(props.total)}.
      </p>
    </Empty>
  );
}
