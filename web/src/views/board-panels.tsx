import { useEffect, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { toHex } from "../api/bytes";
import { clients, kCallTimeoutMs } from "../api/clients";
import { BoardStatus, DesiredState, RunState, type Board } from "../api/types";
import { LineChart } from "../charts/line-chart";
import { act } from "../store/actions";
import { labelAll } from "../store/bulk";
import { boards, modelName } from "../store/fleet";
import { bytes, clock, count, kNone, shortHash } from "../store/format";
import { linkLive } from "../store/link";
import { nowMs, serverNowMs } from "../store/clock";
import { runOfBoard } from "./board-state";
import { parseLabel } from "./fleet-bulk";
import { Facts, Panel, ProblemBox } from "./parts/bits";
import { ConfirmButton } from "./parts/confirm";
import { useLoad } from "./parts/use-load";
import { dark } from "./theme";
import { boardLook, runLook } from "./words";

const kDesired: Partial<Record<DesiredState, string>> = {
  [DesiredState.RUN]: "run",
  [DesiredState.PAUSE]: "pause",
  [DesiredState.CANCEL]: "cancel",
};

/// What is wanted of the board beside what it reports; a difference is marked.
export function DesiredPanel({ board }: { board: Board }) {
  const run = runOfBoard(board);
  const open = run !== undefined && board.runId.length > 0;
  const wanted = open ? modelName(run.spec?.modelHash ?? new Uint8Array()) : "";
  const held = modelName(board.modelHash);
  const follows = !open || run.desired !== DesiredState.PAUSE || run.state === RunState.PAUSED;
  const rows: [string, string, string, boolean][] = [
    [
      "State",
      open ? (kDesired[run.desired] ?? kNone) : "free",
      open ? runLook(run.state).word : boardLook(board.status).word,
      follows,
    ],
    ["Model", wanted || "any", held || "none", wanted === "" || wanted === held],
    [
      "Precision k",
      open ? String(run.spec?.hyper?.k ?? "by policy") : kNone,
      open ? String(run.effective?.k ?? kNone) : kNone,
      true,
    ],
    [
      "Batch",
      open ? String(run.spec?.hyper?.batch ?? "by policy") : kNone,
      open ? String(run.effective?.batch ?? kNone) : kNone,
      true,
    ],
    [
      "mu weight",
      open ? run.spec?.hyper?.muWeight.join(" → ") || "by policy" : kNone,
      open ? (run.effective?.muWeight.join(" → ") ?? kNone) : kNone,
      true,
    ],
    [
      "Held by",
      board.lease === undefined ? "nobody" : board.lease.what,
      board.lease === undefined
        ? kNone
        : `${board.lease.actor || "odtd"} ${shortHash(toHex(board.lease.holder))}`,
      true,
    ],
  ];
  return (
    <Panel title="Desired and reported">
      <div class="table-frame">
        <table class="numbers">
          <thead>
            <tr>
              <th scope="col">What</th>
              <th scope="col">Desired</th>
              <th scope="col">Reported</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([what, desired, reported, same]) => (
              <tr key={what}>
                <th scope="row">{what}</th>
                <td data-label="Desired">{desired}</td>
                <td data-label="Reported" class={same ? "" : "tone-warn"}>
                  {reported}
                  {!same && <span class="sub">not there yet</span>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

interface LinkSample {
  at: number;
  rttUs: number;
  faults: number;
}
const kMostSamples = 600;
const histories = new Map<string, LinkSample[]>();
const historyVersion = signal(0);

/// Round trip and faults as this page has seen them: the daemon keeps the newest figures only.
export function LinkHistory({ board }: { board: Board }) {
  const uid = toHex(board.uid);
  const { link } = board;
  useEffect(() => {
    if (link === undefined || !linkLive.value) return;
    const list = histories.get(uid) ?? [];
    list.push({ at: Date.now(), rttUs: link.rttUs, faults: Number(link.crcErrors + link.retries) });
    if (list.length > kMostSamples) list.shift();
    histories.set(uid, list);
    historyVersion.value++;
  }, [board]);
  const list = histories.get(uid) ?? [];
  const t0 = list[0]?.at ?? nowMs.value;
  return (
    <LineChart
      title="Round trip, since this page looks"
      xLabel="second"
      unit="ms"
      x={list.map((s) => (s.at - t0) / 1000)}
      lines={[
        { label: "round trip, ms", values: list.map((s) => s.rttUs / 1000), colour: 0, step: true },
        {
          label: "faults since then",
          values: list.map((s) => s.faults - (list[0]?.faults ?? 0)),
          colour: 1,
          step: true,
        },
      ]}
      version={historyVersion.value}
      height={120}
      format={(v) => (Number.isInteger(v) ? String(v) : v.toFixed(v < 10 ? 2 : 0))}
      dark={dark.value}
      yMin={0}
      empty="No figures yet."
    />
  );
}

/// Non-volatile memory: asked of the board when wanted.
export function NvmPanel({ board }: { board: Board }) {
  const [asked, setAsked] = useState(0);
  const uid = toHex(board.uid);
  const here = board.status === BoardStatus.ONLINE;
  const nvm = useLoad(asked > 0 ? `${uid}/${asked}` : "", "read the board’s memory", async () => {
    const answer = await clients().fleet.getBoardNvm(
      { uid: board.uid },
      { timeoutMs: kCallTimeoutMs },
    );
    return answer.nvm;
  });
  const name = board.name || uid.slice(-8);
  const commit = (): void => {
    void act(
      `commit/${uid}`,
      `commit on board ${name}`,
      `${name} has committed what it holds`,
      async (requestId) => {
        await clients().fleet.commitBoard(
          { requestId, uid: board.uid },
          { timeoutMs: kCallTimeoutMs },
        );
      },
    ).then(() => setAsked((n) => n + 1));
  };
  const v = nvm.value;
  return (
    <Panel
      title="Memory that survives power off"
      aside={
        <span class="row">
          <button
            type="button"
            class="small"
            disabled={!here || !linkLive.value}
            onClick={() => setAsked((n) => n + 1)}
          >
            Read
          </button>
          <button type="button" class="small" disabled={!here || !linkLive.value} onClick={commit}>
            Commit now
          </button>
        </span>
      }
    >
      {nvm.problem !== null && <ProblemBox problem={nvm.problem} />}
      <Facts
        rows={[
          [
            "Newest commit",
            board.nvmSequence === 0
              ? "none known"
              : `number ${count(board.nvmSequence)}, step ${count(board.nvmStep)}`,
          ],
          ["Restored at boot", board.restored ? "yes" : "no"],
          ...(v == null
            ? []
            : ([
                ["Size", `${bytes(v.sizeBytes)}, ${bytes(v.slotBytes)} a slot`],
                ["Bytes of the commit", bytes(v.bytes)],
                ["Holds the model", v.hasImage ? "yes: it comes back by itself" : "no"],
                ["Writes of the slots", v.writes.map(count).join(" · ")],
                [
                  "A commit now takes",
                  bytes(v.wantStateBytes + v.wantBestBytes + v.wantImageBytes),
                ],
              ] as [string, string][])),
        ]}
      />
    </Panel>
  );
}

/// Labels of a board, each with a way to take it off; new ones as key=value.
export function LabelsEditor({ board }: { board: Board }) {
  const [text, setText] = useState("");
  const label = parseLabel(text);
  return (
    <Panel title="Labels">
      <form
        class="row pad"
        onSubmit={(e) => {
          e.preventDefault();
          if (label === null) return;
          void labelAll([board], label.key, label.value).then(() => setText(""));
        }}
      >
        {Object.entries(board.labels).map(([key, value]) => (
          <span class="label" key={key}>
            {key}={value}{" "}
            <button
              type="button"
              class="label-off"
              disabled={!linkLive.value}
              onClick={() => void labelAll([board], key, null)}
            >
              <span aria-hidden="true">✕</span>
              <span class="sr-only">Take label {key} off</span>
            </button>
          </span>
        ))}
        <input
          value={text}
          aria-label="New label"
          placeholder="site=lab"
          size={14}
          onInput={(e) => setText(e.currentTarget.value)}
        />
        <button type="submit" disabled={label === null || !linkLive.value}>
          Set
        </button>
      </form>
    </Panel>
  );
}

/// Restarting a board, asked once.
export function ResetButton({ board }: { board: Board }) {
  const uid = toHex(board.uid);
  const name = board.name || uid.slice(-8);
  const known = boards.peek(uid);
  return (
    <ConfirmButton
      label="Restart …"
      title={`Restart ${name}?`}
      confirm="Restart"
      disabled={known?.status !== BoardStatus.ONLINE}
      hint="Only a board that is online can be restarted"
      onConfirm={() =>
        void act(`reset/${uid}`, `restart board ${name}`, `${name} restarts`, async (requestId) => {
          await clients().fleet.resetBoard(
            { requestId, uid: board.uid },
            { timeoutMs: kCallTimeoutMs },
          );
        })
      }
    >
      <p>
        What it holds in RAM is lost; a run under way goes on from its newest state with the host or
        in the board’s own memory. Last seen{" "}
        {clock(Number(board.lastSeenTimeUs / 1000n), serverNowMs.value)}.
      </p>
    </ConfirmButton>
  );
}
