"""Options as the extension module takes them. An invalid one is an error that names the option and its value."""

from __future__ import annotations

import operator
import os
import re
from typing import Any

import numpy as np

from . import _core
from ._errors import InvalidArgument

_MOST_THREADS = 4096  # OpenMP ends the process if the system refuses it a thread
_LARGEST = 2**63 - 1
_SCIPYS_MODES = {"economic": "reduced", "full": "complete"}


def shown(value: Any) -> str:
    """The repr of `value` if it is short, otherwise its type."""
    try:
        text = repr(value)
    except ValueError:  # an int of more digits than Python converts
        text = ""
    return text if 0 < len(text) <= 60 and "\n" not in text else f"an object of type {type(value).__name__}"


def one_of(name: str, value: Any, *choices: str) -> str:
    if isinstance(value, str) and value in choices:
        return value
    names = ", ".join(map(repr, choices[:-1]))
    raise InvalidArgument(f"{name} must be {names} or {choices[-1]!r}, and is {shown(value)}")


def numpys_mode(mode: Any) -> Any:
    """Returns NumPy's name of a mode of SciPy's."""
    return _SCIPYS_MODES.get(mode, mode) if isinstance(mode, str) else mode


def integer(name: str, value: Any, least: int, most: int = _LARGEST, optional: bool = False) -> int:
    """Returns `value` as an int, or 0, the extension module's default, if it is optional and None."""
    if optional and value is None:
        return 0
    or_none = ", or None," if optional else ","
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer{or_none} and is {shown(value)}") from None
    if number < least:
        raise InvalidArgument(f"{name} must be at least {least}{or_none} and is {shown(number)}")
    if number > most:
        raise InvalidArgument(f"{name} must be at most {most}{or_none} and is {shown(number)}")
    return number


def threads_number(threads: int | None) -> int:
    return integer("threads", threads, 1, _MOST_THREADS, optional=True)


def gpu_number(device: Any) -> int | None:
    """Returns N for 'cuda:N', 0 for 'cuda' and None for 'cpu'."""
    named = re.fullmatch(r"cpu|cuda(?::(\d{1,9}))?", str(device))
    if not named:
        raise InvalidArgument(f"device must be 'cpu', 'cuda' or 'cuda:N', and is {shown(device)}")
    if named[0] == "cpu":
        return None
    if not hasattr(_core, "cuda"):
        raise InvalidArgument("quoin was built without CUDA")
    return int(named[1] or 0)


def real(name: str, value: Any, or_none: str = ",") -> float:
    """Returns `value` as a float, which may be infinite but not NaN."""
    try:
        if isinstance(value, (str, bytes, bytearray)):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number{or_none} and is {shown(value)}") from None
    except OverflowError:
        number = np.inf if value > 0 else -np.inf
    if number != number:
        raise InvalidArgument(f"{name} must be a number{or_none} and is nan")
    return number


def positive(name: str, value: Any, optional: bool = False) -> float:
    """Returns `value` as a float, or 0, the extension module's default, if it is optional and None."""
    if optional and value is None:
        return 0.0
    or_none = ", or None," if optional else ","
    number = real(name, value, or_none)
    if not 0 < number < np.inf:
        raise InvalidArgument(f"{name} must be positive and finite{or_none} and is {number}")
    return number


def rcond_number(rcond: float | None, name: str = "rcond") -> float:
    """Returns `rcond` as a float, or -1, the extension module's default, for None."""
    if rcond is None:
        return -1.0
    number = real(name, rcond, ", or None,")
    if not 0 <= number <= 1:
        raise InvalidArgument(f"{name} must be from 0 to 1, or None, and is {number}")
    return number


def pivoting_limits(kind: str, limits: tuple[Any, Any, Any], k: int) -> tuple[str, int, float, float]:
    """Returns the kind of column pivoting and its limits: rank, up to `k`, rtol and rtol_frobenius; 0 for None."""
    rank = integer("rank", limits[0], 1, optional=True)
    if rank > k:
        raise InvalidArgument(f"rank must be at most min(M, N) = {k}, and is {rank}")
    tolerances = [0.0, 0.0]
    for i, name in enumerate(("rtol", "rtol_frobenius")):
        if limits[1 + i] is not None:
            tolerances[i] = real(name, limits[1 + i], ", or None,")
        if tolerances[i] < 0:
            raise InvalidArgument(f"{name} must not be negative, and is {tolerances[i]}")
    return one_of("pivoting", kind, "auto", "greedy", "randomized", "strong"), rank, *tolerances


def solver(rcond: float | None, deficient: str, mixed_precision: bool = False) -> tuple[float, bool, bool]:
    """Returns the extension module's options: rcond, whether to refuse deficient matrices, and mixed precision."""
    one_of("deficient", deficient, "solve", "error")
    return rcond_number(rcond), deficient == "error", flag("mixed_precision", mixed_precision)


def flag(name: str, value: Any) -> bool:
    if value is True or value is False or isinstance(value, np.bool_):
        return bool(value)
    raise TypeError(f"{name} must be True or False, and is {shown(value)}")


def function(name: str, value: Any, or_none: str = "") -> Any:
    if not callable(value):
        raise TypeError(f"{name} must be callable{or_none}, and is {shown(value)}")
    return value


def path_bytes(name: str, value: Any) -> bytes:
    """Returns the path as bytes, or b"", the extension module's default, for None."""
    if value is None:
        return b""
    try:
        path = os.fsencode(value)
    except TypeError:
        raise TypeError(f"{name} must be a path, or None, and is {shown(value)}") from None
    if not path or b"\0" in path:
        raise InvalidArgument(f"{name} must be the path of a file, or None, and is {shown(value)}")
    return path


def float_type(name: str, dtype: Any) -> np.dtype:
    """Returns `dtype` as NumPy's float64 or float32."""
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise TypeError(f"{name} must be float64 or float32, and is {shown(dtype)}") from None
    if kind not in (np.float64, np.float32):
        raise InvalidArgument(f"{name} must be float64 or float32, and is {kind}")
    return kind
