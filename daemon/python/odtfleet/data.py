"""Uploads: files and arrays on their way to odtd."""
from __future__ import annotations

import hashlib
import io
import pathlib
import tarfile
from typing import TYPE_CHECKING, Any, BinaryIO, Optional, Sequence, Union

from . import api
from .arrays import needed
from .errors import InvalidArgument, NotFound, OutOfRange

if TYPE_CHECKING:
    from .fleet import Fleet

CHUNK = 512 * 1024
Source = Union[str, pathlib.Path, bytes]
_BY_NAME = {".csv": "csv", ".tsv": "csv", ".npy": "npy", ".npz": "npz", ".wav": "wav", ".png": "png"}


def upload(fleet: "Fleet", source: Source, name: str = "") -> bytes:
    """Content (bytes) or a file to odtd; returns its SHA-256. What odtd has of it already is not sent again."""
    if isinstance(source, bytes):
        return _send(fleet, io.BytesIO(source), len(source), hashlib.sha256(source).digest(), name or "data")
    path = pathlib.Path(source)
    if not path.is_file():
        raise NotFound(f"{path}: no such file", field="path")
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
        return _send(fleet, file, file.tell(), digest.digest(), name or path.name)


def _send(fleet: "Fleet", file: BinaryIO, size: int, digest: bytes, name: str) -> bytes:
    made = fleet.call(api.CreateUploadRequest(name=name, size=size, sha256=digest)).upload
    offset = made.received
    while offset < size:
        file.seek(offset)
        data = file.read(CHUNK)
        if not data:
            raise InvalidArgument(f"{name}: became shorter meanwhile")
        try:
            offset = fleet.call(api.WriteChunkRequest(upload_id=made.id, offset=offset, data=data)).received
        except OutOfRange:  # a try before this one has come through
            offset = fleet.call(api.GetUploadRequest(id=made.id)).upload.received
    return fleet.call(api.FinishUploadRequest(id=made.id)).blob


def gather(paths: Sequence[Union[str, pathlib.Path]]) -> Source:
    """One file as it is; several files, or a folder, as a tar archive of them."""
    files = [pathlib.Path(p) for p in paths]
    for path in files:
        if not path.exists():
            raise NotFound(f"{path}: no such file or folder", field="paths")
    if len(files) == 1 and files[0].is_file():
        return files[0]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in files:
            members = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
            for member in members:
                inside = str(member.relative_to(path)) if path.is_dir() else member.name
                if not any(part.startswith(".") for part in pathlib.Path(inside).parts):
                    with open(member, "rb") as content:
                        tar.addfile(_plain(tar.gettarinfo(str(member), inside)), content)
    return out.getvalue()


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without owner and time: the same files are the same upload."""
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    return info


def format_of(paths: Sequence[Union[str, pathlib.Path]]) -> str:
    """The format of an import by the first file's name. InvalidArgument: it says nothing."""
    first = pathlib.Path(paths[0])
    if first.is_dir():
        first = next((p for p in sorted(first.rglob("*")) if p.is_file() and p.suffix in _BY_NAME), first)
    name = first.name[:-3] if first.name.endswith(".gz") else first.name
    if "-ubyte" in name or name.endswith(".idx"):
        return "idx"
    found = _BY_NAME.get(pathlib.Path(name).suffix.lower())
    if not found:
        raise InvalidArgument(f"{first}: its name tells no format", field="format",
                              remedy='Give format="csv", "npy", "npz", "idx", "wav", "edge-impulse" or "png".')
    return found


def npz_of(x: Any, y: Any, x_test: Any, y_test: Any) -> bytes:
    """Arrays as the NPZ file that an import reads. InvalidArgument: lengths do not agree, or a dtype is no number."""
    numpy = needed("add_dataset()")
    parts = {"x": x, "y": y, "x_test": x_test, "y_test": y_test}
    made = {name: numpy.ascontiguousarray(value) for name, value in parts.items() if value is not None}
    for name, value in made.items():
        if value.dtype.kind not in "biufSU" or (name.startswith("x") and value.dtype.kind in "SU"):
            raise InvalidArgument(f"{name}: dtype {value.dtype} is no number", field=name,
                                  remedy="Integers and floats; labels may be text too.")
        if value.ndim < (2 if name.startswith("x") else 1):
            raise InvalidArgument(f"{name}: shape {value.shape}; samples are [n, ...], labels [n]", field=name)
    for name in ("", "_test"):
        if f"x{name}" in made and f"y{name}" in made and len(made[f"x{name}"]) != len(made[f"y{name}"]):
            raise InvalidArgument(f"y{name}: {len(made[f'y{name}'])} labels for {len(made[f'x{name}'])} samples",
                                  field=f"y{name}")
    if ("x_test" in made) and ("y_test" in made) != ("y" in made):
        raise InvalidArgument("y_test: train and test have labels both, or neither", field="y_test")
    if "x_test" in made:
        made = {name if name.endswith("_test") else f"{name}_train": value for name, value in made.items()}
    out = io.BytesIO()
    numpy.savez(out, **made)
    return out.getvalue()


def blob_url(base: str, digest: bytes) -> str:
    return f"{base.rstrip('/')}/v1/blobs/{digest.hex()}"


def check_name(name: Optional[str]) -> str:
    if not name:
        raise InvalidArgument("name: it is empty", field="name", remedy="Give the data set or model a name.")
    return name
