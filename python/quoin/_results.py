"""What the functions of the package return as named tuples."""

from __future__ import annotations

from typing import Any, NamedTuple

from ._arrays import Place


class QRResult(NamedTuple):
    """Q and R of A = QR, as numpy.linalg.qr returns them."""

    Q: Any
    R: Any


class RawQRResult(NamedTuple):
    """LAPACK's reflectors: h is V and R transposed, as numpy.linalg.qr(mode="raw") returns them."""

    h: Any
    tau: Any


class LstsqResult(NamedTuple):
    """The solution of min ‖A x − b‖₂ with its residual norms, an estimate of the condition number, and the report."""

    x: Any
    residual_norms: Any
    condition: Any
    report: Report | None


class SVDResult(NamedTuple):
    """U, S and Vh of A = U diag(S) Vh, as numpy.linalg.svd returns them."""

    U: Any
    S: Any
    Vh: Any


class Report(NamedTuple):
    """What a factorization did; None for what was not measured."""

    method: str
    fell_back: bool
    seconds: float
    flops: float
    gram_departure: float | None
    perturbed_condition: float | None
    orthogonality: float | None
    residual: float | None


class Plan(NamedTuple):
    """How a matrix of this shape and type is factored; `print(plan)` explains it."""

    rows: int
    cols: int
    dtype: str
    method: str
    fallback: str | None
    q: str
    panel_width: int
    last_rows: int
    last_width: int
    leaf_rows: int
    fan_in: int
    batched_rows: int
    workspace_bytes: float
    flops: float
    bytes_moved: float
    description: str

    def __str__(self) -> str:
        return self.description


def solution(result: Any, ndim: int, place: Place) -> LstsqResult:
    """For right-hand sides of `ndim` dimensions."""
    X, norms, condition, report = result
    if ndim == 1:
        X, norms = X[:, 0], norms.reshape(())
    return LstsqResult(place.give_back(X), place.give_back(norms), condition, Report(**report))


def without_columns(X: Any) -> Any:
    """Vectors of matrices of one column."""
    return [x[:, 0] for x in X] if isinstance(X, list) else X[..., 0]


def solutions(result: Any, vector: bool, to_callers: Any) -> LstsqResult:
    X, norms, conditions = map(to_callers, result)
    conditions = [one[0] for one in conditions] if isinstance(conditions, list) else conditions[..., 0]
    if vector:
        X = without_columns(X)
        norms = [one[0] for one in norms] if isinstance(norms, list) else norms[..., 0]
    return LstsqResult(X, norms, conditions, None)
