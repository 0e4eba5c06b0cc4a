import { useEffect, useMemo } from "preact/hooks";
import { toHex } from "../../api/bytes";
import { Run_ReplayVerdict, type Run } from "../../api/types";
import { Spark } from "../../charts/spark";
import { count, percent } from "../../store/format";
import { linkLive } from "../../store/link";
import { fraction } from "../../store/numbers";
import { detailsGeneration, runDetail, type RunDetail } from "../../store/run-detail";
import { showRun } from "../../store/session";
import { isActive, runLook, type Look } from "../words";
import { Progress } from "./bits";

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
    default:
      return null;
  }
}

export const runHexOf = (run: Run): string => toHex(run.id);
