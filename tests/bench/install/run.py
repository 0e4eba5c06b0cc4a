#!/usr/bin/python3
"""Figures of an installed odtd: which methods let in whom, and what an attack on its ports costs.

  tests/bench/run.sh install [--bin DIR] [--attack-s 60] [--debs DIR] [--json FILE]

Lines "name value unit": `methods_unguarded` and `methods_total` (every method is tried), methods by least role, exposure of the units
in tenths, sizes of the packages of --debs. With --attack-s the figures of 10,000 idle connections with 200 slow ones.
"""
import argparse
import json
import pathlib
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "system"), str(ROOT / "tests" / "support")]
import described  # noqa: E402
from attack import Crowd, Probe, descriptors, rss_mb  # noqa: E402
from method_table import Doors, load_protos, make_tokens, try_every_method  # noqa: E402
from world import World  # noqa: E402

BOARDS = 8


def guarded_config(world):
    config = world.root / "odtd.toml"
    config.write_text("[auth]\nrequired = true\n")
    return ["--config", config]


def methods(bin_dir):
    world = World(bin_dir)
    try:
        extra = guarded_config(world)
        world.start_odtd(listen_port=world.listen_port, extra=extra)
        bearers = make_tokens(world, world.root)
        world.start_odtd(listen_port=world.listen_port, extra=extra)
        doors = Doors(world.address_of("grpc"), world.address_of("http"))
        return try_every_method(doors, load_protos(world.root / "stubs"), bearers)
    finally:
        world.__exit__(None)


def board_rtts(world):
    return [b.get("link", {}).get("rtt_us", 0) for b in world.ctl("board", "list")]


def sample(world, seconds):
    """Round trips of links as odtd reports them, every 0.5 s; and calls to the control port meanwhile."""
    import grpc  # noqa: PLC0415
    channel = grpc.insecure_channel(f"unix:{world.socket_path}")
    who = channel.unary_unary("/odt.api.v1.FleetService/ListBoards", request_serializer=lambda m: m, response_deserializer=lambda m: m)
    address = world.address_of("http")
    calls = Probe(lambda: who(b"", timeout=10))
    pages = Probe(lambda: urllib.request.urlopen(f"http://{address}/healthz", timeout=10).read(), every=0.1)
    for probe in (calls, pages):
        probe.start()
    rtts, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        rtts += [r for r in board_rtts(world) if r]
        time.sleep(0.5)
    rtts.sort()
    return {"link_rtt_p50_us": rtts[len(rtts) // 2] if rtts else None,
            "link_rtt_p99_us": rtts[min(len(rtts) - 1, int(len(rtts) * 0.99))] if rtts else None, "rtts": len(rtts),
            "control": calls.result(), "http": pages.result()}


def attack(bin_dir, seconds):
    with World(bin_dir) as world:
        for n in range(BOARDS):
            world.add_sim(f"sim{n}", f"51000000000000{n:02x}")
        pid = world.running["odtd"].pid
        quiet = sample(world, max(10, seconds / 3))
        before = {"rss_mb": rss_mb(pid), "descriptors": descriptors(pid)}
        addresses = []
        for name in ("http", "grpc"):
            host, _, port = world.address_of(name).rpartition(":")
            addresses.append((host, int(port)))
        with Crowd(addresses) as crowd:
            under = sample(world, seconds)
            worst = {"rss_mb": rss_mb(pid), "descriptors": descriptors(pid)}
        start = time.monotonic()
        while descriptors(pid) > before["descriptors"] + 20 and time.monotonic() - start < 60:
            time.sleep(0.5)
        back_s = time.monotonic() - start
        after = {"rss_mb": rss_mb(pid), "descriptors": descriptors(pid)}
        return {"seconds": seconds, "quiet": quiet, "under_attack": under, "before": before, "worst": worst, "after": after,
                "descriptors_back_s": round(back_s, 1), "opened": crowd.opened, "refused": crowd.refused}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=ROOT / "build" / "bin", type=pathlib.Path)
    parser.add_argument("--attack-s", default=0, type=int)
    parser.add_argument("--debs", default=ROOT / "build", type=pathlib.Path, help="folder of packages (ninja debs)")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    figures = methods(args.bin.resolve())
    lines = [("methods_unguarded", len({path for _, path, _, _ in figures["unguarded"]}), "methods"),
             ("methods_total", figures["methods_total"], "methods"), ("method_tries", figures["tries"], "calls"),
             *((name, value, "methods") for name, value in described.methods_by_role().items()),
             *((name, value, "tenths") for name, value in described.units().items()),
             *((name, value, "bytes") for name, value in described.packages(args.debs).items())]
    for name, value, unit in lines:
        print(name, value, unit)
    figures["lines"] = {name: value for name, value, _ in lines}
    for fault in figures["unguarded"]:
        print("unguarded", *fault)
    if args.attack_s:
        figures["attack"] = attack(args.bin.resolve(), args.attack_s)
        print(json.dumps(figures["attack"], indent=2))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 1 if figures["unguarded"] else 0


if __name__ == "__main__":
    sys.exit(main())
