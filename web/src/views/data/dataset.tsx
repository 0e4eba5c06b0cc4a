import { useState } from "preact/hooks";
import { fromHex, toHex } from "../../api/bytes";
import { clients } from "../../api/clients";
import type { Dataset, DatasetPreview, DatasetReport, GetDatasetResponse } from "../../api/types";
import { serverNowMs } from "../../store/clock";
import { datasets } from "../../store/fleet";
import { bytes, clock, count, kNone, percent, significant } from "../../store/format";
import { fleetKnown } from "../../store/link";
import { usToMs } from "../../store/numbers";
import { trash } from "../../store/trash";
import { Empty, Facts, Hash, Loading, Panel, ProblemBox } from "../parts/bits";
import { ConfirmButton } from "../parts/confirm";
import { useLoad } from "../parts/use-load";
import { go, href } from "../router";
import { BalanceChart } from "./balance";
import { SamplesPanel } from "./samples";

const kMostFeatures = 100;

export function DatasetView({ hex }: { hex: string }) {
  const known = datasets.get(hex).value;
  const { value, problem, reload } = useLoad(
    hex,
    `read dataset ${known?.name ?? hex.slice(0, 12)}`,
    () => clients().dataset.getDataset({ id: fromHex(hex) }, { timeoutMs: 30_000 }),
  );
  const d = known ?? value?.dataset;
  if (d === undefined) {
    if (problem === null && !(fleetKnown.value && hex.length !== 32)) {
      return <Loading page="Dataset" what="Loading …" />;
    }
    return (
      <>
        <h1 class="sr-only">Dataset</h1>
        <Empty title={`No dataset ${hex.slice(0, 16)}`} command="odtctl data list">
          <p>
            It was never imported here, or it is in the <a href={href("storage")}>trash</a>.{" "}
            <a href={href("data")}>All datasets</a>
          </p>
        </Empty>
      </>
    );
  }
  return (
    <>
      <Head dataset={d} />
      {problem !== null && <ProblemBox problem={problem} retry={reload} />}
      <Warnings dataset={d} report={value?.report} />
      <div class="two-columns">
        <div>
          <BalanceChart dataset={d} report={value?.report} />
          <SamplesPanel dataset={d} preview={value?.preview} />
          <Features report={value?.report} />
        </div>
        <aside>
          <DetailPanel dataset={d} answer={value} />
        </aside>
      </div>
    </>
  );
}

function Head({ dataset: d }: { dataset: Dataset }) {
  const remove = async (): Promise<void> => {
    if (await trash("dataset", d.id, d.name)) go(href("data"));
  };
  const hex = toHex(d.id);
  return (
    <header class="page-head">
      <nav aria-label="Where this is" class="crumbs">
        <a href={href("data")}>Data</a> <span aria-hidden="true">/</span>
      </nav>
      <h1>{d.name}</h1>
      <span class="quiet head-note">{d.source}</span>
      <div class="page-actions">
        <a class="button" href={href("evaluate", "", new URLSearchParams({ data: hex }))}>
          Evaluate with it
        </a>
        <ConfirmButton
          label="Delete"
          title={`Move dataset ${d.name} to the trash?`}
          confirm="Move to the trash"
          onConfirm={() => void remove()}
        >
          <p>It can be brought back for 30 days. What uses it refuses to let it go.</p>
        </ConfirmButton>
      </div>
    </header>
  );
}

function Warnings({ dataset: d, report }: { dataset: Dataset; report: DatasetReport | undefined }) {
  const list = [...new Set([...d.warnings, ...(report?.warnings ?? [])])];
  if (list.length === 0) return null;
  return (
    <div class="problem mild">
      <p class="problem-title">The import warns</p>
      <ul>
        {list.map((w) => (
          <li key={w}>{w}</li>
        ))}
      </ul>
    </div>
  );
}

function DetailPanel({
  dataset: d,
  answer,
}: {
  dataset: Dataset;
  answer: GetDatasetResponse | null;
}) {
  const r = answer?.report;
  const p: DatasetPreview | undefined = answer?.preview;
  const figure = (n: number | bigint | undefined): string => (n === undefined ? kNone : count(n));
  return (
    <Panel title="What it is">
      <Facts
        rows={[
          ["Kind", p?.kind || kNone],
          ["Sample", `${d.shape.join(" × ")} ${d.dtype}`],
          ["Unit", p?.unit || kNone],
          ["Sample rate", p && p.sampleRate > 0 ? `${significant(p.sampleRate)} Hz` : kNone],
          ["Train, held-out, test", `${count(d.train)}, ${count(d.heldout)}, ${count(d.test)}`],
          [d.outputs > 0 ? "Targets" : "Classes", String(d.outputs > 0 ? d.outputs : d.nClasses)],
          ["Rows of the source", figure(r?.rows)],
          ["Dropped rows", figure(r?.droppedRows)],
          ["Missing values", figure(r?.missingCells)],
          ["Duplicates", figure(r?.duplicates)],
          ["In train and elsewhere", figure(r?.leaked)],
          ["Equal under another label", figure(r?.conflicting)],
          ["Constant values", figure(r?.constant)],
          ["Size", bytes(d.bytes)],
          ["Imported", clock(usToMs(d.meta?.createTimeUs ?? 0n), serverNowMs.value)],
          ["Content", <Hash key="c" value={d.contentHash} label="content hash" />],
        ]}
      />
    </Panel>
  );
}

function Features({ report }: { report: DatasetReport | undefined }) {
  const [all, setAll] = useState(false);
  const list = report?.features ?? [];
  if (list.length === 0) return null;
  const shown = all ? list : list.slice(0, kMostFeatures);
  return (
    <Panel title="Values" aside={count(list.length)}>
      <div class="table-frame scroll" tabIndex={0} role="region" aria-label="Values of a sample">
        <table class="numbers">
          <thead>
            <tr>
              <th scope="col">Value</th>
              <th scope="col">Least</th>
              <th scope="col">Most</th>
              <th scope="col">Mean</th>
              <th scope="col">Deviation</th>
              <th scope="col">Missing</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((f) => (
              <tr key={f.name}>
                <th scope="row">{f.name}</th>
                <td>{significant(f.min)}</td>
                <td>{significant(f.max)}</td>
                <td>{significant(f.mean)}</td>
                <td>{significant(f.deviation)}</td>
                <td>{f.missing > 0n ? count(f.missing) : kNone}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown.length < list.length && (
        <p class="pad">
          <button type="button" onClick={() => setAll(true)}>
            Show all {count(list.length)} ({percent(shown.length / list.length, 0)} shown)
          </button>
        </p>
      )}
    </Panel>
  );
}
