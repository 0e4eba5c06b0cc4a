import "../../styles/analysis.css";
import { toHex } from "../../api/bytes";
import type { Run } from "../../api/types";
import { runs } from "../../store/fleet";
import { runLabel } from "../board-state";
import { ProblemBox } from "../parts/bits";
import { liveRunLook, useRunDetail } from "../parts/run-bits";
import { StateMark } from "../parts/state-mark";
import { href } from "../router";
import { NoRun } from "../run";
import { isOpen } from "../words";
import { AptPanel } from "./apt";
import { BatchPanel } from "./batch";
import { GaugesPanel } from "./gauges";
import { HistogramsPanel } from "./histograms";
import { LanesPanel } from "./lanes";

/// What every layer of a run does.
export function LayersView({ runHex }: { runHex: string }) {
  const run = runs.get(runHex).value;
  return run === undefined ? <NoRun runHex={runHex} /> : <LayersPage run={run} />;
}

function LayersPage({ run }: { run: Run }) {
  const hex = toHex(run.id);
  const detail = useRunDetail(hex, true, isOpen(run.state));
  return (
    <>
      <header class="page-head">
        <nav aria-label="Where this is" class="crumbs">
          <a href={href("runs")}>Runs</a> <span aria-hidden="true">/</span>{" "}
          <a href={href("run", hex)}>{runLabel(run)}</a> <span aria-hidden="true">/</span>
        </nav>
        <h1>Layers</h1>
        <StateMark look={liveRunLook(run)} />
      </header>
      {detail.problem.value !== null && (
        <ProblemBox problem={detail.problem.value} retry={() => void detail.load(true)} />
      )}
      <GaugesPanel run={run} detail={detail} />
      <LanesPanel run={run} detail={detail} />
      <BatchPanel run={run} detail={detail} />
      <HistogramsPanel run={run} />
      <AptPanel run={run} />
    </>
  );
}
