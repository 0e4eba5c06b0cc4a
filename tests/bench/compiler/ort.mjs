// Runs models with ONNX Runtime, one sample at a time and every graph optimisation off, so that each operation is
// computed as the file says.
//
//   node ort.mjs FOLDER OUT    FOLDER/index.json as tests/support/zoo/make.py writes it
//
// OUT/KIND/NAME.f32: all outputs, float32. One line of JSON on stdout: models and samples run.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const [folder, out, modules] = process.argv.slice(2);
const require = createRequire(join(resolve(modules ?? "."), "package.json"));
const { InferenceSession, Tensor } = require("onnxruntime-node");

async function run(entry, kind) {
  const session = await InferenceSession.create(join(folder, kind, `${entry.name}.onnx`), {
    graphOptimizationLevel: "disabled",
    logSeverityLevel: 3,
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
  });
  const bytes = readFileSync(join(folder, `${entry.name}.f32`));
  const samples = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  const size = samples.length / entry.samples;
  const results = [];
  for (let n = 0; n < entry.samples; n++) {
    const x = new Tensor("float32", samples.slice(n * size, (n + 1) * size), [1, ...entry.inputs]);
    const y = await session.run({ [session.inputNames[0]]: x });
    results.push(Buffer.from(y[session.outputNames[0]].data.buffer.slice(0)));
  }
  await session.release();
  writeFileSync(join(out, kind, `${entry.name}.f32`), Buffer.concat(results));
}

const index = JSON.parse(readFileSync(join(folder, "index.json"), "utf8"));
let models = 0;
let samples = 0;
for (const entry of index)
  for (const kind of entry.kinds) {
    mkdirSync(join(out, kind), { recursive: true });
    await run(entry, kind);
    models += 1;
    samples += entry.samples;
  }
console.log(JSON.stringify({ models, samples }));
