#!/usr/bin/python3
"""What a board has learned, for other programs: NumPy, ONNX, a C header; and what changed against the model.

  export.py BOARD FOLDER [--address HOST:PORT]
"""
import argparse
import pathlib

import numpy

from odtfleet import Fleet


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("board")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--address", default="", help="of odtd's gRPC; default: as odtctl")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    with Fleet(args.address) as fleet:
        snapshot = fleet.pull(args.board)
        print(f"{args.board}: weights {snapshot.hash[:12]} of step {snapshot.step}, {snapshot.origin}")
        for end in (".npz", ".onnx", ".h", ".json"):
            print("wrote", snapshot.export(args.folder / f"{args.board}{end}"))
        with numpy.load(args.folder / f"{args.board}.npz") as file:
            for name in sorted(n for n in file.files if n.startswith("layer")):
                a = file[name]
                print(f"{name}: {a.dtype} {a.shape}, {a.min()} to {a.max()}")
        for other in snapshot.log()[1:2]:
            for layer in snapshot.diff(other).layers:
                print(f"{layer.name}: {layer.weights.share:.1%} of the weights changed, most by {layer.weights.linf}")


if __name__ == "__main__":
    main()
