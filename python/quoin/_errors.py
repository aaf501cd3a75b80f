"""Exceptions. Every failure is an Error, and also the exception that Python and NumPy users expect."""

import traceback

from numpy.linalg import LinAlgError


class Error(Exception):
    """Base of every exception of Quoin; its text is one sentence for a person."""


class InvalidArgument(Error, ValueError):
    """An argument is out of its domain."""


class NonFiniteEntry(Error, LinAlgError):
    """The input holds NaN or Inf: the first in column-major order at (row, col). `matrix` is its name in the text."""

    row: int
    col: int
    matrix: str


class NumericalBreakdown(Error, LinAlgError, ArithmeticError):
    """A conditional method that the caller has named cannot go on at `column`."""

    column: int


class RankDeficient(Error, LinAlgError, ArithmeticError):
    """Full-rank least squares met a matrix whose estimated reciprocal condition is `rcond`."""

    rcond: float


class OutOfMemory(Error, MemoryError):
    """The memory that the call needs cannot be allocated."""


class DeviceFailure(Error, RuntimeError):
    """The GPU's runtime reported a failure."""


class CommunicationFailure(Error, RuntimeError):
    """Another rank has ended, or a message between ranks cannot be sent or is not the one expected."""


class NotFitted(Error, ValueError, AttributeError):
    """An attribute or method of an estimator was used before `fit`."""


def in_a_line(error: BaseException) -> str:
    """Returns the type and the text of `error` and the line that raised it, in one line."""
    *_, where = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__}: {error} ({where.filename}, line {where.lineno})"
