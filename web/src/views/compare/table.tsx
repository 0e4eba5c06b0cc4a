import { useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import type { Run } from "../../api/types";
import { accounts } from "../../store/accounts";
import { outliers } from "../../store/compare";
import { boardName, boards, datasetName, modelName } from "../../store/fleet";
import { count, duration, kNone, percent, points, shortHash } from "../../store/format";
import { fraction, usToMs } from "../../store/numbers";
import { runDetail } from "../../store/run-detail";
import { runLabel } from "../board-state";
import { Panel } from "../parts/bits";
import { liveRunLook } from "../parts/run-bits";
import { StateMark } from "../parts/state-mark";
import { href, setQuery } from "../router";
import { kSettings } from "../run-panels";
import { macBits } from "../layers/apt";

interface Row {
  label: string;
  cells: string[];
  notes?: string[]; // against the pinned run
}

const boardOf = (run: Run) =>
  run.spec === undefined ? undefined : boards.get(toHex(run.spec.boardUid)).value;

function settingRows(list: readonly Run[]): Row[] {
  const of = (label: string, read: (run: Run) => string): Row => ({
    label,
    cells: list.map((r) => read(r) || kNone),
  });
  return [
    of("Model", (r) => (r.spec === undefined ? "" : modelName(r.spec.modelHash))),
    of("Dataset", (r) => (r.spec === undefined ? "" : datasetName(r.spec.datasetId))),
    of("Start weights", (r) => {
      const hex = toHex(r.spec?.startSnapshot ?? new Uint8Array());
      return hex === "" ? "the model’s own" : shortHash(hex);
    }),
    of("Board", (r) => (r.spec === undefined ? "" : boardName(r.spec.boardUid))),
    of("Core", (r) => boardOf(r)?.core ?? ""),
    of("Firmware", (r) => boardOf(r)?.fwVersion ?? ""),
    of("Placement", (r) => r.placement),
    ...kSettings.map(([label, read]) =>
      of(label, (r) => {
        const hyper = r.effective ?? r.spec?.hyper;
        return hyper === undefined ? "" : read(hyper);
      }),
    ),
  ];
}

function resultRows(list: readonly Run[]): Row[] {
  const share = (label: string, read: (run: Run) => number): Row => {
    const values = list.map(read);
    return {
      label,
      cells: values.map((v) => percent(v)),
      notes: values.map((v, i) =>
        i === 0 || !Number.isFinite(v) ? "" : points(values[0] ?? NaN, v),
      ),
    };
  };
  const amount = (label: string, read: (run: Run) => number, text: (v: number) => string): Row => {
    const values = list.map(read);
    const base = values[0] ?? NaN;
    return {
      label,
      cells: values.map((v) => (Number.isFinite(v) && v > 0 ? text(v) : kNone)),
      notes: values.map((v, i) =>
        i === 0 || !(v > 0) || !(base > 0) ? "" : `${(v / base).toFixed(2)} ×`,
      ),
    };
  };
  const ended = (r: Run): number => usToMs(r.endTimeUs) - usToMs(r.startTimeUs);
  return [
    share("Test before", (r) => fraction(r.before)),
    share("Test after", (r) => fraction(r.after)),
    share("Held-out, best", (r) => fraction(r.heldoutBest)),
    amount("Best at step", (r) => r.bestStep, count),
    amount("Steps done", (r) => r.stepsDone, count),
    amount(
      "Took",
      (r) => (r.endTimeUs > 0n ? ended(r) : NaN),
      (ms) => (ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : duration(ms)),
    ),
    amount(
      "Step time",
      (r) => runDetail(toHex(r.id)).epochs.value.at(-1)?.stepUs ?? NaN,
      (us) => (us < 1000 ? `${us} µs` : `${(us / 1000).toFixed(1)} ms`),
    ),
    amount(
      "Energy, MAC-bits",
      (r) => Number(accounts.value.get(toHex(r.id))?.energy ?? NaN),
      macBits,
    ),
  ];
}

/// What differs between the runs, and how they did, each against the pinned one.
export function CompareTable(props: {
  list: readonly Run[];
  base: string;
  remove: (hex: string) => void;
}) {
  const { list } = props;
  const [all, setAll] = useState(false);
  const far = outliers(list.map((r) => fraction(r.heldoutBest)));
  const settings = settingRows(list);
  const differing = settings.filter((row) => new Set(row.cells).size > 1);
  const shown = all || list.length === 1 ? settings : differing;
  return (
    <Panel
      title={all ? "Settings and results" : "What differs, and the results"}
      aside={
        <label class="check">
          <input type="checkbox" checked={all} onChange={(e) => setAll(e.currentTarget.checked)} />
          also what is the same
        </label>
      }
    >
      <div
        class="table-frame scroll compare-frame"
        tabIndex={0}
        role="region"
        aria-label="Runs side by side"
      >
        <table class="numbers compare">
          <thead>
            <tr>
              <th scope="col">Run</th>
              {list.map((r, i) => (
                <RunHead key={toHex(r.id)} run={r} far={far[i] ?? false} {...props} />
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.length === 0 && (
              <tr>
                <th scope="row">Settings</th>
                <td colSpan={list.length} class="quiet">
                  All settings are the same.
                </td>
              </tr>
            )}
            {[...shown, ...resultRows(list)].map((row) => (
              <CellRow key={row.label} row={row} differs={differing.includes(row)} />
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function RunHead(props: { run: Run; base: string; far: boolean; remove: (hex: string) => void }) {
  const { run, base } = props;
  const hex = toHex(run.id);
  const name = runLabel(run);
  const pinned = hex === base;
  return (
    <th scope="col">
      <a href={href("run", hex)}>{name}</a>
      <span class="row">
        <StateMark look={liveRunLook(run)} />
        {props.far && (
          <span class="badge tone-warn" title="Held-out accuracy stands apart from the other runs">
            ⚠ outlier
          </span>
        )}
      </span>
      <span class="row">
        <button
          type="button"
          class="small"
          aria-pressed={pinned}
          aria-label={`${pinned ? "Pinned" : "Pin"} ${name}`}
          onClick={() => setQuery("base", hex)}
        >
          {pinned ? "Pinned" : "Pin"}
        </button>
        <button type="button" class="small" onClick={() => props.remove(hex)}>
          <span aria-hidden="true">✕</span>
          <span class="sr-only">Take {name} out</span>
        </button>
      </span>
    </th>
  );
}

function CellRow({ row, differs }: { row: Row; differs: boolean }) {
  return (
    <tr class={differs ? "differs" : ""}>
      <th scope="row">{row.label}</th>
      {row.cells.map((cell, i) => (
        <td key={i}>
          {cell}
          {row.notes?.[i] !== undefined && row.notes[i] !== "" && (
            <span class="quiet"> {row.notes[i]}</span>
          )}
        </td>
      ))}
    </tr>
  );
}
