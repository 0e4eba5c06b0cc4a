"""numpy where it is there; lists of the same shape where it is not."""
from __future__ import annotations

from typing import Any, Sequence

from .errors import FailedPrecondition

try:
    import numpy
except ImportError:  # optional: everything but add_dataset() and Snapshot.arrays() works without
    numpy = None  # type: ignore[assignment]


def array(values: Sequence[Any], dtype: str = "float64") -> Any:
    """numpy.ndarray of the dtype, or the list as it is."""
    return values if numpy is None else numpy.asarray(values, dtype=dtype)


def needed(what: str) -> Any:
    """numpy, or FailedPrecondition that says how to get it."""
    if numpy is None:
        raise FailedPrecondition(f"{what} needs numpy", reason="NO_NUMPY", remedy="apt install python3-numpy")
    return numpy
