"""Types of the public functions. Results are arrays of the type that went in; numbers and integers give float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Union

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    A = TypeVar("A", default=Any)
else:
    from typing import TypeVar

    A = TypeVar("A")

Floats = NDArray[np.float64]
Numbers = Union[NDArray[Union[np.integer[Any], np.bool_]], Sequence[Sequence[float]]]
Indices = NDArray[np.intp]
Method = Literal["auto", "householder", "tsqr", "caqr", "cholesky-qr2", "randomized-cholesky-qr", "mgs", "cgs"]
Form = Literal["any", "explicit", "reflectors", "none"]  # of Q
Thin = Literal["reduced", "complete", "economic", "full"]
Pivots = Literal[True, "greedy", "randomized", "strong"]
Kind = Literal["auto", "greedy", "randomized", "strong"]  # of pivots
Deficient = Literal["solve", "error"]
Progress = Callable[[float], object]  # is told the share of the work that is done
