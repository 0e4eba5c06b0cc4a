import { useEffect, useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import { CaptureRole, type Capture } from "../../api/types";
import { pending } from "../../store/actions";
import {
  feedSensor,
  getCapture,
  kDtypes,
  startCapture,
  stepBytes,
  stopCapture,
  type CaptureWish,
} from "../../store/capture";
import { boards, models } from "../../store/fleet";
import { count } from "../../store/format";
import { linkLive } from "../../store/link";
import { newest } from "../newest";
import { Empty, Panel, ProblemBox, Tile } from "../parts/bits";
import { useLoad } from "../parts/use-load";
import { href, route, setQuery } from "../router";
import { WindowsPanel } from "./windows";

const kPollMs = 1000;

/// Windows that a board cuts from its sensor: begun here, seen and labelled while they come.
export function CaptureView() {
  const list = boards.all();
  const uidHex = route.value.query.get("board") ?? toHex(list[0]?.uid ?? new Uint8Array());
  const [turn, setTurn] = useState(0);
  const live = linkLive.value;
  const asked = useLoad(
    uidHex === "" ? "" : `capture/${uidHex}`,
    "ask the board for its windows",
    () => getCapture(uidHex),
    turn,
  );
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") setTurn((n) => n + 1);
    }, kPollMs);
    return () => clearInterval(timer);
  }, []);
  const capture = asked.value;
  return (
    <>
      <header class="page-head">
        <nav aria-label="Where this is" class="crumbs">
          <a href={href("data")}>Data</a> <span aria-hidden="true">/</span>
        </nav>
        <h1>Capture</h1>
        <label>
          <span class="sr-only">Board</span>
          <select value={uidHex} onChange={(e) => setQuery("board", e.currentTarget.value)}>
            {list.map((b) => (
              <option key={toHex(b.uid)} value={toHex(b.uid)}>
                {b.name}
              </option>
            ))}
          </select>
        </label>
        {capture?.active === true && (
          <div class="page-actions">
            <button
              type="button"
              disabled={!live || pending.value.has(`capture/${uidHex}`)}
              onClick={() => void stopCapture(uidHex).then(asked.reload)}
            >
              Stop
            </button>
          </div>
        )}
      </header>
      {list.length === 0 ? (
        <Empty title="No board to capture from" command="odtctl board list" />
      ) : (
        <>
          {asked.problem !== null && <ProblemBox problem={asked.problem} retry={asked.reload} />}
          <StartPanel
            key={uidHex}
            uidHex={uidHex}
            active={capture?.active === true}
            started={asked.reload}
          />
          {capture !== null && capture !== undefined && capture.windowSteps > 0 && (
            <Running key={`r${uidHex}`} uidHex={uidHex} capture={capture} reload={asked.reload} />
          )}
        </>
      )}
    </>
  );
}

function StartPanel({
  uidHex,
  active,
  started,
}: {
  uidHex: string;
  active: boolean;
  started: () => void;
}) {
  const board = boards.get(uidHex).value;
  const held = toHex(board?.modelHash ?? new Uint8Array());
  const [wish, setWish] = useState<CaptureWish>({
    uidHex,
    modelHex: held || toHex(newest(models.all())[0]?.hash ?? new Uint8Array()),
    windowSteps: "",
    strideSteps: "",
    slots: "16",
    label: "",
    keep: CaptureRole.UNSPECIFIED,
    heldoutEvery: "",
    unscaled: false,
    channels: "",
    dtype: 3,
  });
  const set = (change: Partial<CaptureWish>): void => setWish((w) => ({ ...w, ...change }));
  const model = models.get(wish.modelHex).value;
  const inputs = model?.inputShape.reduce((a, b) => a * b, 1) ?? 0;
  const whole = (key: keyof CaptureWish, label: string, hint: string) => (
    <label>
      {label}
      <input
        inputMode="numeric"
        pattern="[0-9]*"
        value={String(wish[key])}
        placeholder={hint}
        onInput={(e) => set({ [key]: e.currentTarget.value })}
      />
    </label>
  );
  return (
    <Panel title={active ? "Begin again with other settings" : "Begin"}>
      <form
        class="pad"
        onSubmit={(e) => {
          e.preventDefault();
          void startCapture(wish).then(started);
        }}
      >
        <div class="fields">
          <label>
            Model
            <select
              value={wish.modelHex}
              onChange={(e) => set({ modelHex: e.currentTarget.value })}
            >
              {newest(models.all()).map((m) => (
                <option key={toHex(m.hash)} value={toHex(m.hash)}>
                  {m.name}
                </option>
              ))}
            </select>
          </label>
          {whole("windowSteps", "Steps of a window", inputs > 0 ? `${inputs} / channels` : "")}
          {whole("strideSteps", "Stride", "the window")}
          {whole("slots", "Windows held", "16")}
          {whole("label", "Class of every window", "none: label by hand")}
          <label>
            What is labelled becomes
            <select
              value={wish.keep}
              onChange={(e) => set({ keep: Number(e.currentTarget.value) as CaptureRole })}
            >
              <option value={CaptureRole.UNSPECIFIED}>no sample yet</option>
              <option value={CaptureRole.TRAIN}>a training sample</option>
              <option value={CaptureRole.HELDOUT}>a held-out sample</option>
            </select>
          </label>
          {whole("heldoutEvery", "Held out: every n-th", "none")}
          {whole("channels", "Channels, if fed from here", "it has a sensor")}
          {wish.channels.trim() !== "" && (
            <label>
              Values
              <select
                value={wish.dtype}
                onChange={(e) => set({ dtype: Number(e.currentTarget.value) })}
              >
                {kDtypes.map(([dtype, name]) => (
                  <option key={dtype} value={dtype}>
                    {name}
                  </option>
                ))}
              </select>
            </label>
          )}
        </div>
        <p class="row">
          <label class="check">
            <input
              type="checkbox"
              checked={wish.unscaled}
              onChange={(e) => set({ unscaled: e.currentTarget.checked })}
            />{" "}
            values as they are
          </label>
          <button
            type="submit"
            class="primary"
            disabled={
              !linkLive.value ||
              pending.value.has(`capture/${uidHex}`) ||
              Number(wish.windowSteps) <= 0
            }
          >
            {active ? "Begin again" : "Begin capturing"}
          </button>
          {active && <span class="quiet">The windows of now are dropped then.</span>}
        </p>
      </form>
    </Panel>
  );
}

function Running({
  uidHex,
  capture: c,
  reload,
}: {
  uidHex: string;
  capture: Capture;
  reload: () => void;
}) {
  const name = kDtypes.find(([d]) => d === c.dtype)?.[1] ?? "";
  const lost = c.lostWindows + c.lostSteps + c.notKept;
  return (
    <>
      <div class="tiles run-tiles">
        <Tile
          label="Now"
          value={c.active ? "capturing" : "stopped"}
          note={`${count(c.steps)} steps of ${c.channels} channels ${name}`}
        />
        <Tile label="Windows" value={count(c.captured)} note={`${c.windowSteps} steps each`} />
        <Tile
          label="Training samples"
          value={count(c.keptTrain)}
          note={`${count(c.keptHeldout)} held out`}
        />
        <Tile
          label="Lost"
          value={lost === 0 ? "nothing" : count(lost)}
          note={`${count(c.lostWindows)} windows, ${count(c.lostSteps)} steps, ${count(c.notKept)} not kept`}
        />
      </div>
      {c.active && <FeedPanel uidHex={uidHex} capture={c} reload={reload} />}
      <WindowsPanel uidHex={uidHex} capture={c} reload={reload} />
    </>
  );
}

/// Steps by hand or from a file, for a board without a sensor.
function FeedPanel({
  uidHex,
  capture: c,
  reload,
}: {
  uidHex: string;
  capture: Capture;
  reload: () => void;
}) {
  const [text, setText] = useState("");
  const size = (kDtypes.find(([d]) => d === c.dtype)?.[2] ?? 1) * c.channels;
  let steps: Uint8Array | null = null;
  let wrong = "";
  try {
    steps = stepBytes(text, c.channels, c.dtype);
  } catch (error) {
    wrong = error instanceof Error ? error.message : String(error);
  }
  const send = async (): Promise<void> => {
    if (steps !== null && (await feedSensor(uidHex, steps, size, c.steps))) setText("");
    reload();
  };
  return (
    <details class="panel pad">
      <summary>Feed steps from here, for a board without a sensor</summary>
      <label>
        <span class="quiet">One step a line, {c.channels} values each</span>
        <textarea
          class="feed"
          rows={4}
          value={text}
          onInput={(e) => setText(e.currentTarget.value)}
        />
      </label>
      <p class="row">
        <button
          type="button"
          disabled={steps === null || steps.length === 0 || !linkLive.value}
          onClick={() => void send()}
        >
          Feed {steps !== null && size > 0 ? count(steps.length / size) : 0} steps
        </button>
        <label class="file-button">
          Take a file
          <input
            type="file"
            accept=".csv,.txt,.tsv"
            onChange={(e) => void e.currentTarget.files?.[0]?.text().then(setText)}
          />
        </label>
        {wrong !== "" && <span class="tone-bad">{wrong}</span>}
      </p>
    </details>
  );
}
