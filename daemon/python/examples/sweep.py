#!/usr/bin/python3
"""Which settings are best here? Successive halving over the boards of a cohort, then the best weights to all of them.

  sweep.py [--address HOST:PORT] [--cohort site=lab] [--model motor] [--data motor-worn]
"""
import argparse
import sys

from odtfleet import Fleet


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", default="", help="of odtd's gRPC; default: as odtctl")
    parser.add_argument("--cohort", default="status=ONLINE", help="boards: site=lab,!broken")
    parser.add_argument("--model", default="motor")
    parser.add_argument("--data", default="motor-worn")
    args = parser.parse_args()
    axes = {"mu_weight": [(1, -1, -3), -2, -6], "batch": [8, 16]}
    common = dict(cohort=args.cohort, model=args.model, data=args.data, strategy="halving", eta=2, epochs=4,
                  policy="fixed", k=15, rounding="half-up", mu_offset=-3, seed=7)
    with Fleet(args.address) as fleet:
        for check in fleet.sweep(axes, dry_run=True, **common):
            print(f"{fleet.board(check.board).name}: {check.refusal or 'can take part'}")
        sweep = fleet.sweep(axes, name="which-mu", **common).wait(timeout=1800)
        for unit in sweep.units():
            print(f"rung {unit.round} trial {unit.trial}: mu {unit.settings['mu_weight']}, batch {unit.settings['batch']}, "
                  f"epochs {unit.settings['epochs']}: held-out {unit.heldout_best:.1%}")
        best = sweep.best
        print(f"best: trial {best.trial} with {best.heldout_best:.1%}")
        restored = sweep.result().restore(boards=args.cohort)
        print(f"on {sum(r.ok for r in restored)} of {len(restored)} boards")
        sys.exit(0 if all(r.ok for r in restored) else 1)


if __name__ == "__main__":
    main()
