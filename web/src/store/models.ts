import { newRequestId, toHex } from "../api/bytes";
import { clients, kCallTimeoutMs } from "../api/clients";
import { describeError, type Problem } from "../api/errors";
import type { Board, Model, ModelArithmetic, Run } from "../api/types";
import { jobs } from "./fleet";
import { uploadFile } from "./files";
import { jobEnd } from "./job-end";

/// Sends an ONNX file and compiles it; the model's hex or what went wrong.
export async function addModel(
  file: File,
  name: string,
  trainableLayers: number,
  arithmetic: ModelArithmetic,
  say: (what: string, share: number) => void,
): Promise<string | Problem> {
  try {
    const blob = await uploadFile(file, file.name, (p) =>
      say(p.what, p.total > 0 ? p.done / p.total : 0),
    );
    const { job } = await clients().model.addModel(
      { requestId: newRequestId(), onnxBlob: blob, name, trainableLayers, arithmetic },
      { timeoutMs: kCallTimeoutMs },
    );
    if (job === undefined) throw new Error("the daemon answered without a job");
    jobs.set(toHex(job.id), job);
    say("compiling", 1);
    return toHex((await jobEnd(job)).resultKey);
  } catch (error) {
    return describeError(error, `Could not add ${name || file.name}`);
  }
}

export interface Fit {
  problem: Problem | null; // why it does not run there
  run: Run | undefined;
  ramBytes: bigint;
  boardRamBytes: bigint;
  totalUs: bigint;
  placement: string;
}

/// Asks the daemon whether a board could train a model with a dataset; nothing is begun.
export async function fitOf(model: Model, board: Board, datasetId: Uint8Array): Promise<Fit> {
  try {
    const { run, estimate } = await clients().run.createRun(
      {
        requestId: newRequestId(),
        dryRun: true,
        spec: { boardUid: board.uid, modelHash: model.hash, datasetId, hyper: { epochs: 1 } },
      },
      { timeoutMs: kCallTimeoutMs },
    );
    return {
      problem: null,
      run,
      ramBytes: estimate?.ramBytes ?? 0n,
      boardRamBytes: estimate?.boardRamBytes ?? 0n,
      totalUs: estimate?.totalUs ?? 0n,
      placement: estimate?.placement ?? "",
    };
  } catch (error) {
    const problem = describeError(error, `${board.name} cannot train it`);
    return { problem, run: undefined, ramBytes: 0n, boardRamBytes: 0n, totalUs: 0n, placement: "" };
  }
}
