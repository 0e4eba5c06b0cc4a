import { useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import type { Dataset, DatasetPreview } from "../../api/types";
import { SamplePicture, drawnAs } from "../../charts/sample";
import { count, significant } from "../../store/format";
import { pictureKind, sampleOf } from "../../store/samples";
import { Panel, ProblemBox } from "../parts/bits";
import { useLoad } from "../parts/use-load";
import { dark } from "../theme";

const kThumb = 84;
const kLarge = 300;

/// A few samples of each class, and any one of them in full.
export function SamplesPanel({
  dataset: d,
  preview,
}: {
  dataset: Dataset;
  preview: DatasetPreview | undefined;
}) {
  const [chosen, setChosen] = useState(0);
  const [label, setLabel] = useState("");
  if (preview === undefined) return null;
  const labels = [...new Set(preview.samples.map((s) => s.label))];
  const shown = preview.samples.filter((s) => label === "" || s.label === label);
  const how = drawnAs(pictureKind(preview), preview.shape);
  return (
    <Panel
      title="Samples"
      aside={
        labels.length > 1 ? (
          <label>
            Class{" "}
            <select value={label} onChange={(e) => setLabel(e.currentTarget.value)}>
              <option value="">all</option>
              {labels.map((l) => (
                <option key={l} value={l}>
                  {l}
                </option>
              ))}
            </select>
          </label>
        ) : undefined
      }
    >
      <OneSample dataset={d} index={chosen} setIndex={setChosen} />
      <ul class="sample-grid">
        {shown.map((s) => (
          <li key={s.index}>
            <button
              type="button"
              class="sample-button"
              aria-pressed={chosen === s.index}
              aria-label={`Sample ${s.index}, ${s.label || s.targets.map(significant).join(" ")}`}
              onClick={() => setChosen(s.index)}
            >
              <SamplePicture
                kind={pictureKind(preview)}
                shape={preview.shape}
                values={s.values}
                label=""
                dark={dark.value}
                width={kThumb}
              />
            </button>
            <span class="sub">
              {s.label || s.targets.slice(0, 3).map(significant).join(", ")} · {s.split}
            </span>
          </li>
        ))}
      </ul>
      <p class="pad quiet">
        {count(shown.length)} of {count(d.train + d.heldout + d.test)} samples
        {how === "spectrogram" && "; time goes to the right, frequency up"}
        {how === "lines" && (preview.shape[0] ?? 1) > 1 && preview.shape.length === 3
          ? `; a line for each of ${preview.shape[0]} channels`
          : ""}
      </p>
    </Panel>
  );
}

/// Any sample by its number, large, with its values as a table.
function OneSample(props: { dataset: Dataset; index: number; setIndex: (i: number) => void }) {
  const { dataset: d, index, setIndex } = props;
  const [asTable, setAsTable] = useState(false);
  const total = d.train + d.heldout + d.test;
  const valid = Number.isInteger(index) && index >= 0 && index < total;
  const hex = toHex(d.id);
  const { value, problem, reload } = useLoad(
    valid ? `${hex}/${index}` : "",
    `read sample ${index}`,
    () => sampleOf(hex, index),
  );
  const s = value?.preview?.samples[0];
  const step = (by: number): void => setIndex((index + by + total) % total);
  return (
    <div class="one-sample pad">
      <div class="row">
        <label>
          Sample{" "}
          <input
            type="number"
            min={0}
            max={total - 1}
            value={index}
            onInput={(e) => setIndex(Number(e.currentTarget.value))}
          />
        </label>
        <button type="button" aria-label="Sample before" onClick={() => step(-1)}>
          ←
        </button>
        <button type="button" aria-label="Sample after" onClick={() => step(1)}>
          →
        </button>
        <button
          type="button"
          class="small"
          aria-pressed={asTable}
          aria-label="Sample as a table"
          onClick={() => setAsTable(!asTable)}
        >
          Table
        </button>
        {!valid && <span class="tone-bad">There are samples 0 to {count(total - 1)}.</span>}
      </div>
      {problem !== null && <ProblemBox problem={problem} retry={reload} />}
      {s !== undefined && value?.preview !== undefined && (
        <div class="one-sample-body">
          {asTable ? (
            <Values values={s.values} names={value.preview.valueNames} />
          ) : (
            <SamplePicture
              kind={pictureKind(value.preview)}
              shape={value.preview.shape}
              values={s.values}
              label={`Sample ${index}, ${s.label}`}
              dark={dark.value}
              width={kLarge}
            />
          )}
          <dl class="facts">
            <div>
              <dt>{s.targets.length > 0 ? "Targets" : "Class"}</dt>
              <dd>{s.targets.length > 0 ? s.targets.map(significant).join(", ") : s.label}</dd>
            </div>
            <div>
              <dt>Split</dt>
              <dd>{s.split}</dd>
            </div>
            {s.group !== "" && (
              <div>
                <dt>Group</dt>
                <dd>{s.group}</dd>
              </div>
            )}
          </dl>
        </div>
      )}
    </div>
  );
}

function Values({ values, names }: { values: readonly number[]; names: readonly string[] }) {
  return (
    <div class="chart-table" tabIndex={0} role="region" aria-label="Values of the sample">
      <table>
        <caption class="sr-only">Values of the sample</caption>
        <thead>
          <tr>
            <th scope="col">Value</th>
            <th scope="col">Is</th>
          </tr>
        </thead>
        <tbody>
          {values.slice(0, 1024).map((v, i) => (
            <tr key={i}>
              <th scope="row">{names[i] ?? i}</th>
              <td>{significant(v)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
