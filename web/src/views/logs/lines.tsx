import { useSignal, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import { boards } from "../../store/fleet";
import { fileName, saveFile } from "../../store/files";
import { count } from "../../store/format";
import { kMostLines, type FeedLine, type LineFeed } from "../../store/line-feed";
import { linkLive } from "../../store/link";
import { notices } from "../../store/notices";
import { stamp } from "../../store/log";
import { describeError } from "../../api/errors";
import { Empty, Loading, ProblemBox } from "../parts/bits";
import { SearchBox } from "../parts/search-box";
import { href, route, setQuery } from "../router";
import "./logs.css";

const kRow = 24; // px
const kMargin = 20; // rows drawn beyond what is in view
const kTypingMs = 250;

/// A feed of its own for every `key`, asked again by `every` while the page is looked at.
export function useFeed<L extends FeedLine>(
  key: string,
  make: () => LineFeed<L>,
  every: (poll: () => void) => () => void,
): LineFeed<L> {
  const feed = useMemo(make, [key]);
  const live = linkLive.value;
  useEffect(() => {
    if (!live) return;
    const poll = (): void => {
      if (document.visibilityState === "visible") void feed.poll();
    };
    poll();
    const stop = every(poll);
    document.addEventListener("visibilitychange", poll);
    return () => {
      stop();
      document.removeEventListener("visibilitychange", poll);
    };
  }, [feed, live]);
  useEffect(() => () => feed.end(), [feed]);
  return feed;
}

export interface LogQuery {
  boardHex: string;
  search: string;
  problems: boolean;
  times: boolean;
}
export function logQuery(): LogQuery {
  const { query } = route.value;
  return {
    boardHex: query.get("board") ?? "",
    search: query.get("q") ?? "",
    problems: query.get("level") === "problems",
    times: query.get("times") !== "off",
  };
}

/// The two pages of this one.
export function LogTabs({ here }: { here: "logs" | "console" }) {
  const board = route.value.query.get("board") ?? "";
  const keep = board === "" ? undefined : new URLSearchParams({ board });
  const tab = (view: "logs" | "console", label: string) => (
    <a class="chip" href={href(view, "", keep)} aria-current={view === here ? "page" : undefined}>
      {label}
    </a>
  );
  return (
    <nav class="chips" aria-label="Logs">
      {tab("logs", "Events")}
      {tab("console", "Board consoles")}
    </nav>
  );
}

function Toggle(props: { pressed: boolean; label: string; onClick: () => void }) {
  return (
    <button type="button" class="chip" aria-pressed={props.pressed} onClick={props.onClick}>
      {props.label}
    </button>
  );
}

export function LogBar(props: {
  here: "logs" | "console";
  feed: LineFeed<FeedLine>;
  follow: Signal<boolean>;
  problems: string; // what "problems" are, for people
  note: ComponentChildren;
  download: (onProgress: (lines: number) => void) => Promise<Blob[]>;
  children?: ComponentChildren;
}) {
  const { follow, feed } = props;
  const q = logQuery();
  return (
    <div class="bar">
      <LogTabs here={props.here} />
      <SearchBox
        label="Search all that is kept"
        placeholder="Search words, -word leaves out"
        delayMs={kTypingMs}
      />
      <select
        aria-label="Board"
        value={q.boardHex}
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
      {props.children}
      <div class="chips" role="group" aria-label="Show">
        <Toggle
          pressed={q.problems}
          label={props.problems}
          onClick={() => setQuery("level", q.problems ? "" : "problems")}
        />
        <Toggle
          pressed={q.times}
          label="times"
          onClick={() => setQuery("times", q.times ? "off" : "")}
        />
        <Toggle
          pressed={follow.value}
          label="follow"
          onClick={() => {
            follow.value = !follow.value;
            if (follow.value && !feed.atEnd.value) void feed.restart();
          }}
        />
      </div>
      <Download here={props.here} download={props.download} empty={feed.lines.value.length === 0} />
      <p class="bar-note">{props.note}</p>
    </div>
  );
}

function Download(props: {
  here: string;
  download: (onProgress: (lines: number) => void) => Promise<Blob[]>;
  empty: boolean;
}) {
  const done = useSignal<number | null>(null);
  const start = async (): Promise<void> => {
    done.value = 0;
    try {
      const parts = await props.download((lines) => (done.value = lines));
      saveFile(
        fileName(`odt-${props.here}-${stamp(Date.now()).slice(0, 10)}`, "log"),
        parts,
        "text/plain",
      );
    } catch (error) {
      notices.fail(describeError(error, "Could not download all lines"));
    }
    done.value = null;
  };
  return (
    <button
      type="button"
      disabled={props.empty || done.value !== null || !linkLive.value}
      title="Every line that matches, not only those shown"
      onClick={() => void start()}
    >
      {done.value === null ? "Download all" : `${count(done.value)} lines …`}
    </button>
  );
}

/// When a line came; on a phone without the day.
export function Stamp({ timeMs }: { timeMs: number }) {
  const [day, time] = stamp(timeMs).split(" ");
  return (
    <time class="quiet">
      <span class="log-day">{day} </span>
      {time}
    </time>
  );
}

/// What stands where lines are expected.
export function LogBody<L extends FeedLine>(props: {
  view: "logs" | "console";
  feed: LineFeed<L>;
  follow: Signal<boolean>;
  row: (line: L) => ComponentChildren;
  empty: ComponentChildren;
}) {
  const { feed } = props;
  const q = logQuery();
  const kind = route.value.query.get("kind") ?? "";
  const filtered = q.search !== "" || q.boardHex !== "" || q.problems || kind !== "";
  const none = feed.lines.value.length === 0;
  return (
    <>
      {feed.problem.value !== null && (
        <ProblemBox problem={feed.problem.value} retry={() => void feed.poll()} />
      )}
      {!feed.ready.value ? (
        feed.problem.value === null && <Loading what="Reading what happened before …" />
      ) : !none ? (
        <Lines feed={feed} follow={props.follow} row={props.row} />
      ) : feed.older.value !== "" ? (
        <Empty title="No line matches in the newest 20 000">
          <button type="button" disabled={feed.busy.value} onClick={() => void feed.readOlder()}>
            {feed.busy.value ? "Looking …" : "Look further back"}
          </button>
        </Empty>
      ) : filtered ? (
        <Empty title="No line matches">
          <p>
            <a href={href(props.view)}>Clear the search</a> to see all.
          </p>
        </Empty>
      ) : (
        props.empty
      )}
    </>
  );
}

/// Only the lines in view are drawn. At the top, older ones are read.
function Lines<L extends FeedLine>(props: {
  feed: LineFeed<L>;
  follow: Signal<boolean>;
  row: (line: L) => ComponentChildren;
}) {
  const { feed, follow } = props;
  const lines = feed.lines.value;
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const height = box.current?.clientHeight ?? 700;
  const first = Math.max(0, Math.floor(top / kRow) - kMargin);
  const last = Math.min(lines.length, Math.ceil((top + height) / kRow) + kMargin);
  const added = feed.added.value;
  const before = useRef(added);
  useLayoutEffect(() => {
    // What is read stays where it is while older lines come before it.
    if (box.current !== null) box.current.scrollTop += (added - before.current) * kRow;
    before.current = added;
  }, [added]);
  useLayoutEffect(() => {
    if (follow.value && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [lines, follow.value]);
  const onScroll = (e: Event): void => {
    const b = e.currentTarget as HTMLDivElement;
    setTop(b.scrollTop);
    // Scrolling up holds the log; coming back to its end follows again.
    follow.value = feed.atEnd.value && b.scrollHeight - b.scrollTop - b.clientHeight < kRow * 2;
  };
  return (
    <>
      {feed.older.value !== "" && (
        <p class="log-older">
          <button type="button" disabled={feed.busy.value} onClick={() => void feed.readOlder()}>
            Older lines
          </button>
          {!feed.atEnd.value && (
            <span class="quiet">
              {" "}
              {count(kMostLines)} lines are shown at most; “follow” goes back to the newest.
            </span>
          )}
        </p>
      )}
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
        {lines.slice(first, last).map(props.row)}
        <div style={{ height: `${(lines.length - last) * kRow}px` }} />
      </div>
    </>
  );
}
