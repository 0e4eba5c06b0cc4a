#!/usr/bin/python3
"""Boards learn together without their data leaving them: rounds of training and exact integer averages.

  federated.py [--address HOST:PORT] [--cohort site=lab] [--model motor] [--data motor-worn] [--rounds N]
"""
import argparse

from odtfleet import Fleet


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", default="", help="of odtd's gRPC; default: as odtctl")
    parser.add_argument("--cohort", default="status=ONLINE", help="boards: site=lab,!broken")
    parser.add_argument("--model", default="motor")
    parser.add_argument("--data", default="motor-worn", help="each board's own: see datasets= of Fleet.federated()")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    with Fleet(args.address) as fleet:
        campaign = fleet.federated(args.rounds, args.cohort, args.model, args.data, personalise_epochs=1, evaluate=True,
                                   epochs=2, policy="fixed", k=15, rounding="half-up", mu_weight=(1, -1, -3),
                                   mu_offset=-3, batch=8, seed=7, name="together").wait(timeout=1800)
        for r in campaign.rounds():
            print(f"round {r.round + 1}: {r.averaged} of {r.boards} boards, {r.samples} samples, median drift {r.median_l1}")
        for unit in campaign.units():
            if unit.pb.personal:
                print(f"{fleet.board(unit.board).name}: average {unit.before:.1%}, with its own epoch {unit.after:.1%}")
        print("average:", campaign.result().hash[:12], campaign.result().aliases)


if __name__ == "__main__":
    main()
