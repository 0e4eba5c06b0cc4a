import "../../styles/analysis.css";
import { useEffect } from "preact/hooks";
import { toHex } from "../../api/bytes";
import type { Run } from "../../api/types";
import { accounts, loadAccounts } from "../../store/accounts";
import { fileName, save } from "../../store/exports";
import { runs } from "../../store/fleet";
import { runLabel } from "../board-state";
import { Loading, ProblemBox } from "../parts/bits";
import { useRunDetail } from "../parts/run-bits";
import { href } from "../router";
import { NoRun } from "../run";
import { reportBody, reportFile } from "./build";

/// A run on paper: the same that the file holds.
export function ReportView({ runHex }: { runHex: string }) {
  const run = runs.get(runHex).value;
  return run === undefined ? <NoRun runHex={runHex} /> : <ReportPage run={run} />;
}

function ReportPage({ run }: { run: Run }) {
  const hex = toHex(run.id);
  const detail = useRunDetail(hex, true, false);
  useEffect(() => void loadAccounts([run]), [hex, run.epochsDone]);
  const ready = detail.loaded.value;
  void detail.stepsVersion.value;
  const body = ready ? reportBody(run, detail, accounts.value.get(hex)) : "";
  const name = runLabel(run);
  return (
    <>
      <div class="page-head no-print">
        <nav aria-label="Where this is" class="crumbs">
          <a href={href("runs")}>Runs</a> <span aria-hidden="true">/</span>{" "}
          <a href={href("run", hex)}>{name}</a> <span aria-hidden="true">/</span>
        </nav>
        <div class="page-actions">
          <button
            type="button"
            class="primary"
            disabled={!ready}
            onClick={() => save(`${fileName(name)}.html`, "text/html", [reportFile(name, body)])}
          >
            Save as HTML
          </button>
          <button type="button" disabled={!ready} onClick={() => window.print()}>
            Print
          </button>
        </div>
      </div>
      {detail.problem.value !== null && (
        <ProblemBox problem={detail.problem.value} retry={() => void detail.load(true)} />
      )}
      {ready ? (
        // Every text in it is escaped by build.ts.
        <article class="report panel" dangerouslySetInnerHTML={{ __html: body }} />
      ) : (
        <Loading what="Reading the run …" />
      )}
    </>
  );
}
