// Ids, the model and the datasets of the scripted fleet.
import { createHash } from "node:crypto";
import * as pb from "../../web/test-support/pb.js";

export const kTestTotal = 1000;
export const kHeldout = 200;

export const sha = (text) => new Uint8Array(createHash("sha256").update(text).digest());
export const uid = (n) => sha(`uid ${n}`).slice(0, 12);
export const uuid = (n) => {
  const b = sha(`uuid ${n}`).slice(0, 16);
  b[0] = 0x01;
  b[1] = 0x9f;
  b[2] = n >> 8;
  b[3] = n & 255;
  return b;
};
export const hex = (b) => Buffer.from(b).toString("hex");
export const us = (ms) => BigInt(Math.round(ms)) * 1000n;

export function makeModel(meta) {
  return pb.create(pb.ModelSchema, {
    hash: sha("model"),
    name: "fmnist",
    imageBytes: 8212n,
    onnxHash: sha("onnx"),
    trainableLayers: 2,
    nClasses: 10,
    inputShape: [1, 14, 14],
    sourceAccuracy: { correct: 8423, total: 10000 },
    hasCeScale: true,
    ramK8Bytes: 19456,
    ramK16Bytes: 31240,
    meta: meta,
    layers: [
      {
        name: "fc1",
        kind: "LINEAR_RELU",
        weightShape: [196, 32],
        outputShape: [32],
        weights: 6272,
        kOutMin: 9,
        kOutMax: 11,
        macs: 6272n,
        trainable: true,
      },
      {
        name: "fc2",
        kind: "LINEAR",
        weightShape: [32, 10],
        outputShape: [10],
        weights: 320,
        kOutMin: 8,
        kOutMax: 8,
        macs: 320n,
        trainable: true,
      },
    ],
  });
}

/// Dataset number i, of the sensor shift `name`.
export function makeDataset(name, i, meta) {
  return pb.create(pb.DatasetSchema, {
    id: uuid(10 + i),
    contentHash: sha(`content ${name}`),
    name: `fmnist-${name}`,
    dtype: "u8",
    shape: [1, 14, 14],
    train: 800,
    heldout: kHeldout,
    test: kTestTotal,
    nClasses: 10,
    classNames: [
      "T-shirt",
      "Trouser",
      "Pullover",
      "Dress",
      "Coat",
      "Sandal",
      "Shirt",
      "Sneaker",
      "Bag",
      "Boot",
    ],
    classCounts: Array.from({ length: 10 }, (_, c) => 190 + ((c * 37 + i * 13) % 24)),
    source: `Fashion-MNIST, 14x14 area average, ${name}, seed ${i + 1}`,
    bytes: 392000n,
    meta: meta,
  });
}
