// SharedWorker: holds the browser's one Watch stream for all tabs.
import { createClients } from "./clients.js";
import { WatchHub, type HubPort } from "./watch-hub.js";
import type { TabMessage } from "./watch-protocol.js";

const { watch } = createClients(self.location.origin);
const hub = new WatchHub({
  open: (request, signal) => watch.watch(request, { signal }),
  update: (request) => watch.updateWatch(request, { timeoutMs: 10_000 }),
  now: () => Date.now(),
  random: () => Math.random(),
});

self.addEventListener("connect", (e) => {
  const messagePort = (e as MessageEvent).ports[0];
  if (messagePort === undefined) return;
  const port: HubPort = { post: (message) => messagePort.postMessage(message) };
  messagePort.onmessage = (m: MessageEvent<TabMessage>) => hub.receive(port, m.data);
  hub.attach(port);
});
