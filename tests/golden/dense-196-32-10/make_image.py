#!/usr/bin/env python3
"""Writes image.odtm and samples.odts (proto/README.md) from the raw files of this folder."""
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
CORRECT = [35, 41, 24, 27, 29, 37, 25, 34, 38, 48]
WRONG = [1, -8, 1, -2, 0, -7, 2, -12, -1, -14]
CE_SCALE = 103
S8, U8 = 1, 2
LINEAR, RELU, TRAINABLE = 3, 1, 2
LAYERS = [  # inputs, outputs, clip, flags
    (196, 32, (0, 255), RELU | TRAINABLE),
    (32, 10, (-128, 127), TRAINABLE),
]


def read(name):
    with open(os.path.join(HERE, name), "rb") as f:
        return f.read()


def write(name, data):
    with open(os.path.join(HERE, name), "wb") as f:
        f.write(data)


class Image:
    """Sections appended behind the header, each on a multiple of 4."""

    def __init__(self):
        self.data = bytearray(64)

    def add(self, section):
        offset = len(self.data)
        self.data += section
        self.data += bytes(-len(self.data) % 4)
        return offset


def tensor(dtype, n):
    return struct.pack("<BBH4HI", dtype, 1, 0, n, 0, 0, 0, n)


def model_image():
    image = Image()
    tensors = tensor(S8, 196) + tensor(U8, 32) + tensor(S8, 10)
    tensors_off = image.add(tensors)
    ops = b""
    for i, (n_in, n_out, clip, flags) in enumerate(LAYERS):
        weights = image.add(read(f"layer{i}_weights_in_out.i8"))
        offset = image.add(read(f"layer{i}_offset.i32"))
        k = image.add(read(f"layer{i}_k.i8"))
        ops += struct.pack("<BBHHHii", LINEAR, flags, i, 0xFFFF, i + 1, *clip)
        ops += struct.pack("<6I", weights, n_in * n_out, offset, n_out, k, 0)
        ops += bytes(24) + f"layer{i}".encode().ljust(32, b"\0")
    ops_off = image.add(ops)
    correct = image.add(struct.pack("10b", *CORRECT))
    wrong = image.add(struct.pack("10b", *WRONG))
    data = image.data
    struct.pack_into("<4sHHIHHHHIIIIHHII16s", data, 0, b"ODTM", 1, 64, len(data), 3, 2, 2, 10,
                     tensors_off, ops_off, correct, wrong, CE_SCALE, 0, 0, 0, b"dense-196-32-10")
    return bytes(data)


def samples():
    labels, values = read("labels_600.i8"), read("samples_600x196.i8")
    head = struct.pack("<4sHBBII", b"ODTS", 1, S8, 0, len(labels), 196)
    return head + labels + bytes(-len(labels) % 4) + values


if __name__ == "__main__":
    write("image.odtm", model_image())
    write("samples.odts", samples())
