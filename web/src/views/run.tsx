import { toHex } from "../api/bytes";
import { DesiredState, Run_ReplayVerdict, RunState, type Loss, type Run } from "../api/types";
import { changeRun, pending, replay } from "../store/actions";
import { serverNowMs } from "../store/clock";
import { boardName, datasetName, modelName, runs } from "../store/fleet";
import { exporting, exportRaw } from "../store/exports";
import { bytes, count, duration, kNone, percent, significant, uuid } from "../store/format";
import { fleetKnown, linkLive } from "../store/link";
import { errorUnit, fraction, hasClasses, squaredError, usToMs } from "../store/numbers";
import type { RunDetail } from "../store/run-detail";
import { runLabel } from "./board-state";
import { Delta, Empty, ErrorDelta, Panel, ProblemBox, Progress, Tile } from "./parts/bits";
import { liveRunLook, ReplayBadge, stepsDone, useRunDetail } from "./parts/run-bits";
import { StateMark } from "./parts/state-mark";
import { href } from "./router";
import { RangeBar, RunCharts } from "./run-charts";
import { EpochsPanel, EventsPanel, HashesPanel, HyperPanel } from "./run-panels";
import { isActive, isOpen, isOver } from "./words";

const kSilentMs = 8000;

export function RunView({ runHex }: { runHex: string }) {
  const run = runs.get(runHex).value;
  return run === undefined ? <NoRun runHex={runHex} /> : <RunPage key={runHex} run={run} />;
}

/// In place of a page about a run that is not here, or not yet.
export function NoRun({ runHex }: { runHex: string }) {
  if (!fleetKnown.value) {
    return (
      <p class="loading" aria-busy="true">
        Waiting for the daemon’s first snapshot …
      </p>
    );
  }
  return (
    <>
      <h1 class="sr-only">Run</h1>
      <Empty title={`No run ${uuid(runHex)}`} command="odtctl run list">
        <p>
          It may have been deleted. <a href={href("runs")}>All runs</a>
        </p>
      </Empty>
    </>
  );
}

function RunPage({ run }: { run: Run }) {
  const hex = toHex(run.id);
  const detail = useRunDetail(hex, true, isOpen(run.state));
  return (
    <>
      <RunHead run={run} />
      <ReasonBox run={run} />
      <Summary run={run} detail={detail} />
      {detail.problem.value !== null && (
        <ProblemBox problem={detail.problem.value} retry={() => void detail.load(true)} />
      )}
      <Panel title="Curves" class="curves" aside={<CurvesTools run={run} detail={detail} />}>
        <RunCharts run={run} detail={detail} />
      </Panel>
      <div class="two-columns">
        <div>
          <EpochsPanel run={run} detail={detail} />
          <EventsPanel detail={detail} />
        </div>
        <aside>
          <HyperPanel run={run} />
          <HashesPanel run={run} />
        </aside>
      </div>
    </>
  );
}

/// Steps shown, and the raw records as files: an export never holds the buckets of a chart.
function CurvesTools({ run, detail }: { run: Run; detail: RunDetail }) {
  const held = exporting.value.get(detail.runHex);
  return (
    <>
      <RangeBar detail={detail} />
      <span class="row">
        {held !== undefined && <span class="quiet">{bytes(held)} …</span>}
        {(["csv", "jsonl"] as const).map((format) => (
          <button
            type="button"
            class="small"
            key={format}
            disabled={held !== undefined || !linkLive.value}
            title="Every raw record of the run, as a file"
            onClick={() => void exportRaw(detail.runHex, runLabel(run), format)}
          >
            Raw {format === "csv" ? "CSV" : "JSON lines"}
          </button>
        ))}
      </span>
    </>
  );
}

function RunHead({ run }: { run: Run }) {
  const name = runLabel(run);
  const board = run.spec === undefined ? "" : boardName(run.spec.boardUid);
  return (
    <header class="page-head">
      <nav aria-label="Where this is" class="crumbs">
        <a href={href("runs")}>Runs</a> <span aria-hidden="true">/</span>
      </nav>
      <h1>{name}</h1>
      <StateMark look={liveRunLook(run)} age={runAge(run)} />
      <ReplayBadge run={run} />
      {run.spec !== undefined && (
        <span class="quiet head-note">
          {modelName(run.spec.modelHash)} on {datasetName(run.spec.datasetId)}, board{" "}
          <a href={href("board", toHex(run.spec.boardUid))}>{board}</a>
        </span>
      )}
      <nav class="row" aria-label="More of this run">
        <a href={href("layers", toHex(run.id))}>Layers</a>
        <a href={href("compare", "", new URLSearchParams({ runs: toHex(run.id) }))}>Compare</a>
        <a href={href("report", toHex(run.id))}>Report</a>
      </nav>
      <Controls run={run} name={name} />
    </header>
  );
}

function runAge(run: Run): string {
  const start = usToMs(run.startTimeUs);
  const end = usToMs(run.endTimeUs);
  if (start === 0) return "";
  return end > 0 ? `in ${duration(end - start)}` : `for ${duration(serverNowMs.value - start)}`;
}

function Controls({ run, name }: { run: Run; name: string }) {
  const hex = toHex(run.id);
  const wait = (verb: string): boolean => pending.value.has(`${verb}/${hex}`) || !linkLive.value;
  const pausing = run.desired === DesiredState.PAUSE;
  const cancelling = run.desired === DesiredState.CANCEL;
  const canReplay =
    run.state === RunState.SUCCEEDED &&
    run.replay !== Run_ReplayVerdict.EQUAL &&
    !run.spec?.captured;
  if (isOver(run.state)) {
    if (!canReplay) return null;
    return (
      <div class="page-actions">
        <button type="button" disabled={wait("replay")} onClick={() => void replay(run, name)}>
          Replay on the host
        </button>
      </div>
    );
  }
  return (
    <div class="page-actions">
      {run.state === RunState.PAUSED || pausing ? (
        <button
          type="button"
          class="primary"
          disabled={wait("resume") || cancelling}
          onClick={() => void changeRun(run, "resume", name)}
        >
          Resume
        </button>
      ) : (
        <button
          type="button"
          disabled={wait("pause") || cancelling}
          onClick={() => void changeRun(run, "pause", name)}
        >
          Pause
        </button>
      )}
      <button
        type="button"
        class="danger"
        disabled={wait("cancel") || cancelling}
        onClick={() => void changeRun(run, "cancel", name)}
      >
        {cancelling ? "Cancelling …" : "Cancel run"}
      </button>
    </div>
  );
}

/// Why the run is as it is, where that needs saying, and what to do.
function ReasonBox({ run }: { run: Run }) {
  const { code = "", text = "", remedy = "" } = run.reason ?? {};
  if (code === "" && text === "") return null;
  const bad = run.state === RunState.FAILED;
  return (
    <div class={bad ? "problem" : "problem mild"} role={bad ? "alert" : "note"}>
      <p class="problem-title">{text || code}</p>
      {remedy !== "" && <p class="problem-remedy">{remedy}</p>}
    </div>
  );
}

function Summary({ run, detail }: { run: Run; detail: RunDetail }) {
  const done = Math.min(stepsDone(run, detail), run.stepsTotal || Infinity);
  const epochs = run.effective?.epochs ?? run.spec?.hyper?.epochs;
  const stepUs = detail.recent.value.at(-1)?.stepUs ?? 0;
  const left = isActive(run.state) ? (run.stepsTotal - done) * msPerStep(detail) : 0;
  return (
    <div class="tiles run-tiles">
      <Tile
        label="Progress"
        value={
          <>
            {count(done)}
            <span class="quiet"> / {count(run.stepsTotal)} steps</span>
          </>
        }
        note={
          <>
            <Progress done={done} total={run.stepsTotal} label="Steps done" />
            {epochs !== undefined && `epoch ${run.epochsDone} of ${epochs}`}
            {left > 0 && ` · about ${duration(left)} left`}
            <Silence run={run} detail={detail} />
            {run.attempt > 1 && ` · attempt ${run.attempt}`}
          </>
        }
      />
      {hasClasses(run.outputs) ? <AccuracyTiles run={run} /> : <ErrorTiles run={run} />}
      <Tile
        label="Training samples"
        value={count(run.trainSamples)}
        note={stepUs > 0 ? `${(stepUs / 1000).toFixed(1)} ms a step` : kNone}
      />
    </div>
  );
}

function AccuracyTiles({ run }: { run: Run }) {
  const [before, after] = [fraction(run.before), fraction(run.after)];
  const [start, best] = [fraction(run.heldoutStart), fraction(run.heldoutBest)];
  return (
    <>
      <Tile
        label="Test accuracy before"
        value={percent(before)}
        note={outOf(run.before?.correct, run.before?.total)}
      />
      <Tile
        label="Test accuracy after"
        value={
          <>
            {percent(after)} {Number.isFinite(after - before) && <Delta from={before} to={after} />}
          </>
        }
        note={
          run.after?.total
            ? outOf(run.after.correct, run.after.total)
            : isActive(run.state)
              ? "measured at the end"
              : kNone
        }
      />
      <Tile
        label="Held-out, start → best"
        value={
          <>
            <span class="quiet">{percent(start)} →</span> {percent(best)}
          </>
        }
        note={bestNote(run)}
      />
    </>
  );
}

/// Of a run without classes.
function ErrorTiles({ run }: { run: Run }) {
  const error = (loss: Loss | undefined): number => squaredError(loss, run.outputs);
  const [before, after] = [error(run.beforeLoss), error(run.afterLoss)];
  return (
    <>
      <Tile
        label="Test error before"
        value={significant(before)}
        note={`mean squared, ${errorUnit(run.outputs)}`}
      />
      <Tile
        label="Test error after"
        value={
          <>
            {significant(after)}{" "}
            {Number.isFinite(after - before) && <ErrorDelta from={before} to={after} />}
          </>
        }
        note={
          run.afterLoss?.count
            ? `${count(run.afterLoss.count)} samples`
            : isActive(run.state)
              ? "measured at the end"
              : kNone
        }
      />
      <Tile
        label="Held-out, start → best"
        value={
          <>
            <span class="quiet">{significant(error(run.heldoutStartLoss))} →</span>{" "}
            {significant(error(run.heldoutBestLoss))}
          </>
        }
        note={bestNote(run)}
      />
    </>
  );
}

const bestNote = (run: Run): string =>
  run.bestStep > 0 ? `best at step ${count(run.bestStep)}` : "best is the start";

/// Pace of the last epochs, everything included; 0: not known yet.
function msPerStep(detail: RunDetail): number {
  const recent = detail.recent.value.slice(-6);
  const [first, last] = [recent[0], recent.at(-1)];
  if (first === undefined || last === undefined || last.step <= first.step) return 0;
  return (usToMs(last.timeUs) - usToMs(first.timeUs)) / (last.step - first.step);
}

/// A running board that reports no steps is said to be silent, with how long.
function Silence({ run, detail }: { run: Run; detail: RunDetail }) {
  const last = detail.lastStepMs.value;
  if (run.state !== RunState.RUNNING || last === 0 || !linkLive.value) return null;
  const silent = serverNowMs.value - last;
  if (silent < kSilentMs) return null;
  return <span class="tone-warn"> · no step for {duration(silent)}</span>;
}

const outOf = (correct = 0, total = 0): string =>
  total === 0 ? "not measured" : `${count(correct)} of ${count(total)}`;
