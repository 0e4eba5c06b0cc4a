import { useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import { clients } from "../../api/clients";
import type { Dataset, Evaluation } from "../../api/types";
import { fetchEvaluation } from "../../store/evaluate";
import { perClass, worstPairs } from "../../store/confusion";
import { boardName, datasets, datasetName, evaluations, modelName } from "../../store/fleet";
import { count, kNone, percent, significant } from "../../store/format";
import { hasClasses, lossPerSample } from "../../store/numbers";
import { className, indexInDataset } from "../../store/samples";
import { Empty, Loading, Panel, ProblemBox, Tile } from "../parts/bits";
import { SampleTile } from "../parts/sample";
import { useLoad } from "../parts/use-load";
import { href } from "../router";
import { ConfusionMatrix, type Cell } from "./confusion-matrix";
import { resultOf } from "./evaluate";

const kPage = 24;

export function EvaluationView({ hex }: { hex: string }) {
  const known = evaluations.get(hex).value;
  const { problem } = useLoad(known === undefined ? hex : "", "read the evaluation", () =>
    fetchEvaluation(hex),
  );
  if (known !== undefined) return <Known evaluation={known} />;
  if (problem !== null) {
    return (
      <>
        <h1 class="sr-only">Evaluation</h1>
        <ProblemBox problem={problem} />
        <Empty title="There is no such evaluation" command="odtctl job list">
          <p>
            <a href={href("evaluate")}>All evaluations</a>
          </p>
        </Empty>
      </>
    );
  }
  return <Loading page="Evaluation" what="Loading …" />;
}

function Known({ evaluation: e }: { evaluation: Evaluation }) {
  const dataset = datasets.get(toHex(e.datasetId)).value;
  const [cell, setCell] = useState<Cell | null>(null);
  const n = Math.round(Math.sqrt(e.confusion.length));
  const classes = hasClasses(e.outputs) && n > 1;
  const name = (label: number): string => className(dataset, label);
  return (
    <>
      <header class="page-head">
        <nav aria-label="Where this is" class="crumbs">
          <a href={href("evaluate")}>Evaluate</a> <span aria-hidden="true">/</span>
        </nav>
        <h1>
          {resultOf(e)} on {datasetName(e.datasetId)}
        </h1>
        <span class="quiet head-note">
          {[modelName(e.modelHash), boardName(e.boardUid), `${e.split} split`].join(" · ")}
        </span>
      </header>
      <div class="tiles run-tiles">
        <Tile
          label={classes ? "Accuracy" : "Squared error"}
          value={resultOf(e)}
          note={
            classes
              ? `${count(e.accuracy?.correct ?? 0)} of ${count(e.accuracy?.total ?? 0)} samples`
              : `${count(e.loss?.count ?? 0)} samples`
          }
        />
        <Tile label="Loss of a sample" value={significant(lossPerSample(e.loss))} />
        <Tile
          label="Board"
          value={<a href={href("board", toHex(e.boardUid))}>{boardName(e.boardUid)}</a>}
        />
        <Tile
          label="Weights"
          value={
            e.snapshot.length > 0 ? (
              <a href={href("weights", toHex(e.snapshot))}>{toHex(e.snapshot).slice(0, 12)}</a>
            ) : (
              kNone
            )
          }
          note={e.snapshot.length > 0 ? "" : "what the board held then"}
        />
      </div>
      {classes ? (
        <>
          <Panel title="What was said of each class">
            <ConfusionMatrix matrix={e.confusion} n={n} name={name} cell={cell} choose={setCell} />
            <Mixed matrix={e.confusion} n={n} name={name} choose={setCell} />
          </Panel>
          <Classes evaluation={e} n={n} name={name} />
          <Wrong
            evaluation={e}
            dataset={dataset}
            cell={cell}
            clear={() => setCell(null)}
            name={name}
          />
        </>
      ) : (
        <ScoresPanel evaluation={e} />
      )}
    </>
  );
}

function Mixed(props: {
  matrix: readonly number[];
  n: number;
  name: (label: number) => string;
  choose: (cell: Cell) => void;
}) {
  const pairs = worstPairs(props.matrix, props.n);
  if (pairs.length === 0) return <p class="pad tone-ok">Nothing is mixed up.</p>;
  return (
    <p class="pad row">
      <span class="quiet">Mixed up most:</span>
      {pairs.map((p) => (
        <button
          key={`${p.label}/${p.said}`}
          type="button"
          class="small"
          onClick={() => props.choose({ label: p.label, said: p.said })}
        >
          {props.name(p.label)} taken for {props.name(p.said)}: {p.count}
        </button>
      ))}
    </p>
  );
}

function Classes({
  evaluation: e,
  n,
  name,
}: {
  evaluation: Evaluation;
  n: number;
  name: (label: number) => string;
}) {
  return (
    <Panel title="By class">
      <div class="table-frame">
        <table class="numbers">
          <thead>
            <tr>
              <th scope="col">Class</th>
              <th scope="col">Samples</th>
              <th scope="col">Right</th>
              <th scope="col">Recall</th>
              <th scope="col">Said</th>
              <th scope="col">Precision</th>
              <th scope="col">F1</th>
            </tr>
          </thead>
          <tbody>
            {perClass(e.confusion, n).map((c) => (
              <tr key={c.label}>
                <th scope="row">{name(c.label)}</th>
                <td data-label="Samples">{count(c.total)}</td>
                <td data-label="Right">{count(c.right)}</td>
                <td data-label="Recall">
                  {percent(c.recall)}
                  {Number.isFinite(c.recall) && (
                    <progress
                      class="progress amount"
                      max={1}
                      value={c.recall}
                      aria-label={`Recall of ${name(c.label)}`}
                    />
                  )}
                </td>
                <td data-label="Said">{count(c.said)}</td>
                <td data-label="Precision">{percent(c.precision)}</td>
                <td data-label="F1">{percent(c.f1)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

/// The samples that were said wrongly, as pictures of their own values.
function Wrong(props: {
  evaluation: Evaluation;
  dataset: Dataset | undefined;
  cell: Cell | null;
  clear: () => void;
  name: (label: number) => string;
}) {
  const { evaluation: e, dataset, cell, name } = props;
  const [shown, setShown] = useState(kPage);
  const recorded = e.wrong.length > 0;
  const key = recorded ? `${toHex(e.id)}/${cell?.label ?? ""}/${cell?.said ?? ""}/${shown}` : "";
  const { value, problem, reload } = useLoad(key, "read the wrong samples", () =>
    clients().weights.listWrongSamples(
      {
        evaluationId: e.id,
        count: shown,
        ...(cell !== null && { label: cell.label, said: cell.said }),
      },
      { timeoutMs: 15_000 },
    ),
  );
  const title =
    cell === null ? "Wrong samples" : `Samples of ${name(cell.label)} taken for ${name(cell.said)}`;
  return (
    <Panel
      title={title}
      aside={
        <>
          {value !== null && <span>{count(value.total)}</span>}
          {cell !== null && (
            <button type="button" class="small" onClick={props.clear}>
              Show all
            </button>
          )}
        </>
      }
    >
      {!recorded ? (
        <p class="pad quiet">
          {(e.accuracy?.correct ?? 0) === (e.accuracy?.total ?? 0)
            ? "No sample is wrong."
            : "Which samples are wrong was not asked for; evaluate again with “also which samples are wrong”."}
        </p>
      ) : problem !== null ? (
        <ProblemBox problem={problem} retry={reload} />
      ) : (
        <>
          <ul class="sample-grid">
            {value?.samples.map((s) => (
              <li key={s.index}>
                <SampleTile
                  datasetHex={toHex(e.datasetId)}
                  index={dataset ? indexInDataset(dataset, e.split, s.index) : s.index}
                  words={`Sample ${s.index}: ${name(s.label)}, taken for ${name(s.said)}`}
                  caption={
                    <>
                      <span class="strong">{name(s.label)}</span>{" "}
                      <span aria-label="taken for">→</span>{" "}
                      <span class="tone-bad">{name(s.said)}</span>
                      <span class="sub">no. {s.index}</span>
                    </>
                  }
                />
              </li>
            ))}
          </ul>
          {value !== null && value.total > value.samples.length && (
            <p class="pad">
              <button type="button" onClick={() => setShown(shown + kPage * 2)}>
                Show more ({count(value.samples.length)} of {count(value.total)})
              </button>
            </p>
          )}
        </>
      )}
    </Panel>
  );
}

function ScoresPanel({ evaluation: e }: { evaluation: Evaluation }) {
  const s = e.scores;
  if (s === undefined) return <Empty title="There are no scores of single samples" />;
  return (
    <Panel
      title="Squared errors of single samples"
      aside={
        s.blob.length > 0 ? (
          <a href={`/v1/blobs/${toHex(s.blob)}`} download="scores.u64">
            all of them, uint64
          </a>
        ) : undefined
      }
    >
      <div class="tiles">
        <Tile label="Least" value={count(s.min)} />
        <Tile label="Median" value={count(s.median)} />
        <Tile label="95 %" value={count(s.p95)} />
        <Tile label="Most" value={count(s.max)} />
      </div>
    </Panel>
  );
}
