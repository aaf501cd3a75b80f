"""The functions of the package: NumPy's conventions over the extension module."""

from __future__ import annotations

import operator
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from . import _core
from ._arguments import flag, gpu_number, integer, one_of, rcond_number, shown, threads_number
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
    exactly_2d,
    is_ragged,
    located,
    require_one_place,
    to_float,
)
from ._errors import InvalidArgument

_MODES = {"reduced": "q", "complete": "c", "r": "r", "raw": "h"}


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
    leaf_rows: int
    fan_in: int
    workspace_bytes: float
    flops: float
    bytes_moved: float
    description: str

    def __str__(self) -> str:
        return self.description


@overload
def qr(
    a: Any,
    mode: Literal["reduced", "complete"] = "reduced",
    method: str = "auto",
    threads: int | None = None,
    check_finite: bool = True,
) -> QRResult: ...


@overload
def qr(
    a: Any, mode: Literal["raw"], method: str = "auto", threads: int | None = None, check_finite: bool = True
) -> RawQRResult: ...


@overload
def qr(
    a: Any, mode: Literal["r"], method: str = "auto", threads: int | None = None, check_finite: bool = True
) -> Any: ...


def qr(
    a: Any, mode: str = "reduced", method: str = "auto", threads: int | None = None, check_finite: bool = True
) -> Any:
    """Factor A = QR.

    Parameters
    ----------
    a : array_like, shape (..., M, N), or a list of arrays
        float32 or float64, in any layout; integers and booleans are computed in float64. Read only. A list of matrices of
        different shapes, or of a GPU's, is a batch too: then Q and R are lists.
    mode : {'reduced', 'complete', 'r', 'raw'}
        With K = min(M, N), as in `numpy.linalg.qr`: Q (..., M, K) and R (..., K, N); Q (..., M, M) and
        R (..., M, N); R alone; or LAPACK's reflectors h (..., N, M) and tau (..., K).
    method : str
        'auto', 'householder', 'tsqr', 'caqr', 'cholesky-qr2', 'shifted-cholesky-qr3', or modified or classical
        Gram-Schmidt, 'mgs' and 'cgs', which lose orthogonality in proportion to the condition number and its square
        (`GramSchmidt` reorthogonalises).
    threads : int, optional
        Cores to use; by default one for small matrices, and otherwise what OpenMP would (OMP_NUM_THREADS, or all).
        The bits of the result do not depend on it.
    check_finite : bool
        Whether NaN or Inf in `a` is an error; otherwise they propagate.

    Returns
    -------
    QRResult, RawQRResult or array
        The caller's kind of array. Each matrix of Q and R is in Fortran order.

    Raises
    ------
    TypeError
        For dtypes that are not supported.
    numpy.linalg.LinAlgError
        For arrays of fewer than two dimensions; NonFiniteEntry for NaN or Inf; NumericalBreakdown where a conditional
        method was asked for by name and cannot certify its answer.

    Notes
    -----
    ‖A − QR‖ and ‖I − QᵀQ‖ are of order n·u for every finite A. The signs of R's diagonal are not normalised, and differ
    from LAPACK's for some methods.

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
    """
    if type(a) is np.ndarray and a.ndim == 2 and (a.dtype is _FLOAT64 or a.dtype is _FLOAT32) and a.flags.aligned:
        place = None
    elif is_ragged(a):
        return _qr_of_list(a, mode, method, threads, check_finite)
    else:
        a, place = located(a)
        a = at_least_2d(to_float(a, "qr"))
    one_of("mode", mode, *_MODES)
    check_finite = check_finite is True or flag("check_finite", check_finite)
    n_threads = 0 if threads is None else threads_number(threads)
    result: Any
    if place is None:
        result = _core.qr(a, _MODES[mode], method, n_threads, check_finite)
    else:
        where = place.where(n_threads)
        result = place.core.qr(place.operand(a), _MODES[mode], method, where, check_finite)
        result = place.give_back(result) if mode == "r" else [place.give_back(array) for array in result]
    if mode == "r":
        return result
    return RawQRResult(*result) if mode == "raw" else QRResult(*result)


def _factor_list(
    a: Any, function: str, method: str, n_threads: int, check_finite: bool, verify: bool, q: str
) -> BatchedFactorization:
    matrices, place, _ = _list_of_matrices(a, function)
    dtype, where = _common_type(matrices), place.where(n_threads)
    core = place.core.factor_list(_list_operands(matrices, place, dtype), method, q, where, check_finite, verify)
    return BatchedFactorization(core, place, n_threads, dtype, stacked=False)


def _qr_of_list(a: Any, mode: str, method: str, threads: int | None, check_finite: bool) -> Any:
    one_of("mode", mode, *_MODES)
    q = {"reduced": "explicit", "complete": "any", "r": "none", "raw": "reflectors"}[mode]
    f = _factor_list(a, "qr", method, threads_number(threads), flag("check_finite", check_finite), False, q)
    if mode == "raw":
        return f.raw
    R = f._list(f._f.r(mode == "complete", f._where()))
    return R if mode == "r" else QRResult(f._list(f._f.q(mode == "complete", f._where())), R)


class _Q:
    """Q of a factorization: `q()` is the thin Q, `q[rows, cols]` a block of the M×M Q, which is never formed."""

    def __init__(self, owner: Factorization):
        self._owner = owner

    def __call__(self) -> Any:
        owner = self._owner
        return owner._place.give_back(owner._f.q(owner._where()))

    def __getitem__(self, key: Any) -> Any:
        owner = self._owner
        m = owner.shape[0]
        indices = key if isinstance(key, tuple) else (key, slice(None))
        if len(indices) != 2:
            raise IndexError(f"q[rows, cols] takes two indices, and was given {len(indices)}")
        ranges: list[tuple[int, int]] = []
        picked: list[Any] = []
        for name, index in zip(("row", "column"), indices):
            if isinstance(index, slice):
                begin, end, step = index.indices(m)
                if step != 1:
                    raise InvalidArgument(f"q[rows, cols] takes slices of step 1, and the step is {step}")
                ranges.append((begin, max(begin, end)))
                picked.append(slice(None))
                continue
            try:
                i = operator.index(index)
            except TypeError:
                raise TypeError(
                    f"q[rows, cols] takes integers and slices, and the {name} is {shown(index)}"
                ) from None
            if not -m <= i < m:
                raise IndexError(f"{name} {shown(i)} is out of bounds: Q is {m}x{m}")
            ranges.append((i % m, i % m + 1))
            picked.append(0)
        block = owner._f.q_block(*ranges[0], *ranges[1], owner._where())[tuple(picked)]
        return block if isinstance(block, np.generic) else owner._place.give_back(block)


class Factorization:
    """A = QR with Q held implicitly; made by `factor`. Calls from several threads at once are safe."""

    def __init__(self, core: Any, place: Place, threads: int):
        self._f = core
        self._place = place
        self._threads = threads

    def _where(self) -> Any:
        return self._place.where(self._threads)

    def _operand(self, array: Any, function: str) -> tuple[Any, Place]:
        """`array` in the type of the factorization, and its place, which must be the factorization's."""
        array, place = located(array)
        require_one_place(f"Factorization.{function}", self._place, place)
        return to_float(array, f"Factorization.{function}").astype(self.plan.dtype, copy=False), place

    def __repr__(self) -> str:
        m, n = self.shape
        return f"<quoin.Factorization of a {m}x{n} matrix by {self.report.method}>"

    def __reduce__(self) -> Any:
        raise TypeError("a quoin.Factorization cannot be copied or pickled; keep quoin.qr(a, mode='raw') instead")

    @property
    def shape(self) -> tuple[int, int]:
        """(M, N) of A."""
        return self._f.shape

    @property
    def R(self) -> Any:
        """R, shape (min(M, N), N), a new array at each call."""
        return self._place.give_back(self._f.r(self._where()))

    @property
    def q(self) -> _Q:
        """`q()`: the thin Q. `q[rows, cols]`: a block of the M×M Q by slices or integers."""
        return _Q(self)

    @property
    def V(self) -> Any:
        """V of Q = I − V T Vᵀ, shape (M, K), K = min(M, N): unit lower trapezoidal, its ones and zeros stored.

        V, T and tau are new arrays at each call, and InvalidArgument for a factorization that does not keep LAPACK's
        reflectors: ask for `factor(a, q="reflectors")`.

        Examples
        --------
        >>> import numpy as np, quoin
        >>> f = quoin.factor(np.random.default_rng(0).standard_normal((50, 3)), q="reflectors")
        >>> bool(np.allclose(np.eye(50) - f.V @ f.T @ f.V.T, f.q[:, :]))
        True
        """
        return self._place.give_back(self._f.v(self._where()))

    @property
    def T(self) -> Any:
        """T of Q = I − V T Vᵀ, shape (K, K), upper triangular; M·K² flops. Not a transpose."""
        return self._place.give_back(self._f.t(self._where()))

    @property
    def tau(self) -> Any:
        """The diagonal of T, shape (K,): LAPACK's tau."""
        return self._place.give_back(self._f.tau(self._where()))

    @property
    def report(self) -> Report:
        """What was done."""
        return Report(**self._f.report)

    @property
    def plan(self) -> Plan:
        """What was planned."""
        return Plan(**self._f.plan)

    def apply(self, C: Any, trans: bool = False, side: Literal["left", "right"] = "left") -> Any:
        """op(Q) C or C op(Q), Q the M×M factor, which is never formed; op(Q) = Qᵀ with `trans`.

        Parameters
        ----------
        C : array_like, shape (M, P), (M,), or (P, M) for side 'right'
            Converted to the type of the factorization; not changed.

        Examples
        --------
        >>> import numpy as np, quoin
        >>> A = np.random.default_rng(0).standard_normal((50, 3))
        >>> f = quoin.factor(A)
        >>> bool(np.allclose(f.apply(A, trans=True)[:3], f.R))
        True
        """
        one_of("side", side, "left", "right")
        trans = flag("trans", trans)
        C, place = self._operand(C, "apply")
        vector = C.ndim == 1
        if vector:
            C = C[:, None] if side == "left" else C[None, :]
        result = self._f.apply(place.operand(exactly_2d(C)), side == "left", trans, place.where(self._threads))
        return place.give_back(result.reshape(-1) if vector else result)

    def lstsq(self, b: Any, rcond: float | None = None) -> LstsqResult:
        """Minimise ‖A x − b‖₂ with this factorization (M >= N); as `quoin.lstsq`."""
        b, place = self._operand(b, "lstsq")
        B = place.operand(columns(b))
        result = self._f.lstsq(B, rcond_number(rcond), place.where(self._threads))
        return _solution(result, b.ndim, place)


class BatchedFactorization:
    """The factorizations of a stack (..., M, N), or of a list of matrices; made by `factor`.

    What has a matrix for each is an array with the same leading dimensions for a stack, and a list for a list. Calls from
    several threads at once are safe.
    """

    def __init__(self, core: Any, place: Place, threads: int, dtype: np.dtype, stacked: bool):
        self._f = core
        self._place = place
        self._threads = threads
        self._dtype = dtype
        self._stacked = stacked

    def _where(self) -> Any:
        return self._place.where(self._threads)

    def _list(self, arrays: Any) -> Any:
        """The caller's kind of array, or the list of them."""
        return self._place.give_back(arrays) if self._stacked else [self._place.give_back(array) for array in arrays]

    def _operands(self, C: Any, function: str) -> tuple[Any, bool]:
        """C for every matrix, and whether each is a vector."""
        if not self._stacked:
            if not isinstance(C, (list, tuple)) or len(C) != len(self):
                raise InvalidArgument(
                    f"BatchedFactorization.{function} of a list takes a list of {len(self)} arrays, and was given {shown(C)}"
                )
            matrices, place, vector = _list_of_matrices(C, f"BatchedFactorization.{function}", vectors=True)
            require_one_place(f"BatchedFactorization.{function}", self._place, place)
            return _list_operands(matrices, place, self._dtype), vector
        C, place = located(C)
        require_one_place(f"BatchedFactorization.{function}", self._place, place)
        C = to_float(C, f"BatchedFactorization.{function}").astype(self._dtype, copy=False)
        return place.operand(broadcast(columns_of_stack(C), self.shape[:-2])), C.ndim == 1

    def __len__(self) -> int:
        """The number of matrices."""
        return len(self._f)

    def __repr__(self) -> str:
        kind = f"a stack of shape {self.shape}" if self._stacked else f"{len(self)} matrices"
        return f"<quoin.BatchedFactorization of {kind}>"

    def __reduce__(self) -> Any:
        raise TypeError("a quoin.BatchedFactorization cannot be copied or pickled; keep its raw instead")

    @property
    def shape(self) -> Any:
        """(..., M, N), or the list of (M, N)."""
        return self._f.shape

    @property
    def R(self) -> Any:
        """R, shape (..., K, N), K = min(M, N): new arrays at each call."""
        return self._list(self._f.r(False, self._where()))

    def q(self) -> Any:
        """The thin Q, shape (..., M, K)."""
        return self._list(self._f.q(False, self._where()))

    @property
    def raw(self) -> RawQRResult:
        """LAPACK's reflectors, as `qr(mode="raw")` returns them."""
        return RawQRResult(*map(self._list, self._f.raw(self._where())))

    def report(self, index: int) -> Report:
        """What was done for matrix `index`, counted through the leading dimensions in C order."""
        return Report(**self._f.report(integer("index", index, 0, len(self) - 1)))

    def apply(self, C: Any, trans: bool = False) -> Any:
        """Q C for every square Q, which is never formed, or Qᵀ C with `trans`.

        Parameters
        ----------
        C : array_like, shape (M,), (M, P) or (..., M, P), or a list of such
            Leading dimensions are broadcast to those of the stack: one C may serve all.

        Examples
        --------
        >>> import numpy as np, quoin
        >>> A = np.random.default_rng(0).standard_normal((4, 50, 3))
        >>> f = quoin.factor(A)
        >>> bool(np.allclose(f.apply(A, trans=True)[:, :3], f.R))
        True
        """
        trans = flag("trans", trans)
        C, vector = self._operands(C, "apply")
        call = self._f.apply if self._stacked else self._f.apply_list
        result = self._list(call(C, trans, self._where()))
        return _without_columns(result) if vector else result

    def lstsq(self, b: Any, rcond: float | None = None) -> LstsqResult:
        """Minimise ‖A x − b‖₂ with these factorizations (M >= N); as `quoin.lstsq`."""
        B, vector = self._operands(b, "lstsq")
        call = self._f.lstsq if self._stacked else self._f.lstsq_list
        return _solutions(call(B, rcond_number(rcond), self._where()), vector, self._list)


def _without_columns(X: Any) -> Any:
    """Vectors of matrices of one column."""
    return [x[:, 0] for x in X] if isinstance(X, list) else X[..., 0]


def _solutions(result: Any, vector: bool, to_callers: Any) -> LstsqResult:
    X, norms, conditions = map(to_callers, result)
    conditions = [one[0] for one in conditions] if isinstance(conditions, list) else conditions[..., 0]
    if vector:
        X = _without_columns(X)
        norms = [one[0] for one in norms] if isinstance(norms, list) else norms[..., 0]
    return LstsqResult(X, norms, conditions, None)


def _list_of_matrices(arrays: Any, function: str, vectors: bool = False) -> tuple[list[Any], Place, bool]:
    """Matrices of floating point in one place, and whether they were vectors."""
    found = [located(array) for array in arrays]
    place = found[0][1] if found else ON_HOST
    for _, other in found:
        require_one_place(function, place, other)
    matrices = [to_float(array, function) for array, _ in found]
    vector = vectors and all(array.ndim == 1 for array in matrices)
    return [columns(array) if vectors else exactly_2d(array) for array in matrices], place, vector


def _common_type(matrices: list[Any]) -> np.dtype:
    return np.result_type(*(array.dtype for array in matrices)) if matrices else np.dtype(np.float64)


def _list_operands(matrices: list[Any], place: Place, dtype: np.dtype) -> list[Any]:
    """As the extension module takes them."""
    return [place.operand(array.astype(dtype, copy=False)) for array in matrices]


def factor(
    a: Any,
    method: str = "auto",
    threads: int | None = None,
    check_finite: bool = True,
    verify: bool = False,
    q: str = "any",
) -> Any:
    """Factor A = QR and keep Q as it was found: as reflectors, a tree of them, or explicitly.

    Parameters
    ----------
    a : array_like, shape (M, N), or (..., M, N), or a list of matrices
    method, threads, check_finite
        As for `qr`.
    verify : bool
        Measure ‖I − QᵀQ‖ and ‖A − QR‖ / ‖A‖ for `report`.
    q : {'any', 'explicit', 'reflectors', 'none'}
        How to keep Q: as it was found, the thin Q as a matrix, LAPACK's reflectors (for `V`, `T` and `tau`), or not.

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
    if is_ragged(a):
        return _factor_list(a, "factor", method, n_threads, check_finite, verify, q)
    a, place = located(a)
    a = at_least_2d(to_float(a, "factor"))
    if a.ndim > 2:
        core = place.core.factor_stack(place.operand(a), method, q, place.where(n_threads), check_finite, verify)
        return BatchedFactorization(core, place, n_threads, a.dtype, stacked=True)
    core = place.core.factor(place.operand(a), method, q, place.where(n_threads), check_finite, verify)
    return Factorization(core, place, n_threads)


def from_raw(h: Any, tau: Any, threads: int | None = None) -> Factorization:
    """The factorization that `qr(a, mode="raw")`, NumPy's or SciPy's gave as LAPACK's reflectors.

    Parameters
    ----------
    h : array_like, shape (N, M)
        V and R, transposed.
    tau : array_like, shape (min(M, N),)

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


def _solution(result: Any, ndim: int, place: Place) -> LstsqResult:
    """For right-hand sides of `ndim` dimensions."""
    X, norms, condition, report = result
    if ndim == 1:
        X, norms = X[:, 0], norms.reshape(())
    return LstsqResult(place.give_back(X), place.give_back(norms), condition, Report(**report))


def lstsq(
    a: Any,
    b: Any,
    rcond: float | None = None,
    method: str = "auto",
    threads: int | None = None,
    check_finite: bool = True,
) -> LstsqResult:
    """Full-rank least squares: the minimiser of ‖A x − b‖₂, or for M < N the solution with the least norm.

    Parameters
    ----------
    a : array_like, shape (..., M, N), or a list of matrices
    b : array_like, shape (M,), (M, P) or (..., M, P), or a list of vectors or matrices
        Its leading dimensions are broadcast to those of `a`: one b may serve all.
    rcond : float, optional
        A matrix whose estimated reciprocal condition is at or below it is an error; by default 10 units roundoff.

    Returns
    -------
    LstsqResult
        x of shape (N,) or (N, P), the norms of the residuals (not their squares, as NumPy's), an estimate of the
        condition number of R, and the report of the factorization. Of a stack arrays with its leading dimensions, of a
        list lists, and no report.

    Raises
    ------
    RankDeficient
        Where NumPy would return the solution of least norm of a numerically rank-deficient problem. In a batch the message
        names the matrix; with check_finite=False its x is NaN instead, and the others are as they would be alone.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> t = np.arange(5.0)
    >>> x, residual_norms, condition, report = quoin.lstsq(np.column_stack([t, np.ones(5)]), 2 * t + 1)
    >>> x.round(12)
    array([2., 1.])
    """
    rcond, check_finite = rcond_number(rcond), flag("check_finite", check_finite)
    n_threads = threads_number(threads)
    if is_ragged(a):
        if not isinstance(b, (list, tuple)) or len(b) != len(a):
            raise InvalidArgument(f"lstsq of a list of {len(a)} matrices takes a list of as many b, and was given {shown(b)}")
        As, place, _ = _list_of_matrices(a, "lstsq")
        Bs, place_of_b, vector = _list_of_matrices(b, "lstsq", vectors=True)
        require_one_place("lstsq", place, place_of_b)
        dtype = _common_type(As + Bs)
        As, Bs = _list_operands(As, place, dtype), _list_operands(Bs, place, dtype)
        result = place.core.lstsq_list(As, Bs, rcond, method, place.where(n_threads), check_finite)
        return _solutions(result, vector, lambda arrays: [place.give_back(array) for array in arrays])
    a, place = located(a)
    a = at_least_2d(to_float(a, "lstsq"))
    b, place_of_b = located(b)
    require_one_place("lstsq", place, place_of_b)
    b = to_float(b, "lstsq")
    dtype = np.promote_types(a.dtype, b.dtype)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    where = place.where(n_threads)
    if a.ndim > 2:
        B = place.operand(broadcast(columns_of_stack(b), a.shape[:-2]))
        result = place.core.lstsq_stack(place.operand(a), B, rcond, method, where, check_finite)
        return _solutions(result, b.ndim == 1, place.give_back)
    A, B = place.operand(a), place.operand(columns(b))
    result = place.core.lstsq(A, B, rcond, method, where, check_finite)
    return _solution(result, b.ndim, place)


def svd(
    a: Any, compute_uv: bool = True, method: str = "auto", threads: int | None = None, check_finite: bool = True
) -> Any:
    """The thin singular value decomposition by way of QR, for matrices that are far from square.

    Parameters
    ----------
    a : array_like, shape (M, N)
    compute_uv : bool
        With False the singular values alone.

    Returns
    -------
    SVDResult or array
        U (M, K), S (K,) descending, Vh (K, N), K = min(M, N): numpy.linalg.svd with full_matrices=False.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> A = np.random.default_rng(0).standard_normal((400, 5))
    >>> U, S, Vh = quoin.svd(A)
    >>> bool(np.allclose((U * S) @ Vh, A))
    True
    """
    a, place = located(a)
    a = exactly_2d(to_float(a, "svd"))
    compute_uv, check_finite = flag("compute_uv", compute_uv), flag("check_finite", check_finite)
    U, S, Vh = place.core.svd(place.operand(a), compute_uv, method, place.where(threads_number(threads)), check_finite)
    return SVDResult(*map(place.give_back, (U, S, Vh))) if compute_uv else place.give_back(S)


def plan(
    m: int,
    n: int,
    dtype: Any = np.float64,
    method: str = "auto",
    q: str = "any",
    threads: int | None = None,
    device: Any = "cpu",
) -> Plan:
    """What would be done with an m×n matrix, without doing it.

    Parameters
    ----------
    q : {'any', 'none', 'explicit', 'reflectors'}
        What the factorization is for: anything, R alone, the thin Q, or LAPACK's format.
    device : str
        Where the matrix lies: 'cpu', 'cuda' or 'cuda:1', as PyTorch names devices.

    Examples
    --------
    >>> import quoin
    >>> quoin.plan(1_000_000, 192, method="tsqr").method
    'tsqr'
    """
    m, n = integer("m", m, 0), integer("n", n, 0)
    dtype = np.dtype(dtype)
    if dtype != _FLOAT32 and dtype != _FLOAT64:
        raise TypeError(f"quoin.plan supports float32 and float64; the dtype is {dtype}")
    single = dtype == _FLOAT32
    gpu = gpu_number(device)
    if gpu is None:
        return Plan(**_core.plan(m, n, single, method, q, threads_number(threads)))
    return Plan(**_core.cuda.plan(m, n, single, method, q, BesideGpu(gpu).where()))


def info() -> dict[str, Any]:
    """Version, kernels, BLAS, number of threads and what there is of CUDA, for bug reports.

    'cuda' is the version of the driver, or says why no GPU is used; 'gpus' names the GPUs. The call takes a moment, and
    some memory on each GPU.

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
