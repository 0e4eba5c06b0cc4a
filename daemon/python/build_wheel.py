#!/usr/bin/python3
"""Builds the wheel of odtfleet, and the index that pip reads, into a folder:

    OUT/odtfleet-VERSION-py3-none-any.whl
    OUT/simple/odtfleet/index.html        for pip --index-url http://HOST:PORT/python/simple

  build_wheel.py --proto PROTO --out OUT --version VERSION [--protoc FILE] [--plugin FILE]

The stubs are generated here and nowhere else. The same sources give the same bytes.
"""
import argparse
import contextlib
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EPOCH = "315532800"  # 1980-01-01, the first that a zip file can tell


def generate(proto, into, protoc, plugin):
    """Stubs of proto/odt/api/v1 into the package: `odt.api.v1` becomes odtfleet.api."""
    files = sorted((proto / "odt" / "api" / "v1").glob("*.proto"))
    with tempfile.TemporaryDirectory() as raw:
        subprocess.run([protoc, "-I", proto, f"--plugin=protoc-gen-grpc_python={plugin}", f"--python_out={raw}",
                        f"--pyi_out={raw}", f"--grpc_python_out={raw}", *files], check=True)
        for made in sorted((pathlib.Path(raw) / "odt" / "api" / "v1").iterdir()):
            text = re.sub(r"^from odt\.api\.v1 import", "from odtfleet.api import", made.read_text(), flags=re.M)
            (into / made.name).write_text(text)
    # For editors and type checkers; at run time __init__.py does the same.
    modules = [path.stem + "_pb2" for path in files]
    (into / "__init__.pyi").write_text("".join(f"from .{name} import *\n" for name in modules) + "\ndef modules() -> list: ...\n")


def stage(folder, proto, version, protoc, plugin):
    """The sources that setuptools sees: those of this folder, the stubs, the version."""
    for name in ("pyproject.toml", "README.md"):
        shutil.copyfile(HERE / name, folder / name)
    shutil.copytree(HERE / "odtfleet", folder / "odtfleet", ignore=shutil.ignore_patterns("__pycache__", "*_pb2*"))
    (folder / "odtfleet" / "_version.py").write_text(f'__version__ = "{version}"\n')
    generate(proto, folder / "odtfleet" / "api", protoc, plugin)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def build(folder):
    """Builds the wheel of a staged folder; returns its path."""
    os.environ["SOURCE_DATE_EPOCH"] = EPOCH
    os.umask(0o022)
    here = os.getcwd()
    os.chdir(folder)
    try:
        from setuptools import build_meta
        sys.stdout.flush()
        with open(folder / "setuptools.log", "w") as log, contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            return folder / build_meta.build_wheel(str(folder))
    finally:
        os.chdir(here)


def index(out, wheel):
    """Pages of a simple index (PEP 503), with the wheel's hash."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    head = "<!doctype html><meta charset=utf-8><title>odtfleet</title>\n"
    pages = {"simple/odtfleet/index.html": f'<a href="../../{wheel.name}#sha256={digest}">{wheel.name}</a>\n',
             "simple/index.html": '<a href="odtfleet/">odtfleet</a>\n',
             "index.html": "<h1>odtfleet</h1><p>Scripts for this fleet: <code>pip install --no-deps --index-url "
                           "http://HOST:PORT/python/simple odtfleet</code></p>\n"
                           f'<p><a href="{wheel.name}">{wheel.name}</a></p>\n'}
    for name, text in pages.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(head + text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--proto", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--protoc", default="protoc")
    parser.add_argument("--plugin", default="/usr/bin/grpc_python_plugin")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        stage(folder, args.proto.resolve(), args.version, args.protoc, args.plugin)
        try:
            made = build(folder)
        except BaseException:
            print((folder / "setuptools.log").read_text() if (folder / "setuptools.log").exists() else "", file=sys.stderr)
            raise
        args.out.mkdir(parents=True, exist_ok=True)
        for old in args.out.glob("odtfleet-*.whl"):
            old.unlink()
        wheel = args.out / made.name
        part = wheel.with_suffix(".part")
        shutil.copyfile(made, part)
        part.chmod(0o644)
        part.replace(wheel)
        index(args.out, wheel)
        print(wheel)


if __name__ == "__main__":
    main()
