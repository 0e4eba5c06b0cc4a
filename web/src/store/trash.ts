import { toHex } from "../api/bytes";
import { kCallTimeoutMs } from "../api/clients";
import { lateClients } from "../api/late-clients";
import { act } from "./actions";

const options = { timeoutMs: kCallTimeoutMs };

/// Moves a thing into the trash; the notice offers to take it back.
export function trash(kind: string, key: Uint8Array, name: string): Promise<boolean> {
  const id = `trash/${kind}/${toHex(key)}`;
  return act(
    id,
    `move ${kind} ${name} to the trash`,
    `${name} is in the trash`,
    async (requestId) => {
      await lateClients().storage.trash({ requestId, kind, key }, options);
    },
    { label: "Undo", run: () => void untrash(kind, key, name) },
  );
}

export function untrash(kind: string, key: Uint8Array, name: string): Promise<boolean> {
  return act(
    `untrash/${kind}/${toHex(key)}`,
    `bring ${kind} ${name} back`,
    `${name} is back`,
    async (requestId) => {
      await lateClients().storage.untrash({ requestId, kind, key }, options);
    },
  );
}
