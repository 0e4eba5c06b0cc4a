import "../../styles/analysis.css";
import { useEffect } from "preact/hooks";
import { toHex } from "../../api/bytes";
import type { Run } from "../../api/types";
import { loadAccounts } from "../../store/accounts";
import { kAxes, type Axis } from "../../store/compare";
import { boardName, newestFirst, runs } from "../../store/fleet";
import { count } from "../../store/format";
import { fleetKnown } from "../../store/link";
import { runLabel } from "../board-state";
import { Empty, Panel } from "../parts/bits";
import { useRunDetail } from "../parts/run-bits";
import { href, route, setQuery } from "../router";
import { isOpen } from "../words";
import { CompareCharts } from "./charts";
import { CompareTable } from "./table";

const kMost = 200; // runs that one GetSeries takes
const kOffered = 100;

/// The runs of the address, the pinned one first; what is not here any more is left out.
function comparedRuns(): { list: Run[]; base: string; missing: number } {
  const { query } = route.value;
  const asked = [...new Set((query.get("runs") ?? "").split(",").filter(Boolean))].slice(0, kMost);
  const found = asked.flatMap((hex) => runs.get(hex).value ?? []);
  const wanted = query.get("base") ?? "";
  const base = found.some((r) => toHex(r.id) === wanted)
    ? wanted
    : toHex(found[0]?.id ?? new Uint8Array());
  const list = [...found].sort(
    (a, b) => Number(toHex(b.id) === base) - Number(toHex(a.id) === base),
  );
  return { list, base, missing: asked.length - found.length };
}

const setRuns = (list: readonly string[]): void => setQuery("runs", list.join(","));

export function CompareView() {
  const { list, base, missing } = comparedRuns();
  const hexes = list.map((r) => toHex(r.id));
  const { query } = route.value;
  const axis = (kAxes.find(([name]) => name === query.get("axis"))?.[0] ?? "step") satisfies Axis;
  const smoothing = Math.min(0.99, Math.max(0, Number(query.get("smooth") ?? "0.9") || 0));
  const epochs = list.map((r) => r.epochsDone).join();
  useEffect(() => void loadAccounts(list), [hexes.join(), epochs]);
  return (
    <>
      <header class="page-head">
        <nav aria-label="Where this is" class="crumbs">
          <a href={href("runs")}>Runs</a> <span aria-hidden="true">/</span>
        </nav>
        <h1>Compare</h1>
        <AddRun hexes={hexes} />
      </header>
      {list.map((r) => (
        <Follow key={toHex(r.id)} run={r} />
      ))}
      {missing > 0 && (
        <p class="quiet">{count(missing)} of the runs asked for are not here any more.</p>
      )}
      {list.length === 0 ? (
        fleetKnown.value ? (
          <Empty title="Pick runs to compare" command="odtctl run list">
            <p>
              Add them above, or tick them in <a href={href("runs")}>Runs</a>. The address keeps the
              choice: send it to a colleague.
            </p>
          </Empty>
        ) : (
          <p class="loading" aria-busy="true">
            Waiting for the daemon’s first snapshot …
          </p>
        )
      ) : (
        <>
          <Panel
            title={list.length === 1 ? "1 run" : `${count(list.length)} runs`}
            aside={<Controls axis={axis} smoothing={smoothing} />}
          >
            <CompareCharts list={list} base={base} axis={axis} smoothing={smoothing} />
          </Panel>
          <CompareTable
            list={list}
            base={base}
            remove={(hex) => setRuns(hexes.filter((h) => h !== hex))}
          />
        </>
      )}
    </>
  );
}

/// Keeps the epochs of a run up to date while it is compared.
function Follow({ run }: { run: Run }) {
  useRunDetail(toHex(run.id), false, isOpen(run.state));
  return null;
}

function AddRun({ hexes }: { hexes: readonly string[] }) {
  const others = newestFirst(runs.all())
    .filter((r) => !hexes.includes(toHex(r.id)))
    .slice(0, kOffered);
  return (
    <label class="row page-actions">
      Add
      <select
        id="search"
        value=""
        disabled={others.length === 0}
        onChange={(e) => {
          if (e.currentTarget.value !== "") setRuns([...hexes, e.currentTarget.value]);
        }}
      >
        <option value="">{others.length === 0 ? "no other run" : "a run …"}</option>
        {others.map((r) => (
          <option key={toHex(r.id)} value={toHex(r.id)}>
            {runLabel(r)} on {r.spec === undefined ? "" : boardName(r.spec.boardUid)}
          </option>
        ))}
      </select>
    </label>
  );
}

function Controls({ axis, smoothing }: { axis: Axis; smoothing: number }) {
  return (
    <span class="row">
      <label class="row">
        Over
        <select value={axis} onChange={(e) => setQuery("axis", e.currentTarget.value)}>
          {kAxes.map(([name, label]) => (
            <option key={name} value={name}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <label class="row">
        Smoothing
        <input
          type="range"
          min={0}
          max={0.99}
          step={0.01}
          value={smoothing}
          aria-valuetext={smoothing.toFixed(2)}
          onInput={(e) => setQuery("smooth", e.currentTarget.value)}
        />
        <span class="figure">{smoothing.toFixed(2)}</span>
      </label>
    </span>
  );
}
