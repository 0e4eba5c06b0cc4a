import { useSignal } from "@preact/signals";
import { fromHex } from "../../api/bytes";
import {
  consoleFeed,
  levelWord,
  readConsole,
  type ConsoleFilter,
  type ConsoleLimits,
  type ConsoleLine,
} from "../../store/console";
import { boardName } from "../../store/fleet";
import { count } from "../../store/format";
import { Empty } from "../parts/bits";
import { href } from "../router";
import { LogBar, LogBody, logQuery, Stamp, useFeed } from "./lines";

const kAgainMs = 1000;

function everySecond(poll: () => void): () => void {
  const timer = setInterval(poll, kAgainMs);
  return () => clearInterval(timer);
}

/// What boards print: log lines, raw console output, and when each came and went. One board, or all merged.
export function ConsoleView() {
  const q = logQuery();
  const filter: ConsoleFilter = q;
  const limits = useSignal<ConsoleLimits | null>(null);
  const key = JSON.stringify([q.boardHex, q.search, q.problems]);
  const feed = useFeed(key, () => consoleFeed(filter, (l) => (limits.value = l)), everySecond);
  const follow = useSignal(true);
  const board = q.boardHex === "" ? "" : boardName(fromHex(q.boardHex));
  return (
    <>
      <h1 class="sr-only">{board === "" ? "Board consoles" : `Console of ${board}`}</h1>
      <LogBar
        here="console"
        feed={feed}
        follow={follow}
        problems="only warnings"
        note={<Note shown={feed.lines.value.length} limits={limits.value} />}
        download={(progress) => readConsole(filter, q.times, progress)}
      />
      <LogBody
        view="console"
        feed={feed}
        follow={follow}
        row={(l) => (
          <Line key={String(l.seq)} line={l} times={q.times} merged={q.boardHex === ""} />
        )}
        empty={
          <Empty title="No board has printed anything yet" command="odtctl board console --follow">
            <p>Log lines, raw console output, and marks of when a board came and went.</p>
          </Empty>
        }
      />
    </>
  );
}

function Note({ shown, limits }: { shown: number; limits: ConsoleLimits | null }) {
  if (limits === null) return <>{count(shown)} lines</>;
  return (
    <span title={`odtd keeps the newest ${count(limits.perBoard)} of each board`}>
      {count(shown)} of {count(limits.kept)} lines kept
      {limits.lost > 0 && (
        <span class="tone-warn"> · {count(limits.lost)} came too fast and are lost</span>
      )}
    </span>
  );
}

function Line(props: { line: ConsoleLine; times: boolean; merged: boolean }) {
  const { line: l } = props;
  const tone = l.level >= 4 ? "bad" : l.level === 3 ? "warn" : "info";
  const mark = tone === "bad" ? "✕ " : tone === "warn" ? "▲ " : "";
  return (
    <p class={`log-line log-${tone} log-from-${l.source}`} title={l.text}>
      {props.times && <Stamp timeMs={l.timeMs} />}
      {props.merged && (
        <span class="log-board">
          <a href={href("board", l.boardHex)}>{boardName(fromHex(l.boardHex))}</a>
        </span>
      )}
      <span class="log-level">
        {mark}
        {levelWord(l)}
      </span>
      <span class="log-text">{l.text}</span>
    </p>
  );
}
