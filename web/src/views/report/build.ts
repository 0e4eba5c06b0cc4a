import { toHex } from "../../api/bytes";
import type { Run } from "../../api/types";
import { smooth } from "../../charts/join";
import { chartSvg, escapeHtml, tableHtml } from "../../charts/svg";
import type { Account } from "../../store/accounts";
import { boards, boardName, datasetName, modelName } from "../../store/fleet";
import {
  bytes,
  count,
  decimal,
  duration,
  kNone,
  percent,
  significant,
  uuid,
} from "../../store/format";
import { fraction, hasClasses, lossPerSample, squaredError, usToMs } from "../../store/numbers";
import type { RunDetail } from "../../store/run-detail";
import { runLabel } from "../board-state";
import { macBits } from "../layers/apt";
import { layerNames, stepNote } from "../run-charts";
import { kSettings } from "../run-panels";
import { alarmWords, runLook } from "../words";

const kSmoothing = 0.95;
const kStyle = `body{font:14px/1.5 system-ui,sans-serif;color:#17212b;max-width:900px;margin:24px auto;padding:0 16px}
h1{font-size:1.5em;margin:0}h2{font-size:1.1em;margin:1.6em 0 .4em;border-bottom:1px solid #dde3e9}
table{border-collapse:collapse;width:100%;font-size:13px}th,td{text-align:left;padding:3px 8px;border-bottom:1px solid #dde3e9}
figure{margin:1em 0;break-inside:avoid;overflow-x:auto}figcaption{font-weight:600}figure>svg{width:100%;min-width:640px}.legend span{margin-right:14px}.quiet{color:#55626f}
code{overflow-wrap:anywhere}`;

const date = (us: bigint): string =>
  us === 0n ? kNone : new Date(usToMs(us)).toISOString().replace("T", " ").slice(0, 19) + " UTC";

function facts(run: Run): string[][] {
  const board = run.spec === undefined ? undefined : boards.peek(toHex(run.spec.boardUid));
  const took =
    run.endTimeUs > 0n ? duration(usToMs(run.endTimeUs) - usToMs(run.startTimeUs)) : kNone;
  return [
    ["State", runLook(run.state).word + (run.reason?.text ? `: ${run.reason.text}` : "")],
    [
      "Board",
      `${run.spec ? boardName(run.spec.boardUid) : ""}, ${board?.core ?? ""} ${board?.boardType ?? ""}, firmware ${board?.fwVersion ?? kNone}`,
    ],
    ["Model", run.spec ? modelName(run.spec.modelHash) : kNone],
    ["Dataset", run.spec ? datasetName(run.spec.datasetId) : kNone],
    ["Started", date(run.startTimeUs)],
    ["Took", took],
    [
      "Steps",
      `${count(run.stepsDone)} of ${count(run.stepsTotal)}, ${count(run.trainSamples)} training samples`,
    ],
    ["Verdict", run.verdictText || kNone],
  ];
}

function results(run: Run): string[][] {
  if (!hasClasses(run.outputs)) {
    const e = (l: Parameters<typeof squaredError>[0]): string =>
      significant(squaredError(l, run.outputs));
    return [
      ["Test error", e(run.beforeLoss), e(run.afterLoss)],
      ["Held-out error", e(run.heldoutStartLoss), e(run.heldoutBestLoss)],
    ];
  }
  const p = (a: Parameters<typeof fraction>[0]): string =>
    a === undefined || a.total === 0
      ? kNone
      : `${percent(fraction(a))} (${a.correct} of ${a.total})`;
  return [
    ["Test accuracy", p(run.before), p(run.after)],
    ["Held-out accuracy, start and best", p(run.heldoutStart), p(run.heldoutBest)],
  ];
}

function charts(run: Run, detail: RunDetail): string {
  const b = detail.buckets();
  const epochs = detail.epochs.peek();
  const ex = epochs.map((e) => e.step);
  const names = layerNames(run, b.layers);
  const whole = (v: number): string => String(Math.round(v * 10) / 10);
  const perLayer = (title: string, of: "shift" | "bits" | "k"): string =>
    chartSvg({
      title,
      xLabel: "step",
      format: whole,
      lines: b[of].map((band, i) => ({
        label: names[i] ?? "",
        x: b.x,
        y: of === "k" ? band.mean : smooth(band.mean, 0.9),
        colour: i,
      })),
    });
  const accuracy = chartSvg({
    title: "Accuracy",
    xLabel: "step",
    format: (v) => percent(v, 0),
    lines: [
      { label: "batch, raw", x: b.x, y: b.accuracy.mean, colour: 0, faint: true },
      { label: "batch, smoothed", x: b.x, y: smooth(b.accuracy.mean, kSmoothing), colour: 0 },
      { label: "held-out, per epoch", x: ex, y: epochs.map((e) => fraction(e.heldout)), colour: 1 },
      { label: "train, per epoch", x: ex, y: epochs.map((e) => fraction(e.train)), colour: 2 },
    ],
  });
  const loss = chartSvg({
    title: "Loss per sample",
    xLabel: "step",
    format: (v) => decimal(v, v < 10 ? 2 : 0),
    lines: [
      { label: "raw", x: b.x, y: b.loss.mean, colour: 0, faint: true },
      { label: "batch, smoothed", x: b.x, y: smooth(b.loss.mean, kSmoothing), colour: 0 },
      { label: "epoch mean", x: ex, y: epochs.map((e) => lossPerSample(e.loss)), colour: 2 },
    ],
  });
  const note = stepNote(b);
  return (
    (hasClasses(run.outputs) ? accuracy : "") +
    loss +
    perLayer("Shift per layer", "shift") +
    perLayer("Gradient bits per layer", "bits") +
    perLayer("Precision k per layer", "k") +
    (note === "" ? "" : `<p class="quiet">Curves: ${escapeHtml(note)}.</p>`)
  );
}

function epochsTitle(detail: RunDetail): string {
  const [held, done] = [detail.epochs.peek().length, detail.epochsDone.peek()];
  return held < done ? `Epochs: ${count(held)} of ${count(done)}, evenly chosen` : "Epochs";
}

function epochTable(run: Run, detail: RunDetail): string {
  const classes = hasClasses(run.outputs);
  return tableHtml(
    [
      "Epoch",
      "Step",
      "Loss",
      classes ? "Train" : "Train mse",
      classes ? "Held-out" : "Held-out mse",
      "Zero updates",
      "k",
      "Alarms",
    ],
    detail.epochs
      .peek()
      .map((e) => [
        String(e.epoch + 1),
        count(e.step),
        decimal(lossPerSample(e.loss)),
        classes ? percent(fraction(e.train)) : significant(squaredError(e.loss, run.outputs)),
        classes
          ? percent(fraction(e.heldout))
          : significant(squaredError(e.heldoutLoss, run.outputs)),
        e.layers.map((l) => percent(1 - l.nonzeroDeltasPpm / 1e6, 0)).join(" · "),
        e.layers.map((l) => l.k).join(" · "),
        alarmWords(e.alarms) || "none",
      ]),
  );
}

function accountTable(account: Account): string {
  const share = (v: bigint, of: bigint): string =>
    of > 0n ? percent(Number(v) / Number(of)) : kNone;
  return tableHtml(
    ["", "This run", "fixed 8", "fixed 16", "fp32", "of fp32"],
    [
      [
        "Energy, MAC-bits",
        macBits(Number(account.energy)),
        macBits(Number(account.energyFixed8)),
        macBits(Number(account.energyFixed16)),
        macBits(Number(account.energyFp32)),
        share(account.energy, account.energyFp32),
      ],
      [
        "Memory of weights",
        bytes(Number(account.peakMemoryBits) / 8),
        kNone,
        kNone,
        bytes(Number(account.memoryFp32Bits) / 8),
        share(account.peakMemoryBits, account.memoryFp32Bits),
      ],
    ],
  );
}

function identity(run: Run): string[][] {
  return [
    ["Run", uuid(toHex(run.id))],
    ["Model", toHex(run.spec?.modelHash ?? new Uint8Array())],
    ["Dataset", toHex(run.spec?.datasetId ?? new Uint8Array())],
    ["Start weights", toHex(run.spec?.startSnapshot ?? new Uint8Array()) || "the model’s own"],
    ["Final state", toHex(run.finalStateHash) || kNone],
    ["Final weights", toHex(run.finalWeightsHash) || kNone],
    ["Rules version", String(run.rulesVersion)],
  ];
}

/// What a run was and brought, as HTML without anything from elsewhere: also without scripts and inline styles.
export function reportBody(run: Run, detail: RunDetail, account: Account | undefined): string {
  const hyper = run.effective ?? run.spec?.hyper;
  const settings =
    hyper === undefined
      ? []
      : kSettings.map(([name, read]) => [name, read(hyper)]).filter(([, v]) => v !== "");
  const part = (title: string, html: string): string =>
    html === "" ? "" : `<section><h2>${title}</h2>${html}</section>`;
  return (
    `<h1>${escapeHtml(runLabel(run))}</h1>` +
    `<p class="quiet">Report of a training run, made ${escapeHtml(new Date().toISOString().slice(0, 16).replace("T", " "))} UTC by odt-fleet.</p>` +
    part("What it was", tableHtml(["", ""], facts(run))) +
    part("What it brought", tableHtml(["", "Before", "After"], results(run))) +
    part("Curves", charts(run, detail)) +
    (account === undefined || account.epochs.length === 0
      ? ""
      : part("Energy and memory, as the APT paper counts", accountTable(account))) +
    part("Settings", tableHtml(["", ""], settings as string[][])) +
    part(epochsTitle(detail), detail.epochs.peek().length > 0 ? epochTable(run, detail) : "") +
    part("Identity", tableHtml(["", ""], identity(run)))
  );
}

export const reportFile = (title: string, body: string): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
  `<title>${escapeHtml(title)}</title><style>${kStyle}</style></head><body>${body}</body></html>`;
