import { useState } from "preact/hooks";
import { describeError, type Problem } from "../../api/errors";
import type { InferResponse } from "../../api/types";
import { int8s } from "../../store/confusion";
import { infer } from "../../store/evaluate";
import { boardName, datasets } from "../../store/fleet";
import { fromHex } from "../../api/bytes";
import { linkLive } from "../../store/link";
import { hasClasses } from "../../store/numbers";
import { className, indexInDataset, splitSize } from "../../store/samples";
import { Panel, ProblemBox } from "../parts/bits";
import { SampleTile } from "../parts/sample";
import { BoardSelect, DatasetSelect, firstChoice, SplitSelect } from "./evaluate";

/// Numbers as a person types or pastes them; NaN in it where one cannot be read.
export const valuesOf = (text: string): number[] =>
  text
    .split(/[\s,;]+/)
    .filter(Boolean)
    .map(Number);

/// One sample, of a dataset or by hand: what the board says of it with the weights that it holds now.
export function TryPanel() {
  const first = firstChoice();
  const [uidHex, setUid] = useState(first.uidHex);
  const [datasetHex, setDataset] = useState(first.datasetHex);
  const [split, setSplit] = useState("test");
  const [index, setIndex] = useState(0);
  const [byHand, setByHand] = useState("");
  const [answer, setAnswer] = useState<InferResponse | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const dataset = datasets.get(datasetHex).value;
  const size = dataset ? splitSize(dataset, split) : 0;
  const values = valuesOf(byHand);
  const readable = values.every(Number.isFinite);

  const ask = async (at: number): Promise<void> => {
    setIndex(at);
    setBusy(true);
    setProblem(null);
    try {
      setAnswer(await infer({ uidHex, datasetHex, split, index: at, values }));
    } catch (error) {
      setAnswer(null);
      setProblem(describeError(error, `Could not ask board ${boardName(fromHex(uidHex))}`));
    } finally {
      setBusy(false);
    }
  };
  const another = (): void => void ask(Math.floor(Math.random() * Math.max(1, size)));
  return (
    <Panel title="Try one sample">
      <form
        class="pad"
        onSubmit={(e) => {
          e.preventDefault();
          void ask(index);
        }}
      >
        <div class="fields">
          <BoardSelect value={uidHex} onChange={setUid} />
          <DatasetSelect value={datasetHex} onChange={setDataset} />
          <SplitSelect value={split} onChange={setSplit} />
          <label>
            Sample, 0 to {Math.max(0, size - 1)}
            <input
              type="number"
              min={0}
              max={Math.max(0, size - 1)}
              value={index}
              disabled={values.length > 0}
              onInput={(e) => setIndex(Number(e.currentTarget.value))}
            />
          </label>
          <label class="wide">
            Or by hand: values in the model’s order
            <input
              value={byHand}
              placeholder={`${dataset?.shape.reduce((a, b) => a * b, 1) ?? ""} numbers, e.g. 0, 12, 255`}
              onInput={(e) => setByHand(e.currentTarget.value)}
            />
          </label>
        </div>
        <p class="row try-buttons">
          <button type="submit" class="primary" disabled={busy || !readable || !linkLive.value}>
            {busy ? "Asking …" : "Ask the board"}
          </button>
          <button
            type="button"
            disabled={busy || values.length > 0 || !linkLive.value}
            onClick={another}
          >
            Any other
          </button>
          {!readable && <span class="tone-bad">One of the values is not a number.</span>}
        </p>
        <div aria-live="polite">
          {problem !== null && <ProblemBox problem={problem} />}
          {answer !== null && (
            <Said
              answer={answer}
              datasetHex={values.length > 0 ? "" : datasetHex}
              sample={dataset ? indexInDataset(dataset, split, index) : 0}
              name={(label) => className(dataset, label)}
            />
          )}
        </div>
      </form>
    </Panel>
  );
}

function Said(props: {
  answer: InferResponse;
  datasetHex: string;
  sample: number;
  name: (label: number) => string;
}) {
  const s = props.answer.samples[0];
  if (s === undefined) return null;
  const classes = hasClasses(props.answer.outputs);
  const outputs = int8s(s.outputs);
  const wanted = s.wanted.length > 0 ? int8s(s.wanted) : null;
  const label = classes && wanted !== null ? (wanted[0] ?? -1) : -1;
  const right = label === s.predicted;
  const verdict = !classes
    ? `${outputs.length} values`
    : label < 0
      ? `It says ${props.name(s.predicted)}.`
      : right
        ? `Right: ${props.name(s.predicted)}.`
        : `Wrong: it says ${props.name(s.predicted)}, it is ${props.name(label)}.`;
  return (
    <div class="said">
      {props.datasetHex !== "" && (
        <SampleTile
          datasetHex={props.datasetHex}
          index={props.sample}
          caption=""
          words={`Sample ${props.sample}`}
          width={112}
        />
      )}
      <div>
        <p class={label < 0 ? "strong" : right ? "strong tone-ok" : "strong tone-bad"}>{verdict}</p>
        <table class="outputs">
          <caption class="sr-only">Outputs of the board</caption>
          <thead class="sr-only">
            <tr>
              <th scope="col">{classes ? "Class" : "Output"}</th>
              <th scope="col">Value</th>
              <th scope="col">Bar</th>
            </tr>
          </thead>
          <tbody>
            {[...outputs].slice(0, 64).map((v, i) => (
              <tr key={i}>
                <th scope="row">{classes ? props.name(i) : i}</th>
                <td>{v}</td>
                <td>
                  <progress class="progress" max={255} value={v + 128} aria-label={`Output ${i}`} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}
