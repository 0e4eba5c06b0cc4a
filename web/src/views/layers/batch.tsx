import { toHex } from "../../api/bytes";
import { clients, kCallTimeoutMs } from "../../api/clients";
import { describeError } from "../../api/errors";
import type { Run, TelemetryFrame } from "../../api/types";
import { batchOf, batchUnknown } from "../../store/batch";
import { datasets } from "../../store/fleet";
import { count, decimal, significant } from "../../store/format";
import { hasClasses } from "../../store/numbers";
import type { RunDetail } from "../../store/run-detail";
import { samplesOfStep, toPoint } from "../../store/series";
import { notices } from "../../store/notices";
import { Empty, Panel, ProblemBox } from "../parts/bits";
import { SampleTile } from "../parts/sample";
import { useLoad } from "../parts/use-load";
import { href, route, setQuery } from "../router";
import { layerNames } from "../run-charts";

const kMostTiles = 64;

/// Shows the batch of a step; it stands in the address.
export const showStep = (step: number): void => setQuery("step", String(step));

/// Goes from a bucket of the shift map to the one step in it that shifted the layer furthest.
export async function showSpike(detail: RunDetail, layer: number, index: number): Promise<void> {
  try {
    showStep(await detail.largestShift(layer, index));
    requestAnimationFrame(() =>
      document.getElementById("batch")?.scrollIntoView({ block: "nearest" }),
    );
  } catch (error) {
    notices.fail(describeError(error, "Could not find the step of this spike"));
  }
}

/// The samples that one step trained on, and what they did to it.
export function BatchPanel({ run, detail }: { run: Run; detail: RunDetail }) {
  const wanted = Number(route.value.query.get("step") ?? "");
  const last = Math.max(detail.totalSteps.value, detail.lastStep.value, run.stepsDone);
  const step = Number.isInteger(wanted) && wanted >= 1 && wanted <= last ? wanted : 0;
  const to = (n: number): void => showStep(Math.min(Math.max(1, n), last));
  return (
    <div id="batch">
      <Panel
        title={step > 0 ? `Batch of step ${count(step)}` : "Batch of a step"}
        aside={
          last > 0 && (
            <span class="row">
              <button type="button" class="small" disabled={step <= 1} onClick={() => to(step - 1)}>
                Step before
              </button>
              <button
                type="button"
                class="small"
                disabled={step < 1 || step >= last}
                onClick={() => to(step + 1)}
              >
                Step after
              </button>
              <label class="row">
                Step
                <input
                  type="number"
                  min={1}
                  max={last}
                  value={step > 0 ? step : ""}
                  onChange={(e) => to(Number(e.currentTarget.value) || 1)}
                />
              </label>
              <LargestButton detail={detail} />
            </span>
          )
        }
      >
        {step === 0 ? (
          <p class="quiet pad">
            Click a place of the map above, or give a step, to see the samples that it trained on.
          </p>
        ) : (
          <BatchOfStep key={step} run={run} step={step} />
        )}
      </Panel>
    </div>
  );
}

/// For those who do not click in pictures: the largest shift of the steps that are shown.
function LargestButton({ detail }: { detail: RunDetail }) {
  const { shift } = detail.buckets();
  let [layer, index, best] = [-1, 0, -Infinity];
  shift.forEach(({ max }, l) =>
    max.forEach((v, i) => {
      if (v > best) [layer, index, best] = [l, i, v];
    }),
  );
  return (
    <button
      type="button"
      class="small"
      disabled={layer < 0}
      onClick={() => void showSpike(detail, layer, index)}
    >
      Largest shift shown
    </button>
  );
}

function BatchOfStep({ run, step }: { run: Run; step: number }) {
  const hex = toHex(run.spec?.datasetId ?? new Uint8Array());
  const dataset = datasets.get(hex).value;
  const unknown = batchUnknown(run, dataset?.train);
  const batch = unknown === "" ? batchOf(run, step) : null;
  const runHex = toHex(run.id);
  const record = useLoad(`${runHex}/${step}`, `read step ${step}`, async () => {
    const range = { firstStep: step - 1, lastStep: step - 1, maxFrames: 1 };
    const request = { runId: run.id, ...range };
    const { frames } = await clients().run.getTelemetry(request, { timeoutMs: kCallTimeoutMs });
    return frames[0] ?? null;
  });
  return (
    <>
      {record.problem !== null && <ProblemBox problem={record.problem} retry={record.reload} />}
      {record.value !== null && <StepWords run={run} frame={record.value} />}
      {batch === null ? (
        <Empty title="Its samples are not known">
          <p>{unknown || `The run ends with step ${count(run.stepsTotal)}.`}</p>
        </Empty>
      ) : (
        <>
          <div class="sample-grid">
            {batch.samples.slice(0, kMostTiles).map((index) => (
              <SampleTile
                key={index}
                datasetHex={hex}
                index={index}
                words={`Sample ${index}`}
                caption={`#${index}`}
                labelled
              />
            ))}
          </div>
          <p class="pad quiet">
            {count(Math.min(batch.samples.length, kMostTiles))} of {count(batch.samples.length)}{" "}
            samples of the batch, epoch {count(batch.epoch + 1)}, in the order of training; from{" "}
            <a href={href("data", hex)}>{dataset?.name ?? "the dataset"}</a>.
          </p>
        </>
      )}
    </>
  );
}

/// What the board told of the step.
function StepWords({ run, frame }: { run: Run; frame: TelemetryFrame }) {
  const shape = { batch: run.effective?.batch ?? 0, trainSamples: run.trainSamples };
  const point = toPoint(frame, shape);
  const size = samplesOfStep(frame.step, shape);
  const names = layerNames(run, frame.layers.length);
  const loss = hasClasses(run.outputs) ? decimal(point.loss) : significant(point.loss);
  return (
    <p class="pad">
      {Number.isFinite(point.loss) && `Loss ${loss} per sample. `}
      {hasClasses(run.outputs) && `${frame.correct} of ${size} right. `}
      {frame.layers.map((l, i) => (
        <span key={l.layer}>
          {names[i]}: {l.bits} gradient bits, shift {l.shift}
          {i < frame.layers.length - 1 ? "; " : "."}
        </span>
      ))}
    </p>
  );
}
