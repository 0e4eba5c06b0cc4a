"""Seeded random networks of every construct: other shapes than the rows'."""

import numpy as np

from network import Net

MAX_VALUES = 6000  # of a tensor, to keep the reference quick


def geometry(rng, size, kernels=(1, 2, 3, 4, 5, 7)):
    """Kernel, stride, low and high pad, dilation of one axis."""
    kernel = min(rng.one_of(*kernels), size)
    stride = rng.one_of(1, 1, 1, 2, 2, 3)
    low = int(rng.ints(0, min(3, kernel - 1))) if rng.chance(60) else 0
    high = low if rng.chance(50) else int(rng.ints(0, min(3, kernel - 1)))
    dilation = 2 if rng.chance(20) and 2 * (kernel - 1) + 1 <= size + low + high else 1
    return kernel, stride, low, high, dilation


def same_pads(auto, size, kernel, stride):
    if auto == "VALID":
        return 0, 0
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return (total // 2, total - total // 2) if auto == "SAME_UPPER" else (total - total // 2, total // 2)


class Grower:
    def __init__(self, net):
        self.net, self.rng = net, net.rng

    @property
    def shape(self):
        return self.net.values[self.net.last].shape[1:]

    def random_conv(self):
        net, rng = self.net, self.rng
        c, h, w = self.shape
        kh, sh, pt, pb, dh = geometry(rng, h)
        kw, sw, pl, pr, dw = geometry(rng, w)
        groups, out = 1, int(rng.ints(2, 12))
        if rng.chance(25):
            groups, out = c, c * rng.one_of(1, 1, 2)  # depthwise
        elif rng.chance(20) and c % 2 == 0:
            groups, out = 2, 2 * int(rng.ints(1, 5))
        relu = rng.chance(70)
        clip = None if relu or rng.chance(60) else rng.one_of((-128, 127), (-100, 90), (0, 255), (-1000, 700))
        if relu and rng.chance(15):
            clip = (-128, 127)  # Conv, BatchNorm, ReLU without a last Clip
        mult = rng.one_of(None, None, None, "mult")
        auto = rng.one_of("SAME_UPPER", "SAME_LOWER", "VALID") if rng.chance(12) and dh == dw == 1 else None
        if auto:
            (pt, pb), (pl, pr) = same_pads(auto, h, kh, sh), same_pads(auto, w, kw, sw)
        net.conv(out, (kh, kw), stride=(sh, sw), pads=(pt, pl, pb, pr), dilation=(dh, dw), groups=groups, relu=relu, clip=clip, mult=mult, auto_pad=auto)

    def pool(self):
        net, rng = self.net, self.rng
        _, h, w = self.shape
        kh, kw = (min(int(rng.ints(1, 4)), n) for n in (h, w))
        stride = tuple(min(int(rng.ints(1, 3)), n) for n in (h, w))
        pads = [int(rng.ints(0, k - 1)) if rng.chance(30) and k > 1 else 0 for k in (kh, kw, kh, kw)]
        if rng.chance(60):
            return net.maxpool((kh, kw), stride, pads)
        low = -128 if (net.values[net.last] < 0).any() else 0
        return net.avgpool((kh, kw), stride, pads, style=rng.one_of("one", "one", "mult", "channels"), clip=(-128, 127) if low else (0, 255))

    def same_conv(self, at, relu):
        c = self.net.values[at].shape[1]
        k = self.rng.one_of(1, 3)
        pads = (k // 2,) * 4
        return self.net.conv(c, (k, k), at, pads=pads, relu=relu)

    def residual(self):
        net, rng = self.net, self.rng
        start = net.last
        relu = rng.chance(50)
        end = self.same_conv(self.same_conv(start, True), relu) if rng.chance(50) else self.same_conv(start, relu)
        other = start if rng.chance(60) else self.same_conv(start, rng.chance(50))
        a, b = (end, other) if rng.chance(50) else (other, end)
        if rng.chance(25) and net.may_round:
            return net.add_scaled(a, b, rng.one_of((0, 255), (-128, 127)))
        relu = rng.chance(50)
        return net.add(a, b, relu, (0, 255) if relu else rng.one_of((-128, 127), (0, 255), (-255, 255), None))

    def branches(self):
        net, rng = self.net, self.rng
        start = net.last
        ends = [net.conv(int(rng.ints(1, 5)), (k, k), start, pads=(k // 2,) * 4, relu=True) for k in (1, 3, 5)[: int(rng.ints(1, 3))]]
        if len(ends) == 1 or rng.chance(20):
            ends.append(start)
        return net.concat(*ends)

    def enlarge(self):
        factors = self.rng.one_of((2, 1), (1, 2), (2, 2), (3, 1), (3, 3), (2, 3))
        if int(np.prod(self.shape)) * factors[0] * factors[1] < MAX_VALUES // 2:
            self.net.resize(factors, form=self.rng.one_of("scales", "sizes", "upsample"))

    def trunk(self, steps):
        for _ in range(steps):
            if int(np.prod(self.shape)) > MAX_VALUES or len(self.net.blocks) > 40:
                break
            step = self.rng.one_of(*[self.random_conv] * 4, self.pool, self.residual, self.branches, self.enlarge)
            step()

    def to_vector(self):
        net, rng = self.net, self.rng
        c, h, w = self.shape
        flat = rng.one_of("Reshape", "Flatten", "view", "zero", "numbers", "batch")
        if rng.chance(55) or c * h * w > 400:
            low = (net.values[net.last] < 0).any()
            keep = int(rng.chance(50))
            net.gap(keepdims=keep, style=rng.one_of("one", "one", "mult", "channels"), clip=(-128, 127) if low else (0, 255),
                    axes=rng.one_of([2, 3], [2, 3], [-2, -1], [3, 2]), round=rng.chance(80))
            if keep:
                net.flatten(rng.one_of(flat, "Squeeze"))
        else:
            net.flatten(flat)

    def dense(self, n, relu):
        form = self.rng.one_of("matmul", "matmul", "gemm", "gemm_t", "gemm_bias")
        if relu and self.rng.chance(25):
            form = "batch_norm"
        clip = None if relu or self.rng.chance(60) else self.rng.one_of((-128, 127), (-100, 90))
        self.net.linear(n, relu=relu, form=form, clip=clip, mult=self.rng.one_of(None, None, None, "mult"))

    def dense_join(self):
        """Two dense branches, summed or side by side."""
        net, start, n = self.net, self.net.last, int(self.rng.ints(2, 9))
        a = net.linear(n, start)
        b = net.linear(n, start)
        if self.rng.chance(50):
            net.concat(a, b)
        else:
            net.add(a, b, False, self.rng.one_of((0, 255), None))

    def head(self, outputs):
        for _ in range(int(self.rng.ints(0, 2))):
            self.dense(int(self.rng.ints(3, 24)), self.rng.chance(85))
            if self.rng.chance(15):
                self.dense_join()
        self.dense(outputs, False)


def start(name, seed, may_round):
    net = Net(name, seed, (1, 1, 1))
    rng = net.rng
    image = rng.chance(80)
    net.shape = (int(rng.ints(1, 4)), int(rng.ints(4, 20)), int(rng.ints(1, 14))) if image else (int(rng.ints(3, 40)),)
    net.bits = rng.one_of(8, 8, 8, 8, 8, 4, 2)
    net.opset = rng.one_of(17, 17, 17, 13, 12)
    net.may_round = may_round
    return net


def input_stage(net, autoencoder):
    rng = net.rng
    style = int(rng.ints(0, 9))
    if style < 4:
        net.add_prequant(True)
    elif style < 7:
        net.add_prequant(False)
    elif style == 7:
        net.add_prequant(True, per_value=True)
    elif style == 8 and not autoencoder:
        net.add_prequant(False, clip=(0, 255))
    else:
        net.raw_input(*((-128, 127) if autoencoder or rng.chance(50) else (0, 255)))


def autoencoder(net):
    g, rng = Grower(net), net.rng
    if len(net.shape) == 1:
        g.dense(max(2, net.shape[0] // 3), True)
        g.dense(net.shape[0], False)
        return
    factors = (rng.one_of(1, 2, 3), rng.one_of(1, 2))
    c = net.shape[0]
    net.shape = (c, net.shape[1] // factors[0] * factors[0], max(1, net.shape[2] // factors[1]) * factors[1])
    input_stage(net, True)
    net.conv(int(rng.ints(2, 8)), factors, stride=factors)
    if rng.chance(50):
        g.residual()
    net.resize(factors)
    net.conv(int(rng.ints(2, 6)), (3, 3), pads=(1, 1, 1, 1))
    net.conv(c, (1, 1), relu=False, clip=rng.one_of(None, (-128, 127)))


def grow(name, seed, may_round):
    net = start(name, seed, may_round)
    rng, g = net.rng, Grower(net)
    what = rng.one_of(*["classify"] * 6, "regress", "regress", "autoencode")
    net.task = what
    net.metadata["odt.task"] = what
    if what == "autoencode":
        if len(net.shape) == 1:
            input_stage(net, True)
        autoencoder(net)
    else:
        input_stage(net, False)
        if len(net.shape) == 3:
            g.trunk(int(rng.ints(1, 5)))
            g.to_vector()
        g.head(int(rng.ints(2, 12)) if what == "classify" else int(rng.ints(1, 5)))
    if rng.chance(10):
        net.output_scale = 0.0625 * int(rng.ints(1, 20))
    net.check_alive()
    compute = [b for b in net.blocks if b.kind in ("conv", "linear")]
    if len(compute) > 16 or len(net.blocks) > 60:
        raise ValueError("too many layers")
    return net


def random_net(number):
    """Network number `number`; seeds whose network is dead or too large are passed over. One in five may have sums with
    unequal scales."""
    may_round = number % 5 == 4
    for attempt in range(50):
        try:
            return grow(f"random_{number}", 7919 * number + 104729 * attempt, may_round)
        except ValueError:
            continue
    raise RuntimeError(f"no network for number {number}")


def inexact_net(number):
    """Sums beyond 2^24: there float32 may be off by one."""
    net = Net(f"inexact_{number}", 31 + number, (2, 32, 32))
    net.inexact = True
    net.task = "classify"
    net.add_prequant(False)
    net.conv(8, (3, 3), pads=(1, 1, 1, 1))
    net.flatten()
    net.linear(5, relu=False, mult=("one", "mult")[number % 2])
    net.check_alive()
    return net


def unequal_net(number):
    """A sum with unequal scales as the last operator: there and only there may a logit be one off."""
    net = Net(f"unequal_{number}", 77 + number, (1, 12, 6))
    net.task = "classify"
    net.add_prequant(True)
    net.conv(6, (3, 3))
    net.flatten()
    start, relu = net.last, number % 2 == 0
    a, b = net.linear(9, start, relu), net.linear(9, start, relu)
    net.add_scaled(a, b, (-128, 127))
    net.check_alive()
    return net
