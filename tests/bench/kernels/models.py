#!/usr/bin/python3
"""Writes the bench's model images as a C file. usage: models.py OUT.c

Weights come from a fixed xorshift32; offsets are such that nearly every ReLU unit is above 0, so that nearly
every delta is computed and none is skipped.
"""
import struct
import sys

PREQUANT, CONV, LINEAR, FLATTEN = 1, 2, 3, 4
RELU, TRAINABLE = 1, 2
S8, U8, S16 = 1, 2, 3
NONE = 0xFFFF


class Random:
    def __init__(self, seed):
        self.x = seed

    def next(self):
        x = self.x
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
        self.x = x
        return x

    def s8(self, half):
        return self.next() % (2 * half) - half


class Image:
    """A chain, layer by layer (proto/README.md, ODTM)."""

    def __init__(self, dims, dtype, seed):
        self.random = Random(seed)
        self.tensors = [(dtype, dims)]
        self.ops = []

    def _add(self, kind, dims, dtype, **fields):
        self.ops.append(dict(kind=kind, in0=len(self.tensors) - 1, out=len(self.tensors), dtype=dtype, **fields))
        self.tensors.append((dtype, dims))

    def _weights(self, n, fan_in, relu, n_out, x_mean, x_sd):
        """Weights with sd about 37; the shift brings a ReLU layer to about 128 +- 40, logits to +- 40."""
        weights = [self.random.s8(64) for _ in range(n)]
        sd = int(fan_in ** 0.5 * 37 * (x_mean ** 2 + x_sd ** 2) ** 0.5)
        k_out = max(3, (sd // 40).bit_length())
        offset = 3 * sd if relu else 0
        return weights, [k_out] * n_out, [offset + (1 << (k_out - 1)) for _ in range(n_out)]

    def linear(self, n_out, relu, x_mean=128, x_sd=50):
        n_in = 1
        for d in self.tensors[-1][1]:
            n_in *= d
        if len(self.tensors[-1][1]) > 1:
            self._add(FLATTEN, [n_in], self.tensors[-1][0])
        w, k, off = self._weights(n_in * n_out, n_in, relu, n_out, x_mean, x_sd)
        self._add(LINEAR, [n_out], U8 if relu else S8, weights=w, k=k, offset=off, relu=relu)

    def conv(self, n_out, kernel, pad, x_mean=0, x_sd=74, stride=1, dil=1, groups=1):
        c, h, w = self.tensors[-1][1]
        fan_in = c // groups * kernel[0] * kernel[1]
        dims = [n_out] + [(n + 2 * pad - dil * (k - 1) - 1) // stride + 1 for n, k in ((h, kernel[0]), (w, kernel[1]))]
        weights, k, off = self._weights(n_out * fan_in, fan_in, True, n_out, x_mean, x_sd)
        self._add(CONV, dims, U8, weights=weights, k=k, offset=off, relu=True,
                  conv=[*kernel, stride, stride, pad, pad, pad, pad, dil, dil, groups])

    def bytes(self):
        n_classes = self.tensors[-1][1][0]
        tensors = b""
        for i, (dtype, dims) in enumerate(self.tensors):
            count = 1
            for d in dims:
                count *= d
            exponent = self.exponents[i] if dtype == S16 else 0
            tensors += struct.pack("<BBbB4HI", dtype, len(dims), exponent, 0, *(dims + [0] * (4 - len(dims))), count)
        ops_off = 64 + len(tensors)
        blob_off = ops_off + 96 * len(self.ops)
        blob = b""

        def place(data):
            nonlocal blob
            at = blob_off + len(blob)
            blob += data + b"\0" * (-len(data) % 4)
            return at

        ops = b""
        for op in self.ops:
            weights = op.get("weights")
            if weights is None:
                fields = [0] * 6
                clip = (0, 255) if op["dtype"] == U8 else (-128, 127)
                flags = 0
            else:
                n = len(weights)
                small = op["k"] is not None
                fields = [place(struct.pack(f"<{n}{'b' if small else 'h'}", *weights)), n,
                          place(struct.pack(f"<{len(op['offset'])}i", *op["offset"])), len(op["offset"]),
                          place(struct.pack(f"<{len(op['k'])}b", *op["k"])) if small else 0, 0]
                clip = (0, 255) if op["relu"] and small else (-128, 127) if small else (
                    0 if op["relu"] else -32767, 32767)
                flags = TRAINABLE | (RELU if op["relu"] else 0)
            ops += struct.pack("<BBHHHii6I11Hbb32s", op["kind"], flags, op["in0"], NONE, op["out"], *clip, *fields,
                               *op.get("conv", [0] * 11), op.get("e_w", 0), op.get("e_b", 0), b"")
        targets = [place(bytes([40] * n_classes)), place(struct.pack(f"<{n_classes}b", *([-10] * n_classes)))]
        layers = sum(1 for op in self.ops if "weights" in op)
        head = struct.pack("<4sHHIHHHHIIIIHBBII16s", b"ODTM", 1, 64, blob_off + len(blob), len(self.tensors), len(self.ops),
                           layers, n_classes, 64, ops_off, *targets, 256, 0, 1 if self.tensors[-1][0] == S16 else 0, 0, 0, b"bench")
        return head + tensors + ops + blob


class Image16(Image):
    """The same in DFP16: weights uniform over +-fan_in^-0.5, inputs over +-1, offsets of ReLU layers 2."""

    E_BIAS = -20

    def __init__(self, dims, seed):
        super().__init__(dims, S16, seed)
        self.exponents = [-15]

    def linear(self, n_out, relu):
        n_in = self.tensors[-1][1][0]
        e_w = -15
        while n_in ** -0.5 <= 2 ** (e_w + 14):
            e_w -= 1
        largest = int(n_in ** -0.5 * 2 ** -e_w)
        w = [self.random.next() % (2 * largest + 1) - largest for _ in range(n_in * n_out)]
        offset = [2 << -self.E_BIAS if relu else 0] * n_out
        self._add(LINEAR, [n_out], S16, weights=w, k=None, offset=offset, relu=relu, e_w=e_w, e_b=self.E_BIAS)
        self.exponents.append(0)


def images():
    step = Image([147], S8, 0x12345671)
    step.linear(160, True, 0, 74)
    step.linear(2, False)
    head = Image([160], U8, 0x12345672)
    head.linear(2, False)
    arc = Image([1, 64, 2], S8, 0x12345673)
    arc.conv(3, [16, 2], 0)
    arc.linear(160, True)
    arc.linear(2, False)
    conv_a = Image([1, 64, 2], S8, 0x12345673)
    conv_a.conv(3, [16, 2], 0)
    conv_a.linear(2, False)
    conv_a_head = Image([147], U8, 0x12345674)
    conv_a_head.linear(2, False)
    tail = Image([32], U8, 0x1234567A)
    tail.linear(10, False)
    one = Image([16, 8, 8], S8, 0x12345675)
    one.conv(16, [3, 3], 1)
    one.linear(2, False)
    two = Image([16, 8, 8], S8, 0x12345675)
    two.conv(16, [3, 3], 1)
    two.conv(16, [3, 3], 1, 128, 50)
    two.linear(2, False)
    dfp = Image16([147], 0x12345676)
    dfp.linear(160, True)
    dfp.linear(2, False)
    odd_dense = Image([211], S8, 0x12345677)
    odd_dense.linear(45, True, 0, 74)
    odd_dense.linear(19, True)
    odd_dense.linear(3, False)
    odd_conv = Image([3, 11, 9], U8, 0x12345678)
    odd_conv.conv(6, [3, 3], 1, 128, 74, stride=2)
    odd_conv.conv(6, [3, 2], 1, 128, 50, dil=2, groups=3)
    odd_conv.conv(5, [1, 1], 0, 128, 50)
    odd_conv.linear(7, True)
    odd_conv.linear(3, False)
    odd_dfp = Image16([37], 0x12345679)
    odd_dfp.linear(45, True)
    odd_dfp.linear(19, True)
    odd_dfp.linear(3, False)
    return {"OddDense": odd_dense, "OddConv": odd_conv, "OddDfp": odd_dfp, "Dfp": dfp, "Step": step, "Head": head, "Arc": arc, "ConvA": conv_a, "ConvAHead": conv_a_head, "Tail": tail,
            "Conv1": one, "Conv2": two}


def main():
    with open(sys.argv[1], "w") as f:
        f.write('#include "bench.h"\n')
        for name, image in images().items():
            data = image.bytes()
            f.write(f"const uint32_t kModel{name}Bytes = {len(data)};\n")
            f.write(f"const uint8_t kModel{name}[] __attribute__((aligned(4))) = {{\n")
            for i in range(0, len(data), 32):
                f.write(",".join(map(str, data[i:i + 32])) + ",\n")
            f.write("};\n")


if __name__ == "__main__":
    main()
