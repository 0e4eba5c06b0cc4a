#!/usr/bin/python3
"""Arrays to a trained board: a data set, a model of this computer, and a board that adapts to its own sensor.

  train_one.py [--address HOST:PORT] [--board NAME] [--epochs N]
"""
import argparse

import numpy

from odtfleet import Fleet


def spectra(seed, tilt=0.0, count=1200):
    """[count, 32] int8 spectra of motors in four conditions; tilt: what a worn sensor does to them."""
    rng = numpy.random.default_rng(seed)
    condition = rng.integers(0, 4, count)
    x = rng.normal(0, 12, (count, 32))
    for peak in (3, 11):
        x[numpy.arange(count), condition * 5 + peak] += 70
    x = x[:, ::-1] if tilt else x  # the worn sensor: high and low are exchanged, and an offset
    return numpy.clip(x + tilt, -127, 127).astype(numpy.int8), condition


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", default="", help="of odtd's gRPC; default: as odtctl")
    parser.add_argument("--board", help="default: the first that is online")
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    with Fleet(args.address) as fleet:
        board = fleet.board(args.board) if args.board else fleet.boards("status=ONLINE")[0]
        fleet.add_dataset("motor", *spectra(1), train=800, heldout=150, test=250, seed=1)
        fleet.add_dataset("motor-worn", *spectra(2, tilt=8.0), train=800, heldout=150, test=250, seed=1)
        model = fleet.train_on_pc("motor", "motor", hidden=[16], epochs=3)
        print(f"{board.name}: {fleet.estimate(board, model, 'motor-worn', epochs=args.epochs).placement}")
        run = fleet.train(board, model, "motor-worn", epochs=args.epochs, evaluate=True)
        run.wait(timeout=600, on_epoch=lambda e: print(
            f"epoch {e.epoch + 1}: train {e.train:.1%}, held-out {e.heldout:.1%}, {e.step_us} us a step"))
        print(f"{board.name}: {run.before:.1%} -> {run.after:.1%}; {run.verdict}")
        print(f"loss of {len(run.telemetry())} steps, in 8 buckets:",
              " ".join(f"{mean:.0f}" for mean in run.series("loss", buckets=8)["loss", 0].mean))
        run.weights().update(add=["motor-adapted"])


if __name__ == "__main__":
    main()
