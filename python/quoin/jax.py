"""QR as functions of JAX, on CPUs and NVIDIA GPUs: they compile, differentiate and batch.

Signatures are as in jax.numpy.linalg, so that a user only changes an import. `jax.jit`, `jax.vmap` (one call for the
whole batch), `jax.grad`, `jax.jvp` and `jax.shard_map` along the batch apply. Arrays may have any leading dimensions.
Entries are not checked, so that NaN and Inf propagate. On a GPU, which needs the CUDA backend in the package, work is
ordered on XLA's stream.

`pip install '.[jax]'` in a checkout builds the distribution quoin-qr with this module and installs JAX.

>>> import jax, jax.numpy as jnp, quoin.jax
>>> A = jax.random.normal(jax.random.key(0), (8, 500, 20))
>>> Q, R = jax.jit(quoin.jax.qr)(A)
>>> bool(jnp.linalg.norm(Q @ R - A) < 1e-3)
True
>>> jax.grad(lambda A: jnp.log(jnp.abs(quoin.jax.qr(A, mode="r").diagonal(0, -2, -1))).sum())(A).shape
(8, 500, 20)
"""

from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax.linalg import triangular_solve

from . import _core

__all__ = ["apply_q", "geqrf", "householder_product", "lstsq", "matrix_rank", "orthonormalize", "pinv", "qr"]

if not hasattr(_core, "jax_targets"):
    raise ImportError(
        "quoin was built without XLA's headers, which quoin.jax needs. In a checkout of Quoin this builds it with them: "
        "pip install jax cmake nanobind scikit-build-core && pip install --no-build-isolation ."
    )
for _platform, _targets in _core.jax_targets().items():
    for _name, _target in _targets.items():
        jax.ffi.register_ffi_target(f"quoin_{_name}", _target, platform=_platform)

Array: TypeAlias = jax.Array
_precise = jax.default_matmul_precision("highest")  # a GPU multiplies float32 in TF32 otherwise


class QR(NamedTuple):
    """A = Q R."""

    Q: Array
    R: Array


class PivotedQR(NamedTuple):
    """a[:, P] = Q R, for each matrix of a stack."""

    Q: Array
    R: Array
    P: Array


class GEQRF(NamedTuple):
    """LAPACK's reflectors: V strictly below the diagonal of `a`, R on and above it."""

    a: Array
    taus: Array


class LSTSQ(NamedTuple):
    """The result of jax.numpy.linalg.lstsq, except that s is empty, and rank without `rcond`."""

    x: Array
    residuals: Array
    rank: Array
    s: Array


def qr(a: Array, mode: str = "reduced", *, pivoting: bool = False) -> Any:
    """Q and R of a = Q R, as jax.numpy.linalg.qr, or Q, R and P of a[:, P] = Q R.

    Parameters
    ----------
    a : Array, shape (..., M, N)
        Of float32 or float64.
    mode : 'reduced', 'complete', 'r' or 'raw'
        In this order and with K = min(M, N): Q (..., M, K) and R (..., K, N); Q (..., M, M) and R (..., M, N);
        R (..., K, N) alone; or the transpose of LAPACK's reflectors (..., N, M) and taus (..., K).
    pivoting : bool
        Move columns of large norm to the front, as `quoin.qr` does, in mode 'reduced'. P (..., N) are the columns of
        `a` in the order of R's. The matrices of a stack are factored one after the other. On a GPU the call waits.

    Notes
    -----
    The signs of R's diagonal are not fixed. Derivatives need an `a` whose first K columns are linearly
    independent, and M <= N in mode 'complete'. Mode 'raw' has no derivatives. With pivoting the derivatives are those
    for a fixed P. They are NaN for an `a` without full rank: an entry of R's diagonal up to max(M, N) eps times the
    first counts as zero.
    """
    (A,) = _arrays("qr", (a, 2))
    if pivoting:
        if mode != "reduced":
            raise ValueError(f"quoin.jax.qr: with pivoting mode is 'reduced', and not {mode!r}")
        return PivotedQR(*_pivoted_qr(A))
    m, n = A.shape[-2:]
    if mode == "reduced" or (mode == "complete" and m <= n):
        return QR(*_qr(A))
    if mode == "complete":
        V, taus = geqrf(A)
        return QR(apply_q(V, taus, jnp.eye(m, dtype=A.dtype)), jnp.triu(V))
    if mode == "r":
        return _r(A)
    if mode == "raw":
        V, taus = geqrf(A)
        return V.mT, taus
    raise ValueError(f"quoin.jax.qr: mode is 'reduced', 'complete', 'r' or 'raw', and not {mode!r}")


def orthonormalize(a: Array) -> Array:
    """The thin Q alone, (..., M, K), of `a` as for `qr`."""
    return qr(a).Q


def geqrf(a: Array) -> GEQRF:
    """V, tau and R of `a` in LAPACK's format, without derivatives."""
    (A,) = _arrays("geqrf", (a, 2))
    V, taus = _call("geqrf", _types(A, A.shape, (*A.shape[:-2], min(A.shape[-2:]), 1)), A)
    return GEQRF(V, taus[..., 0])


def householder_product(a: Array, taus: Array) -> Array:
    """The first N columns of H_1 … H_k, H_i = I − tau_i v_i v_iᵀ, as jax.lax.linalg.householder_product.

    `a` is (..., M, N) with M >= N and v_i below its diagonal, taus (..., k) with k <= N.
    """
    A, taus = _arrays("householder_product", (a, 2), (taus, 1))
    return apply_q(A, taus, jnp.eye(*A.shape[-2:], dtype=A.dtype))


def apply_q(a: Array, taus: Array, c: Array, *, left: bool = True, transpose: bool = False) -> Array:
    """Q c, or c Q with left=False, as jax.lax.linalg.ormqr.

    Q = H_1 … H_k is M × M, and transpose=True takes Qᵀ in its place. `a` and `taus` are the reflectors, as from
    `geqrf`.
    """
    A, taus, C = _arrays("apply_q", (a, 2), (taus, 1), (c, 2))
    m, n, k = *A.shape[-2:], taus.shape[-1]
    if not m >= n >= k:
        raise ValueError(f"quoin.jax.apply_q: reflectors {A.shape} and taus {taus.shape} are not (..., M, N) and (..., k), M >= N >= k")
    if C.shape[-2 if left else -1] != m:
        raise ValueError(f"quoin.jax.apply_q: c is {C.shape} and Q has {m} rows")
    A, taus, C = _broadcast((A[..., :k], 2), (taus, 1), (C, 2))
    if left:
        return _apply_q(A, taus, C, transpose)
    return _apply_q(A, taus, C.mT, not transpose).mT


@_precise
def lstsq(a: Array, b: Array, rcond: float | None = None) -> LSTSQ:
    """The minimiser of ‖a x − b‖, or for M < N the solution of least norm, as jax.numpy.linalg.lstsq.

    `a` is (..., M, N) and b is (..., M) or (..., M, P). `residuals` (..., P) are the squared norms of the columns of a
    x − b.

    Without `rcond` `a` must have full rank. An `a` without it is not detected, and nothing waits for a GPU. With an
    `rcond` from 0 to 1, singular values up to `rcond` times the largest count as zero; x is the solution of least norm,
    and `rank` (...) is known. On a GPU the call waits. The derivatives are NaN where `a` has not full rank.
    """
    A, B = _arrays("lstsq", (a, 2), (b, 1))
    vector = B.ndim == 1 or B.shape == A.shape[:-1]
    B = B[..., None] if vector else B
    m, n = A.shape[-2:]
    if B.shape[-2] != m:
        raise ValueError(f"quoin.jax.lstsq: a is {A.shape} and b has {B.shape[-2]} rows")
    A, B = _broadcast((A, 2), (B, 2))
    empty = jnp.zeros(0, A.dtype)
    if rcond is None:
        X, rank = _solve(A, B), empty.astype(int)
    else:
        X, rank = _any_rank(A, B, _tolerance("lstsq", A, rcond))
    return LSTSQ(X[..., 0] if vector else X, jnp.square(A @ X - B).sum(-2), rank, empty)


def matrix_rank(a: Array, rtol: float | None = None) -> Array:
    """The number of singular values above `rtol` times the largest, as jax.numpy.linalg.matrix_rank, from R of `a`.

    `a` is (..., M, N) and the rank (...). `rtol` is max(M, N) eps by default.
    """
    (A,) = _arrays("matrix_rank", (a, 2))
    m, n = A.shape[-2:]
    R = _r(jax.lax.stop_gradient(A if m >= n else A.mT))
    return jnp.linalg.matrix_rank(R, rtol=_tolerance("matrix_rank", A, rtol))


def pinv(a: Array, rtol: float | None = None) -> Array:
    """The pseudoinverse (..., N, M), as jax.numpy.linalg.pinv, from a = Q R: a⁺ = R⁺ Qᵀ.

    Singular values up to `rtol` (from 0 to 1, by default max(M, N) eps) times the largest count as zero. The
    derivatives are NaN where `a` has not full rank. On a GPU the call waits.
    """
    (A,) = _arrays("pinv", (a, 2))
    is_wide = A.shape[-2] < A.shape[-1]
    Q, R = _qr(A.mT if is_wide else A)
    X, _ = _any_rank(R, Q.mT, _tolerance("pinv", A, rtol))
    return X.mT if is_wide else X


# ---- checks of arguments, with errors as JAX's own -------------------------------------------------------------------


def _arrays(function: str, *given: tuple[Any, int]) -> list[Array]:
    """Returns the arrays of pairs (array, its least number of dimensions), converted to one type."""
    for A, ndim in given:
        if not isinstance(A, (Array, np.ndarray)):
            raise TypeError(f"quoin.jax.{function}: expected an array, and got {type(A).__name__}")
        if A.ndim < ndim:
            raise TypeError(f"quoin.jax.{function}: an array must have at least {ndim} dimensions, and has shape {A.shape}")
        if A.dtype not in (np.float32, np.float64):
            raise TypeError(f"quoin.jax.{function}: expected float32 or float64, and got {A.dtype}: cast by astype(jnp.float32)")
    dtype = jnp.result_type(*(A for A, _ in given))
    return [jnp.asarray(A, dtype) for A, _ in given]


def _tolerance(function: str, A: Array, given: float | None) -> float:
    """Returns `given`, by default JAX's and NumPy's max(M, N) eps."""
    if given is None:
        return max(A.shape[-2:]) * float(jnp.finfo(A.dtype).eps)
    if not 0 <= given <= 1:
        raise ValueError(f"quoin.jax.{function}: the tolerance must be from 0 to 1, and is {given}")
    return float(given)


def _broadcast(*given: tuple[Array, int]) -> list[Array]:
    """Broadcasts the leading dimensions of pairs (array, last), which are all but its `last` last ones."""
    leading = jnp.broadcast_shapes(*(A.shape[: A.ndim - last] for A, last in given))
    return [jnp.broadcast_to(A, (*leading, *A.shape[A.ndim - last :])) for A, last in given]


# ---- calls of the targets, and their derivatives ---------------------------------------------------------------------


def _call(target: str, results: list[Any], *arrays: Array, **attributes: Any) -> Any:
    """Calls the target and returns its results, of the types `results`."""
    return jax.ffi.ffi_call(f"quoin_{target}", results, vmap_method="broadcast_all")(*arrays, **attributes)


def _types(A: Array, *shapes: tuple[int, ...]) -> list[Any]:
    """Returns types like A's with the given shapes. Such arrays vary over the axes of a mesh over which A varies."""
    return [jax.typeof(A).update(shape=shape) for shape in shapes]


@jax.custom_jvp
def _qr(A: Array) -> tuple[Array, Array]:
    *leading, m, n = A.shape
    k = min(m, n)
    Q, R = _call("qr", _types(A, (*leading, m, k), (*leading, k, n)), A)
    return Q, R


@_qr.defjvp
@_precise
def _qr_jvp(primals: tuple[Array], tangents: tuple[Array]) -> Any:
    (A,), (dA,) = primals, tangents
    Q, R = _qr(A)
    return (Q, R), _qr_tangents(Q, R, dA)


def _qr_tangents(Q: Array, R: Array, dA: Array) -> tuple[Array, Array]:
    """Returns the tangents of Q and R (Walter and Lehmann 2018).

    With the first k columns X = Q R₁ of A = Q R, P = dX R₁⁻¹, S = Qᵀ P, and L the strict lower triangle of S:

    Ω = Qᵀ dQ = L − Lᵀ;    dQ = P + Q (Ω − S);    dR = Qᵀ dA − Ω R.
    """
    k = Q.shape[-1]
    P = triangular_solve(R[..., :k], dA[..., :k])
    S = Q.mT @ P
    L = jnp.tril(S, -1)
    W = L - L.mT
    return P + Q @ (W - S), jnp.triu(Q.mT @ dA - W @ R)


@jax.custom_jvp
def _pivoted_qr(A: Array) -> tuple[Array, Array, Array]:
    *leading, m, n = A.shape
    k = min(m, n)
    Q, R, P = _call("pivoted_qr", _types(A, (*leading, m, k), (*leading, k, n), (*leading, n, 1)), A)
    return Q, R, P[..., 0].astype(int)


@_pivoted_qr.defjvp
@_precise
def _pivoted_qr_jvp(primals: tuple[Array], tangents: tuple[Array]) -> Any:
    """Returns Q, R and P, and the tangents of Q and R for this P, which are NaN for a matrix without full rank."""
    (A,), (dA,) = primals, tangents
    Q, R, P = _pivoted_qr(A)
    pivots = jnp.abs(R.diagonal(0, -2, -1))
    dependent = pivots <= _tolerance("qr", A, None) * pivots[..., :1]
    dA = _nan_unless(~dependent.any(-1), dA)
    dQ, dR = _qr_tangents(Q, R, jnp.take_along_axis(dA, P[..., None, :], -1))
    return (Q, R, P), (dQ, dR, np.zeros(P.shape, jax.dtypes.float0))


def _nan_unless(full: Array, tangents: Array) -> Array:
    """Returns the tangents, or NaN for a matrix that is not `full`, by a factor, which reverse mode keeps."""
    return tangents * jnp.where(full, 1, jnp.nan).astype(tangents.dtype)[..., None, None]


@_precise
def _solve(A: Array, B: Array) -> Array:
    """Returns X of `lstsq` for an A of full rank."""
    if A.shape[-2] >= A.shape[-1]:
        Q, R = _qr(A)
        return triangular_solve(R, Q.mT @ B, left_side=True)
    Q, R = _qr(A.mT)
    return Q @ triangular_solve(R, B, left_side=True, transpose_a=True)


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def _any_rank(A: Array, B: Array, rcond: float) -> tuple[Array, Array]:
    leading = A.shape[:-2]
    of_X = jax.eval_shape(lambda A, B: A.mT @ B, A, B)
    X, rank = _call("lstsq", [of_X, of_X.update(shape=(*leading, 1, 1))], A, B, rcond=np.float64(rcond))
    known = ~jnp.isnan(X).any((-2, -1))
    return X, jnp.where(known, rank[..., 0, 0], 0).astype(int)


@_any_rank.defjvp
def _any_rank_jvp(rcond: float, primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> Any:
    """Returns X and the rank, and the tangent of X, which is NaN for a matrix without full rank."""
    X, rank = _any_rank(*primals, rcond)
    full = rank == min(primals[0].shape[-2:])
    dX = jax.jvp(_solve, primals, tangents)[1]
    return (X, rank), (_nan_unless(full, dX), np.zeros(rank.shape, jax.dtypes.float0))


@jax.custom_jvp
def _r(A: Array) -> Array:
    (R,) = _call("r", _types(A, (*A.shape[:-2], min(A.shape[-2:]), A.shape[-1])), A)
    return R


@_r.defjvp
def _r_jvp(primals: tuple[Array], tangents: tuple[Array]) -> Any:
    (_, R), (_, dR) = jax.jvp(_qr, primals, tangents)
    return R, dR


@partial(jax.custom_jvp, nondiff_argnums=(3,))
def _apply_q(V: Array, taus: Array, C: Array, transpose: bool) -> Array:
    Y_type = jax.eval_shape(partial(_by_full_t, transpose=transpose), V, taus, C)
    (Y,) = _call("apply_qt" if transpose else "apply_q", [Y_type], V, taus[..., None], C)
    return Y


@_apply_q.defjvp
def _apply_q_jvp(transpose: bool, primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> Any:
    return _apply_q(*primals, transpose), jax.jvp(partial(_by_full_t, transpose=transpose), primals, tangents)[1]


@_precise
def _by_full_t(A: Array, taus: Array, C: Array, transpose: bool) -> Array:
    """Returns C − V op(T) VᵀC (Joffrain et al. 2006).

    T = (I + D U)⁻¹ D with D = diag(tau) and U the strict upper triangle of VᵀV.
    """
    m, k = A.shape[-2:]
    V = jnp.tril(A, -1) + jnp.eye(m, k, dtype=A.dtype)
    D = taus[..., None] * jnp.eye(k, dtype=A.dtype)
    M = jnp.eye(k, dtype=A.dtype) + D @ jnp.triu(V.mT @ V, 1)
    T = triangular_solve(M, D, left_side=True)
    return C - V @ ((T.mT if transpose else T) @ (V.mT @ C))
