import { useEffect, useMemo } from "preact/hooks";
import { toHex } from "../../api/bytes";
import { Run_ReplayVerdict, type Run } from "../../api/types";
import { Spark } from "../../charts/spark";
import { count, percent, significant } from "../../store/format";
import { linkLive } from "../../store/link";
import { fraction, hasClasses, squaredError } from "../../store/numbers";
import { detailsGeneration, runDetail, type RunDetail } from "../../store/run-detail";
import { showRun } from "../../store/session";
import { isActive, runLook, type Look } from "../words";
import { BeforeAfter, ErrorChange, Progress } from "./bits";

/// Keeps a run's details live while the component is there.
export function useRunDetail(runHex: string, steps: boolean, live: boolean): RunDetail {
  const generation = detailsGeneration.value;
  const detail = useMemo(() => runDetail(runHex), [runHex, generation]);
  useEffect(() => showRun(runHex, { steps, live }), [runHex, steps, live, generation]);
  return detail;
}

/// What a run's state looks like; without a live connection, what it was.
export function liveRunLook(run: Run): Look {
  const look = runLook(run.state);
  if (linkLive.value || !isActive(run.state)) return look;
  return { ...look, word: `was ${look.word}`, tone: "quiet" };
}

/// The run's newest known step: the stream's frames are ahead of the run's own record.
export const stepsDone = (run: Run, detail: RunDetail): number =>
  Math.max(run.stepsDone, isActive(run.state) ? detail.lastStep.value : 0);

export function RunProgress({ run, detail }: { run: Run; detail: RunDetail }) {
  const done = Math.min(stepsDone(run, detail), run.stepsTotal || Infinity);
  const epochs = run.effective?.epochs ?? run.spec?.hyper?.epochs;
  return (
    <span class="run-progress">
      <Progress done={done} total={run.stepsTotal} label="Steps done" />
      <span class="quiet nowrap">
        {epochs !== undefined && `epoch ${run.epochsDone}/${epochs} · `}
        {count(done)}/{count(run.stepsTotal)}
      </span>
    </span>
  );
}

/// The test split before and after: accuracy or, where there are no classes, squared error.
export function TestChange({ run }: { run: Run }) {
  if (hasClasses(run.outputs)) return <BeforeAfter before={run.before} after={run.after} />;
  return (
    <ErrorChange
      before={squaredError(run.beforeLoss, run.outputs)}
      after={squaredError(run.afterLoss, run.outputs)}
    />
  );
}

/// The same of the held-out samples, start and best.
export function HeldoutChange({ run }: { run: Run }) {
  if (hasClasses(run.outputs))
    return <BeforeAfter before={run.heldoutStart} after={run.heldoutBest} />;
  return (
    <ErrorChange
      before={squaredError(run.heldoutStartLoss, run.outputs)}
      after={squaredError(run.heldoutBestLoss, run.outputs)}
    />
  );
}

/// Held-out accuracy by epoch; without classes the squared error, of which the start is 1.
export function HeldoutSpark({ run, detail, name }: { run: Run; detail: RunDetail; name: string }) {
  if (hasClasses(run.outputs)) return <AccuracySpark detail={detail} name={name} />;
  const start = squaredError(run.heldoutStartLoss, run.outputs);
  const errors = detail.epochs.value.map((e) => squaredError(e.heldoutLoss, run.outputs));
  const known = errors.filter(Number.isFinite);
  if (known.length < 2) return <span class="spark-none" />;
  const ends = `${significant(known[0] ?? NaN)} to ${significant(known[known.length - 1] ?? NaN)}`;
  return (
    <Spark
      values={errors.map((v) => (start > 0 ? v / start : v))}
      label={`Held-out squared error of ${name} by epoch: ${ends}`}
    />
  );
}

export function AccuracySpark({ detail, name }: { detail: RunDetail; name: string }) {
  const values = detail.epochs.value.map((e) => fraction(e.heldout));
  const known = values.filter(Number.isFinite);
  if (known.length < 2) return <span class="spark-none" />;
  const ends = `${percent(known[0] ?? NaN)} to ${percent(known[known.length - 1] ?? NaN)}`;
  return <Spark values={values} label={`Held-out accuracy of ${name} by epoch: ${ends}`} />;
}

export function ReplayBadge({ run }: { run: Run }) {
  switch (run.replay) {
    case Run_ReplayVerdict.EQUAL:
      return (
        <span
          class="badge tone-ok"
          title="The host reran this run and got the same training state, bit for bit"
        >
          ✓ board equals model
        </span>
      );
    case Run_ReplayVerdict.DIFFERENT:
      return (
        <span class="badge tone-bad" title="The host reran this run and got another training state">
          ✕ replay differs
        </span>
      );
    case Run_ReplayVerdict.NOT_POSSIBLE:
      return (
        <span class="badge" title="The samples that the board captured never left it">
          no replay
        </span>
      );
    default:
      return null;
  }
}

export const runHexOf = (run: Run): string => toHex(run.id);
