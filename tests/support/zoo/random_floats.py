"""Seeded random float32 networks, as frameworks export them."""

import numpy as np

from floats import FloatNet, f32
from random_nets import geometry


class Grower:
    def __init__(self, name, seed):
        self.net = FloatNet(name, seed, (1, 1, 1))
        rng = self.rng = self.net.rng
        self.net.shape = (int(rng.ints(1, 3)), int(rng.ints(6, 20)), int(rng.ints(1, 12)))
        self.c, self.h, self.w = self.net.shape
        self.net.opset = rng.one_of(17, 13)

    def activate(self):
        if self.rng.chance(40):
            self.net.batch_norm(self.c)
        if self.rng.chance(80):
            self.net.relu()

    def conv(self):
        rng = self.rng
        kh, sh, pt, pb, dh = geometry(rng, self.h)
        kw, sw, pl, pr, dw = geometry(rng, self.w)
        groups, out = (self.c, self.c * rng.one_of(1, 2)) if rng.chance(25) else (1, int(rng.ints(3, 12)))
        attrs = {} if (dh, dw) == (1, 1) and rng.chance(50) else {"dilations": [dh, dw]}
        self.net.conv(self.c, out, (kh, kw), groups=groups, bias=rng.chance(70), strides=[sh, sw], pads=[pt, pl, pb, pr], **attrs)
        self.c = out
        self.h = (self.h + pt + pb - dh * (kh - 1) - 1) // sh + 1
        self.w = (self.w + pl + pr - dw * (kw - 1) - 1) // sw + 1
        self.activate()

    def pool(self):
        kh, kw = (2 if n > 2 else 1 for n in (self.h, self.w))
        op = self.rng.one_of("MaxPool", "MaxPool", "AveragePool")
        self.net.emit(op, self.net.at, kernel_shape=[kh, kw], strides=[kh, kw])
        self.h, self.w = self.h // kh, self.w // kw

    def same(self):
        k = self.rng.one_of(1, 3)
        self.net.conv(self.c, self.c, (k, k), pads=[k // 2] * 4)
        self.activate()

    def residual(self):
        start = self.net.at
        self.same()
        end = self.net.at
        if self.rng.chance(40):
            self.net.at = start
            self.same()
            start = self.net.at
        self.net.emit("Add", *((end, start) if self.rng.chance(50) else (start, end)))
        if self.rng.chance(60):
            self.net.relu()

    def branches(self):
        start, ends, total = self.net.at, [], 0
        for k in (1, 3, 5)[: int(self.rng.ints(2, 3))]:
            out = int(self.rng.ints(1, 5))
            self.net.conv(self.c, out, (k, k), at=start, pads=[k // 2] * 4)
            ends.append(self.net.relu())
            total += out
        self.net.emit("Concat", *ends, axis=1)
        self.c = total

    def enlarge(self):
        if self.c * self.h * self.w > 800:
            return
        scales = self.net.param(np.array([1, 1, 2, 1], f32))
        self.net.emit("Resize", self.net.at, "", scales, mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric")
        self.h *= 2

    def vector(self):
        net, rng = self.net, self.rng
        how = rng.one_of("gap", "mean", "flat") if self.c * self.h * self.w < 500 else "gap"
        if how == "mean":
            net.emit("ReduceMean", net.at, axes=[2, 3], keepdims=0)
            return self.c
        if how == "gap":
            net.emit("GlobalAveragePool", net.at)
            self.h = self.w = 1
        if rng.chance(50):
            net.emit("Flatten", net.at, axis=1)
        else:
            net.emit("Reshape", net.at, net.literal(1, -1))
        return self.c * self.h * self.w

    def grow(self):
        net, rng = self.net, self.rng
        if rng.chance(20):
            net.batch_norm(self.c)
        self.conv()
        for _ in range(int(rng.ints(0, 4))):
            rng.one_of(self.conv, self.conv, self.pool, self.residual, self.branches, self.enlarge)()
        n = self.vector()
        for _ in range(int(rng.ints(0, 2))):
            m = int(rng.ints(4, 24))
            net.gemm(n, m, int(rng.ints(0, 1))) if rng.chance(60) else net.matmul(n, m)
            net.relu()
            n = m
        outputs = int(rng.ints(2, 9))
        net.gemm(n, outputs) if rng.chance(60) else net.matmul(n, outputs)
        net.post = rng.one_of("", "softmax", "log_softmax")
        if net.post:
            net.emit({"softmax": "Softmax", "log_softmax": "LogSoftmax"}[net.post], net.at, axis=-1)
        return net, (outputs,)


def random_float(number):
    return Grower(f"random_float_{number}", 6151 * number + 17).grow()
