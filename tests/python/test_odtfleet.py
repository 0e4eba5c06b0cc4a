#!/usr/bin/python3
"""odtfleet without an odtd: names, label queries, settings, errors, retries. Needs the wheel or the package on PYTHONPATH."""
import concurrent.futures
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

import grpc
import numpy

import odtfleet
from odtfleet import Fleet, Hyper, api, errors, lookup
from odtfleet.data import gather, npz_of
from odtfleet.snapshots import write_whole


def caught(kind, call):
    """The error of a call, which must be exactly of `kind`."""
    try:
        call()
    except odtfleet.FleetError as error:
        assert type(error) is kind, f"{type(error).__name__} instead of {kind.__name__}: {error}"
        return error
    raise AssertionError(f"no {kind.__name__}")


class LabelQueries(unittest.TestCase):
    BOARDS = {"a": {"site": "lab", "broken": "yes"}, "b": {"site": "lab"}, "c": {"site": "attic", "name": "label"}, "d": {}}

    def of(self, query):
        return "".join(n for n, labels in self.BOARDS.items() if lookup.matches(query, labels, {"name": n, "status": "ONLINE"}))

    def test_terms(self):
        for query, wanted in (("", "abcd"), ("*", "abcd"), (" * ", "abcd"), ("site=lab", "ab"), ("site!=lab", "cd"),
                              ("broken", "a"), ("!broken", "bcd"), ("site=lab,!broken", "b"), (" site = lab , ! broken ", "b"),
                              ("name=a", "a"), ("name!=a", "bcd"), ("label.name=label", "c"), ("label.name", "c"),
                              ("status=ONLINE", "abcd"), ("status=OFFLINE", ""), ("site", "abc"), ("!site", "d"), ("site=", "")):
            self.assertEqual(self.of(query), wanted, query)

    def test_bad_terms_are_named(self):
        for query, part in (("a,,b", "empty term"), (",", "empty term"), ("=x", "no key"), ("!", "no key"), ("!a=b", "mixes"),
                            ("label.", "no key"), ("x" * 129, "longer than 128")):
            self.assertIn(part, str(caught(odtfleet.InvalidArgument, lambda q=query: self.of(q))), query)
        caught(odtfleet.InvalidArgument, lambda: self.of(7))


class Names(unittest.TestCase):
    THINGS = [types.SimpleNamespace(key="aabbcc01", names=["new", "twice"]),
              types.SimpleNamespace(key="aabbcc02", names=["old", "twice"]),
              types.SimpleNamespace(key="12345678", names=["abcdef"])]

    def find(self, word):
        return lookup.find("model", word, self.THINGS, lambda t: t.key, lambda t: t.names)

    def test_names_and_prefixes(self):
        self.assertIs(self.find("old"), self.THINGS[1])
        self.assertIs(self.find("twice"), self.THINGS[0])  # the newest
        self.assertIs(self.find("123456"), self.THINGS[2])
        self.assertIs(self.find("AABB-CC02"), self.THINGS[1])
        self.assertIs(self.find("abcdef"), self.THINGS[2])  # a name before a key

    def test_what_is_not_there(self):
        self.assertIn("Did you mean old?", str(caught(odtfleet.NotFound, lambda: self.find("olt"))))
        self.assertIn("at least 6", str(caught(odtfleet.NotFound, lambda: self.find("1234"))))
        error = caught(odtfleet.InvalidArgument, lambda: self.find("aabbcc"))
        self.assertIn("aabbcc01, aabbcc02", error.remedy)
        self.assertIsInstance(caught(odtfleet.NotFound, lambda: self.find("zz")), LookupError)


class Settings(unittest.TestCase):
    def test_fields(self):
        h = Hyper(policy="fixed", mu_weight=(1, -1, -3), mu_offset=-3, rounding="half-up", rule="niti-literal", seed=7,
                  guard=False, apt=True, apt_t_min=0.5, layer_k=[8, 0]).message()
        self.assertEqual((h.policy, list(h.mu_weight), h.mu_offset, h.rounding, h.rule_set, h.order_seed),
                         (api.POLICY_FIXED, [1, -1, -3], -3, api.ROUNDING_HALF_UP, api.RULE_SET_NITI_LITERAL, 7))
        self.assertTrue(h.HasField("guard") and not h.guard)
        self.assertFalse(h.HasField("epochs"))
        self.assertEqual((h.apt, h.apt_t_min_q8, list(h.layer_k)), (api.APT_MODE_QUARTERS, 128, [8, 0]))
        self.assertEqual(list(Hyper(mu_weight=2).message().mu_weight), [2])
        self.assertEqual(Hyper(apt="epochs").message().apt, api.APT_MODE_EPOCHS)

    def test_rates(self):
        h = Hyper(lr=0.01).message()
        self.assertEqual((list(h.lr_m), h.lr_s), ([20972], 21))  # the most bits that fit 15
        h = Hyper(lr=(0.5, 0.25, 0.125)).message()
        self.assertEqual([m / 2 ** h.lr_s for m in h.lr_m], [0.5, 0.25, 0.125])
        for bad in (0.0, -1.0, 1e9, (1.0, 1e-9)):
            caught(odtfleet.InvalidArgument, lambda v=bad: Hyper(lr=v).message())

    def test_what_is_wrong_is_named(self):
        error = caught(odtfleet.InvalidArgument, lambda: Hyper.of(None, {"epocs": 3}))
        self.assertEqual((error.field, error.remedy), ("epocs", "Did you mean epochs?"))
        self.assertIn("half-up, half-away, psto, sr", str(caught(odtfleet.InvalidArgument, lambda: Hyper(rounding="up").message())))
        for bad in ({"epochs": "three"}, {"batch": -1}, {"mu_weight": ["a"]}, {"k": 2.5}, {"layer_k": [1 << 40]}):
            caught(odtfleet.InvalidArgument, lambda v=bad: Hyper(**v).message())


class Server:
    """A gRPC server in this process that answers ListBoards and CreateRun as `answer` says: what odtd never does on order."""

    def __init__(self, answer):
        self.pool = concurrent.futures.ThreadPoolExecutor(2)
        self.server = grpc.server(self.pool)
        self.seen = []

        def handler(method, request):
            def act(message, context):
                self.seen.append(message)
                return answer(len(self.seen), message, context)
            return grpc.unary_unary_rpc_method_handler(act, request.FromString, lambda r: r.SerializeToString())
        self.server.add_generic_rpc_handlers((
            grpc.method_handlers_generic_handler("odt.api.v1.FleetService", {"ListBoards": handler("ListBoards", api.ListBoardsRequest)}),
            grpc.method_handlers_generic_handler("odt.api.v1.RunService", {"CreateRun": handler("CreateRun", api.CreateRunRequest)})))
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stop(0).wait()


class Calls(unittest.TestCase):
    def test_what_the_line_lost_is_tried_again_with_the_same_id(self):
        def answer(n, _, context):
            if n < 3:
                context.abort(grpc.StatusCode.UNAVAILABLE, "the line")
            return api.CreateRunResponse(run=api.Run(attempt=n))
        with Server(answer) as server, Fleet(server.address) as fleet:
            self.assertEqual(fleet.call(api.CreateRunRequest()).run.attempt, 3)
            self.assertEqual(len({m.request_id for m in server.seen}), 1)
            self.assertEqual(len(server.seen[0].request_id), 32)
            fleet.call(api.CreateRunRequest())
            self.assertNotEqual(server.seen[-1].request_id, server.seen[0].request_id)
            fleet.call(api.CreateRunRequest(request_id="mine"))
            self.assertEqual(server.seen[-1].request_id, "mine")

    def test_what_the_server_refuses_is_final_and_has_its_parts(self):
        status, info, bad = (errors._DETAILS[n]() for n in ("Status", "ErrorInfo", "BadRequest"))
        info.reason, info.domain = "SHAPE_MISMATCH", "odt-fleet"
        for pair in (("remedy", "Give 24 values."), ("limit", "24")):
            info.metadata.add(key=pair[0], value=pair[1])
        bad.field_violations.add(field="values")
        status.details.add(type_url="type.googleapis.com/google.rpc.ErrorInfo", value=info.SerializeToString())
        status.details.add(type_url="type.googleapis.com/google.rpc.BadRequest", value=bad.SerializeToString())

        def answer(n, _, context):
            context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
            context.abort(grpc.StatusCode.UNAVAILABLE, "2 are given")
        with Server(answer) as server, Fleet(server.address) as fleet:
            error = caught(odtfleet.Unavailable, lambda: fleet.boards())
            self.assertEqual(len(server.seen), 1)
            self.assertEqual((error.code, error.reason, error.field, error.remedy, error.metadata["limit"]),
                             ("UNAVAILABLE", "SHAPE_MISMATCH", "values", "Give 24 values.", "24"))
            self.assertEqual(str(error), "ListBoards: 2 are given (field values) [SHAPE_MISMATCH] Give 24 values.")

    def test_every_status_has_a_class(self):
        codes = [c for c in grpc.StatusCode if c != grpc.StatusCode.OK]

        def answer(n, _, context):
            context.set_trailing_metadata((("grpc-status-details-bin", b""),))
            context.abort(codes[n - 1], "no")
        with Server(answer) as server, Fleet(server.address) as fleet:
            for code in codes:
                error = None
                try:
                    fleet.boards()
                except odtfleet.FleetError as got:
                    error = got
                self.assertIsNotNone(error)
                self.assertEqual(error.code, code.name)
                self.assertEqual(type(error).code, "INTERNAL" if code.name in ("UNKNOWN", "DATA_LOSS") else code.name)

    def test_deadlines(self):
        def answer(n, _, context):
            context.abort(grpc.StatusCode.UNAVAILABLE, "the line")
        with Server(answer) as server, Fleet(server.address, timeout=0.5) as fleet:
            # Which of both it is depends on what the machine was about when the time was over.
            with self.assertRaises((odtfleet.Unavailable, odtfleet.DeadlineExceeded)):
                fleet.boards()
        caught(odtfleet.InvalidArgument, lambda: Fleet("127.0.0.1:1", timeout=0))
        caught(odtfleet.InvalidArgument, lambda: Fleet("127.0.0.1:1").call(api.Board()))
        fleet = Fleet("127.0.0.1:1")
        fleet.close()
        caught(odtfleet.InvalidArgument, lambda: fleet.boards())
        self.assertTrue(issubclass(odtfleet.DeadlineExceeded, TimeoutError) and issubclass(odtfleet.InvalidArgument, ValueError))


class Content(unittest.TestCase):
    X, Y = numpy.zeros((6, 4), "int8"), numpy.arange(6) % 2

    def test_arrays(self):
        with numpy.load(io.BytesIO(npz_of(self.X, self.Y, self.X, self.Y))) as file:
            self.assertEqual(sorted(file.files), ["x_test", "x_train", "y_test", "y_train"])
        self.assertEqual(npz_of(self.X, self.Y, None, None), npz_of(self.X, self.Y, None, None))
        for bad in ((self.X, self.Y[:3], None, None), (self.X[:, 0], self.Y, None, None), (self.X.astype(object), self.Y, None, None),
                    (self.X.astype(complex), self.Y, None, None), (self.X, self.Y, self.X, None), (self.X.astype("U3"), self.Y, None, None)):
            caught(odtfleet.InvalidArgument, lambda v=bad: npz_of(*v))

    def test_files(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "one.csv").write_text("1,2\n")
            (folder / ".hidden").write_text("")
            self.assertEqual(gather([folder / "one.csv"]), folder / "one.csv")
            first = gather([folder])
            os.utime(folder / "one.csv", (1, 1))
            self.assertEqual(gather([folder]), first, "times are no content")
            self.assertNotIn(b".hidden", first)
            caught(odtfleet.NotFound, lambda: gather([folder / "none.csv"]))

            def torn():
                yield b"half"
                raise OSError("the line")
            with self.assertRaises(OSError):
                write_whole(folder / "out", torn())
            self.assertEqual(sorted(p.name for p in folder.iterdir()), [".hidden", "one.csv"])


class Package(unittest.TestCase):
    def test_without_numpy_and_beside_other_stubs(self):
        """numpy is optional; a program may hold google's own error_details and stubs of its own."""
        code = """
import sys
sys.modules["numpy"] = None
from google.protobuf import descriptor_pb2, descriptor_pool
other = descriptor_pb2.FileDescriptorProto(name="google/rpc/error_details.proto", package="google.rpc")
other.message_type.add(name="Help")
descriptor_pool.Default().Add(other)
import odtfleet
try:
    odtfleet.Fleet("127.0.0.1:1", timeout=0.1).add_dataset("x", [[1]])
except odtfleet.FailedPrecondition as error:
    assert "python3-numpy" in str(error), error
else:
    raise SystemExit("no error")
"""
        done = subprocess.run([sys.executable, "-c", code], env=dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p)),
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_public_names_are_documented(self):
        for name in odtfleet.__all__:
            value = getattr(odtfleet, name)
            if isinstance(value, type):
                self.assertTrue(value.__doc__, name)
        for name, value in vars(Fleet).items():
            if callable(value) and not name.startswith("_") and name not in ("close", "info", "board", "model", "dataset", "run"):
                self.assertTrue(value.__doc__, name)


if __name__ == "__main__":
    unittest.main()
