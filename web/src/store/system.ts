import { signal } from "@preact/signals";
import { clients, kCallTimeoutMs } from "../api/clients";
import type { GetInfoResponse } from "../api/types";

/// What the daemon says of itself; null: not asked, or not answered.
export const systemInfo = signal<GetInfoResponse | null>(null);

export async function loadSystemInfo(): Promise<void> {
  try {
    systemInfo.value = await clients().system.getInfo({}, { timeoutMs: kCallTimeoutMs });
  } catch {
    // It only adds detail; the connection banner tells what is wrong.
  }
}
