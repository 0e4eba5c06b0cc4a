import "../../styles/analysis.css";
import { useEffect, useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import type { Problem } from "../../api/errors";
import { type Board, BoardStatus, type Run } from "../../api/types";
import { each, tellFailures } from "../../store/bulk";
import { boards, datasets, models, runs } from "../../store/fleet";
import { bytes, count, duration, kNone } from "../../store/format";
import { estimateRun, isProblem, startRun, type Checked, type RunWish } from "../../store/launch";
import { fleetKnown, linkLive } from "../../store/link";
import { knownLook } from "../board-state";
import { fitting, newest } from "../newest";
import { Command, Empty, Loading, Panel } from "../parts/bits";
import { StateMark } from "../parts/state-mark";
import { go, href, route, setQuery } from "../router";
import { commandOf } from "../train-dialog";
import { Fields } from "./fields";
import { basisWords } from "./words";

const kCheckDelayMs = 400;
type Answer = Checked | Problem | null;

/// Wishes to begin with: those of another run, or the newest model and what it takes.
function firstWish(): RunWish {
  const { query } = route.value;
  const like = runs.peek(query.get("like") ?? "");
  const hyper = like?.spec?.hyper;
  const text = (v: number | undefined): string => (v === undefined ? "" : String(v));
  const modelHash = like?.spec?.modelHash ?? newest(models.all())[0]?.hash ?? new Uint8Array();
  const dataset = fitting(models.peek(toHex(modelHash)), datasets.all())[0];
  return {
    boardHex: "",
    modelHex: toHex(modelHash),
    datasetHex: toHex(like?.spec?.datasetId ?? dataset?.id ?? new Uint8Array()),
    name: like === undefined ? "" : `${like.spec?.name || "run"}-trial`.slice(0, 63),
    epochs: text(hyper?.epochs) || "10",
    muWeight: query.get("muWeight") ?? hyper?.muWeight.join(",") ?? "",
    batch: text(hyper?.batch),
    k: query.get("k") ?? text(hyper?.k),
    more: {},
  };
}

function pickedBoards(): string[] {
  const { query } = route.value;
  const like = runs.peek(query.get("like") ?? "");
  const asked = query.get("boards") ?? toHex(like?.spec?.boardUid ?? new Uint8Array());
  return asked.split(",").filter((uid) => boards.peek(uid) !== undefined);
}

/// One training on one or many boards: settings, what the daemon says of each board, and the start.
export function LaunchView() {
  const ready = fleetKnown.value && boards.keys.value.length > 0;
  return (
    <>
      <header class="page-head">
        <nav aria-label="Where this is" class="crumbs">
          <a href={href("fleet")}>Fleet</a> <span aria-hidden="true">/</span>
        </nav>
        <h1>Train</h1>
      </header>
      {!fleetKnown.value ? (
        <Loading />
      ) : !ready ? (
        <Empty title="No boards to train" command="odtctl board list">
          <p>Plug one in, or start a simulated one: the fleet page says how.</p>
        </Empty>
      ) : models.keys.value.length === 0 ? (
        <Empty title="There is no model yet" command="odtctl model add model.onnx --trainable 2" />
      ) : datasets.keys.value.length === 0 ? (
        <Empty
          title="There is no dataset yet"
          command="odtctl data import samples.csv --name NAME"
        />
      ) : (
        <LaunchForm />
      )}
    </>
  );
}

function LaunchForm() {
  const [wish, setWish] = useState(firstWish);
  const picked = pickedBoards();
  const [answers, setAnswers] = useState<ReadonlyMap<string, Answer>>(new Map());
  const [starting, setStarting] = useState(false);
  const key = `${JSON.stringify(wish)}${picked.join()}`;
  useEffect(() => {
    let current = true;
    setAnswers(new Map());
    const timer = setTimeout(() => {
      void each(
        picked,
        () => "",
        async (uid) => {
          if (!current) return;
          const answer = await estimateRun({ ...wish, boardHex: uid });
          if (current) setAnswers((old) => new Map(old).set(uid, answer));
        },
      );
    }, kCheckDelayMs);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [key]);
  const can = picked.filter((uid) => {
    const a = answers.get(uid);
    return a != null && !isProblem(a);
  });
  const start = async (): Promise<void> => {
    setStarting(true);
    const started: Run[] = [];
    const { failed } = await each(
      can,
      () => "Could not start the run",
      async (uid) => {
        const answer = await startRun({ ...wish, boardHex: uid });
        if (isProblem(answer)) throw new Error(`${answer.cause} ${answer.remedy}`);
        started.push(answer);
      },
    );
    setStarting(false);
    tellFailures(failed, can.length);
    const ids = started.map((r) => toHex(r.id));
    if (ids.length === 1) go(href("run", ids[0]));
    else if (ids.length > 1) go(href("compare", "", new URLSearchParams({ runs: ids.join() })));
  };
  const first = boards.peek(picked[0] ?? "");
  return (
    <form
      class="launch"
      onSubmit={(e) => {
        e.preventDefault();
        void start();
      }}
    >
      <Panel title="What to train">
        <Fields wish={wish} setWish={setWish} />
      </Panel>
      <Panel
        title="On which boards"
        aside={picked.length > 0 && `${count(can.length)} of ${count(picked.length)} can do it`}
      >
        <BoardsTable picked={picked} answers={answers} />
      </Panel>
      <div class="row launch-buttons">
        <button
          type="submit"
          class="primary"
          disabled={can.length === 0 || starting || !linkLive.value}
        >
          {starting ? "Starting …" : can.length > 1 ? `Start ${can.length} runs` : "Start run"}
        </button>
        {can.length < picked.length && can.length > 0 && (
          <span class="quiet">Boards that cannot do it are left out.</span>
        )}
        {first !== undefined && <Command text={commandOf(first, wish)} />}
      </div>
    </form>
  );
}

function BoardsTable(props: { picked: readonly string[]; answers: ReadonlyMap<string, Answer> }) {
  const { picked } = props;
  const list = boards
    .all()
    .sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
  const set = (uid: string, on: boolean): void => {
    const next = on ? [...picked, uid] : picked.filter((u) => u !== uid);
    setQuery("boards", next.join());
  };
  return (
    <div class="table-frame">
      <table class="numbers launch-boards">
        <thead>
          <tr>
            {["", "Board", "Status", "Check", "Steps", "Time", "Memory", "Samples"].map((h) => (
              <th scope="col" key={h}>
                {h || <span class="sr-only">Train on it</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {list.map((b) => {
            const uid = toHex(b.uid);
            const on = picked.includes(uid);
            return (
              <tr key={uid}>
                <td class="cell-select">
                  <input
                    type="checkbox"
                    aria-label={`Train on ${b.name || uid.slice(-8)}`}
                    checked={on}
                    onChange={(e) => set(uid, e.currentTarget.checked)}
                  />
                </td>
                <th scope="row">{b.name || uid.slice(-8)}</th>
                <td>
                  <StateMark look={knownLook(b.status)} />
                </td>
                {on ? (
                  <CheckCells board={b} answer={props.answers.get(uid) ?? null} />
                ) : (
                  <td colSpan={5} />
                )}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function CheckCells({ board, answer }: { board: Board; answer: Answer }) {
  if (answer === null)
    return (
      <td colSpan={5} class="quiet">
        Asking the daemon …
      </td>
    );
  if (isProblem(answer)) {
    return (
      <td colSpan={5} class="wrap">
        <span class="tone-bad">✕ {answer.cause}</span>
        <span class="sub">{answer.remedy}</span>
      </td>
    );
  }
  const { estimate: e, run } = answer;
  const waits = board.status === BoardStatus.OFFLINE ? "waits until the board is back" : "";
  const warnings = (e?.warnings ?? []).map((w) => w.text);
  return (
    <>
      <td class="wrap" data-label="Check">
        <span class="tone-ok">✓ fits</span>
        {[waits, ...warnings].filter(Boolean).map((w) => (
          <span class="sub tone-warn" key={w}>
            {w}
          </span>
        ))}
      </td>
      <td data-label="Steps">{count(e?.steps ?? run.stepsTotal)}</td>
      <td data-label="Time">
        {e === undefined || e.totalUs === 0n
          ? kNone
          : `about ${shortTime(Number(e.totalUs) / 1000)}`}
        <span class="sub">
          {basisWords(e?.basis)}
          {e !== undefined &&
            e.queueUs > 0n &&
            ` · after ${duration(Number(e.queueUs) / 1000)} in the queue`}
        </span>
      </td>
      <td data-label="Memory">
        {e === undefined || e.ramBytes === 0n
          ? kNone
          : `${bytes(e.ramBytes)} of ${bytes(e.boardRamBytes)}`}
      </td>
      <td class="wrap" data-label="Samples">
        {e?.placement || kNone}
      </td>
    </>
  );
}

const shortTime = (ms: number): string =>
  ms < 1000 ? `${Math.max(1, Math.round(ms))} ms` : duration(ms);
