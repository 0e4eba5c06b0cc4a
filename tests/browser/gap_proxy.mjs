// TCP between the browser and the daemon that a test can cut (connections end, new ones are refused) or freeze
// (connections stay and carry nothing, as when a cable is out or a laptop changes its network).
import { connect, createServer } from "node:net";

export class GapProxy {
  constructor(target) {
    const { hostname, port } = new URL(target);
    this.pairs = new Set();
    this.cutOff = false;
    this.frozen = false;
    this.server = createServer((from) => {
      if (this.cutOff) return from.destroy();
      const to = connect(Number(port), hostname);
      const pair = [from, to];
      this.pairs.add(pair);
      for (const [a, b] of [pair, [to, from]]) {
        a.on("data", (bytes) => b.write(bytes));
        a.on("error", () => {});
        a.on("close", () => {
          b.destroy();
          this.pairs.delete(pair);
        });
      }
      if (this.frozen) pair.forEach((s) => s.pause());
    });
  }
  async start() {
    await new Promise((done) => this.server.listen(0, "127.0.0.1", done));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }
  cut() {
    this.cutOff = true;
    for (const pair of this.pairs) pair.forEach((s) => s.destroy());
  }
  freeze(on) {
    this.frozen = on;
    for (const pair of this.pairs) pair.forEach((s) => (on ? s.pause() : s.resume()));
  }
  mend() {
    this.cutOff = false;
    this.freeze(false);
  }
  async stop() {
    this.cut();
    await new Promise((done) => this.server.close(done));
  }
}
