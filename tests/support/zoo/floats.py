"""Plain float32 models, for DFP16: what common frameworks export before any quantisation."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from network import Rng

f32 = np.float32


class FloatNet:
    """Nodes over the last tensor; weights scaled so that values stay near 1."""

    def __init__(self, name, seed, shape, opset=17):
        self.name, self.rng, self.shape, self.opset = name, Rng(seed), tuple(shape), opset
        self.nodes, self.inits, self.at, self.n = [], {}, "input", 0
        self.task, self.spread, self.metadata, self.post = "classify", 256, {}, ""

    def inputs(self, n, seed):
        return (Rng(seed).bell(self.spread, (n, *self.shape)) / 256).astype(f32)

    samples = inputs

    def emit(self, op, *inputs, outputs=1, **attrs):
        self.n += 1
        self.at = f"t{self.n}"
        names = [self.at] + [f"t{self.n}_{i}" for i in range(1, outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=f"{op}_{self.n}", **attrs))
        return self.at

    def param(self, value):
        name = f"w{len(self.inits)}"
        self.inits[name] = np.asarray(value)
        return name

    def normal(self, sd, *shape):
        return self.param((self.rng.bell(4096, shape) / 4096 * sd).astype(f32))

    def conv(self, cin, cout, kernel, at=None, groups=1, bias=True, **attrs):
        fan_in = cin // groups * kernel[0] * kernel[1]
        inputs = [at or self.at, self.normal(1.2 / fan_in**0.5, cout, cin // groups, *kernel)]
        if bias:
            inputs.append(self.normal(0.2, cout))
        return self.emit("Conv", *inputs, kernel_shape=list(kernel), group=groups, **attrs)

    def batch_norm(self, c, at=None):
        var = ((self.rng.ints(2000, 9000, c)) / 4096).astype(f32)
        return self.emit("BatchNormalization", at or self.at, self.param((self.rng.ints(3000, 6000, c) / 4096).astype(f32)), self.normal(0.3, c),
                         self.normal(0.3, c), self.param(var), epsilon=1e-5)

    def gemm(self, n_in, n_out, trans=1):
        w = (n_out, n_in) if trans else (n_in, n_out)
        return self.emit("Gemm", self.at, self.normal(1.2 / n_in**0.5, *w), self.normal(0.2, n_out), transB=trans)

    def matmul(self, n_in, n_out):
        self.emit("MatMul", self.at, self.normal(1.2 / n_in**0.5, n_in, n_out))
        return self.emit("Add", self.at, self.normal(0.2, n_out))

    def relu(self):
        return self.emit("Relu", self.at)

    def literal(self, *values):
        return self.param(np.array(values, np.int64))

    def bytes(self, out_shape):
        self.nodes[-1].output[0] = "output"
        graph = helper.make_graph(
            self.nodes, "float", [helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, *self.shape])],
            [helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, *out_shape])],
            [numpy_helper.from_array(v, k) for k, v in self.inits.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8, producer_name="odt-zoo")
        for key, value in self.metadata.items():
            model.metadata_props.append(onnx.StringStringEntryProto(key=key, value=str(value)))
        onnx.checker.check_model(model)
        return model.SerializeToString()


def mlp():
    n = FloatNet("float_mlp", 1, (24,))
    n.gemm(24, 32)
    n.relu()
    n.emit("Dropout", n.at)
    n.gemm(32, 16, trans=0)
    n.relu()
    n.matmul(16, 5)
    n.emit("Softmax", n.at, axis=-1)
    n.post = "softmax"
    return n, (5,)


def small_cnn():
    n = FloatNet("float_cnn", 2, (1, 16, 16))
    n.conv(1, 8, (3, 3), pads=[1, 1, 1, 1])
    n.relu()
    n.emit("MaxPool", n.at, kernel_shape=[2, 2], strides=[2, 2])
    n.conv(8, 12, (3, 3))
    n.relu()
    n.emit("Flatten", n.at, axis=1)
    n.gemm(12 * 36, 10)
    n.emit("LogSoftmax", n.at, axis=1)
    n.post = "log_softmax"
    return n, (10,)


def batch_norms():
    """BatchNormalization behind Conv, in front of everything, and alone behind a pool."""
    n = FloatNet("float_bn", 3, (3, 20, 8))
    n.batch_norm(3)
    n.conv(3, 8, (5, 3), bias=False, strides=[2, 1], pads=[2, 1, 2, 1])
    n.batch_norm(8)
    n.relu()
    n.conv(8, 8, (3, 3), groups=8, pads=[1, 1, 1, 1])
    n.batch_norm(8)
    n.relu()
    n.conv(8, 16, (1, 1))
    n.relu()
    n.emit("MaxPool", n.at, kernel_shape=[2, 2], strides=[2, 2])
    n.batch_norm(16)
    n.conv(16, 12, (3, 3), dilations=[1, 1], pads=[1, 1, 1, 1])
    n.relu()
    n.emit("GlobalAveragePool", n.at)
    n.emit("Flatten", n.at)
    n.gemm(12, 6)
    return n, (6,)


def residual():
    n = FloatNet("float_residual", 4, (2, 12, 12))
    a = n.conv(2, 8, (3, 3), pads=[1, 1, 1, 1])
    a = n.relu()
    n.conv(8, 8, (3, 3), pads=[1, 1, 1, 1])
    n.batch_norm(8)
    n.relu()
    b = n.conv(8, 8, (3, 3), pads=[1, 1, 1, 1])
    n.emit("Add", b, a)
    c = n.relu()
    d = n.conv(8, 4, (1, 1), at=c)
    d = n.relu()
    e = n.conv(8, 6, (3, 3), at=c, pads=[1, 1, 1, 1])
    n.emit("Concat", d, e, axis=1)
    n.emit("AveragePool", n.at, kernel_shape=[2, 2], strides=[2, 2])
    n.emit("ReduceMean", n.at, axes=[2, 3], keepdims=0)
    n.gemm(10, 4)
    n.emit("Softmax", n.at, axis=1)
    n.post = "softmax"
    return n, (4,)


def regression():
    n = FloatNet("float_regress", 5, (1, 64, 1))
    n.task = n.metadata["odt.task"] = "regress"
    n.conv(1, 8, (5, 1), strides=[2, 1], pads=[2, 0, 2, 0])
    n.relu()
    n.conv(8, 8, (3, 1), strides=[2, 1], pads=[1, 0, 1, 0])
    n.relu()
    n.emit("GlobalAveragePool", n.at)
    n.emit("Reshape", n.at, n.literal(1, -1))
    n.gemm(8, 2)
    return n, (2,)


def autoencoder():
    n = FloatNet("float_autoencode", 6, (1, 32, 1))
    n.task = n.metadata["odt.task"] = "autoencode"
    n.conv(1, 6, (3, 1), strides=[2, 1], pads=[1, 0, 1, 0])
    n.relu()
    n.conv(6, 8, (3, 1), strides=[2, 1], pads=[1, 0, 1, 0])
    n.relu()
    scales = n.param(np.array([1, 1, 2, 1], f32))
    attrs = dict(mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric")
    n.emit("Resize", n.at, "", scales, **attrs)
    n.conv(8, 6, (3, 1), pads=[1, 0, 1, 0])
    n.relu()
    n.emit("Resize", n.at, "", scales, **attrs)
    n.conv(6, 1, (3, 1), pads=[1, 0, 1, 0])
    return n, (1, 32, 1)


def mobile():
    """Inverted residuals with ReLU6, as MobileNetV2 has them."""
    n = FloatNet("float_relu6", 7, (3, 12, 12))

    def relu6():
        return n.emit("Clip", n.at, n.param(f32(0)), n.param(f32(0.75)))

    n.conv(3, 6, (3, 3), strides=[2, 2], pads=[1, 1, 1, 1])
    x = relu6()
    n.conv(6, 12, (1, 1))
    relu6()
    n.conv(12, 12, (3, 3), groups=12, pads=[1, 1, 1, 1])
    relu6()
    y = n.conv(12, 6, (1, 1))
    n.emit("Add", x, y)
    n.conv(6, 10, (1, 1))
    relu6()
    n.emit("GlobalAveragePool", n.at)
    n.emit("Flatten", n.at)
    n.gemm(10, 5)
    return n, (5,)


def all_floats():
    return [f() for f in (mlp, small_cnn, batch_norms, residual, regression, autoencoder, mobile)]
