"""A float32 ONNX file through the whole product: model, data, training in DFP16, replay."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from world import FULL, World, refused

SIM = "5100000000000001"


def write_cnn(path, seed=1):
    """Conv, BatchNormalization, Relu, MaxPool, Gemm, Softmax on pixels of 0..255; weights are random."""
    random = np.random.RandomState(seed)
    constants = []

    def constant(name, shape, scale, shift=0.0):
        values = (random.randn(*shape) * scale + shift).astype(np.float32)
        constants.append(numpy_helper.from_array(values, name))
        return name

    def value(name, v):
        constants.append(numpy_helper.from_array(np.asarray(v, np.float32), name))
        return name

    nodes = [
        helper.make_node("Sub", ["pixels", value("mean", 73.0)], ["a"]),
        helper.make_node("Div", ["a", value("deviation", 90.0)], ["b"]),
        helper.make_node("Conv", ["b", constant("w1", (4, 1, 3, 3), 0.33)], ["c"], name="/conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1],
                         strides=[2, 2]),
        helper.make_node("BatchNormalization", ["c", constant("gamma", (4,), 0.1, 1), constant("beta", (4,), 0.1),
                                                constant("mu", (4,), 0.1), value("var", [1, 0.8, 1.2, 1])], ["d"]),
        helper.make_node("Relu", ["d"], ["e"]),
        helper.make_node("MaxPool", ["e"], ["f"], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
        helper.make_node("Flatten", ["f"], ["g"]),
        helper.make_node("Gemm", ["g", constant("w2", (10, 64), 0.05), constant("b2", (10,), 0.01)], ["h"], name="/fc", transB=1),
        helper.make_node("Softmax", ["h"], ["classes"], axis=-1),
    ]
    graph = helper.make_graph(nodes, "cnn", [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, [1, 1, 14, 14])],
                              [helper.make_tensor_value_info("classes", TensorProto.FLOAT, [1, 10])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, str(path))
    return path


def train(world, board, *extra):
    return world.ctl("train", "--board", board, "--model", "cnn", "--data", "clothes", "--policy", "fixed", "--rule", "dfp16",
                     "--epochs", 4, "--batch", 8, "--seed", 3, "--detach", *extra)["id"]


def test_float_file_trains_on_boards(bin_dir):
    """Samples of 16 bits: resident, streamed, on an M33, replayed; one state, and it has learnt."""
    with World(bin_dir) as world:
        test = 200 if FULL else 80
        world.import_fmnist("clothes", "none", 200, 50 if FULL else 20, test)
        file = write_cnn(world.root / "cnn.onnx")
        model = world.ctl("model", "add", file)
        assert (model["arithmetic"], model["trainable_layers"], model["n_classes"]) == (1, 2, 10), model
        world.add_sim("sim", SIM)
        world.add_qemu("m33", "mps2_an505", "3300000000000002")
        runs = [train(world, name, "--evaluate") for name in ("sim", "m33")]
        ended = [world.wait_run(run, 240) for run in runs]
        ended.append(world.wait_run(train(world, "sim", "--streamed"), 240))
        states = [run["final_state_hash"] for run in ended]
        assert len(set(states)) == 1 and len(states[0]) == 64, states
        assert ended[0]["after"]["correct"] > ended[0]["before"]["correct"] + test / 4, ended[0]
        assert ended[0]["after"] == ended[1]["after"], ended[1]
        for run in runs:
            world.ctl("run", "replay", run, timeout=120)
            assert world.run(run)["replay"] == "EQUAL", run


def test_float_file_settings(bin_dir):
    """The arithmetic and the input's type are chosen when a model is added; what cannot be is one clear error."""
    with World(bin_dir) as world:
        file = write_cnn(world.root / "cnn.onnx")
        refused(world, "model", "add", file, "--arith", "int8", says=("cnn.onnx", "float32", "trainer"))
        refused(world, "model", "add", file, "--input-exponent", 8, says=("input-exponent",))
        refused(world, "model", "add", file, "--input-dtype", "f32", says=("input-dtype",))
        hashes = {world.ctl("model", "add", file, "--name", "cnn", *extra)["hash"]
                  for extra in ((), ("--arith", "dfp16", "--input-exponent", -11), ("--input-dtype", "u8"))}
        assert len(hashes) == 3, hashes
