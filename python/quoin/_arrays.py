"""Arrays of any library in, NumPy arrays for the extension module, the caller's kind of array out."""

from __future__ import annotations

import sys
from typing import Any, Callable

import numpy as np

_FLOAT64 = np.dtype(np.float64)
_FLOAT32 = np.dtype(np.float32)
_CPU = 1  # DLPack's kDLCPU


def _identity(array: Any) -> Any:
    return array


def _from_dlpack_of(array: Any) -> Callable[[Any], Any]:
    """The function that gives NumPy's arrays to the library that `array` comes from."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__().from_dlpack
    module = sys.modules[type(array).__module__.partition(".")[0]]
    return getattr(module, "from_dlpack", _identity)


def to_numpy(array: Any) -> tuple[np.ndarray, Callable[[Any], Any]]:
    """`array` as a NumPy array, without a copy where it is one or speaks DLPack, and the way back for results."""
    if isinstance(array, np.ndarray):
        return array, _identity
    if hasattr(array, "__dlpack__") and not isinstance(array, np.generic):
        device = array.__dlpack_device__()[0]
        if int(device) != _CPU:
            raise TypeError(
                "quoin computes on arrays in host memory; this one lies on another device "
                f"(DLPack device type {int(device)})"
            )
        return np.from_dlpack(array), _from_dlpack_of(array)
    if hasattr(array, "toarray"):
        raise TypeError("quoin computes on dense arrays, and this one is sparse; toarray() makes it dense")
    return np.asarray(array), _identity


def to_float(array: np.ndarray, function: str) -> np.ndarray:
    """float32 and float64 as they are, in native byte order; integers and booleans as float64; TypeError otherwise."""
    dtype = array.dtype
    if dtype == _FLOAT64 or dtype == _FLOAT32:
        result = array
    elif dtype.kind in "iub":
        result = array.astype(_FLOAT64)
    elif dtype.kind == "f" and dtype.itemsize in (4, 8):
        result = array.astype(dtype.newbyteorder("="))
    else:
        raise TypeError(
            f"quoin.{function} supports float32 and float64, and computes integers and booleans in float64; "
            f"the array is {dtype}"
        )
    # elements that do not lie at multiples of their size have no strides in elements
    if any(stride % result.itemsize for stride in result.strides) or not result.flags.aligned:
        result = result.copy(order="C")
    return result


def at_least_2d(array: np.ndarray) -> np.ndarray:
    if array.ndim < 2:
        raise np.linalg.LinAlgError(
            f"{array.ndim}-dimensional array given. Array must be at least two-dimensional"
        )
    return array


def exactly_2d(array: np.ndarray) -> np.ndarray:
    if array.ndim != 2:
        raise np.linalg.LinAlgError(f"{array.ndim}-dimensional array given. Array must be two-dimensional")
    return array


def threads_number(threads: int | None) -> int:
    """0, the extension module's default, for None."""
    if threads is None:
        return 0
    if threads < 1:
        from ._errors import InvalidArgument

        raise InvalidArgument(f"threads must be at least 1, or None, and is {threads}")
    return int(threads)
