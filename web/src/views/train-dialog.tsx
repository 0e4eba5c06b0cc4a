import { useEffect, useRef, useState } from "preact/hooks";
import { toHex } from "../api/bytes";
import type { Problem } from "../api/errors";
import type { Board, Run } from "../api/types";
import { datasets, models } from "../store/fleet";
import { count } from "../store/format";
import { checkRun, isProblem, startRun, type MoreWishes, type RunWish } from "../store/launch";
import { linkLive } from "../store/link";
import { fitting, newest } from "./newest";
import { Command, Empty, ProblemBox } from "./parts/bits";
import { go, href } from "./router";

const kCheckDelayMs = 350;
type Answer = Run | Problem | null;

/// Starts a run on one board. Every change is checked by the daemon before anything is started.
export function TrainDialog({ board, close }: { board: Board; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const modelList = newest(models.all());
  const held = toHex(board.modelHash);
  const first = modelList.find((m) => toHex(m.hash) === held) ?? modelList[0];
  const [wish, setWish] = useState<RunWish>({
    boardHex: toHex(board.uid),
    modelHex: toHex(first?.hash ?? new Uint8Array()),
    datasetHex: toHex(fitting(first, datasets.all())[0]?.id ?? new Uint8Array()),
    name: "",
    epochs: "10",
    muWeight: "",
    batch: "",
    k: "",
  });
  const [answer, setAnswer] = useState<Answer>(null);
  const [starting, setStarting] = useState(false);
  const possible = wish.modelHex !== "" && wish.datasetHex !== "";

  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => {
    setAnswer(null);
    if (!possible) return;
    let current = true;
    const timer = setTimeout(() => {
      void checkRun(wish).then((a) => current && setAnswer(a));
    }, kCheckDelayMs);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [wish, possible]);

  const start = async (): Promise<void> => {
    setStarting(true);
    const a = await startRun(wish);
    setStarting(false);
    if (isProblem(a)) {
      setAnswer(a);
      return;
    }
    dialog.current?.close();
    go(href("run", toHex(a.id)));
  };
  const fits = answer !== null && !isProblem(answer);

  return (
    <dialog ref={dialog} class="sheet train" aria-labelledby="train-title" onClose={close}>
      <h2 id="train-title">Train {board.name}</h2>
      {!possible ? (
        <NothingToTrain noModel={wish.modelHex === ""} />
      ) : (
        <form
          onSubmit={(e) => {
            e.preventDefault();
            void start();
          }}
        >
          <Fields wish={wish} setWish={setWish} />
          <div class="train-answer" aria-live="polite">
            {answer === null ? (
              <p class="quiet">Asking the daemon …</p>
            ) : isProblem(answer) ? (
              <ProblemBox problem={answer} />
            ) : (
              <Fit run={answer} />
            )}
          </div>
          <div class="row train-buttons">
            <button type="submit" class="primary" disabled={!fits || starting || !linkLive.value}>
              {starting ? "Starting …" : "Start run"}
            </button>
            <button type="button" onClick={() => dialog.current?.close()}>
              Cancel
            </button>
            <a href={href("launch", "", new URLSearchParams({ boards: wish.boardHex }))}>
              More settings and boards
            </a>
          </div>
          <Command text={commandOf(board, wish)} />
        </form>
      )}
    </dialog>
  );
}

function Fields({ wish, setWish }: { wish: RunWish; setWish: (w: RunWish) => void }) {
  const set = (change: Partial<RunWish>): void => setWish({ ...wish, ...change });
  const whole = { inputMode: "numeric" as const, pattern: "-?[0-9]*", size: 6 };
  return (
    <div class="fields">
      <label>
        Model
        <select value={wish.modelHex} onChange={(e) => set({ modelHex: e.currentTarget.value })}>
          {newest(models.all()).map((m) => (
            <option key={toHex(m.hash)} value={toHex(m.hash)}>
              {m.name}
            </option>
          ))}
        </select>
      </label>
      <label>
        Dataset
        <select
          value={wish.datasetHex}
          onChange={(e) => set({ datasetHex: e.currentTarget.value })}
        >
          {newest(datasets.all()).map((d) => (
            <option key={toHex(d.id)} value={toHex(d.id)}>
              {d.name} ({count(d.train)} samples)
            </option>
          ))}
        </select>
      </label>
      <label>
        Epochs
        <input
          {...whole}
          value={wish.epochs}
          onInput={(e) => set({ epochs: e.currentTarget.value })}
        />
      </label>
      <label>
        mu weight
        <input
          value={wish.muWeight}
          placeholder="by policy"
          pattern="-?[0-9]+(, *-?[0-9]+, *-?[0-9]+)?"
          title="One number, or three by thirds of the run: 1,-1,-3"
          size={10}
          onInput={(e) => set({ muWeight: e.currentTarget.value })}
        />
      </label>
      <label>
        Batch
        <input
          {...whole}
          value={wish.batch}
          placeholder="by policy"
          onInput={(e) => set({ batch: e.currentTarget.value })}
        />
      </label>
      <label>
        k
        <input
          {...whole}
          value={wish.k}
          placeholder="by policy"
          onInput={(e) => set({ k: e.currentTarget.value })}
        />
      </label>
      <label>
        Name
        <input
          value={wish.name}
          maxLength={63}
          onInput={(e) => set({ name: e.currentTarget.value })}
        />
      </label>
    </div>
  );
}

function Fit({ run }: { run: Run }) {
  const parts = [
    run.stepsTotal > 0 ? `${count(run.stepsTotal)} steps` : "",
    run.effective?.batch !== undefined ? `batch ${run.effective.batch}` : "",
    run.effective?.k !== undefined ? `k ${run.effective.k}` : "",
    run.effective?.streamed === true ? "samples streamed" : "",
  ].filter(Boolean);
  return (
    <p class="tone-ok">
      The board can do this{parts.length > 0 && `: ${parts.join(", ")}`}. Test accuracy is measured
      before and after.
    </p>
  );
}

function NothingToTrain({ noModel }: { noModel: boolean }) {
  return noModel ? (
    <Empty title="There is no model yet" command="odtctl model add model.onnx --trainable 2" />
  ) : (
    <Empty title="There is no dataset yet" command="odtctl data import samples.csv --name NAME" />
  );
}

function moreOptions(more: Partial<MoreWishes>, fixedByMu: boolean): (string | false)[] {
  const given = (name: string, value: string | undefined): string | false =>
    value !== undefined && value.trim() !== "" && `${name} ${value.trim()}`;
  const apt = more.apt !== undefined && more.apt !== "";
  return [
    more.fixed === true && !fixedByMu && "--policy fixed",
    given("--mu-offset", more.muOffset),
    apt && `--apt --apt-checks ${more.apt}`,
    apt && given("--apt-t-min", more.tMin),
    apt && given("--apt-t-max", more.tMax),
    apt && given("--apt-k-max", more.kMax),
    given("--telemetry-every", more.telemetryEvery),
    more.streamed === true && "--streamed",
    more.noGuard === true && "--no-guard",
    given("--start", more.start?.slice(0, 12)),
    given("--priority", more.priority),
  ];
}

/// The same on the command line.
export function commandOf(board: Board, wish: RunWish): string {
  const model = models.peek(wish.modelHex)?.name ?? wish.modelHex;
  const data = datasets.peek(wish.datasetHex)?.name ?? wish.datasetHex;
  const mu = wish.muWeight.replace(/\s/g, "");
  const options = [
    wish.epochs && `--epochs ${wish.epochs}`,
    mu && `--policy fixed --mu-weight ${mu}`,
    wish.batch && `--batch ${wish.batch}`,
    wish.k && `--k ${wish.k}`,
    ...moreOptions(wish.more ?? {}, mu !== ""),
    wish.name.trim() && `--name '${wish.name.trim().replaceAll("'", "'\\''")}'`,
    "--evaluate",
  ].filter(Boolean);
  return [
    "odtctl train",
    `--board ${board.name}`,
    `--model ${model}`,
    `--data ${data}`,
    ...options,
  ].join(" ");
}
