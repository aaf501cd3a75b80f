"""The results of the package's functions, most of them named tuples."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

import numpy as np

from ._arrays import OnHost, Place
from ._errors import NumericalBreakdown
from ._types import A, Floats, Indices

if TYPE_CHECKING:

    class _NumPys(tuple[A, A, int, A]): ...

else:

    class _NumPys(Sequence, Generic[A]): ...


class QRResult(NamedTuple, Generic[A]):
    """Q and R of A = QR, as numpy.linalg.qr returns them."""

    Q: A
    R: A


class PivotedQRResult(NamedTuple, Generic[A]):
    """Q, R and the permutation P of `qr` with pivoting: A[:, P] = Q R."""

    Q: A
    R: A
    P: Indices


class LQResult(NamedTuple, Generic[A]):
    """L and Q of A = L Q."""

    L: A
    Q: A


class RQResult(NamedTuple, Generic[A]):
    """R and Q of A = R Q, as scipy.linalg.rq returns them."""

    R: A
    Q: A


class QLResult(NamedTuple, Generic[A]):
    """Q and L of A = Q L."""

    Q: A
    L: A


class RawQRResult(NamedTuple, Generic[A]):
    """LAPACK's reflectors. h is V and R transposed, as numpy.linalg.qr(mode="raw") returns them."""

    h: A
    tau: A


class Refinement(NamedTuple):
    """Steps of refinement by `lstsq` with mixed_precision=True, and why float64 solved the problem after all, or ''."""

    steps: int
    fell_back: str


class LstsqResult(_NumPys[A]):
    """The solution of min ‖A x − b‖₂. It unpacks to the four values of numpy.linalg.lstsq: x, residuals, rank and s.

    Copies and pickles have `s` as an array. The types are for one matrix.

    Attributes
    ----------
    x : array
        The solution.
    residuals : array
        ‖A x − b‖₂² of each right-hand side, of shape (P,), or (1,) for one b; empty for M <= N and for a rank below N
        (of one matrix).
    rank : int
        The rank that `rcond` decides; 0 if NaN or Inf leave it unknown.
    s : array
        The singular values of A, descending, of shape (min(M, N),). They are computed from R at the first access, also
        by unpacking, in order N³ flops, which is more than the solution takes for square A. `.x` alone does not compute
        them.
    residual_norms : array
        ‖A x − b‖₂, of shape (P,), or () for one b; zeros for rank M.
    condition : float
        An estimate of the condition number of R.
    report : Report or None
        What the factorization did; None for batches, Dask arrays and ranks.
    dependent : list of int, or None
        min(M, N) − rank columns of A (rows for M < N) that depend on the others; None for batches.
    refinement : Refinement or None
        Of `mixed_precision`; None where there is no report. `s` of a refined solution has float32's accuracy.
    """

    def __init__(
        self,
        x: A,
        residual_norms: A,
        condition: float,
        report: Report | None,
        dependent: list[int] | None,
        refinement: Refinement | None = None,
        **numpys: Callable[[], Any],
    ):
        self.x, self.residual_norms = x, residual_norms
        self.condition: float = condition
        self.report: Report | None = report
        self.dependent: list[int] | None = dependent
        self.refinement: Refinement | None = refinement
        self._numpys = numpys  # functions that compute residuals, rank and s at the first access

    @functools.cached_property
    def residuals(self) -> A:
        """‖A x − b‖₂² of each right-hand side, as NumPy returns them."""
        return self._numpys["residuals"]()

    @functools.cached_property
    def rank(self) -> int:
        """The rank that `rcond` decides, or 0 if NaN or Inf leave it unknown."""
        return self._numpys["rank"]()

    @functools.cached_property
    def s(self) -> A:
        """The singular values of A, descending, computed from R at the first access."""
        return self._numpys["s"]()

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: Any) -> Any:
        names = ("x", "residuals", "rank", "s")[index]
        return getattr(self, names) if isinstance(names, str) else tuple(getattr(self, name) for name in names)

    def __iter__(self) -> Any:
        return iter((self.x, self.residuals, self.rank, self.s))

    def __repr__(self) -> str:
        return f"<quoin.LstsqResult: x={self.x!r}, residual_norms={self.residual_norms!r}, condition={self.condition!r}>"

    def __getstate__(self) -> dict[str, Any]:
        tuple(self)
        return {name: value for name, value in self.__dict__.items() if name != "_numpys"}


class RegressionResult(NamedTuple):
    """Estimates and statistics of a linear regression with N unknowns, the intercept first.

    The shapes are for P right-hand sides. If b has the shape (M,), the arrays have no dimension P. What cannot be
    estimated is NaN.
    """

    coefficients: Floats
    """x, of shape (N, P). NaN for a column that is left out, because it depends on earlier ones."""
    standard_errors: Floats
    """Standard errors of the coefficients, of shape (N, P)."""
    t_values: Floats
    """Coefficients divided by standard errors, of shape (N, P)."""
    p_values: Floats
    """The probability that |t| is as large for a coefficient 0, by Student's t distribution, of shape (N, P)."""
    error_bounds: Floats
    """First-order bounds on the rounding errors of the coefficients, of shape (N, P)."""
    residual_norms: Floats
    """√Σ wᵢ(A x − b)ᵢ², of shape (P,)."""
    residual_standard_errors: Floats
    """Residual norms divided by the root of the degrees of freedom, of shape (P,)."""
    r_squared: Floats
    """R², of shape (P,)."""
    adjusted_r_squared: Floats
    """R² with variances instead of sums of squares, of shape (P,)."""
    f_values: Floats
    """F of all coefficients but the intercept, of shape (P,)."""
    f_p_values: Floats
    """The probability that F is as large if they are 0, of shape (P,)."""
    degrees_of_freedom: float
    """Observations minus rank; with a ridge minus the trace of the hat matrix."""
    observations: int
    """Rows whose weight is not 0."""
    rank: int
    """Number of coefficients in the model."""
    dependent: list[int]
    """Coefficients that are left out, ascending."""
    condition: float
    """An estimate of the condition number of R."""
    R: Floats
    """RᵀR = AᵀWA + ridge I for the columns in the model, of shape (rank, rank)."""
    leverages: Floats | None
    """The diagonal of the hat matrix, of shape (M,), if it was asked for."""
    summaries: list[str]
    """The text of `summary` for each right-hand side."""

    @classmethod
    def of(cls, found: dict[str, Any], vector: bool) -> RegressionResult:
        """Returns the result of the extension module."""
        for name in cls._fields[:11]:
            values = np.asarray(found[name])
            found[name] = values.T[0] if vector else values
        return cls(**found)

    def summary(self, right_hand_side: int = 0) -> str:
        """Returns a table of the coefficients, with lines on the residuals, R² and F, as a text."""
        return self.summaries[right_hand_side]

    def __repr__(self) -> str:
        return f"<quoin.RegressionResult: coefficients={self.coefficients!r}, r_squared={self.r_squared!r}>"


class SVDResult(NamedTuple, Generic[A]):
    """U, S and Vh of A = U diag(S) Vh, as numpy.linalg.svd returns them."""

    U: A
    S: A
    Vh: A


class InterpolativeResult(NamedTuple, Generic[A]):
    """Columns of A and X (K, N) such that A ≈ A[:, columns] @ X."""

    columns: Indices
    X: A


class CURResult(NamedTuple, Generic[A]):
    """Columns and rows of A, and U (K, K), such that A ≈ A[:, columns] @ U @ A[rows]."""

    columns: Indices
    rows: Indices
    U: A


class Report(NamedTuple):
    """Facts about one factorization. Entries that were not measured are None."""

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
    pivots: str
    panel_width: int
    inner_block: int
    last_rows: int
    last_width: int
    compact_wy: str
    keep_s: bool
    full_t: str
    arithmetic: str
    reorthogonalization: str
    gram_schmidt_panel: str
    leaf_rows: int
    domain_leaves: int
    fan_in: int
    reconstruct_rows: int
    tuning: str
    workspace_bytes: float
    flops: float
    bytes_moved: float
    description: str
    kernels: tuple[tuple[str, str], ...]
    """Each step of the factorization, and the kernel of the device that runs it."""

    def __str__(self) -> str:
        return self.description


class Route(NamedTuple):
    """How a matrix of this shape and type passes through memory; `print(route)` explains it.

    `route` is 'memory', 'row-blocks', 'out-of-core' or 'files', and `plan` has the fields of its plan by name. If not
    `fits`, no route fits the memory that was given, and `min_bytes` would do.
    """

    route: str
    fits: bool
    memory_bytes: float
    min_bytes: float
    plan: dict[str, Any]
    description: str

    def __str__(self) -> str:
        return self.description


def _squares(norms: Any, m: float, n: int) -> Any:
    """Returns NumPy's residuals for `norms` of shape (..., P): their squares, or none unless m > n."""
    with np.errstate(over="ignore"):
        return (norms * norms)[..., : None if m > n else 0]


def _values(place: Place, R: Any, exponent: int = 0) -> Any:
    """Returns the singular values of 2^exponent R, for each matrix if R is a stack."""
    if R.ndim > 2:
        if not all(R.shape):
            return R.sum(-1)  # empty, with the shape of the values
        values = [_values(place, one) for one in R.reshape(-1, *R.shape[-2:])]
        return place.library.xp.stack(values).reshape(R.shape[:-1])
    triangle = R if isinstance(place, OnHost) else place.take(R).dense()
    try:
        values = place.core.svd(place.operand(triangle), False, "auto", place.where(0), False)[1]
    except NumericalBreakdown:
        return R[:, 0] * np.nan  # the matrix holds NaN or Inf, or was refused
    half = exponent // 2  # 2^exponent alone may overflow
    with np.errstate(over="ignore"):
        return values * 2.0**half * 2.0 ** (exponent - half)


def solution(result: Any, m: float, ndim: int, place: Place) -> LstsqResult:
    """Returns the result for a matrix of m rows and right-hand sides of `ndim` dimensions, with X of one or two."""
    X, norms, condition, R, exponent, rank, dependent, *reports = result
    report, refinement = reports or (None, None)
    n, give = X.shape[0], place.give_back
    return LstsqResult(
        give(X if X.ndim == ndim else X[:, 0]),
        give(norms.reshape(()) if ndim == 1 else norms),
        condition,
        Report(*report) if report else None,
        dependent,
        Refinement(*refinement) if refinement else None,
        residuals=lambda: give(_squares(norms, m if rank == n else 0, n)),
        rank=lambda: rank if condition == condition else 0,
        s=lambda: give(_values(place, R, exponent)),
    )


def without_columns(X: Any) -> Any:
    """Returns matrices of one column as vectors."""
    return [x[:, 0] for x in X] if isinstance(X, list) else X[..., 0]


def solutions(result: Any, shape: Any, vector: bool, place: Place) -> LstsqResult:
    """Returns the result for a stack of shape `shape`, or for a list of matrices with the shapes in `shape`."""
    give, ndim = place.give_back, 1 if vector else 2
    if isinstance(shape, list):
        each = [
            solution((X, norms, kappa[0], R, 0, rank, None), m, ndim, place)
            for X, norms, kappa, R, rank, (m, _) in zip(*result, shape)
        ]
        return LstsqResult(
            [one.x for one in each],
            [one.residual_norms for one in each],
            [one.condition for one in each],
            None,
            None,
            residuals=lambda: [one.residuals for one in each],
            rank=lambda: [one.rank for one in each],
            s=lambda: [one.s for one in each],
        )
    X, norms, conditions, R, deficient = result
    m, n = shape[-2:]
    conditions = conditions[..., 0]

    def ranks() -> Any:
        full = (conditions == conditions) * min(m, n)
        flat = full.reshape(-1)
        for b, rank in deficient:
            flat = place.library.put(flat, b, rank)
        return flat.reshape(full.shape)

    return LstsqResult(
        give(without_columns(X) if vector else X),
        give(norms[..., 0] if vector else norms),
        give(conditions),
        None,
        None,
        residuals=lambda: give(_squares(norms, m, n)),
        rank=lambda: give(ranks()),
        s=lambda: give(_values(place, R)),
    )
