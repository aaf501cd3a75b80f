"""The functions of the package, in NumPy's conventions."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

from . import _core
from ._arguments import (
    flag,
    function,
    gpu_number,
    integer,
    numpys_mode,
    one_of,
    pivoting_limits,
    positive,
    shown,
    solver,
    threads_number,
)
from ._arrays import (
    _FLOAT32,
    _FLOAT64,
    ON_HOST,
    BesideGpu,
    Place,
    at_least_2d,
    broadcast,
    columns,
    columns_of_stack,
    common_type,
    exactly_2d,
    is_ragged,
    list_of_matrices,
    list_operands,
    located,
    require_one_place,
    to_float,
    unconverted,
)
from ._errors import InvalidArgument
from ._factorization import BatchedFactorization, Factorization
from ._labels import UNLABELLED, labels_of
from ._results import (
    LstsqResult,
    PivotedQRResult,
    Plan,
    QRResult,
    RawQRResult,
    Route,
    SVDResult,
    solution,
    solutions,
)
from ._types import A, Deficient, Floats, Form, Indices, Method, Numbers, Pivots, Progress, Thin

_MODES = {"reduced": "q", "complete": "c", "r": "r", "raw": "h"}
_FORMS = {"reduced": "explicit", "complete": "any", "r": "none", "raw": "reflectors"}  # of Q, for `factor`


# fmt: off
@overload
def qr(
    a: Numbers, mode: Thin = "reduced", method: Method = "auto", threads: int | None = None, check_finite: bool = True,
    pivoting: Literal[False] = False, positive: bool = False, *, overwrite_a: bool = False,
) -> QRResult[Floats]: ...
@overload
def qr(
    a: Numbers, mode: Literal["raw"], method: Method = "auto", threads: int | None = None, check_finite: bool = True,
    pivoting: Literal[False] = False, positive: bool = False, *, overwrite_a: bool = False,
) -> RawQRResult[Floats]: ...
@overload
def qr(
    a: Numbers, mode: Literal["r"], method: Method = "auto", threads: int | None = None, check_finite: bool = True,
    pivoting: Literal[False] = False, positive: bool = False, *, overwrite_a: bool = False,
) -> Floats: ...
@overload
def qr(
    a: Numbers, mode: Thin = "reduced", method: Method = "auto", threads: int | None = None, check_finite: bool = True, *,
    pivoting: Pivots, positive: bool = False, rank: int | None = None, rtol: float | None = None, rtol_frobenius: float | None = None,
    overwrite_a: bool = False,
) -> PivotedQRResult[Floats]: ...
@overload
def qr(
    a: Numbers, mode: Literal["r"], method: Method = "auto", threads: int | None = None, check_finite: bool = True, *,
    pivoting: Pivots, positive: bool = False, rank: int | None = None, rtol: float | None = None, rtol_frobenius: float | None = None,
    overwrite_a: bool = False,
) -> tuple[Floats, Indices]: ...
@overload
def qr(
    a: A, mode: Thin = "reduced", method: Method = "auto", threads: int | None = None, check_finite: bool = True,
    pivoting: Literal[False] = False, positive: bool = False, *, overwrite_a: bool = False,
) -> QRResult[A]: ...
@overload
def qr(
    a: A, mode: Literal["raw"], method: Method = "auto", threads: int | None = None, check_finite: bool = True,
    pivoting: Literal[False] = False, positive: bool = False, *, overwrite_a: bool = False,
) -> RawQRResult[A]: ...
@overload
def qr(
    a: A, mode: Literal["r"], method: Method = "auto", threads: int | None = None, check_finite: bool = True,
    pivoting: Literal[False] = False, positive: bool = False, *, overwrite_a: bool = False,
) -> A: ...
@overload
def qr(
    a: A, mode: Thin = "reduced", method: Method = "auto", threads: int | None = None, check_finite: bool = True, *,
    pivoting: Pivots, positive: bool = False, rank: int | None = None, rtol: float | None = None, rtol_frobenius: float | None = None,
    overwrite_a: bool = False,
) -> PivotedQRResult[A]: ...
@overload
def qr(
    a: A, mode: Literal["r"], method: Method = "auto", threads: int | None = None, check_finite: bool = True, *,
    pivoting: Pivots, positive: bool = False, rank: int | None = None, rtol: float | None = None, rtol_frobenius: float | None = None,
    overwrite_a: bool = False,
) -> tuple[A, Indices]: ...
# fmt: on


def qr(
    a: Any,
    mode: str = "reduced",
    method: str = "auto",
    threads: int | None = None,
    check_finite: bool = True,
    pivoting: bool | str = False,
    positive: bool = False,
    rank: int | None = None,
    rtol: float | None = None,
    *,
    rtol_frobenius: float | None = None,
    overwrite_a: bool = False,
) -> Any:
    """Factor A = QR, or A P = QR with column pivoting.

    Parameters
    ----------
    a : array_like, shape (..., M, N), or a list of arrays
        float32 or float64, in any layout; integers and booleans are computed in float64. It is only read. A list of
        matrices of different shapes, or in a GPU's memory, is a batch too; Q and R are then lists. A pandas DataFrame
        gives DataFrames with its labels, and an xarray DataArray gives DataArrays.
    mode : {'reduced', 'complete', 'r', 'raw'}
        As in `numpy.linalg.qr`, in this order and with K = min(M, N): Q (..., M, K) and R (..., K, N); Q (..., M, M)
        and R (..., M, N); R alone; or LAPACK's reflectors h (..., N, M) and tau (..., K). SciPy's 'economic' and 'full'
        are 'reduced' and 'complete'.
    method : str
        'auto', 'householder', 'tsqr', 'caqr', 'cholesky-qr2', 'randomized-cholesky-qr', or modified or classical
        Gram-Schmidt, 'mgs' and 'cgs', which lose orthogonality in proportion to the condition number and its square
        (`GramSchmidt` reorthogonalises).
    threads : int, optional
        Cores to use; by default one for small matrices, and otherwise OpenMP's default (OMP_NUM_THREADS, or all
        within a container's CPU quota). The bits of the result do not depend on it.
    check_finite : bool
        Whether NaN or Inf in `a` is an error; otherwise they propagate.
    pivoting : bool or {'greedy', 'randomized', 'strong'}
        Move columns of large norm to the front, as `scipy.linalg.qr` does: A[:, P] = Q R, and the diagonal of R shows
        the rank. For one matrix, or for a stack, whose P has shape (..., N). By method 'auto' or 'householder', in the
        modes 'reduced', 'complete' and 'r'. True takes the largest remaining column, as LAPACK ('greedy'), or in a
        large matrix the pivots of a panel from a random sketch, always the same one ('randomized'). 'strong' bounds
        R₁₁⁻¹R₁₂ by 2.
    positive : bool
        Make the diagonal of R non-negative, by the signs of R's rows and Q's columns. The QR of a matrix of full column
        rank is then unique. For one matrix, in the modes 'reduced', 'complete' and 'r'.
    rank, rtol, rtol_frobenius : optional
        With pivoting: the most columns of Q, and the tolerances of the columns that are left, as for `interpolative`.
        K is then their number, and A[:, P] ≈ Q R. Not in mode 'complete'. Of a stack K is the largest of these numbers,
        and the rows of R, and columns of Q, that a matrix has no need of are zeros.
    overwrite_a : bool
        SciPy's option, which has no effect: `a` is only read.

    Returns
    -------
    QRResult, RawQRResult, PivotedQRResult or array
        The caller's kind of array. Each matrix of Q and R is in Fortran order. With pivoting in mode 'r' the pair R, P.

    Raises
    ------
    TypeError
        For dtypes that are not supported.
    numpy.linalg.LinAlgError
        For arrays of fewer than two dimensions; NonFiniteEntry for NaN or Inf; NumericalBreakdown if `method` names a
        conditional method that cannot certify its answer.

    Notes
    -----
    ‖A − QR‖ and ‖I − QᵀQ‖ are of order n·u for every finite A. Unless `positive`, the signs of R's diagonal depend on
    the method.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> A = np.array([[3.0, 1.0], [4.0, 2.0], [0.0, 5.0]])
    >>> Q, R = quoin.qr(A)
    >>> bool(np.allclose(Q @ R, A) and np.allclose(Q.T @ Q, np.eye(2)))
    True
    >>> abs(quoin.qr(A, mode="r")).round(3)
    array([[5.   , 2.2  ],
           [0.   , 5.016]])
    >>> Q, R, P = quoin.qr(A, pivoting=True)
    >>> P, bool(np.allclose(Q @ R, A[:, P]))
    (array([1, 0]), True)
    >>> quoin.qr(A, mode="r", positive=True).round(3)
    array([[5.   , 2.2  ],
           [0.   , 5.016]])
    """
    positive = positive is not False and flag("positive", positive)
    if not isinstance(mode, str) or mode not in _MODES:
        mode = one_of("mode", numpys_mode(mode), *_MODES)
    if positive and mode == "raw":
        raise InvalidArgument("LAPACK's reflectors decide the signs of R: positive=True needs another mode than 'raw'")
    if pivoting is not False and (isinstance(pivoting, str) or flag("pivoting", pivoting)):
        kind = pivoting if isinstance(pivoting, str) else "auto"
        options = (threads_number(threads), flag("check_finite", check_finite), positive)
        return _pivoted_qr(a, mode, method, kind, (rank, rtol, rtol_frobenius), *options)
    if not rank is rtol is rtol_frobenius is None:
        raise InvalidArgument("rank, rtol and rtol_frobenius limit a QR with column pivoting: add pivoting=True")
    if (short := unconverted(a)) is not None and a.ndim > 1:
        (operand, place), labels = short, UNLABELLED
    elif is_ragged(a):
        _require_any_signs(positive, "a list of them")
        return _qr_of_list(a, mode, method, threads, check_finite)
    else:
        labels = labels_of(a)
        a, operand, place = _converted(labels.values, "qr")
    if positive and a.ndim > 2:
        _require_any_signs(positive, f"an array of {a.ndim} dimensions")
    check_finite = check_finite is True or flag("check_finite", check_finite)
    where = place.where(0 if threads is None else threads_number(threads))
    result: Any = place.core.qr(operand, _MODES[mode], method, where, check_finite, positive)
    if mode == "r":
        return labels.give(place.give_back(result), None, labels.columns)
    first, second = result
    if place is not ON_HOST:
        first, second = place.give_back(first), place.give_back(second)
    if mode == "raw":
        return RawQRResult(first, second)
    if labels is not UNLABELLED:
        first, second = labels.give(first, labels.rows, None), labels.give(second, None, labels.columns)
    return QRResult(first, second)


def _converted(a: Any, function: str) -> tuple[Any, Any, Place]:
    """Returns a floating-point array of at least two dimensions, its operand and its place."""
    a, place = located(a)
    a = at_least_2d(to_float(a, function))
    return a, place.operand(a), place


def _require_any_signs(positive: bool, what: str) -> None:
    if positive:
        raise InvalidArgument(f"positive=True chooses the signs of one matrix, and this is {what}")


def _pivoted_qr(
    a: Any,
    mode: str,
    method: str,
    kind: Any,
    limits: tuple[Any, Any, Any],
    n_threads: int,
    check_finite: bool,
    positive: bool,
) -> Any:
    if mode == "raw":
        raise InvalidArgument("qr with pivoting has the modes 'reduced', 'complete' and 'r': mode must not be 'raw'")
    if mode == "complete" and any(limit is not None for limit in limits):
        raise InvalidArgument("rank, rtol and rtol_frobenius leave a thin Q: mode must be 'reduced' or 'r'")
    if is_ragged(a):
        raise InvalidArgument("qr pivots one matrix or a stack, and this is a list of them")
    labels = labels_of(a)
    a, place = located(labels.values)
    a = at_least_2d(to_float(a, "qr"))
    pivots = pivoting_limits(kind, limits, min(a.shape[-2:]))
    where = place.where(n_threads)
    if a.ndim > 2:
        _require_any_signs(positive, f"an array of {a.ndim} dimensions")
        batch = place.core.factor_stack(place.operand(a), method, _FORMS[mode], where, check_finite, False, pivots)
        P = batch.permutations().reshape((*a.shape[:-2], a.shape[-1]))
        R = place.give_back(batch.r(mode == "complete", where))
        return (R, P) if mode == "r" else PivotedQRResult(place.give_back(batch.q(mode == "complete", where)), R, P)
    core = place.core.factor(place.operand(a), method, _FORMS[mode], where, check_finite, False, pivots, positive)
    f = Factorization(core, place, n_threads)
    R, P = f.R, np.array(core.permutation, dtype=np.intp)
    if mode == "complete" and R.shape[0] < a.shape[0]:
        Q, library = f.q[:, :], place.library
        R = place.give_back(library.put(library.xp.zeros_like(Q[:, : f.shape[1]]), slice(R.shape[0]), R))
    elif mode != "r":
        Q = f.q()
    R = labels.give(R, None, labels.of_columns(P))
    return (R, P) if mode == "r" else PivotedQRResult(labels.give(Q, labels.rows, None), R, P)


def _factor_list(
    a: Any, function: str, method: str, n_threads: int, check_finite: bool, verify: bool, q: str
) -> BatchedFactorization:
    matrices, place, _ = list_of_matrices(a, function)
    dtype, where = common_type(matrices), place.where(n_threads)
    core = place.core.factor_list(list_operands(matrices, place, dtype), method, q, where, check_finite, verify)
    return BatchedFactorization(core, place, n_threads, stacked=False)


def _qr_of_list(a: Any, mode: str, method: str, threads: int | None, check_finite: bool) -> Any:
    f = _factor_list(a, "qr", method, threads_number(threads), flag("check_finite", check_finite), False, _FORMS[mode])
    if mode == "raw":
        return f.raw
    R = f._list(f._f.r(mode == "complete", f._where()))
    return R if mode == "r" else QRResult(f._list(f._f.q(mode == "complete", f._where())), R)


# fmt: off
@overload
def factor(
    a: Numbers, method: Method = "auto", threads: int | None = None, check_finite: bool = True, verify: bool = False,
    q: Form = "any", positive: bool = False, *, callback: Progress | None = None,
) -> Factorization[Floats]: ...
@overload
def factor(
    a: list[A], method: Method = "auto", threads: int | None = None, check_finite: bool = True, verify: bool = False,
    q: Form = "any", positive: bool = False, *, callback: Progress | None = None,
) -> BatchedFactorization: ...
@overload
def factor(
    a: A, method: Method = "auto", threads: int | None = None, check_finite: bool = True, verify: bool = False,
    q: Form = "any", positive: bool = False, *, callback: Progress | None = None,
) -> Factorization[A]: ...
# fmt: on


def factor(
    a: Any,
    method: str = "auto",
    threads: int | None = None,
    check_finite: bool = True,
    verify: bool = False,
    q: str = "any",
    positive: bool = False,
    *,
    callback: Progress | None = None,
) -> Any:
    """Factor A = QR and keep Q as the method finds it: as reflectors, a tree of reflectors, or a matrix.

    Parameters
    ----------
    a : array_like, shape (M, N), or (..., M, N), or a list of matrices
        Types and layouts as for `qr`.
    method, threads, check_finite
        As for `qr`.
    verify : bool
        Measure ‖I − QᵀQ‖ and ‖A − QR‖ / ‖A‖ for `report`.
    q : {'any', 'explicit', 'reflectors', 'none'}
        How to keep Q: as the method finds it, the thin Q as a matrix, LAPACK's reflectors (for `V`, `T` and `tau`), or
        not at all.
    positive : bool
        Make the diagonal of R non-negative, as for `qr`. `V`, `T` and `tau` keep the signs of the reflectors.
    callback : callable, optional
        For one matrix: called as callback(fraction) every 50 ms with the share of the work that is done, and with 1 at
        the end; on a GPU only at the end. It runs in the thread of the caller. Its exceptions end the call.

    Returns
    -------
    Factorization, or BatchedFactorization of a stack or list

    Examples
    --------
    >>> import numpy as np, quoin
    >>> A = np.random.default_rng(0).standard_normal((300, 4))
    >>> f = quoin.factor(A, verify=True)
    >>> f.R.shape, f.q().shape, f.q[10:12, :5].shape
    ((4, 4), (300, 4), (2, 5))
    >>> f.report.residual < 1e-14
    True
    """
    n_threads = threads_number(threads)
    check_finite, verify = flag("check_finite", check_finite), flag("verify", verify)
    positive = flag("positive", positive)
    _require_one_matrix(callback, a)
    if (short := unconverted(a)) is not None and a.ndim > 1:
        operand, place = short
    elif is_ragged(a):
        _require_any_signs(positive, "a list of them")
        return _factor_list(a, "factor", method, n_threads, check_finite, verify, q)
    else:
        a, operand, place = _converted(a, "factor")
    where = place.where(n_threads)
    if a.ndim > 2:
        _require_any_signs(positive, f"an array of {a.ndim} dimensions")
        core = place.core.factor_stack(operand, method, q, where, check_finite, verify)
        return BatchedFactorization(core, place, n_threads, stacked=True)
    core = place.core.factor(operand, method, q, where, check_finite, verify, None, positive, callback)
    return Factorization(core, place, n_threads)


def _require_one_matrix(callback: Progress | None, a: Any) -> None:
    if callback is None:
        return
    function("callback", callback, ", or None")
    if is_ragged(a) or np.ndim(a) > 2:
        raise InvalidArgument("callback is told the progress of one matrix, and these are several")


def from_raw(h: A, tau: Any, threads: int | None = None) -> Factorization[A]:
    """The factorization whose reflectors `qr(a, mode="raw")` of Quoin, NumPy or SciPy has returned.

    Parameters
    ----------
    h : array_like, shape (N, M)
        V and R, transposed.
    tau : array_like, shape (min(M, N),)
        The factors of the reflectors.
    threads : int, optional
        As for `qr`.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> A = np.random.default_rng(0).standard_normal((50, 3))
    >>> f = quoin.from_raw(*np.linalg.qr(A, mode="raw"))
    >>> bool(np.allclose(f.q() @ f.R, A))
    True
    """
    h, place = located(h)
    tau, place_of_tau = located(tau)
    require_one_place("from_raw", place, place_of_tau)
    h = exactly_2d(to_float(h, "from_raw"))
    tau = columns(to_float(tau, "from_raw").astype(h.dtype, copy=False))
    n_threads = threads_number(threads)
    core = place.core.from_raw(place.operand(h), place.operand(tau), place.where(n_threads))
    return Factorization(core, place, n_threads)


# fmt: off
@overload
def lstsq(
    a: Numbers, b: Any, rcond: float | None = None, method: Method = "auto", threads: int | None = None, check_finite: bool = True,
    deficient: Deficient = "solve", *, overwrite_a: bool = False, mixed_precision: bool = False, callback: Progress | None = None,
) -> LstsqResult[Floats]: ...
@overload
def lstsq(
    a: A, b: Any, rcond: float | None = None, method: Method = "auto", threads: int | None = None, check_finite: bool = True,
    deficient: Deficient = "solve", *, overwrite_a: bool = False, mixed_precision: bool = False, callback: Progress | None = None,
) -> LstsqResult[A]: ...
# fmt: on


def lstsq(
    a: Any,
    b: Any,
    rcond: float | None = None,
    method: str = "auto",
    threads: int | None = None,
    check_finite: bool = True,
    deficient: str = "solve",
    *,
    overwrite_a: bool = False,
    mixed_precision: bool = False,
    callback: Progress | None = None,
) -> Any:
    """Least squares of any shape and rank: the x of least norm among the minimisers of ‖A x − b‖₂.

    Parameters
    ----------
    a : array_like, shape (..., M, N), or a list of matrices
        Types and layouts as for `qr`.
    b : array_like, shape (M,), (M, P) or (..., M, P), or a list of vectors or matrices
        Its leading dimensions are broadcast to the leading dimensions of `a`, so that one b may serve all.
    rcond : float, optional
        From 0 to 1: singular values of A that are at most `rcond` times the largest count as zero, as in NumPy. By
        default the units of the unknowns do not matter: the rank is full if the reciprocal condition of R, with columns
        of unit norm, is above 10 units roundoff.
    method, threads, check_finite
        As for `qr`.
    deficient : {'solve', 'error'}
        For a matrix without full rank return the solution of least norm, or raise RankDeficient.
    overwrite_a : bool
        As for `qr`.
    mixed_precision : bool
        Factor one float64 matrix, M >= N, in float32 and refine x to float64's accuracy. float64 alone solves the
        problem if that does not converge, as for condition numbers above about 1e6; `.refinement` says so. It pays for
        large N and few right-hand sides.
    callback : callable, optional
        As for `factor`.

    Returns
    -------
    LstsqResult
        It unpacks to the four values of `numpy.linalg.lstsq`: x, the squared norms of the residuals, the rank and the
        singular values of `a`. The singular values are computed at the first access; `.x` alone does not compute them.
        Further attributes are the norms of the residuals, the dependent columns, an estimate of the condition number
        and the report of the factorization. For a stack they are arrays with its leading dimensions, and for a list
        they are lists. A batch has no report.

    Raises
    ------
    RankDeficient
        With deficient='error', if the rank is not full. The message names the dependent columns, and in a
        batch the matrix. With check_finite=False the x of such a matrix of a batch is NaN instead, and the other
        solutions are not affected.

    Notes
    -----
    For M >= N, A = QR and R x = Qᵀb; for M < N, Aᵀ = QR and x = Q R⁻ᵀ b (Golub 1965). For a deficient A, R⁻¹ is the
    pseudoinverse of R at its rank, by a complete orthogonal decomposition, as in LAPACK's gelsy, or by the SVD, as in
    gelsd, in O(K³) flops, K = min(M, N).

    Examples
    --------
    >>> import numpy as np, quoin
    >>> t = np.arange(5.0)
    >>> x, residuals, rank, s = quoin.lstsq(np.column_stack([t, np.ones(5)]), 2 * t + 1)
    >>> x.round(12), rank, s.round(3)
    (array([2., 1.]), 2, array([5.789, 1.222]))
    >>> twice = quoin.lstsq(np.column_stack([t, t]), 2 * t)
    >>> twice.x.round(12), twice.rank, len(twice.dependent)
    (array([1., 1.]), 1, 1)
    """
    options, check_finite = solver(rcond, deficient, mixed_precision), flag("check_finite", check_finite)
    n_threads = threads_number(threads)
    _require_one_matrix(callback, a)
    short, short_b = unconverted(a), unconverted(b)
    if short is not None and short_b is not None and _go_together(a, b) and short[1] is short_b[1]:
        (A, place), (B, _) = short, short_b
        where = place.where(n_threads)
        if a.ndim > 2:
            return solutions(place.core.lstsq_stack(A, B, options, method, where, check_finite), a.shape, False, place)
        result = place.core.lstsq(A, B, options, method, where, check_finite, callback)
        return solution(result, a.shape[0], b.ndim, place)
    if is_ragged(a):
        if not isinstance(b, (list, tuple)) or len(b) != len(a):
            raise InvalidArgument(f"lstsq of a list of {len(a)} matrices takes a list of as many b, and was given {shown(b)}")
        As, place, _ = list_of_matrices(a, "lstsq")
        Bs, place_of_b, vector = list_of_matrices(b, "lstsq", vectors=True)
        require_one_place("lstsq", place, place_of_b)
        dtype, shapes = common_type(As + Bs), [A.shape for A in As]
        As, Bs = list_operands(As, place, dtype), list_operands(Bs, place, dtype)
        result = place.core.lstsq_list(As, Bs, options, method, place.where(n_threads), check_finite)
        return solutions(result, shapes, vector, place)
    labels, labels_of_b = labels_of(a), labels_of(b)
    labels.require_rows_of(labels_of_b)
    a, place = located(labels.values)
    a = at_least_2d(to_float(a, "lstsq"))
    b, place_of_b = located(labels_of_b.values)
    require_one_place("lstsq", place, place_of_b)
    b = to_float(b, "lstsq")
    dtype = np.promote_types(a.dtype, b.dtype)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    where = place.where(n_threads)
    if a.ndim > 2:
        B = place.operand(broadcast(columns_of_stack(b), a.shape[:-2]))
        result = place.core.lstsq_stack(place.operand(a), B, options, method, where, check_finite)
        found = solutions(result, a.shape, b.ndim == 1, place)
    else:
        A, B = place.operand(a), place.operand(columns(b))
        result = place.core.lstsq(A, B, options, method, where, check_finite, callback)
        found = solution(result, a.shape[0], b.ndim, place)
    found.x, found.residual_norms = labels.of_solution(labels_of_b, found.x, found.residual_norms, b.ndim == 1)
    return found


def _go_together(a: Any, b: Any) -> bool:
    """Whether `a` is a matrix or a stack, and `b` right-hand sides for it that need neither a cast nor a broadcast."""
    if a.dtype is not b.dtype or a.ndim < 2:
        return False
    return b.ndim in (1, 2) if a.ndim == 2 else a.ndim == b.ndim and a.shape[:-2] == b.shape[:-2]


# fmt: off
@overload
def svd(
    a: Numbers, compute_uv: Literal[True] = True, method: Method = "auto", threads: int | None = None, check_finite: bool = True,
    full_matrices: bool = False, rank: int | None = None, rtol: float | None = None, *, rtol_frobenius: float | None = None,
    overwrite_a: bool = False, callback: Progress | None = None,
) -> SVDResult[Floats]: ...
@overload
def svd(
    a: Numbers, compute_uv: Literal[False], method: Method = "auto", threads: int | None = None, check_finite: bool = True,
    full_matrices: bool = False, rank: int | None = None, rtol: float | None = None, *, rtol_frobenius: float | None = None,
    overwrite_a: bool = False, callback: Progress | None = None,
) -> Floats: ...
@overload
def svd(
    a: Numbers, compute_uv: Literal["vh"], method: Method = "auto", threads: int | None = None, check_finite: bool = True,
    full_matrices: bool = False, rank: int | None = None, rtol: float | None = None, *, rtol_frobenius: float | None = None,
    overwrite_a: bool = False, callback: Progress | None = None,
) -> tuple[Floats, Floats]: ...
@overload
def svd(
    a: A, compute_uv: Literal[True] = True, method: Method = "auto", threads: int | None = None, check_finite: bool = True,
    full_matrices: bool = False, rank: int | None = None, rtol: float | None = None, *, rtol_frobenius: float | None = None,
    overwrite_a: bool = False, callback: Progress | None = None,
) -> SVDResult[A]: ...
@overload
def svd(
    a: A, compute_uv: Literal[False], method: Method = "auto", threads: int | None = None, check_finite: bool = True,
    full_matrices: bool = False, rank: int | None = None, rtol: float | None = None, *, rtol_frobenius: float | None = None,
    overwrite_a: bool = False, callback: Progress | None = None,
) -> A: ...
@overload
def svd(
    a: A, compute_uv: Literal["vh"], method: Method = "auto", threads: int | None = None, check_finite: bool = True,
    full_matrices: bool = False, rank: int | None = None, rtol: float | None = None, *, rtol_frobenius: float | None = None,
    overwrite_a: bool = False, callback: Progress | None = None,
) -> tuple[A, A]: ...
# fmt: on


def svd(
    a: Any,
    compute_uv: bool | str = True,
    method: str = "auto",
    threads: int | None = None,
    check_finite: bool = True,
    full_matrices: bool = False,
    rank: int | None = None,
    rtol: float | None = None,
    *,
    rtol_frobenius: float | None = None,
    overwrite_a: bool = False,
    callback: Progress | None = None,
) -> Any:
    """The singular value decomposition, computed from QR, or the largest singular values and their vectors.

    Parameters
    ----------
    a : array_like, shape (..., M, N)
        Types and layouts as for `qr`. With limits and with square factors the matrices of a stack are computed one
        after the other, otherwise by the batched QR; the host decomposes their triangles.
    compute_uv : bool or 'vh'
        With False the singular values alone. With 'vh' S and Vh: a tall matrix is then only read, for R and the SVD of
        R, and U is not formed.
    method, threads, check_finite, overwrite_a
        As for `qr`.
    full_matrices : bool
        Whether U and Vh are square, as numpy.linalg.svd makes them by default.
    rank, rtol, rtol_frobenius
        Limits of the number K of singular values, as for `interpolative`, at a cost of order M N K: the values of a QR
        with column pivoting, which for `rank` has half as many columns more. A singular value S has a relative error
        of at most (E / S)² if E is the norm of what this QR leaves of `a`. A stack takes no tolerance, since the
        numbers may differ.
    callback : callable, optional
        As for `factor`. Not with 'vh'.

    Returns
    -------
    SVDResult, tuple or array
        U (..., M, K), S (..., K) descending and Vh (..., K, N), as numpy.linalg.svd with full_matrices=False; the pair
        S, Vh; or S. K = min(M, N) without limits.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> A = np.random.default_rng(0).standard_normal((400, 5))
    >>> U, S, Vh = quoin.svd(A)
    >>> bool(np.allclose((U * S) @ Vh, A))
    True
    >>> S, Vh = quoin.svd(A, compute_uv="vh")
    >>> bool(np.allclose(np.linalg.norm(A @ Vh.T, axis=0), S))
    True
    """
    right_alone = isinstance(compute_uv, str) and compute_uv == "vh"
    if not right_alone:
        compute_uv = flag("compute_uv", compute_uv)
    elif callback is not None:
        raise InvalidArgument("svd with compute_uv='vh' tells no callback its progress")
    _require_one_matrix(callback, a)
    full, check_finite = flag("full_matrices", full_matrices) and compute_uv, flag("check_finite", check_finite)
    limits = (rank, rtol, rtol_frobenius)
    unlimited = all(limit is None for limit in limits)
    if unlimited and not (full or right_alone) and (short := unconverted(a)) is not None and a.ndim == 2:
        operand, place = short
        where = place.where(threads_number(threads))
        result = place.core.svd(operand, compute_uv, method, where, check_finite, None, callback)
        return SVDResult(*map(place.give_back, result)) if compute_uv else place.give_back(result[1])
    labels = labels_of(a)
    a, place = located(labels.values)
    a = at_least_2d(to_float(a, "svd"))
    *stack, m, n = a.shape
    xp = place.library.xp
    if full and not unlimited:
        raise InvalidArgument("rank, rtol and rtol_frobenius leave a thin SVD: leave out full_matrices=True")
    if right_alone and m > n and unlimited:
        R = qr(place.bare(a), "r", method, threads, check_finite)
        arrays = [place.give_back(array) for array in svd(R, True, threads=threads, check_finite=False)[1:]]
    elif stack and (full or not unlimited):
        if not rtol is rtol_frobenius is None:
            raise InvalidArgument("a tolerance may leave different numbers of singular values in a stack: give rank instead")
        options = (compute_uv, method, threads, check_finite, full_matrices, rank)
        count = math.prod(stack)
        matrices = place.bare(a).reshape(count, m, n)
        each = [svd(A, *options) for A in (matrices if count else [matrices.sum(0)])]
        with place.library.current():
            arrays = [
                place.give_back(xp.stack(parts)[:count].reshape((*stack, *parts[0].shape)))
                for parts in (zip(*each) if compute_uv else [each])
            ]
    else:
        where = place.where(threads_number(threads))
        if stack:
            U, S, Vh = place.core.svd_stack(place.operand(a), bool(compute_uv), method, where, check_finite)
        else:
            pivots = None if unlimited else pivoting_limits("auto", limits, min(m, n))
            U, S, Vh = place.core.svd(place.operand(a), bool(compute_uv), method, where, check_finite, pivots, callback)
        if full:
            with place.library.current():
                U = U if m <= n else _square(xp, U)
                Vh = Vh if m >= n else _square(xp, Vh.T).T
        arrays = [place.give_back(array) for array in ((S,) if not compute_uv else (S, Vh) if right_alone else (U, S, Vh))]
    of_Vh = (None, labels.columns)
    axes = [(None,)] if not compute_uv else [(None,), of_Vh] if right_alone else [(labels.rows, None), (None,), of_Vh]
    arrays = [labels.give(array, *axis) for array, axis in zip(arrays, axes)]
    return arrays[0] if not compute_uv else tuple(arrays) if right_alone else SVDResult(*arrays)


def _square(xp: Any, Q: Any) -> Any:
    """Returns Q, whose columns are orthonormal, with a basis of their complement after them."""
    return xp.concatenate([Q, factor(Q).q[:, Q.shape[1] :]], axis=1)


def plan(
    m: int,
    n: int,
    dtype: Any = np.float64,
    method: Method = "auto",
    q: Form = "any",
    threads: int | None = None,
    device: Any = "cpu",
) -> Plan:
    """The plan for an m×n matrix; nothing is computed.

    Parameters
    ----------
    m, n : int
        Rows and columns.
    dtype : float64 or float32
        The type of the entries.
    method, threads
        As for `qr`.
    q : {'any', 'none', 'explicit', 'reflectors'}
        The purpose of the factorization: anything, R alone, the thin Q, or LAPACK's format.
    device : str
        Where the matrix lies: 'cpu', 'cuda' or 'cuda:1', as PyTorch names devices.

    Examples
    --------
    >>> import quoin
    >>> quoin.plan(1_000_000, 192, method="tsqr").method
    'tsqr'
    >>> [step for step, kernel in quoin.plan(10_000, 40, method="cholesky-qr2").kernels]
    ['AᵀA of 40 columns', 'its Cholesky factor', 'A R⁻¹']
    """
    return Plan(**_planned("plan", m, n, dtype, (method, q), threads, device))


def plan_route(
    m: int,
    n: int,
    dtype: Any = np.float64,
    memory: float | None = None,
    work: Literal["factor", "least-squares", "svd", "singular-values"] = "factor",
    right_hand_sides: int = 0,
    method: Method = "auto",
    q: Form = "explicit",
    host_memory: float | None = None,
    files: bool = False,
    threads: int | None = None,
    device: Any = "cpu",
) -> Route:
    """How an m×n matrix passes through memory; nothing is computed.

    The first of these that fits: in memory, by blocks of rows (`StreamingR`, `StreamingQR`), in the host's memory
    block by block through a GPU, or from file to file.

    Parameters
    ----------
    m, n, dtype, method, q, threads, device
        As for `plan`.
    memory, host_memory : float, optional
        Bytes for matrices and workspace on the device and, for 'cuda', for a larger matrix in the host's memory.
        Default: any number.
    work : {'factor', 'least-squares', 'svd', 'singular-values'}
        What is computed.
    right_hand_sides : int
        Their number in 'least-squares'.
    files : bool
        Whether the matrix is in an .npy file and its factors go to files, as by the program `quoin factor`.

    Examples
    --------
    >>> import quoin
    >>> quoin.plan_route(200_000, 40, memory=2**40).route
    'memory'
    >>> quoin.plan_route(200_000, 40, memory=40e6, files=True).route
    'files'
    """
    caps = [positive(name, cap, optional=True) for name, cap in (("memory", memory), ("host_memory", host_memory))]
    options = (method, q, work, integer("right_hand_sides", right_hand_sides, 0), *caps, flag("files", files))
    return Route(**_planned("plan_route", m, n, dtype, options, threads, device))


def _planned(function: str, m: Any, n: Any, dtype: Any, options: Any, threads: Any, device: Any) -> Any:
    m, n = integer("m", m, 0), integer("n", n, 0)
    dtype = np.dtype(dtype)
    if dtype != _FLOAT32 and dtype != _FLOAT64:
        raise TypeError(f"quoin.{function} supports float32 and float64; the dtype is {dtype}")
    gpu = gpu_number(device)
    core = _core if gpu is None else _core.cuda
    where = threads_number(threads) if gpu is None else BesideGpu(gpu).where()
    return getattr(core, function)(m, n, dtype == _FLOAT32, *options, where)


def info() -> dict[str, Any]:
    """Version, kernels, BLAS, number of threads, CUDA and GPUs, for bug reports.

    'cuda' is the version of the driver, or the reason why no GPU is used; 'gpus' are the names of the GPUs. The call
    takes a moment, and some memory on each GPU.

    Examples
    --------
    >>> import quoin
    >>> sorted(quoin.info())
    ['blas', 'blas_core', 'blas_warning', 'compiler', 'cuda', 'gpus', 'kernels', 'threads', 'version']
    """
    if not hasattr(_core, "cuda"):
        return {**_core.info(), "cuda": "built without CUDA", "gpus": []}
    gpus, driver, problem = _core.cuda.gpus()
    return {**_core.info(), "cuda": problem or f"driver for CUDA {driver}", "gpus": gpus}
