// The weights of a snapshot, fetched when somebody asks for them.
import { fromHex, newRequestId, toHex } from "../api/bytes";
import { clients, kCallTimeoutMs } from "../api/clients";
import { describeError, type Problem } from "../api/errors";
import { WeightsFormat } from "../api/types";

export interface LayerWeights {
  name: string;
  k: number; // precision of the stored values; DFP16: their exponent
  weights: readonly number[];
}

const held = new Map<string, readonly LayerWeights[]>();
const kMostHeld = 4;

export const isProblem = <T extends object>(answer: T | Problem): answer is Problem =>
  "remedy" in answer;

function take(json: unknown): readonly LayerWeights[] {
  const { layers } = json as { layers?: { name?: string; k?: number; weights?: number[] }[] };
  if (!Array.isArray(layers)) throw new Error("the file of weights has no layers");
  return layers.map((l, i) => ({
    name: l.name ?? `layer ${i}`,
    k: l.k ?? 8,
    weights: l.weights ?? [],
  }));
}

export async function readWeights(hashHex: string): Promise<readonly LayerWeights[] | Problem> {
  const known = held.get(hashHex);
  if (known !== undefined) return known;
  try {
    const { blob } = await clients().weights.exportSnapshot(
      { requestId: newRequestId(), snapshot: fromHex(hashHex), format: WeightsFormat.JSON },
      { timeoutMs: kCallTimeoutMs },
    );
    const answer = await fetch(`/v1/blobs/${toHex(blob)}`);
    if (!answer.ok) throw new Error(`the daemon answered ${answer.status} for the file of weights`);
    const layers = take(await answer.json());
    held.set(hashHex, layers);
    const [oldest] = held.keys();
    if (held.size > kMostHeld && oldest !== undefined) held.delete(oldest);
    return layers;
  } catch (error) {
    return describeError(error, `Could not read the weights of ${hashHex.slice(0, 8)}`);
  }
}
