"""Networks as ONNX files in the node patterns of TI's quantisation-aware exports: as exported (raw) or simplified."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import noise

f32 = np.float32


class Writer:
    """Collects nodes and initialisers. raw: constants as nodes, repeated work, shared initialisers."""

    def __init__(self, net, raw, shuffle=False, rng=None):
        self.net, self.raw, self.shuffle, self.rng = net, raw, shuffle, rng
        self.nodes, self.constants, self.inits = [], [], {}
        self.module, self.used, self.matmuls = -1, {}, 77
        self.at = {}  # tensor number -> name
        self.mangle = False

    # --- names as torch gives them

    def next_module(self):
        self.module += 1
        self.used = {}

    def node_name(self, op):
        n = self.used.get(op, 0)
        self.used[op] = n + 1
        return f"/c/c.{self.module}/{op}" + (f"_{n}" if n else "")

    def emit(self, op, inputs, outputs=None, where=None, **attrs):
        name = self.node_name(op)
        outputs = outputs or [name + "_output_0"]
        (self.nodes if where is None else where).append(helper.make_node(op, inputs, outputs, name=name, **attrs))
        return outputs[0]

    def init(self, name, value):
        self.inits[name] = value
        return name

    def parameter(self, suffix, value):
        return self.init(f"c.{self.module}.{suffix}", np.asarray(value, f32))

    def constant(self, value):
        """A literal of the exported code."""
        value = np.asarray(value)
        name = self.node_name("Constant")
        if not self.raw:
            return self.init(name + "_output_0", value)
        self.constants.append(helper.make_node("Constant", [], [name + "_output_0"], name=name, value=numpy_helper.from_array(value)))
        return name + "_output_0"

    # --- blocks

    def clip(self, x, bounds):
        lo, hi = self.constant(f32(bounds[0])), self.constant(f32(bounds[1]))
        return self.emit("Clip", [x, lo, hi])

    def oss(self, x, s, rank, shift=None, channel_shape=None):
        """Add Mul Mul Floor Clip [Relu] [Clip]."""
        self.next_module()

        def shaped(v):
            v = np.asarray(v)
            if channel_shape is not None and v.size > 1:
                return v.reshape(channel_shape)
            return v.reshape((1, v.size) + (1,) * (rank - 2)) if v.size > 1 or rank > 2 else v.reshape(1, 1)

        x = self.emit("Add", [x, self.parameter("offset", shaped(s.offset))])
        x = self.emit("Mul", [x, self.parameter("mult", shaped(s.mult))])
        shift = shift or self.parameter("shift_mult", shaped(2.0 ** -s.k.astype(np.float64)))
        x = self.emit("Mul", [x, shift])
        x = self.clip(self.emit("Floor", [x]), s.clip)
        if s.relu:
            self.next_module()
            x = self.emit("Relu", [x])
        if s.after:
            self.next_module()
            x = self.clip(x, s.after)
        return x

    def prequant(self, x):
        s, shape = self.net.prequant, None
        if self.net.form_prequant["per_value"]:
            shape = (1, *self.net.shape)
        return self.oss(x, s, 1 + len(self.net.shape), channel_shape=shape)

    def conv(self, block, x):
        self.next_module()
        w = block.window
        if "auto_pad" in block.form:
            attrs = dict(auto_pad=block.form["auto_pad"])
        else:
            attrs = dict(pads=list(w["pads"]))
        y = self.emit("Conv", [x, self.parameter("weight", block.weight)], dilations=list(w["dilation"]), group=w["groups"],
                      kernel_shape=list(w["kernel"]), strides=list(w["stride"]), **attrs)
        return self.oss(y, block.scale, 4)

    def linear(self, block, x):
        self.next_module()
        self.matmuls += 2
        how = block.form["op"]
        if how == "matmul":
            w = self.init(f"onnx::MatMul_{self.matmuls}", block.weight.astype(f32))
            return self.oss(self.emit("MatMul", [x, w]), block.scale, 2)
        transposed = how == "gemm_t"
        w = self.parameter("weight", block.weight.T if transposed else block.weight)
        inputs = [x, w]
        if how == "gemm_bias":
            inputs.append(self.parameter("bias", np.zeros(block.shape[0])))
        return self.oss(self.emit("Gemm", inputs, alpha=1.0, beta=1.0, transB=int(transposed)), block.scale, 2)

    def gap(self, block, x):
        self.next_module()
        keep, axes = block.form["keepdims"], block.form.get("axes", [2, 3])
        if self.net.opset >= 13:
            y = self.emit("ReduceSum", [x, self.constant(np.array(axes))], keepdims=keep)
        else:
            y = self.emit("ReduceSum", [x], axes=axes, keepdims=keep)
        if block.form.get("round", True):
            y = self.emit("Round", [y])
        shift = None
        if self.raw and block.scale.k.size == 1:
            shift = noise.shift_subgraph(self, int(block.scale.k[0]), (1, 1) + (1, 1) * keep)
        return self.repeat_reshape(self.oss(y, block.scale, 4 if keep else 2, shift), block.shape)

    def repeat_reshape(self, x, shape):
        """As exported: the same shape again, twice."""
        if not self.raw or len(shape) != 1:
            return x
        for _ in range(2):
            x = self.emit("Reshape", [x, self.constant(np.array([1, *shape]))])
        return x

    def avgpool(self, block, x):
        self.next_module()
        w = block.window
        y = self.emit("AveragePool", [x], kernel_shape=list(w["kernel"]), strides=list(w["stride"]), pads=list(w["pads"]),
                      ceil_mode=0, count_include_pad=1 if any(w["pads"]) else int(block.form.get("include", 0)))
        y = self.emit("Mul", [y, self.constant(f32(w["kernel"][0] * w["kernel"][1]))])
        return self.oss(self.emit("Round", [y]), block.scale, 4)

    def maxpool(self, block, x):
        self.next_module()
        w = block.window
        return self.emit("MaxPool", [x], ceil_mode=0, kernel_shape=list(w["kernel"]), strides=list(w["stride"]), pads=list(w["pads"]))

    def flatten(self, block, x):
        self.next_module()
        how = block.form["op"]
        if how == "Flatten":
            return self.emit("Flatten", [x], axis=1)
        if how == "Squeeze":
            if self.net.opset >= 13:
                return self.emit("Squeeze", [x, self.constant(np.array([2, 3]))])
            return self.emit("Squeeze", [x], axes=[2, 3])
        if how == "view" and self.raw:  # x.view(x.size(0), -1)
            return self.emit("Reshape", [x, noise.view_shape(self, x)])
        shape = {"zero": [0, -1], "numbers": [1, *block.shape], "batch": [-1, *block.shape]}.get(how, [1, -1])
        y = self.emit("Reshape", [x, self.constant(np.array(shape))])
        return self.repeat_reshape(y, block.shape)

    def add(self, block, a, b):
        self.next_module()
        s = block.scale
        if block.form["equal"]:
            y = self.emit("Add", [a, b])
        else:
            sa, sb, so = block.form["scales"]
            y = self.emit("Add", [self.emit("Mul", [a, self.constant(sa)]), self.emit("Mul", [b, self.constant(sb)])])
            y = self.emit("Round", [self.emit("Mul", [y, self.constant(so)])])
        if s.relu:
            self.next_module()
            y = self.emit("Relu", [y])
        if s.clip:
            self.next_module()
            y = self.clip(y, s.clip)
        return y

    def concat(self, block, *inputs):
        self.next_module()
        return self.emit("Concat", list(inputs), axis=1)

    def resize(self, block, x):
        self.next_module()
        fh, fw = block.form["factors"]
        attrs = dict(mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric", cubic_coeff_a=-0.75)
        if block.form["how"] == "upsample" and self.net.opset >= 11:
            attrs = dict(mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric")
        roi = "" if self.net.opset >= 13 else self.constant(np.zeros(0, f32))
        if block.form["how"] == "sizes":
            return self.emit("Resize", [x, roi, "" if self.net.opset >= 13 else self.constant(np.zeros(0, f32)), self.constant(np.array([1, *block.shape]))], **attrs)
        return self.emit("Resize", [x, roi, self.constant(np.array([1, 1, fh, fw], f32))], **attrs)

    # --- the file

    def graph(self, input_name, output_name):
        net = self.net
        x = input_name
        if net.prequant:
            x = self.prequant(x)
        if net.first_reshape:
            self.next_module()
            x = self.emit("Reshape", [x, self.constant(np.array([1, -1]))])
        self.at[0] = x
        for n, block in enumerate(net.blocks):
            self.at[n + 1] = getattr(self, block.kind)(block, *(self.at[t] for t in block.inputs))
        out = self.at[len(net.blocks)]
        if net.output_scale:
            self.next_module()
            out = self.emit("Mul", [out, self.constant(f32(net.output_scale))])
        last = [n for n in self.nodes if out in n.output][0]
        last.output[0] = output_name
        for n in self.nodes:
            for i, name in enumerate(n.input):
                n.input[i] = output_name if name == out else name

    def model(self, input_name="onnx::Add_0", output_name="71"):
        net = self.net
        self.graph(input_name, output_name)
        nodes, inits = self.nodes, self.inits
        if self.raw:
            nodes, inits = noise.share(nodes, inits)
            nodes = noise.spread_constants(nodes, self.constants)
        if self.shuffle:
            nodes = noise.shuffle(nodes, self.rng)
        tensors = [numpy_helper.from_array(v, name) for name, v in inits.items()]
        graph = helper.make_graph(
            nodes, "main_graph", [helper.make_tensor_value_info(input_name, TensorProto.FLOAT, [1, *net.shape])],
            [helper.make_tensor_value_info(output_name, TensorProto.FLOAT, [1, *net.blocks[-1].shape])], tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", net.opset)], ir_version=8, producer_name="pytorch")
        for key, value in net.metadata.items():
            model.metadata_props.append(onnx.StringStringEntryProto(key=key, value=str(value)))
        if self.mangle:
            noise.mangle(model, self.rng)
        onnx.checker.check_model(model)
        return model.SerializeToString()


def write(net, raw, shuffle_seed=None, mangle=False, **names):
    import network

    rng = None if shuffle_seed is None else network.Rng(shuffle_seed)
    writer = Writer(net, raw, rng is not None and not mangle, rng)
    writer.mangle = mangle
    return writer.model(**names)
