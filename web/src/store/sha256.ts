// SHA-256 (FIPS 180-4), fed in pieces: the browser's own needs a secure context, which a daemon on the LAN is not, and
// takes a file only as a whole.
const kStart = [
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

// The first 32 bits of the fractions of the cube roots of the first 64 primes.
const kRounds = ((): Int32Array => {
  const out = new Int32Array(64);
  for (let n = 2, i = 0; i < 64; n++) {
    let prime = true;
    for (let d = 2; d * d <= n; d++) prime &&= n % d !== 0;
    if (prime) out[i++] = (Math.cbrt(n) % 1) * 2 ** 32;
  }
  return out;
})();

export class Sha256 {
  private readonly state = Int32Array.from(kStart);
  private readonly block = new Uint8Array(64);
  private readonly words = new Int32Array(64);
  private filled = 0;
  private bytes = 0;

  update(data: Uint8Array): this {
    this.bytes += data.length;
    let at = 0;
    while (at < data.length) {
      const n = Math.min(64 - this.filled, data.length - at);
      this.block.set(data.subarray(at, at + n), this.filled);
      this.filled += n;
      at += n;
      if (this.filled === 64) this.compress();
    }
    return this;
  }

  digest(): Uint8Array<ArrayBuffer> {
    const bits = this.bytes * 8;
    this.block[this.filled++] = 0x80;
    this.block.fill(0, this.filled);
    if (this.filled > 56) {
      this.compress();
      this.block.fill(0);
    }
    const view = new DataView(this.block.buffer);
    view.setUint32(56, Math.floor(bits / 2 ** 32));
    view.setUint32(60, bits >>> 0);
    this.compress();
    const out = new DataView(new ArrayBuffer(32));
    this.state.forEach((word, i) => out.setInt32(4 * i, word));
    return new Uint8Array(out.buffer);
  }

  private compress(): void {
    const w = this.words;
    const view = new DataView(this.block.buffer);
    for (let i = 0; i < 16; i++) w[i] = view.getInt32(4 * i);
    for (let i = 16; i < 64; i++) {
      const [x, y] = [w[i - 15]!, w[i - 2]!];
      const s0 = rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3);
      const s1 = rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10);
      w[i] = w[i - 16]! + s0 + w[i - 7]! + s1;
    }
    let [a, b, c, d, e, f, g, h] = this.state as unknown as [
      number,
      number,
      number,
      number,
      number,
      number,
      number,
      number,
    ];
    for (let i = 0; i < 64; i++) {
      const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + kRounds[i]! + w[i]!) | 0;
      const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((v, i) => (this.state[i] = this.state[i]! + v));
    this.filled = 0;
  }
}

const rotate = (x: number, n: number): number => (x >>> n) | (x << (32 - n));
