import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { fromHex, toHex } from "../../api/bytes";
import { readEventHistory } from "../../api/event-history";
import { boardName, boards } from "../../store/fleet";
import { saveFile } from "../../store/files";
import { count } from "../../store/format";
import { boardOf, eventLog, kMostLines, logText, stamp, type LogLine } from "../../store/log";
import { hearEvents } from "../../store/session";
import { Empty, ProblemBox } from "../parts/bits";
import { useLoad } from "../parts/use-load";
import { href, route, setQuery } from "../router";
import "./logs.css";

const kHistory = 5000;
const kRow = 24; // px
const kMargin = 20; // rows drawn beyond what is in view

function useLines(): LogLine[] {
  const query = route.value.query;
  const [board, level, kind] = ["board", "level", "kind"].map((n) => query.get(n) ?? "");
  const words = (query.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  return eventLog.lines.value.filter((l) => {
    if (board !== "" && boardOf(l) !== board) return false;
    if (level === "problems" && l.level === "info") return false;
    if (kind !== "" && l.kind !== kind) return false;
    const text = `${l.kind} ${l.text} ${l.actor} ${l.runHex}`.toLowerCase();
    return words.every((w) =>
      w.startsWith("-") && w.length > 1 ? !text.includes(w.slice(1)) : text.includes(w),
    );
  });
}

/// What happens on all boards, or on one: searched, followed, kept as a file.
export function LogsView() {
  const history = useLoad("history", "read what happened before", async () => {
    eventLog.add(await readEventHistory(kHistory));
    return true;
  });
  useEffect(() => hearEvents((events) => eventLog.add(events)), []);
  const lines = useLines();
  const follow = useSignal(true);
  const times = (route.value.query.get("times") ?? "on") === "on";
  return (
    <>
      <h1 class="sr-only">Logs</h1>
      <LogBar lines={lines} follow={follow} times={times} />
      {history.problem !== null && <ProblemBox problem={history.problem} retry={history.reload} />}
      {eventLog.lines.value.length === 0 ? (
        history.value === null && history.problem === null ? (
          <p class="loading" aria-busy="true">
            Reading what happened before …
          </p>
        ) : (
          <Empty title="Nothing has happened yet" command="odtctl watch" />
        )
      ) : lines.length === 0 ? (
        <Empty title="No line matches">
          <p>
            <a href={href("logs")}>Clear the search</a> to see all{" "}
            {count(eventLog.lines.value.length)}.
          </p>
        </Empty>
      ) : (
        <Lines lines={lines} follow={follow} times={times} />
      )}
    </>
  );
}

type Follow = ReturnType<typeof useSignal<boolean>>;

function LogBar({
  lines,
  follow,
  times,
}: {
  lines: readonly LogLine[];
  follow: Follow;
  times: boolean;
}) {
  const query = route.value.query;
  const kinds = [...new Set(eventLog.lines.value.map((l) => l.kind))].sort();
  const all = eventLog.lines.value.length;
  const dropped = eventLog.dropped.value;
  return (
    <div class="bar">
      <input
        type="search"
        id="search"
        class="search"
        aria-label="Search the log"
        placeholder="Search words, -word leaves out"
        value={query.get("q") ?? ""}
        onInput={(e) => setQuery("q", e.currentTarget.value)}
      />
      <select
        aria-label="Board"
        value={query.get("board") ?? ""}
        onChange={(e) => setQuery("board", e.currentTarget.value)}
      >
        <option value="">all boards, merged</option>
        {boards
          .all()
          .sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }))
          .map((b) => (
            <option key={toHex(b.uid)} value={toHex(b.uid)}>
              {b.name}
            </option>
          ))}
      </select>
      <select
        aria-label="Kind"
        value={query.get("kind") ?? ""}
        onChange={(e) => setQuery("kind", e.currentTarget.value)}
      >
        <option value="">every kind</option>
        {kinds.map((k) => (
          <option key={k} value={k}>
            {k}
          </option>
        ))}
      </select>
      <div class="chips" role="group" aria-label="Show">
        <button
          type="button"
          class="chip"
          aria-pressed={query.get("level") === "problems"}
          onClick={() => setQuery("level", query.get("level") === "problems" ? "" : "problems")}
        >
          only problems
        </button>
        <button
          type="button"
          class="chip"
          aria-pressed={times}
          onClick={() => setQuery("times", times ? "off" : "")}
        >
          times
        </button>
        <button
          type="button"
          class="chip"
          aria-pressed={follow.value === true}
          onClick={() => (follow.value = follow.value !== true)}
        >
          follow
        </button>
      </div>
      <button
        type="button"
        disabled={lines.length === 0}
        onClick={() => saveFile("odt-fleet.log", [logText(lines, times)], "text/plain")}
      >
        Download
      </button>
      <p class="bar-note">
        {lines.length === all
          ? `${count(all)} lines`
          : `${count(lines.length)} of ${count(all)} lines`}
        {dropped > 0 && `; the newest ${count(kMostLines)} are kept here`}
      </p>
    </div>
  );
}

/// Only the lines in view are drawn.
function Lines({
  lines,
  follow,
  times,
}: {
  lines: readonly LogLine[];
  follow: Follow;
  times: boolean;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const height = box.current?.clientHeight ?? 700;
  const first = Math.max(0, Math.floor(top / kRow) - kMargin);
  const last = Math.min(lines.length, Math.ceil((top + height) / kRow) + kMargin);
  useLayoutEffect(() => {
    if (follow.value === true && box.current !== null)
      box.current.scrollTop = box.current.scrollHeight;
  }, [lines.length, follow.value, times]);
  const onScroll = (e: Event): void => {
    const b = e.currentTarget as HTMLDivElement;
    setTop(b.scrollTop);
    // Scrolling up holds the log; coming back to its end follows again.
    follow.value = b.scrollHeight - b.scrollTop - b.clientHeight < kRow * 2;
  };
  return (
    <div
      ref={box}
      class="log"
      tabIndex={0}
      role="log"
      aria-label="Log, newest last"
      aria-live="off"
      onScroll={onScroll}
    >
      <div style={{ height: `${first * kRow}px` }} />
      {lines.slice(first, last).map((l) => (
        <Line key={String(l.seq)} line={l} times={times} />
      ))}
      <div style={{ height: `${(lines.length - last) * kRow}px` }} />
    </div>
  );
}

function Line({ line: l, times }: { line: LogLine; times: boolean }) {
  const board = boardOf(l);
  return (
    <p class={`log-line log-${l.level}`} title={l.text}>
      {times && <time class="quiet">{stamp(l.timeMs)}</time>}
      <span class="log-level">
        {l.level === "info" ? "" : l.level === "warn" ? "▲ warn" : "✕ bad"}
      </span>
      <span class="log-board">
        {board === "" ? "" : <a href={href("board", board)}>{boardName(fromHex(board))}</a>}
      </span>
      <span class="log-kind quiet">
        {l.runHex === "" ? l.kind : <a href={href("run", l.runHex)}>{l.kind}</a>}
      </span>
      <span class="log-text">{l.text}</span>
      {l.actor !== "" && <span class="quiet">{l.actor}</span>}
    </p>
  );
}
