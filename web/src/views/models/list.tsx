import { useState } from "preact/hooks";
import { toHex } from "../../api/bytes";
import type { Problem } from "../../api/errors";
import { ModelArithmetic, type Model } from "../../api/types";
import { models } from "../../store/fleet";
import { bytes, count, kNone, percent } from "../../store/format";
import { fleetKnown, linkLive } from "../../store/link";
import { shortName } from "../../store/files";
import { addModel } from "../../store/models";
import { notices } from "../../store/notices";
import { fraction, hasClasses } from "../../store/numbers";
import { parseFilter, toFields } from "../filter";
import { newest } from "../newest";
import { Empty, Hash, Loading, ProblemBox, Progress } from "../parts/bits";
import { NoMatch, SearchBox, ShownNote } from "../parts/search-box";
import { go, href, route } from "../router";

export function ModelList() {
  if (!fleetKnown.value && models.keys.value.length === 0) {
    return <Loading page="Models" />;
  }
  const all = newest(models.all());
  const query = route.value.query.get("q") ?? "";
  const test = parseFilter(query);
  const shown = all.filter((m) => test(toFields({ name: m.name, hash: toHex(m.hash) })));
  return (
    <>
      <h1 class="sr-only">Models</h1>
      <div class="bar">
        <SearchBox label="Search models" placeholder="Search" />
        <ShownNote shown={shown.length} total={all.length} what="model" />
      </div>
      <AddPanel />
      {all.length === 0 ? (
        <Empty title="No models yet" command="odtctl model add model.onnx --trainable 2">
          <p>A quantised ONNX file is compiled into an image that every board can load.</p>
        </Empty>
      ) : shown.length === 0 ? (
        <NoMatch view="models" what="model" total={all.length} />
      ) : (
        <Table list={shown} />
      )}
    </>
  );
}

/// An ONNX file, dropped or chosen.
function AddPanel() {
  const [file, setFile] = useState<File | null>(null);
  const [over, setOver] = useState(false);
  const [name, setName] = useState("");
  const [trainable, setTrainable] = useState("0");
  const [arithmetic, setArithmetic] = useState(ModelArithmetic.UNSPECIFIED);
  const [progress, setProgress] = useState<{ what: string; share: number } | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const take = (f: File | undefined): void => {
    if (f === undefined) return;
    setFile(f);
    setName(shortName(f.name.replace(/\.onnx$/i, "")));
    setProblem(null);
  };
  const add = async (f: File): Promise<void> => {
    setProblem(null);
    setProgress({ what: "reading", share: 0 });
    const result = await addModel(
      f,
      name.trim(),
      Number(trainable) || 0,
      arithmetic,
      (what, share) => setProgress({ what, share }),
    );
    setProgress(null);
    if (typeof result !== "string") return setProblem(result);
    notices.done(`${name} is compiled`);
    setFile(null);
    go(href("models", result));
  };
  return (
    <section
      class={`drop ${over ? "drop-over" : ""}`}
      aria-label="Add a model"
      onDragOver={(e) => {
        e.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(e) => {
        e.preventDefault();
        setOver(false);
        take(e.dataTransfer?.files[0]);
      }}
    >
      {file === null ? (
        <p class="row">
          <span>Drop an ONNX file here, or</span>
          <label class="file-button">
            Choose a file
            <input
              type="file"
              accept=".onnx"
              disabled={!linkLive.value}
              onChange={(e) => take(e.currentTarget.files?.[0])}
            />
          </label>
        </p>
      ) : (
        <form
          onSubmit={(e) => {
            e.preventDefault();
            void add(file);
          }}
        >
          <p>
            <strong>{file.name}</strong>, {bytes(file.size)}
          </p>
          <div class="fields">
            <label>
              Name
              <input value={name} maxLength={64} onInput={(e) => setName(e.currentTarget.value)} />
            </label>
            <label>
              Trainable layers, 0: all
              <input
                inputMode="numeric"
                pattern="[0-9]*"
                value={trainable}
                onInput={(e) => setTrainable(e.currentTarget.value)}
              />
            </label>
            <label>
              Arithmetic
              <select
                value={arithmetic}
                onChange={(e) => setArithmetic(Number(e.currentTarget.value))}
              >
                <option value={ModelArithmetic.UNSPECIFIED}>as the file is</option>
                <option value={ModelArithmetic.INT8}>8-bit integers</option>
                <option value={ModelArithmetic.DFP16}>DFP16</option>
              </select>
            </label>
          </div>
          {problem !== null && <ProblemBox problem={problem} />}
          <p class="row" aria-live="polite">
            <button
              type="submit"
              class="primary"
              disabled={progress !== null || name.trim() === "" || !linkLive.value}
            >
              {progress === null ? "Compile" : "Compiling …"}
            </button>
            <button type="button" disabled={progress !== null} onClick={() => setFile(null)}>
              Another file
            </button>
            {progress !== null && (
              <>
                <Progress done={progress.share} total={1} label="Progress" />
                <span class="quiet">{progress.what}</span>
              </>
            )}
          </p>
        </form>
      )}
    </section>
  );
}

function Table({ list }: { list: readonly Model[] }) {
  return (
    <div class="table-frame">
      <table>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Input</th>
            <th scope="col">Layers</th>
            <th scope="col">Own accuracy</th>
            <th scope="col">Image</th>
            <th scope="col">RAM to train, k ≤ 8</th>
            <th scope="col">k &gt; 8</th>
            <th scope="col">Hash</th>
          </tr>
        </thead>
        <tbody>
          {list.map((m) => (
            <tr key={toHex(m.hash)}>
              <th scope="row">
                <a href={href("models", toHex(m.hash))}>{m.name}</a>
                <span class="sub">
                  {hasClasses(m.outputs)
                    ? `${m.nClasses} classes`
                    : `${m.outputs?.count ?? 0} outputs`}
                  {m.arithmetic === 1 && ", DFP16"}
                </span>
              </th>
              <td data-label="Input">{m.inputShape.join(" × ") || kNone}</td>
              <td data-label="Layers">
                <ul class="layer-list">
                  {m.layers.map((l, i) => (
                    <li
                      key={i}
                      title={`${l.kind}, ${count(l.weights)} weights, ${count(l.macs)} MACs a sample`}
                    >
                      <span class={l.trainable ? "layer trainable" : "layer"}>
                        {l.name || l.kind} {l.weightShape.join("×")}
                        {l.trainable ? "" : " frozen"}
                      </span>
                    </li>
                  ))}
                </ul>
              </td>
              <td data-label="Own accuracy">
                {hasClasses(m.outputs) ? percent(fraction(m.sourceAccuracy)) : kNone}
              </td>
              <td data-label="Image">{bytes(m.imageBytes)}</td>
              <td data-label="RAM, k ≤ 8">{bytes(m.ramK8Bytes)}</td>
              <td data-label="RAM, k > 8">{bytes(m.ramK16Bytes)}</td>
              <td data-label="Hash">
                <Hash value={m.hash} label={`hash of model ${m.name}`} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
