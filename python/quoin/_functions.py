"""The functions of the package: NumPy's conventions over the extension module."""

from __future__ import annotations

from typing import Any, Callable, Literal, NamedTuple, overload

import numpy as np

from . import _core
from ._arrays import _FLOAT32, _FLOAT64, at_least_2d, exactly_2d, threads_number, to_float, to_numpy
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
    """The solution of min ‖A x − b‖₂ and what is known of it."""

    x: Any
    residual_norms: Any
    condition: float
    report: Report


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
    a : array_like, shape (..., M, N)
        float32 or float64, in any layout; integers and booleans are computed in float64. Read only.
    mode : {'reduced', 'complete', 'r', 'raw'}
        With K = min(M, N), as in `numpy.linalg.qr`: Q (..., M, K) and R (..., K, N); Q (..., M, M) and
        R (..., M, N); R alone; or LAPACK's reflectors h (..., N, M) and tau (..., K).
    method : str
        'auto', 'householder', 'tsqr', 'caqr', 'cholesky-qr2' or 'shifted-cholesky-qr3'.
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
        give_back = None
    else:
        a, give_back = to_numpy(a)
        a = at_least_2d(to_float(a, "qr"))
    if mode not in _MODES:
        raise InvalidArgument(f"mode must be 'reduced', 'complete', 'r' or 'raw', and is {mode!r}")
    result: Any = _core.qr(a, _MODES[mode], method, 0 if threads is None else threads_number(threads), check_finite)
    if mode == "r":
        return give_back(result) if give_back else result
    if give_back:
        result = [give_back(array) for array in result]
    return RawQRResult(*result) if mode == "raw" else QRResult(*result)


class _Q:
    """Q of a factorization: `q()` is the thin Q, `q[rows, cols]` a block of the M×M Q, which is never formed."""

    def __init__(self, owner: Factorization):
        self._owner = owner

    def __call__(self) -> Any:
        owner = self._owner
        return owner._give_back(owner._f.q(owner._threads))

    def __getitem__(self, key: Any) -> Any:
        owner = self._owner
        m = owner.shape[0]
        rows, cols = key if isinstance(key, tuple) else (key, slice(None))
        ranges: list[tuple[int, int]] = []
        picked: list[Any] = []
        for index in (rows, cols):
            if isinstance(index, slice):
                begin, end, step = index.indices(m)
                if step != 1:
                    raise InvalidArgument("q[rows, cols] takes slices of step 1")
                ranges.append((begin, max(begin, end)))
                picked.append(slice(None))
            else:
                i = range(m)[index]
                ranges.append((i, i + 1))
                picked.append(0)
        block = owner._f.q_block(*ranges[0], *ranges[1], owner._threads)[tuple(picked)]
        return owner._give_back(block) if isinstance(block, np.ndarray) else block


class Factorization:
    """A = QR with Q held implicitly; made by `factor`. Calls from several threads at once are safe."""

    def __init__(self, core: Any, give_back: Callable[[Any], Any], threads: int):
        self._f = core
        self._give_back = give_back
        self._threads = threads

    def __repr__(self) -> str:
        m, n = self.shape
        return f"<quoin.Factorization of a {m}x{n} matrix by {self.report.method}>"

    def __reduce__(self) -> Any:
        raise TypeError("a quoin.Factorization cannot be pickled; pickle quoin.qr(a, mode='raw') instead")

    @property
    def shape(self) -> tuple[int, int]:
        """(M, N) of A."""
        return self._f.shape

    @property
    def R(self) -> Any:
        """R, shape (min(M, N), N), a new array at each call."""
        return self._give_back(self._f.r(self._threads))

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
        return self._give_back(self._f.v(self._threads))

    @property
    def T(self) -> Any:
        """T of Q = I − V T Vᵀ, shape (K, K), upper triangular; M·K² flops. Not a transpose."""
        return self._give_back(self._f.t(self._threads))

    @property
    def tau(self) -> Any:
        """The diagonal of T, shape (K,): LAPACK's tau."""
        return self._give_back(self._f.tau(self._threads))

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
        if side not in ("left", "right"):
            raise InvalidArgument(f"side must be 'left' or 'right', and is {side!r}")
        C, give_back = to_numpy(C)
        C = to_float(C, "Factorization.apply")
        vector = C.ndim == 1
        if vector:
            C = C[:, None] if side == "left" else C[None, :]
        work = np.array(exactly_2d(C), dtype=self.plan.dtype, order="F", copy=True)
        self._f.apply_in_place(work, side == "left", bool(trans), self._threads)
        return give_back(work.reshape(-1) if vector else work)

    def lstsq(self, b: Any, rcond: float | None = None) -> LstsqResult:
        """Minimise ‖A x − b‖₂ with this factorization (M >= N); as `quoin.lstsq`."""
        b, give_back = to_numpy(b)
        b = to_float(b, "Factorization.lstsq").astype(self.plan.dtype, copy=False)
        B = b[:, None] if b.ndim == 1 else exactly_2d(b)
        return _solution(self._f.lstsq(B, -1.0 if rcond is None else rcond, self._threads), b, give_back)


def factor(
    a: Any,
    method: str = "auto",
    threads: int | None = None,
    check_finite: bool = True,
    verify: bool = False,
    q: str = "any",
) -> Factorization:
    """Factor A = QR and keep Q as it was found: as reflectors, a tree of them, or explicitly.

    Parameters
    ----------
    a : array_like, shape (M, N)
    method, threads, check_finite
        As for `qr`.
    verify : bool
        Measure ‖I − QᵀQ‖ and ‖A − QR‖ / ‖A‖ for `report`.
    q : {'any', 'explicit', 'reflectors', 'none'}
        How to keep Q: as it was found, the thin Q as a matrix, LAPACK's reflectors (for `V`, `T` and `tau`), or not.

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
    a, give_back = to_numpy(a)
    a = exactly_2d(to_float(a, "factor"))
    n_threads = threads_number(threads)
    return Factorization(_core.factor(a, method, q, n_threads, check_finite, verify), give_back, n_threads)


def _solution(result: Any, b: np.ndarray, give_back: Callable[[Any], Any]) -> LstsqResult:
    X, norms, condition, report = result
    norms = np.array(norms, dtype=X.dtype)
    if b.ndim == 1:
        return LstsqResult(give_back(X[:, 0]), give_back(norms.reshape(())), condition, Report(**report))
    return LstsqResult(give_back(X), give_back(norms), condition, Report(**report))


def lstsq(
    a: Any,
    b: Any,
    rcond: float | None = None,
    method: str = "auto",
    threads: int | None = None,
    check_finite: bool = True,
) -> LstsqResult:
    """Full-rank least squares: the minimiser of ‖A x − b‖₂, or for M < N the solution of least norm.

    Parameters
    ----------
    a : array_like, shape (M, N)
    b : array_like, shape (M,) or (M, P)
    rcond : float, optional
        A matrix whose estimated reciprocal condition is at or below it is an error; by default 10 units roundoff.

    Returns
    -------
    LstsqResult
        x of shape (N,) or (N, P), the norms of the residuals (not their squares, as NumPy's), an estimate of the
        condition number of R, and the report of the factorization.

    Raises
    ------
    RankDeficient
        Where NumPy would return the solution of least norm of a numerically rank-deficient problem.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> t = np.arange(5.0)
    >>> x, residual_norms, condition, report = quoin.lstsq(np.column_stack([t, np.ones(5)]), 2 * t + 1)
    >>> x.round(12)
    array([2., 1.])
    """
    a, give_back = to_numpy(a)
    a = exactly_2d(to_float(a, "lstsq"))
    b, _ = to_numpy(b)
    b = to_float(b, "lstsq")
    dtype = np.promote_types(a.dtype, b.dtype)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    B = b[:, None] if b.ndim == 1 else exactly_2d(b)
    result = _core.lstsq(a, B, -1.0 if rcond is None else rcond, method, threads_number(threads), check_finite)
    return _solution(result, b, give_back)


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
    a, give_back = to_numpy(a)
    a = exactly_2d(to_float(a, "svd"))
    U, S, Vh = _core.svd(a, compute_uv, method, threads_number(threads), check_finite)
    return SVDResult(give_back(U), give_back(S), give_back(Vh)) if compute_uv else give_back(S)


def plan(
    m: int, n: int, dtype: Any = np.float64, method: str = "auto", q: str = "any", threads: int | None = None
) -> Plan:
    """What would be done with an m×n matrix, without doing it.

    Parameters
    ----------
    q : {'any', 'none', 'explicit', 'reflectors'}
        What will be asked of the factorization: anything, R alone, the thin Q, or LAPACK's format.

    Examples
    --------
    >>> import quoin
    >>> quoin.plan(1_000_000, 192, method="tsqr").method
    'tsqr'
    """
    dtype = np.dtype(dtype)
    if dtype != _FLOAT32 and dtype != _FLOAT64:
        raise TypeError(f"quoin.plan supports float32 and float64; the dtype is {dtype}")
    return Plan(**_core.plan(m, n, dtype == _FLOAT32, method, q, threads_number(threads)))


def info() -> dict[str, Any]:
    """Version, kernels, BLAS and number of threads, for bug reports.

    Examples
    --------
    >>> import quoin
    >>> sorted(quoin.info())
    ['blas', 'blas_core', 'blas_warning', 'compiler', 'kernels', 'threads', 'version']
    """
    return _core.info()
