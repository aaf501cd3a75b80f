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

__all__ = ["apply_q", "geqrf", "householder_product", "lstsq", "orthonormalize", "qr"]

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


class GEQRF(NamedTuple):
    """LAPACK's reflectors: V strictly below the diagonal of `a`, R on and above it."""

    a: Array
    taus: Array


class LSTSQ(NamedTuple):
    """The result of jax.numpy.linalg.lstsq, except that rank and s are empty."""

    x: Array
    residuals: Array
    rank: Array
    s: Array


def qr(a: Array, mode: str = "reduced") -> Any:
    """Q and R of a = Q R, as jax.numpy.linalg.qr.

    Parameters
    ----------
    a : Array, shape (..., M, N)
    mode : 'reduced', 'complete', 'r' or 'raw'
        In this order and with K = min(M, N): Q (..., M, K) and R (..., K, N); Q (..., M, M) and R (..., M, N);
        R (..., K, N) alone; or the transpose of LAPACK's reflectors (..., N, M) and taus (..., K).

    Notes
    -----
    The signs of R's diagonal are not fixed. Derivatives need an `a` whose first K columns are linearly
    independent, and M <= N in mode 'complete'. Mode 'raw' has no derivatives.
    """
    (A,) = _arrays("qr", (a, 2))
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
def lstsq(a: Array, b: Array) -> LSTSQ:
    """The minimiser of ‖a x − b‖, or for M < N the solution of least norm, as jax.numpy.linalg.lstsq.

    `a` is (..., M, N) and b is (..., M) or (..., M, P). `residuals` (..., P) are the squared norms of the columns of a
    x − b. `a` must have full rank; an `a` without it is not detected here, while `quoin.lstsq` returns the
    solution of least norm.
    """
    A, B = _arrays("lstsq", (a, 2), (b, 1))
    vector = B.ndim == 1 or B.shape == A.shape[:-1]
    B = B[..., None] if vector else B
    m, n = A.shape[-2:]
    if B.shape[-2] != m:
        raise ValueError(f"quoin.jax.lstsq: a is {A.shape} and b has {B.shape[-2]} rows")
    A, B = _broadcast((A, 2), (B, 2))
    if m >= n:
        Q, R = _qr(A)
        X = triangular_solve(R, Q.mT @ B, left_side=True)
    else:
        Q, R = _qr(A.mT)
        X = Q @ triangular_solve(R, B, left_side=True, transpose_a=True)
    empty = jnp.zeros(0, A.dtype)
    return LSTSQ(X[..., 0] if vector else X, jnp.square(A @ X - B).sum(-2), empty.astype(int), empty)


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


def _broadcast(*given: tuple[Array, int]) -> list[Array]:
    """Broadcasts the leading dimensions of pairs (array, last), which are all but its `last` last ones."""
    leading = jnp.broadcast_shapes(*(A.shape[: A.ndim - last] for A, last in given))
    return [jnp.broadcast_to(A, (*leading, *A.shape[A.ndim - last :])) for A, last in given]


# ---- calls of the targets, and their derivatives ---------------------------------------------------------------------


def _call(target: str, results: list[Any], *arrays: Array) -> Any:
    """Calls the target and returns its results, of the types `results`."""
    return jax.ffi.ffi_call(f"quoin_{target}", results, vmap_method="broadcast_all")(*arrays)


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
    """Returns Q and R and their tangents (Walter and Lehmann 2018).

    With the first k columns X = Q R₁ of A = Q R, P = dX R₁⁻¹, S = Qᵀ P, and L the strict lower triangle of S:

    Ω = Qᵀ dQ = L − Lᵀ;    dQ = P + Q (Ω − S);    dR = Qᵀ dA − Ω R.
    """
    (A,), (dA,) = primals, tangents
    Q, R = _qr(A)
    k = Q.shape[-1]
    P = triangular_solve(R[..., :k], dA[..., :k])
    S = Q.mT @ P
    L = jnp.tril(S, -1)
    W = L - L.mT
    return (Q, R), (P + Q @ (W - S), jnp.triu(Q.mT @ dA - W @ R))


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
