"""LQ, RQ and QL: QR of the transpose, or with columns in reverse order."""

from __future__ import annotations

from typing import Any, Literal, overload

from ._arguments import numpys_mode, one_of
from ._arrays import at_least_2d, on_host, to_float
from ._errors import NonFiniteEntry
from ._functions import qr
from ._results import LQResult, QLResult, RQResult
from ._types import A, Method, Thin


def _by_qr(function: str, a: Any, mode: str, transpose: bool, reverse: bool, options: tuple[Any, ...]) -> Any:
    """Returns Q and the triangle of `function`, or the triangle alone, by QR of A or Aᵀ, with reversed columns."""
    modes = {"reduced": "reduced", "complete": "complete", function.replace("q", ""): "r"}
    mode = one_of("mode", numpys_mode(mode), *modes)
    method, threads, check_finite, positive = options
    a, place = on_host(a, function)
    a = at_least_2d(to_float(a, function))
    B = a.swapaxes(-1, -2) if transpose else a
    if reverse:
        B = B[..., ::-1].copy(order="K")
    try:
        factors: Any = qr(B, modes[mode], method, threads, check_finite, positive=positive)
    except NonFiniteEntry:
        qr(a, "r")  # raises with the indices of A
        raise
    Q, R = (None, factors) if modes[mode] == "r" else factors
    if reverse:
        R = R[..., ::-1, ::-1].copy(order="K")
        Q = Q if Q is None else Q[..., ::-1].copy(order="K")
    if transpose:
        R = R.swapaxes(-1, -2)
        Q = Q if Q is None else Q.swapaxes(-1, -2)
    return place.give_back(R) if Q is None else (place.give_back(Q), place.give_back(R))


@overload
def lq(
    a: A, mode: Thin = "reduced", method: Method = "auto", threads: int | None = None, check_finite: bool = True,
    positive: bool = False,
) -> LQResult[A]: ...
@overload
def lq(
    a: A, mode: Literal["l"], method: Method = "auto", threads: int | None = None, check_finite: bool = True,
    positive: bool = False,
) -> A: ...


def lq(
    a: Any,
    mode: str = "reduced",
    method: str = "auto",
    threads: int | None = None,
    check_finite: bool = True,
    positive: bool = False,
) -> Any:
    """Factor A = L Q, L lower triangular and the rows of Q orthonormal.

    Parameters
    ----------
    a : array_like, shape (..., M, N)
        In the host's memory; types and layouts as for `qr`.
    mode : {'reduced', 'complete', 'l'}
        L (..., M, K) and Q (..., K, N), K = min(M, N); L (..., M, N) and Q (..., N, N); or L alone. SciPy's names
        'economic' and 'full' stand for the first two.
    method, threads, check_finite, positive
        As for `qr`.

    Returns
    -------
    LQResult or array

    Notes
    -----
    With Aᵀ = Q̃ R̃ by `qr`, L = R̃ᵀ and Q = Q̃ᵀ. The costs and the error bounds are as for `qr` of Aᵀ. An array in C
    order is not copied. For M < N and full rank, L x = b and y = Qᵀ x give the y of least norm with A y = b (Golub and
    Van Loan, Matrix Computations, 4th edition, section 5.6.2).

    Examples
    --------
    >>> import numpy as np, quoin
    >>> A = np.random.default_rng(0).standard_normal((3, 50))
    >>> L, Q = quoin.lq(A)
    >>> L.shape, Q.shape, bool(np.allclose(L @ Q, A) and np.array_equal(L, np.tril(L)))
    ((3, 3), (3, 50), True)
    """
    factors = _by_qr("lq", a, mode, True, False, (method, threads, check_finite, positive))
    return factors if mode == "l" else LQResult(*reversed(factors))


@overload
def rq(
    a: A, mode: Thin = "reduced", method: Method = "auto", threads: int | None = None, check_finite: bool = True,
    positive: bool = False,
) -> RQResult[A]: ...
@overload
def rq(
    a: A, mode: Literal["r"], method: Method = "auto", threads: int | None = None, check_finite: bool = True,
    positive: bool = False,
) -> A: ...


def rq(
    a: Any,
    mode: str = "reduced",
    method: str = "auto",
    threads: int | None = None,
    check_finite: bool = True,
    positive: bool = False,
) -> Any:
    """Factor A = R Q as `scipy.linalg.rq` does: R upper triangular and the rows of Q orthonormal.

    Parameters
    ----------
    a, method, threads, check_finite, positive
        As for `lq`.
    mode : {'reduced', 'complete', 'r'}
        R (..., M, K) and Q (..., K, N), K = min(M, N); R (..., M, N) and Q (..., N, N); or R alone. The triangle's
        diagonal ends in R's last row and column.

    Returns
    -------
    RQResult or array

    Notes
    -----
    Let J reverse the order of rows. With (J A)ᵀ = Q̃ R̃ by `qr`, R = J R̃ᵀ J and Q = J Q̃ᵀ. It costs one more copy of A
    and of Q than `lq`. With `positive` it splits a camera matrix into calibration and rotation (Hartley and Zisserman,
    Multiple View Geometry, 2004, section 6.2.4).

    Examples
    --------
    >>> import numpy as np, quoin
    >>> A = np.random.default_rng(0).standard_normal((3, 3))
    >>> R, Q = quoin.rq(A, positive=True)
    >>> bool(np.allclose(R @ Q, A) and np.array_equal(R, np.triu(R)) and np.all(np.diag(R) > 0))
    True
    """
    factors = _by_qr("rq", a, mode, True, True, (method, threads, check_finite, positive))
    return factors if mode == "r" else RQResult(*reversed(factors))


@overload
def ql(
    a: A, mode: Thin = "reduced", method: Method = "auto", threads: int | None = None, check_finite: bool = True,
    positive: bool = False,
) -> QLResult[A]: ...
@overload
def ql(
    a: A, mode: Literal["l"], method: Method = "auto", threads: int | None = None, check_finite: bool = True,
    positive: bool = False,
) -> A: ...


def ql(
    a: Any,
    mode: str = "reduced",
    method: str = "auto",
    threads: int | None = None,
    check_finite: bool = True,
    positive: bool = False,
) -> Any:
    """Factor A = Q L, the columns of Q orthonormal and L lower triangular.

    Parameters
    ----------
    a, method, threads, check_finite, positive
        As for `lq`.
    mode : {'reduced', 'complete', 'l'}
        Q (..., M, K) and L (..., K, N), K = min(M, N); Q (..., M, M) and L (..., M, N); or L alone. The triangle's
        diagonal ends in L's last row and column, as in LAPACK's `?geqlf`.

    Returns
    -------
    QLResult or array

    Notes
    -----
    Let J reverse the order of columns. With A J = Q̃ R̃ by `qr`, Q = Q̃ J and L = J R̃ J. The costs are as for `rq`.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> A = np.random.default_rng(0).standard_normal((50, 3))
    >>> Q, L = quoin.ql(A)
    >>> Q.shape, L.shape, bool(np.allclose(Q @ L, A) and np.array_equal(L, np.tril(L)))
    ((50, 3), (3, 3), True)
    """
    factors = _by_qr("ql", a, mode, False, True, (method, threads, check_finite, positive))
    return factors if mode == "l" else QLResult(*factors)
