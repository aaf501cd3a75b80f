"""QR as operators of PyTorch: they train, compile and batch.

Signatures are those of torch.linalg, so that a user changes an import. The operators (torch.ops.quoin) have fake kernels, so that
torch.compile(fullgraph=True) traces through them; derivatives of first and second order; and rules for torch.func and vmap, by
which a vmap is one batch. Tensors may have any leading dimensions, on the CPU or on a GPU (where the package has the CUDA backend).

float32 and float64 are computed as they are. float16 and bfloat16 are computed in float32; results are float32, or with `dtype` rounded
once. Under autocast the operators compute in float32. Entries are not checked: NaN and Inf propagate, as in torch.linalg, and
nothing waits for a GPU.

>>> import torch, quoin.torch
>>> A = torch.randn(8, 500, 20, dtype=torch.float64, requires_grad=True)
>>> Q, R = quoin.torch.qr(A)
>>> bool(torch.dist(Q @ R, A) < 1e-12), R.diagonal(dim1=-2, dim2=-1).abs().log().sum().backward()
(True, None)
"""

import itertools
from typing import Any, NamedTuple

import torch
from torch._functorch.utils import enable_single_level_autograd_function

from . import _functions

__all__ = ["apply_q", "geqrf", "householder_product", "lstsq", "orthonormalize", "qr"]

Tensor = torch.Tensor


class QR(NamedTuple):
    """A = Q R."""

    Q: Tensor
    R: Tensor


class GEQRF(NamedTuple):
    """LAPACK's reflectors: V strictly below the diagonal of `a`, R on and above it."""

    a: Tensor
    tau: Tensor


class LSTSQ(NamedTuple):
    """As torch.linalg.lstsq with driver='gels': rank and singular_values are empty."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def qr(A: Tensor, mode: str = "reduced", *, dtype: torch.dtype | None = None) -> QR:
    """Q and R of A = Q R, as torch.linalg.qr.

    Parameters
    ----------
    A : Tensor, shape (..., M, N)
    mode : 'reduced', 'complete' or 'r'
        Q (..., M, K) and R (..., K, N) with K = min(M, N); Q (..., M, M); or an empty Q and R.
    dtype : torch.dtype, optional
        Of the results, to which they are rounded once.

    Notes
    -----
    The signs of R's diagonal are not fixed. Derivatives need an A of full rank, in mode 'complete' M <= N; unlike torch.linalg.qr's, R
    has them in mode 'r' too.
    """
    A, dtype = _matrix("qr", A, dtype)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'")
    if mode == "r" and not (A.requires_grad and torch.is_grad_enabled()):
        return QR(A.new_empty(0).to(dtype), torch.ops.quoin.r(A).to(dtype))
    Q, R = torch.ops.quoin.qr(A, mode == "complete")
    return QR(A.new_empty(0).to(dtype) if mode == "r" else Q.to(dtype), R.to(dtype))


def orthonormalize(A: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    """The thin Q alone, (..., M, K), of A and `dtype` as for `qr`."""
    A, dtype = _matrix("orthonormalize", A, dtype)
    return torch.ops.quoin.orthonormalize(A).to(dtype)


def geqrf(A: Tensor) -> GEQRF:
    """V, tau and R of A in LAPACK's format, as torch.geqrf; without derivatives."""
    A, _ = _matrix("geqrf", A, None)
    return GEQRF(*torch.ops.quoin.geqrf(A))


def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first N columns of H_1 … H_k, H_i = I − tau_i v_i v_iᵀ, as torch.linalg.householder_product.

    A is (..., M, N) with M >= N and v_i below its diagonal, tau (..., k) with k <= N.
    """
    A, tau = _reflectors("householder_product", A, tau)
    return torch.ops.quoin.householder_product(A, tau)


def apply_q(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Q other, or other Q with left=False, Qᵀ for Q with transpose=True, Q = H_1 … H_k being M × M: torch.ormqr.

    `input` and `tau` are the reflectors, as of `geqrf`.
    """
    A, tau = _reflectors("apply_q", input, tau)
    C, _ = _matrix("apply_q", other, None)
    A, tau, C = _of_one_type("apply_q", A, tau, C)
    if C.shape[-2 if left else -1] != A.shape[-2]:
        raise RuntimeError(f"quoin.torch.apply_q: other is {_shape(C)} and Q has {A.shape[-2]} rows")
    A, tau, C = _broadcast((A, 2), (tau, 1), (C, 2))
    if left:
        return torch.ops.quoin.apply_q(A, tau, C, transpose)
    return torch.ops.quoin.apply_q(A, tau, C.mT, not transpose).mT


def lstsq(A: Tensor, B: Tensor, rcond: None = None, *, driver: str | None = None) -> LSTSQ:
    """The minimiser of ‖A X − B‖, or for M < N the solution of least norm, of an A with full rank: torch.linalg.lstsq.

    B is (..., M) or (..., M, P). `driver` may be 'gels', which this is and which takes no `rcond`. `residuals` are the
    squares of the norms of the columns of A X − B where M > N. A without full rank is not detected, as by 'gels'; `quoin.lstsq` refuses it.
    """
    if driver not in (None, "gels") or rcond is not None:
        raise RuntimeError("quoin.torch.lstsq: the driver is 'gels', which takes no rcond")
    A, _ = _matrix("lstsq", A, None)
    vector = B.dim() == 1 or (B.dim() == A.dim() - 1 and B.shape == A.shape[:-1])
    B, _ = _matrix("lstsq", B.unsqueeze(-1) if vector else B, None)
    A, B = _of_one_type("lstsq", A, B)
    m, n = A.shape[-2:]
    if B.shape[-2] != m:
        raise RuntimeError(f"quoin.torch.lstsq: A is {_shape(A)} and B has {B.shape[-2]} rows")
    if m >= n:
        Q, R = torch.ops.quoin.qr(A, False)
        X = torch.linalg.solve_triangular(R, Q.mT @ B, upper=True)
    else:
        Q, R = torch.ops.quoin.qr(A.mT, False)
        X = Q @ torch.linalg.solve_triangular(R.mT, B, upper=False)
    residuals = (A @ X - B).square().sum(dim=-2) if m > n else A.new_empty(0)
    empty = A.new_empty(0)
    return LSTSQ(X.squeeze(-1) if vector else X, residuals, empty.long(), empty)


# ---- what is refused, in PyTorch's own kind of error ---------------------------------------------------------------------


def _shape(A: Tensor) -> str:
    return "x".join(map(str, A.shape))


def _matrix(function: str, A: Any, dtype: torch.dtype | None) -> tuple[Tensor, torch.dtype]:
    """A in the type in which it is computed, and the type of the results."""
    if not isinstance(A, Tensor):
        raise TypeError(f"quoin.torch.{function}(): argument must be Tensor, not {type(A).__name__}")
    if A.dim() < 2:
        raise RuntimeError(f"quoin.torch.{function}: the tensor must have at least 2 dimensions, and has {A.dim()}")
    if not A.dtype.is_floating_point:
        raise RuntimeError(f"quoin.torch.{function}: expected a floating point tensor, and got {A.dtype}")
    if dtype is not None and not dtype.is_floating_point:
        raise RuntimeError(f"quoin.torch.{function}: dtype must be a floating point type, and is {dtype}")
    computed = A if A.dtype in (torch.float32, torch.float64) else A.float()
    return computed, dtype or computed.dtype


def _of_one_type(function: str, *tensors: Tensor) -> tuple[Tensor, ...]:
    for what in ("dtype", "device"):
        first, *others = [getattr(tensor, what) for tensor in tensors]
        if any(other != first for other in others):
            raise RuntimeError(f"quoin.torch.{function}: expected all tensors of one {what}, and got {first} and {others[-1]}")
    return tensors


def _reflectors(function: str, A: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    A, _ = _matrix(function, A, None)
    tau, _ = _matrix(function, tau.unsqueeze(-1), None)
    A, tau = _of_one_type(function, A, tau.squeeze(-1))
    m, n, k = *A.shape[-2:], tau.shape[-1]
    if not m >= n >= k or A.shape[:-2] != tau.shape[:-1]:
        raise RuntimeError(
            f"quoin.torch.{function}: reflectors {_shape(A)} and tau {_shape(tau)} are not (..., M, N) and (..., k) with M >= N >= k"
        )
    return A, tau


def _broadcast(*tensors: tuple[Tensor, int]) -> list[Tensor]:
    """Of the leading dimensions, those beyond the last so many."""
    leading = torch.broadcast_shapes(*(tensor.shape[: tensor.dim() - last] for tensor, last in tensors))
    return [tensor.expand(*leading, *tensor.shape[tensor.dim() - last :]) for tensor, last in tensors]


# ---- operators -----------------------------------------------------------------------------------------------------------

_library = torch.library.Library("quoin", "DEF")


def _none(ctx: Any, *gradients: Tensor) -> Any:
    raise RuntimeError("the derivative of this operator of quoin.torch is not implemented")


def _define(schema: str, kernel: Any, fake: Any, backward: Any = _none) -> None:
    """The operator `schema`, computed by `kernel` and by `fake` in shape alone, both of them for any leading dimensions.

    `backward` gets the operator's tensors, inputs and then outputs, in ctx.saved_tensors, and its other inputs in ctx.others.
    """
    name = schema.partition("(")[0]
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order))
    operator = getattr(torch.ops.quoin, name).default
    for device in ("CPU", "CUDA"):
        _library.impl(name, kernel, device)
    torch.library.register_fake(operator, fake, lib=_library)
    for device in ("cpu", "cuda"):
        torch.library.register_autocast(operator, device, torch.float32, lib=_library)

    def in_batch(info: Any, in_dims: Any, *inputs: Any) -> Any:
        stacks = (
            x if not isinstance(x, Tensor) else x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
            for x, dim in zip(inputs, in_dims)
        )
        results = operator(*stacks)
        return results, (0,) * len(results) if isinstance(results, tuple) else 0

    torch.library.register_vmap(operator, in_batch, lib=_library)

    def forward(*inputs: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            return operator(*inputs)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        outputs = output if isinstance(output, tuple) else (output,)
        ctx.save_for_backward(*(x for x in (*inputs, *outputs) if isinstance(x, Tensor)))
        ctx.others = [x for x in inputs if not isinstance(x, Tensor)]

    # torch.func has split its levels before an operator comes here: a Function of one level, which does not do it again
    methods = {"forward": forward, "setup_context": setup_context, "backward": backward}
    one_level = torch.autograd.function._SingleLevelFunction
    function = type(name, (one_level,), {key: staticmethod(method) for key, method in methods.items()})

    def recorded(*inputs: Any) -> Any:
        with enable_single_level_autograd_function():
            return function.apply(*inputs)

    _library.impl(name, recorded, "Autograd")


def _empty(like: Tensor, rows: Any, cols: Any) -> Tensor:
    """As the results are stored: each matrix by columns."""
    return like.new_empty(*like.shape[:-2], cols, rows).mT


def _smaller(A: Tensor) -> Any:
    return torch.sym_min(*A.shape[-2:])


def _quoin_qr(A: Tensor, mode: str) -> Any:
    return _functions.qr(A.detach(), mode=mode, check_finite=False)


def _qr(A: Tensor, complete: bool) -> tuple[Tensor, Tensor]:
    Q, R = _quoin_qr(A, "complete" if complete else "reduced")
    return Q, R


def _fake_qr(A: Tensor, complete: bool) -> tuple[Tensor, Tensor]:
    m, n = A.shape[-2:]
    k = m if complete else _smaller(A)
    return _empty(A, m, k), _empty(A, k, n)


def _geqrf(A: Tensor) -> tuple[Tensor, Tensor]:
    h, tau = _quoin_qr(A, "raw")
    return h.mT, tau


def _apply_q(A: Tensor, tau: Tensor, C: Tensor, transpose: bool) -> Tensor:
    V = A[..., : tau.shape[-1]]
    return _each(lambda V, tau, C: _functions.from_raw(V.mT, tau).apply(C, transpose), _empty(C, *C.shape[-2:]), V, tau, C)


def _householder_product(A: Tensor, tau: Tensor) -> Tensor:
    m, n = A.shape[-2:]
    if tau.shape[-1] < n:
        return _apply_q(A, tau, torch.eye(m, n, dtype=A.dtype, device=A.device).expand_as(A), False)
    return _each(lambda A, tau: _functions.from_raw(A.mT, tau).q(), _empty(A, m, n), A, tau)


def _each(call: Any, results: Tensor, *stacks: Tensor) -> Tensor:
    """Matrix by matrix of stacks."""
    for index in itertools.product(*map(range, results.shape[:-2])):
        results[index] = call(*(stack[index].detach() for stack in stacks))
    return results


# ---- derivatives ---------------------------------------------------------------------------------------------------------


def _of_qr(Q: Tensor, R: Tensor, gQ: Tensor, gR: Tensor) -> Tensor:
    """The gradient of A = Q R from those of Q (M × K) and R (K × N): Walter and Lehmann (2018); for M < N Roberts and Roberts (2020).

    A = [X Y], R = [R₁ R₂]:    Y = Q R₂ gives gY = Q gR₂, and adds Y gR₂ᵀ to gQ;
    gX = (gQ + Q S) R₁⁻ᵀ,    S symmetric with the upper triangle of gR₁ R₁ᵀ − Qᵀ gQ.
    """
    k = Q.shape[-1]
    R1, R2, gR1, gR2 = R[..., :k], R[..., k:], gR[..., :k], gR[..., k:]
    gQ = gQ + Q @ (R2 @ gR2.mT)
    P = (gR1 @ R1.mT - Q.mT @ gQ).triu()
    gX = torch.linalg.solve_triangular(R1.mT, gQ + Q @ (P + P.triu(1).mT), upper=False, left=False)
    return torch.cat([gX, Q @ gR2], dim=-1)


def _qr_backward(ctx: Any, gQ: Tensor, gR: Tensor) -> Any:
    _, Q, R = ctx.saved_tensors
    if Q.shape[-1] > R.shape[-1]:
        raise RuntimeError("The derivative of quoin.torch.qr is not implemented for mode='complete' and M > N")
    return _of_qr(Q, R, gQ, gR), None


def _orthonormalize_backward(ctx: Any, gQ: Tensor) -> Tensor:
    A, Q = ctx.saved_tensors
    R = (Q.mT @ A).triu()
    return _of_qr(Q, R, gQ, torch.zeros_like(R))


def _of_reflectors(A: Tensor, tau: Tensor, C: Tensor, transpose: bool, gY: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of A, tau and C from that of Y = C − V S, S = op(T) P, P = Vᵀ C.

    T = M⁻¹ D, M = I + D U, D = diag(tau), U the strict upper triangle of VᵀV (Joffrain et al. 2006).
    """
    k = tau.shape[-1]
    V = A[..., :k].tril(-1) + torch.eye(A.shape[-2], k, dtype=A.dtype, device=A.device)
    D = torch.diag_embed(tau)
    U = (V.mT @ V).triu(1)
    M = D @ U + torch.eye(k, dtype=A.dtype, device=A.device)
    T = torch.linalg.solve_triangular(M, D, upper=True)
    opT = T.mT if transpose else T
    P = V.mT @ C
    gS = -V.mT @ gY
    gP = opT.mT @ gS
    gC = gY + V @ gP
    gT = P @ gS.mT if transpose else gS @ P.mT
    gD = torch.linalg.solve_triangular(M.mT, gT, upper=False)
    gM = -gD @ T.mT
    gU = (D @ gM).triu(1)
    gV = C @ gP.mT - gY @ (opT @ P).mT + V @ (gU + gU.mT)
    gtau = gD.diagonal(dim1=-2, dim2=-1) + (gM * U).sum(-1)
    gA = torch.cat([gV.tril(-1), torch.zeros_like(A[..., k:])], dim=-1)
    return gA, gtau, gC


def _apply_q_backward(ctx: Any, gY: Tensor) -> Any:
    A, tau, C, _ = ctx.saved_tensors
    return *_of_reflectors(A, tau, C, ctx.others[0], gY), None


def _householder_product_backward(ctx: Any, gQ: Tensor) -> Any:
    A, tau, _ = ctx.saved_tensors
    eye = torch.eye(*A.shape[-2:], dtype=A.dtype, device=A.device).expand_as(A)
    return _of_reflectors(A, tau, eye, False, gQ)[:2]


_define("qr(Tensor A, bool complete) -> (Tensor, Tensor)", _qr, _fake_qr, _qr_backward)
_define("r(Tensor A) -> Tensor", lambda A: _quoin_qr(A, "r"), lambda A: _empty(A, _smaller(A), A.shape[-1]))
_define(
    "orthonormalize(Tensor A) -> Tensor",
    lambda A: _quoin_qr(A, "reduced").Q,
    lambda A: _empty(A, A.shape[-2], _smaller(A)),
    _orthonormalize_backward,
)
_define(
    "geqrf(Tensor A) -> (Tensor, Tensor)",
    _geqrf,
    lambda A: (_empty(A, *A.shape[-2:]), A.new_empty(*A.shape[:-2], _smaller(A))),
)
_define(
    "householder_product(Tensor A, Tensor tau) -> Tensor",
    _householder_product,
    lambda A, tau: _empty(A, *A.shape[-2:]),
    _householder_product_backward,
)
_define(
    "apply_q(Tensor A, Tensor tau, Tensor C, bool transpose) -> Tensor",
    _apply_q,
    lambda A, tau, C, transpose: _empty(C, *C.shape[-2:]),
    _apply_q_backward,
)
