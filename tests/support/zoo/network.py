"""Random quantised networks as blocks, with constants that keep activations alive.

A network is built front to back on a few samples; every block's scale and offset follow from what its accumulators
really are there. Integers decide everything, so that a seed gives the same network on every machine.
"""

import dataclasses
import math

import numpy as np

PROBES = 6  # samples that a network is built on


class Rng:
    def __init__(self, seed):
        self.state = np.random.RandomState(seed)  # its stream is frozen

    def ints(self, lo, hi, size=None):
        """Both ends included."""
        return self.state.randint(lo, hi + 1, size)

    def bell(self, sd, size):
        """Roughly normal integers."""
        wide = max(1, round(sd * math.sqrt(3)))
        return sum(self.ints(-wide, wide, size) for _ in range(4)) // 2

    def chance(self, percent):
        return int(self.ints(0, 99)) < percent

    def one_of(self, *choices):
        return choices[int(self.ints(0, len(choices) - 1))]


@dataclasses.dataclass
class Scale:
    """y = clip(floor((acc + offset) * mult * 2^-k)), then Relu and another clip where there are such."""

    offset: np.ndarray  # float32 per channel or one
    mult: np.ndarray
    k: np.ndarray
    clip: tuple
    relu: bool = False
    after: tuple = None  # the clip behind Relu


@dataclasses.dataclass
class Block:
    kind: str  # conv linear gap avgpool maxpool flatten add concat resize
    inputs: list  # tensors: 0 is what PREQUANT gives (or the input), n + 1 the output of block n
    shape: tuple  # of the output, per sample
    scale: Scale = None
    weight: np.ndarray = None  # conv [O,I/g,kH,kW], linear [in,out]
    window: dict = dataclasses.field(default_factory=dict)  # kernel stride pads dilation groups
    form: dict = dataclasses.field(default_factory=dict)  # how it is written


def windows(x, kernel, stride, pads, dilation, fill=0):
    """(i, j, slice [B,C,Ho,Wo]) for every position of the kernel."""
    t, l, b, r = pads
    x = np.pad(x, ((0, 0), (0, 0), (t, b), (l, r)), constant_values=fill)
    ho = (x.shape[2] - dilation[0] * (kernel[0] - 1) - 1) // stride[0] + 1
    wo = (x.shape[3] - dilation[1] * (kernel[1] - 1) - 1) // stride[1] + 1
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            top, left = i * dilation[0], j * dilation[1]
            yield i, j, x[:, :, top : top + (ho - 1) * stride[0] + 1 : stride[0], left : left + (wo - 1) * stride[1] + 1 : stride[1]]


def convolve(x, w, stride, pads, dilation, groups):
    """float64 holds every sum exactly."""
    out, batch = 0.0, x.shape[0]
    wide = w.astype(np.float64).reshape(groups, w.shape[0] // groups, w.shape[1], *w.shape[2:])
    for i, j, part in windows(x.astype(np.float64), w.shape[2:], stride, pads, dilation):
        cols = part.reshape(batch, groups, x.shape[1] // groups, -1)
        out = out + np.matmul(wide[:, :, :, i, j], cols)
        ho, wo = part.shape[2:]
    return out.reshape(batch, w.shape[0], ho, wo).astype(np.int64)


def spread_of(acc):
    """Mean and deviation per channel, integers."""
    flat = np.moveaxis(acc, 1, 0).reshape(acc.shape[1], -1)
    mean = flat.sum(axis=1) // flat.shape[1]
    deviation = np.abs(flat - mean[:, None]).sum(axis=1) // flat.shape[1] * 5 // 4 + 1
    return mean, deviation


def along(values, acc):
    """Per-channel values, ready to broadcast against [B,C] or [B,C,H,W]."""
    v = np.asarray(values)
    return v if v.size == 1 else v.reshape(1, -1, *([1] * (acc.ndim - 2)))


def apply_scale(acc, s):
    off = np.rint(s.offset.astype(np.float64)).astype(np.int64)
    y = (acc + along(off, acc)) * along(s.mult, acc) >> along(s.k, acc)
    y = np.clip(y, *s.clip)
    if s.relu:
        y = np.maximum(y, 0)
    return np.clip(y, *s.after) if s.after else y


class Net:
    def __init__(self, name, seed, shape, bits=8):
        self.name, self.rng, self.shape, self.bits = name, Rng(seed), tuple(shape), bits
        self.blocks, self.prequant, self.output_scale, self.metadata = [], None, None, {}
        self.opset = 17
        self.spread = 256  # deviation of the inputs in 1/256
        self.inexact = False  # float32 may lose a bit by design
        self.first_reshape = False
        self.integer_input = (-128, 127)  # without PREQUANT
        self.form_prequant = {"per_value": False}
        self.values = [self.inputs(PROBES, 999)]
        self.shapes = [self.shape]

    # --- input stage

    def inputs(self, n, seed):
        """float32 [n, *shape] in steps of 1/256."""
        rng = Rng(seed)
        return (rng.bell(self.spread, (n, *self.shape)) / 256).astype(np.float32)

    def add_prequant(self, batch_norm, per_value=False, clip=(-128, 127)):
        rng, channels = self.rng, self.shape[0]
        if per_value:
            channels = int(np.prod(self.shape))
        if batch_norm:
            mult = rng.ints(900, 4095, channels) * (1 - 2 * rng.ints(0, 1, channels))
            k = np.full(channels, int(rng.ints(5, 8)))
            offset = (rng.ints(-300, 300, channels) / 997).astype(np.float32)
        else:
            mult, k = rng.ints(129, 255, 1), np.full(1, int(rng.ints(1, 5)))
            offset = (0.5 * 2.0**k / mult).astype(np.float32)
        mean = int(np.abs(mult).sum()) // len(mult)
        self.spread = max(1, (55 << int(k[0])) * 256 // mean)
        if clip[0] == 0:  # u8
            offset = offset + np.float32(128.0 * 2.0 ** int(k[0]) / mean)
        self.prequant = Scale(offset, mult, k, clip)
        x = self.inputs(PROBES, 999)
        shape = (1, *self.shape) if per_value else (1, channels, 1, 1) if len(self.shape) == 3 else (1, channels)
        s = [np.asarray(v, np.float32).reshape(shape if channels == len(mult) and channels > 1 else 1) for v in (offset, mult, 2.0 ** -k.astype(np.float64))]
        y = np.floor((x + s[0]) * s[1] * s[2])
        self.values[0] = np.clip(y, *clip).astype(np.int64)
        self.form_prequant = {"per_value": per_value}

    def raw_input(self, lo=-128, hi=127):
        """No PREQUANT: the file takes integers."""
        self.values[0] = self.integers(PROBES, 999, lo, hi)
        self.integer_input = (lo, hi)
        self.metadata["odt.input_dtype"] = "u8" if lo == 0 else "i8"

    def reshape_input(self):
        """Flat before the first block; changes no byte."""
        self.first_reshape = True
        self.values[0] = self.values[0].reshape(self.values[0].shape[0], -1)

    def integers(self, n, seed, lo, hi):
        return np.clip(Rng(seed).bell(50, (n, *self.shape)) + (128 if lo == 0 else 0), lo, hi).astype(np.int64)

    def samples(self, n, seed):
        if self.prequant is None:
            return self.integers(n, seed, *self.integer_input).astype(np.float32)
        return self.inputs(n, seed)

    # --- blocks

    def put(self, block, value):
        self.blocks.append(block)
        self.values.append(value)
        self.shapes.append(block.shape)
        return len(self.blocks)

    @property
    def last(self):
        return len(self.blocks)

    def weights(self, shape, fan_in):
        if self.bits < 8:
            top = 2 ** (self.bits - 1) - 1
            return self.rng.ints(-top, top, shape)
        sd = 40 if self.inexact else min(40, max(1, (2**24 // 2) // (255 * fan_in)))
        w = np.clip(self.rng.bell(sd, shape), -127, 127)
        return np.where(self.rng.ints(0, 400, shape) == 0, -128, w) if sd > 20 else w

    def calibrate(self, acc, relu, target, style=None):
        """A scale that gives outputs of about `target` deviation, positive more often than not behind a Relu."""
        mean, deviation = spread_of(acc)
        mult_style = style or ("one" if self.bits == 8 else "mult")
        mult, k, offset = [], [], []
        for m, d in zip(mean.tolist(), deviation.tolist()):
            aim = target + int(self.rng.ints(-target // 3, target // 3))
            if mult_style == "one":
                shift = max(0, (d // aim).bit_length() - 1)
                shift += d * 5 > 7 * (aim << shift)
                factor = 1
            else:
                shift = next(n for n in range(32) if (aim << n) // d >= 129 or n == 31)
                factor = min(255, max(129, (aim << shift) // d))
            level = (target // 2 if relu else 0) + int(self.rng.ints(-target // 3, target // 3))
            half = (1 << shift >> 1) // factor
            mult.append(factor)
            k.append(shift)
            offset.append(-m + (level << shift) // factor + half)
        offset = np.array(offset, np.float64)
        if mult_style == "one" and self.bits == 8:  # as exported: at times off by a rounding error
            offset = offset + np.where((self.rng.ints(0, 5, len(offset)) == 0) & (np.abs(offset) < 8000), 0.0005, 0)
        return Scale(offset.astype(np.float32), np.array(mult), np.array(k), (0, 0), relu)

    def finish_scale(self, s, kind, relu, clip):
        """Clips as TI's files have them."""
        if clip:
            s.clip = clip
        elif kind == "conv":
            s.clip = (-255, 255)
        else:
            s.clip = (0, 255) if relu else (-128, 127)
        s.after = (0, 255) if relu and not clip else None
        return s

    def conv(self, out, kernel, at=None, stride=(1, 1), pads=(0, 0, 0, 0), dilation=(1, 1), groups=1, relu=True, clip=None, mult=None, auto_pad=None):
        at = self.last if at is None else at
        x = self.values[at]
        fan_in = x.shape[1] // groups * kernel[0] * kernel[1]
        w = self.weights((out, x.shape[1] // groups, *kernel), fan_in)
        acc = convolve(x, w, stride, pads, dilation, groups)
        s = self.finish_scale(self.calibrate(acc, relu, 60 if relu else 45, mult), "conv", relu, clip)
        window = dict(kernel=kernel, stride=stride, pads=pads, dilation=dilation, groups=groups)
        y = apply_scale(acc, s)
        return self.put(Block("conv", [at], y.shape[1:], s, w, window, {"auto_pad": auto_pad} if auto_pad else {}), y)

    def linear(self, out, at=None, relu=True, clip=None, form="matmul", mult=None, target=None):
        at = self.last if at is None else at
        x = self.values[at]
        if x.ndim > 2:
            raise ValueError("flatten first")
        w = self.weights((x.shape[1], out), x.shape[1])
        acc = np.matmul(x.astype(np.float64), w.astype(np.float64)).astype(np.int64)
        bn = form == "batch_norm"
        s = self.calibrate(acc, relu, target or (45 if bn or not relu else 60), mult)
        s = self.finish_scale(s, "linear", relu, (-128, 127) if bn else clip)
        y = apply_scale(acc, s)
        return self.put(Block("linear", [at], y.shape[1:], s, w, form={"op": "matmul" if bn else form}), y)

    def pool_scale(self, area, channels, clip, style):
        k = max(0, round(math.log2(area)))
        if style == "mult":
            k += 7
            mult = min(255, max(1, ((1 << k) + area // 2) // area))
        else:
            mult = 1
        n = channels if style == "channels" else 1
        offset = np.full(n, (1 << k >> 1) // mult + (int(self.rng.ints(0, 1 << k)) if style == "channels" else 0), np.float32)
        return Scale(offset, np.full(n, mult), np.full(n, k), clip)

    def gap(self, at=None, keepdims=0, style="one", clip=(0, 255), **form):
        at = self.last if at is None else at
        x = self.values[at]
        s = self.pool_scale(x.shape[2] * x.shape[3], x.shape[1], clip, style)
        y = apply_scale(x.sum(axis=(2, 3), keepdims=bool(keepdims)), s)
        return self.put(Block("gap", [at], y.shape[1:], s, form={"keepdims": keepdims, **form}), y)

    def avgpool(self, kernel, stride, pads, at=None, style="one", clip=(0, 255)):
        at = self.last if at is None else at
        x = self.values[at]
        s = self.pool_scale(kernel[0] * kernel[1], x.shape[1], clip, style)
        acc = sum(part for _, _, part in windows(x, kernel, stride, pads, (1, 1)))
        y = apply_scale(acc, s)
        return self.put(Block("avgpool", [at], y.shape[1:], s, window=dict(kernel=kernel, stride=stride, pads=pads)), y)

    def maxpool(self, kernel, stride, pads, at=None):
        at = self.last if at is None else at
        x = self.values[at]
        y = None
        for _, _, part in windows(x, kernel, stride, pads, (1, 1), fill=-(10**6)):
            y = part if y is None else np.maximum(y, part)
        return self.put(Block("maxpool", [at], y.shape[1:], window=dict(kernel=kernel, stride=stride, pads=pads)), y)

    def flatten(self, op="Reshape", at=None):
        at = self.last if at is None else at
        y = self.values[at].reshape(self.values[at].shape[0], -1)
        return self.put(Block("flatten", [at], y.shape[1:], form={"op": op}), y)

    def add(self, a, b, relu=False, clip=(0, 255)):
        """Equal scales."""
        y = self.values[a] + self.values[b]
        s = Scale(None, None, None, clip, relu)
        if relu:
            y = np.maximum(y, 0)
        y = np.clip(y, *clip) if clip else y
        return self.put(Block("add", [a, b], y.shape[1:], s, form={"equal": True}), y)

    def add_scaled(self, a, b, clip=(0, 255)):
        """Unequal scales: float numbers between the integers."""
        sa, sb = (np.float32(self.rng.ints(200, 900) / 40000) for _ in range(2))
        so = np.float32(1 / (0.7 * (float(sa) + float(sb))))
        y = np.rint((self.values[a].astype(np.float32) * sa + self.values[b].astype(np.float32) * sb) * so).astype(np.int64)
        y = np.clip(y, *clip) if clip else y
        return self.put(Block("add", [a, b], y.shape[1:], Scale(None, None, None, clip), form={"equal": False, "scales": (sa, sb, so)}), y)

    def concat(self, *tensors):
        y = np.concatenate([self.values[t] for t in tensors], axis=1)
        return self.put(Block("concat", list(tensors), y.shape[1:]), y)

    def resize(self, factors, at=None, form="scales"):
        at = self.last if at is None else at
        y = self.values[at].repeat(factors[0], axis=2).repeat(factors[1], axis=3)
        return self.put(Block("resize", [at], y.shape[1:], form={"factors": factors, "how": form}), y)

    def check_alive(self):
        for n, y in enumerate(self.values[1:]):
            if self.blocks[n].kind in ("conv", "linear", "gap", "avgpool"):
                zero = float((y == 0).mean())
                s = self.blocks[n].scale
                top = (s.after or s.clip)[1]
                if zero > 0.9 or float((y == top).mean()) > 0.5:
                    raise ValueError(f"{self.name}: block {n} ({self.blocks[n].kind}) is dead or saturated ({zero:.2f} zero)")
