"""What an exporter leaves in a file beside the network: constants as subgraphs, Identity nodes, any legal order."""

import numpy as np
from onnx import helper

f32 = np.float32


class Folded:
    """Nodes over constants alone; a chain that ends in one tensor."""

    def __init__(self, writer):
        self.writer, self.count = writer, 0

    def literal(self, value):
        self.count += 1
        return self.writer.constant(value)

    def node(self, op, *inputs, **attrs):
        self.count += 1
        return self.writer.emit(op, list(inputs), where=self.writer.constants, **attrs)


def shift_subgraph(writer, k, shape):
    """2^-k as torch writes it down: 1 / area, its logarithm rounded, and back again. Thirty nodes."""
    c = Folded(writer)
    area = c.literal(f32(2.0**k))
    scale = c.node("Reciprocal", area)
    size, sign = c.node("Abs", scale), c.node("Sign", scale)
    log2 = c.node("Div", c.node("Log", size), c.literal(f32(np.log(2.0))))
    rounded = c.node("Round", log2)
    capped = c.node("Neg", c.node("Max", c.node("Neg", rounded), c.literal(f32(0))))
    capped = c.node("Clip", capped, c.literal(f32(-31)), c.literal(f32(0)))
    power = c.node("Pow", c.literal(f32(2)), c.node("Cast", c.node("Cast", capped, to=7), to=1))
    signed = c.node("Mul", power, sign)
    empty = c.node("Not", c.node("Greater", size, c.literal(f32(0))))
    either = c.node("Where", empty, c.literal(f32(1)), signed)
    ones = c.node("Expand", c.node("Unsqueeze", either, c.literal(np.array([0]))) if writer.net.opset >= 13 else
                  c.node("Unsqueeze", either, axes=[0]), c.literal(np.array([1])))
    return c.node("Reshape", ones, c.literal(np.array(shape)))


def view_shape(writer, x):
    """The shape of x.view(x.size(0), -1)."""
    c = Folded(writer)
    batch = c.node("Gather", c.node("Shape", x), c.literal(np.array(0)), axis=0)
    if writer.net.opset >= 13:
        lists = [c.node("Unsqueeze", v, c.literal(np.array([0]))) for v in (batch, c.literal(np.array(-1)))]
    else:
        lists = [c.node("Unsqueeze", v, axes=[0]) for v in (batch, c.literal(np.array(-1)))]
    return c.node("Concat", *lists, axis=0)


def share(nodes, inits):
    """Equal initialisers once; the others are Identity nodes at the head of the list."""
    first, kept, identities = {}, {}, []
    for name, value in inits.items():
        key = (value.dtype.str, value.shape, value.tobytes())
        if key in first:
            n = len(identities)
            identities.append(helper.make_node("Identity", [first[key]], [name], name=f"Identity_{n}"))
        else:
            first[key] = name
            kept[name] = value
    return identities + nodes, kept


def spread_constants(nodes, constants):
    """Constant subgraphs right in front of the node that needs them."""
    makers = {node.output[0]: node for node in constants}
    out, done = [], set()

    def need(name):
        node = makers.get(name)
        if node is None or name in done:
            return
        done.add(name)
        for i in node.input:
            need(i)
        out.append(node)

    for node in nodes:
        for name in node.input:
            need(name)
        out.append(node)
    return out


def shuffle(nodes, rng):
    """Any order in which every node stands behind what it reads."""
    maker = {o: i for i, node in enumerate(nodes) for o in node.output}
    waits = [sum(1 for name in set(node.input) if name in maker) for node in nodes]
    readers = [[] for _ in nodes]
    for i, node in enumerate(nodes):
        for name in set(node.input):
            if name in maker:
                readers[maker[name]].append(i)
    ready, out = [i for i, n in enumerate(waits) if n == 0], []
    while ready:
        i = ready.pop(int(rng.ints(0, len(ready) - 1)))
        out.append(nodes[i])
        for r in readers[i]:
            waits[r] -= 1
            if waits[r] == 0:
                ready.append(r)
    return out


def mangle(model, rng):
    """The same model with nothing left to recognise but its operators: no node names, numbers for tensors, operands of Add
    and Mul in either order, some constants as nodes, some listed as inputs."""
    graph = model.graph
    names = {graph.input[0].name: "in put/0", graph.output[0].name: "0"}

    def renamed(name):
        return names.setdefault(name, f"v{len(names)}") if name else ""

    constants = []
    for i in reversed(range(len(graph.initializer))):
        tensor = graph.initializer[i]
        tensor.name = renamed(tensor.name)
        if rng.chance(25):
            constants.append(helper.make_node("Constant", [], [tensor.name], value=tensor))
            del graph.initializer[i]
        elif rng.chance(25):
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    for node in graph.node:
        node.name = ""
        inputs = [renamed(name) for name in node.input]
        if node.op_type in ("Add", "Mul") and rng.chance(50):
            inputs.reverse()
        outputs = [renamed(name) for name in node.output]
        del node.input[:], node.output[:]
        node.input.extend(inputs)
        node.output.extend(outputs)
    graph.input[0].name, graph.output[0].name = "in put/0", "0"
    nodes = constants + list(graph.node)
    del graph.node[:]
    graph.node.extend(nodes)
