import { useSignal } from "@preact/signals";
import { fromHex } from "../../api/bytes";
import { boardName } from "../../store/fleet";
import { count } from "../../store/format";
import { boardOf, kKinds, logFeed, readLog, type LogFilter, type LogLine } from "../../store/log";
import { hearEvents } from "../../store/session";
import { Empty } from "../parts/bits";
import { href, route, setQuery } from "../router";
import { LogBar, LogBody, logQuery, Stamp, useFeed } from "./lines";

const kGatherMs = 300; // events that come together are asked for together

/// Asks when something has happened.
function onEvents(poll: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | null = null;
  const release = hearEvents(() => {
    timer ??= setTimeout(() => {
      timer = null;
      poll();
    }, kGatherMs);
  });
  return () => {
    release();
    if (timer !== null) clearTimeout(timer);
  };
}

/// What happens on all boards, or on one: searched by the daemon, followed, kept as a file.
export function LogsView() {
  const q = logQuery();
  const kind = route.value.query.get("kind") ?? "";
  const filter: LogFilter = { ...q, kind };
  const key = JSON.stringify([filter.boardHex, filter.search, filter.problems, kind]);
  const feed = useFeed(key, () => logFeed(filter), onEvents);
  const follow = useSignal(true);
  const n = feed.lines.value.length;
  return (
    <>
      <h1 class="sr-only">Logs</h1>
      <LogBar
        here="logs"
        feed={feed}
        follow={follow}
        problems="only problems"
        note={`${count(n)} lines${feed.older.value === "" ? "" : ", there are older ones"}`}
        download={(progress) => readLog(filter, q.times, progress)}
      >
        <select
          aria-label="Kind"
          value={kind}
          onChange={(e) => setQuery("kind", e.currentTarget.value)}
        >
          <option value="">every kind</option>
          {Object.keys(kKinds)
            .sort()
            .map((k) => (
              <option key={k} value={k}>
                {k}
              </option>
            ))}
        </select>
      </LogBar>
      <LogBody
        view="logs"
        feed={feed}
        follow={follow}
        row={(l) => <Line key={String(l.seq)} line={l} times={q.times} />}
        empty={<Empty title="Nothing has happened yet" command="odtctl watch" />}
      />
    </>
  );
}

function Line({ line: l, times }: { line: LogLine; times: boolean }) {
  const board = boardOf(l);
  return (
    <p class={`log-line log-${l.level}`} title={l.text}>
      {times && <Stamp timeMs={l.timeMs} />}
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
