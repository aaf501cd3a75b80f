"""QR as operators of PyTorch: they train, compile and batch.

Signatures are as in torch.linalg, so that a user only changes an import. The operators (torch.ops.quoin) have fake
kernels, so that torch.compile(fullgraph=True) traces through them. They have derivatives of any order in reverse and
forward mode, and rules for torch.func and vmap; a vmap runs as one batch. Tensors may have any leading dimensions, on
the CPU or on a GPU (if the package has the CUDA backend).

float32 and float64 are computed in their own type. float16 and bfloat16 are computed in float32; results are float32,
or rounded once to `dtype`. Under autocast the operators and their first derivatives compute in float32. Entries are not
checked: NaN and Inf propagate, as in torch.linalg, and no call waits for a GPU.

`override` serves PyTorch's own operators instead, for programs that are not changed.

>>> import torch, quoin.torch
>>> A = torch.randn(8, 500, 20, dtype=torch.float64, requires_grad=True)
>>> Q, R = quoin.torch.qr(A)
>>> bool(torch.dist(Q @ R, A) < 1e-12), R.diagonal(dim1=-2, dim2=-1).abs().log().sum().backward()
(True, None)
"""

import contextlib
import itertools
import threading
import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, overload

import torch
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad

from . import _core, _functions

__all__ = ["apply_q", "geqrf", "householder_product", "lstsq", "matrix_rank", "orthonormalize", "override", "pinv", "qr"]

Tensor = torch.Tensor
_COMPUTED = (torch.float64, torch.float32)


class QR(NamedTuple):
    """A = Q R."""

    Q: Tensor
    R: Tensor


class PivotedQR(NamedTuple):
    """A[:, P] = Q R, for each matrix of a stack."""

    Q: Tensor
    R: Tensor
    P: Tensor


class GEQRF(NamedTuple):
    """LAPACK's reflectors: V strictly below the diagonal of `a`, R on and above it."""

    a: Tensor
    tau: Tensor


class LSTSQ(NamedTuple):
    """The result of torch.linalg.lstsq; rank is empty for driver='gels', and singular_values are empty for both."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


@overload
def qr(A: Tensor, mode: str = "reduced", *, pivoting: Literal[False] = False, dtype: torch.dtype | None = None) -> QR: ...
@overload
def qr(A: Tensor, mode: str = "reduced", *, pivoting: Literal[True], dtype: torch.dtype | None = None) -> PivotedQR: ...


def qr(A: Tensor, mode: str = "reduced", *, pivoting: bool = False, dtype: torch.dtype | None = None) -> QR | PivotedQR:
    """Q and R of A = Q R, as torch.linalg.qr, or Q, R and P of A[:, P] = Q R.

    Parameters
    ----------
    A : Tensor, shape (..., M, N)
        float16 and bfloat16 are computed in float32.
    mode : 'reduced', 'complete' or 'r'
        In this order and with K = min(M, N): Q (..., M, K) and R (..., K, N); Q (..., M, M) and R (..., M, N); or an
        empty Q and R (..., K, N).
    pivoting : bool
        Move columns of large norm to the front, as `quoin.qr` does. P (..., N), of int64, are the columns of A in the
        order of R's. The matrices of a stack are factored one after the other. On a GPU the call waits.
    dtype : torch.dtype, optional
        Type of the results, which are rounded to it once.

    Notes
    -----
    The signs of R's diagonal are not fixed. Derivatives need an A of full rank, and M <= N in mode 'complete'. R
    has derivatives in mode 'r' too, unlike in torch.linalg.qr. With pivoting the derivatives are those for a fixed P,
    and are a RuntimeError for an A without full rank: an entry of R's diagonal up to max(M, N) eps times the
    first counts as zero. Mode 'r' computes Q then.
    """
    if not pivoting and mode == "reduced" and dtype is None and type(A) is Tensor and A.dtype in _COMPUTED and A.ndim >= 2:
        return QR(*_thin_qr(A))
    A, dtype = _matrix("qr", A, dtype)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'")
    if pivoting:
        Q, R, P = _pivoted_operator(A, mode == "complete")
        return PivotedQR(A.new_empty(0, dtype=dtype) if mode == "r" else Q.to(dtype), R.to(dtype), P)
    if mode == "r":
        return QR(A.new_empty(0, dtype=dtype), _r_operator(A).to(dtype))
    Q, R = _complete_qr(A, True) if mode == "complete" else _thin_qr(A)
    return QR(Q, R) if dtype is A.dtype else QR(Q.to(dtype), R.to(dtype))


def orthonormalize(A: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    """The thin Q alone, (..., M, K). A and `dtype` are as for `qr`."""
    A, dtype = _matrix("orthonormalize", A, dtype)
    return _thin_qr(A)[0].to(dtype)


def geqrf(A: Tensor) -> GEQRF:
    """V, tau and R of A in LAPACK's format, as torch.geqrf, without derivatives."""
    A, _ = _matrix("geqrf", A, None)
    return GEQRF(*_geqrf_operator(A))


def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first N columns of H_1 … H_k, H_i = I − tau_i v_i v_iᵀ, as torch.linalg.householder_product.

    A is (..., M, N) with M >= N and v_i below its diagonal, tau (..., k) with k <= N.
    """
    A, tau = _reflectors("householder_product", A, tau)
    return _householder_product_operator(A, tau)


def apply_q(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Q other, or other Q with left=False, as torch.ormqr.

    Q = H_1 … H_k is M × M, and transpose=True takes Qᵀ in its place. `input` and `tau` are the reflectors, as from
    `geqrf`.
    """
    A, tau = _reflectors("apply_q", input, tau)
    C, _ = _matrix("apply_q", other, None)
    A, tau, C = _of_one_type("apply_q", A, tau, C)
    if C.shape[-2 if left else -1] != A.shape[-2]:
        raise RuntimeError(f"quoin.torch.apply_q: other is {_shape(C)} and Q has {A.shape[-2]} rows")
    A, tau, C = _broadcast((A, 2), (tau, 1), (C, 2))
    if left:
        return _apply_q_operator(A, tau, C, transpose)
    return _apply_q_operator(A, tau, C.mT, not transpose).mT


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> LSTSQ:
    """The minimiser of ‖A X − B‖, or for M < N the solution of least norm, as torch.linalg.lstsq.

    B is (..., M) or (..., M, P). `residuals` are the squared norms of the columns of A X − B if M > N, for any rank,
    and empty otherwise.

    By default and with `driver` 'gels' A must have full rank. An A without it is not detected, and nothing waits for a
    GPU. 'gelsy' finds the rank, and for a deficient A the X of least norm. Singular values up to `rcond` (from 0 to 1,
    by default max(M, N) eps) times the largest count as zero. On a GPU it waits. An A without
    full rank has no derivative: there is a RuntimeError in its place.
    """
    if driver not in (None, "gels", "gelsy"):
        raise RuntimeError(f"quoin.torch.lstsq: driver must be 'gels' or 'gelsy', and is {driver!r}")
    if driver != "gelsy" and rcond is not None:
        raise RuntimeError("quoin.torch.lstsq: the driver 'gels' takes no rcond, as 'gelsy' does")
    A, _ = _matrix("lstsq", A, None)
    vector = B.dim() == 1 or (B.dim() == A.dim() - 1 and B.shape == A.shape[:-1])
    B, _ = _matrix("lstsq", B.unsqueeze(-1) if vector else B, None)
    A, B = _of_one_type("lstsq", A, B)
    m, n = A.shape[-2:]
    if B.shape[-2] != m:
        raise RuntimeError(f"quoin.torch.lstsq: A is {_shape(A)} and B has {B.shape[-2]} rows")
    empty = A.new_empty(0)
    rank = empty.long()
    if driver == "gelsy":
        X, E, rank = _any_rank_operator(*_broadcast((A, 2), (B, 2)), _rcond("lstsq", A, rcond))
    else:
        Q, R = _thin_qr(A if m >= n else A.mT)
        X, E = _solve_operator(*_broadcast((A, 2), (B, 2), (Q, 2), (R, 2)))
    residuals = E.square().sum(dim=-2) if m > n else A.new_empty(0)
    return LSTSQ(X.squeeze(-1) if vector else X, residuals, rank, empty)


def matrix_rank(A: Tensor, *, rtol: float | None = None) -> Tensor:
    """The number of singular values above `rtol` times the largest, as torch.linalg.matrix_rank, from R of A.

    A is (..., M, N) and the rank (...) of int64. `rtol` is max(M, N) eps by default.
    """
    A, _ = _matrix("matrix_rank", A, None)
    m, n = A.shape[-2:]
    R = _r_operator((A if m >= n else A.mT).detach())
    return torch.linalg.matrix_rank(R, atol=0.0, rtol=_rcond("matrix_rank", A, rtol))


def pinv(A: Tensor, *, rtol: float | None = None) -> Tensor:
    """The pseudoinverse (..., N, M), as torch.linalg.pinv, from A = Q R: A⁺ = R⁺ Qᵀ.

    Singular values up to `rtol` (from 0 to 1, by default max(M, N) eps) times the largest count as zero. An A without
    full rank has no derivative: there is a RuntimeError in its place. On a GPU the call waits.
    """
    A, _ = _matrix("pinv", A, None)
    is_wide = A.shape[-2] < A.shape[-1]
    Q, R = _thin_qr(A.mT if is_wide else A)
    X = _any_rank_operator(R, Q.mT, _rcond("pinv", A, rtol))[0]
    return X.mT if is_wide else X


# ---- checks of arguments, with errors as PyTorch's own ---------------------------------------------------------------


def _shape(A: Tensor) -> str:
    return "x".join(map(str, A.shape))


def _matrix(function: str, A: Any, dtype: torch.dtype | None) -> tuple[Tensor, torch.dtype]:
    """Returns A in the type of the computation, and the type of the results."""
    if not isinstance(A, Tensor):
        raise TypeError(f"quoin.torch.{function}(): argument must be Tensor, not {type(A).__name__}")
    if A.dim() < 2:
        raise RuntimeError(f"quoin.torch.{function}: the tensor must have at least 2 dimensions, and has {A.dim()}")
    if not A.dtype.is_floating_point:
        raise RuntimeError(f"quoin.torch.{function}: expected a floating point tensor, and got {A.dtype}")
    if dtype is not None and not dtype.is_floating_point:
        raise RuntimeError(f"quoin.torch.{function}: dtype must be a floating point type, and is {dtype}")
    computed = A if A.dtype in _COMPUTED else A.float()
    return computed, dtype or computed.dtype


def _rcond(function: str, A: Tensor, rcond: float | None) -> float:
    """Returns `rcond`, by default PyTorch's max(M, N) eps."""
    if rcond is None:
        return max(A.shape[-2:]) * torch.finfo(A.dtype).eps
    if not 0 <= rcond <= 1:
        raise RuntimeError(f"quoin.torch.{function}: the tolerance must be from 0 to 1, and is {rcond}")
    return float(rcond)


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
    """Broadcasts the leading dimensions of pairs (tensor, last), which are all but its `last` last ones."""
    leading = torch.broadcast_shapes(*(tensor.shape[: tensor.dim() - last] for tensor, last in tensors))
    return [tensor.expand(*leading, *tensor.shape[tensor.dim() - last :]) for tensor, last in tensors]


# ---- operators -------------------------------------------------------------------------------------------------------

_library = torch.library.Library("quoin", "DEF")


def _autocast_off(device: torch.device) -> Any:
    """Returns a context that has PyTorch's products keep the type of their factors."""
    if torch.is_autocast_enabled(device.type):
        return torch.autocast(device.type, enabled=False)
    return contextlib.nullcontext()


def _dispatched(operator: Callable[..., Any], *inputs: Any) -> Any:
    # autocast is off at the levels of torch.func too, which an operator cannot change once it is called
    with _autocast_off(inputs[0].device):
        return operator(*inputs)


def _no_derivative(*_: Any) -> Any:
    raise RuntimeError("the derivative of this operator of quoin.torch is not implemented")


def _tensors(inputs: tuple[Any, ...]) -> list[Tensor]:
    return [x for x in inputs if isinstance(x, Tensor)]


def _records(tensors: list[Tensor]) -> bool:
    """Whether autograd records a call with these inputs."""
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def _define(
    schema: str,
    kernel: Callable[..., Any],
    fake: Callable[..., Any],
    saved: slice = slice(0),
    gradients: Callable[..., Any] = _no_derivative,
    tangents: Callable[..., Any] = _no_derivative,
    instead: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Defines the operator `schema`.

    `kernel` computes it and `fake` makes results of the right shapes, both for any leading dimensions. `saved` selects
    the tensors that the derivatives need from the operator's tensors, inputs first, then outputs. `gradients` makes the
    gradients of the input tensors from the gradients of the outputs. `tangents` makes the tangents of the outputs from
    the tangents of the input tensors. Both are called with the saved tensors, the other inputs, and the given gradients
    or tangents, with None for zero. `instead` is called in place of the operator if autograd records.

    Returns the function that quoin.torch calls for the operator. It bypasses PyTorch's dispatcher if that makes no
    difference.
    """
    name = schema.partition("(")[0]
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order))
    operator = getattr(torch.ops.quoin, name).default

    def computed(*inputs: Any) -> Any:
        with torch._C._AutoDispatchBelowADInplaceOrView():  # a transposed result is no view for autograd
            return kernel(*inputs)

    for device in ("CPU", "CUDA"):
        _library.impl(name, computed, device)
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

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        outputs = output if isinstance(output, tuple) else (output,)
        tensors = _tensors((*inputs, *outputs))[saved]
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        ctx.others = tuple(x for x in inputs if not isinstance(x, Tensor))
        ctx.set_materialize_grads(False)

    def backward(ctx: Any, *its: Tensor | None) -> Any:
        tensors = ctx.saved_tensors
        if all(gradient is None for gradient in its):
            return (None,) * len(ctx.needs_input_grad)
        with _autocast_off(tensors[0].device) if tensors else contextlib.nullcontext():
            return *gradients(*tensors, *ctx.others, *its), *(None for _ in ctx.others)

    def jvp(ctx: Any, *its: Any) -> Any:
        # with only the derivatives of the levels below
        tensors = [torch.ops.aten._fw_primal(x, 0) for x in ctx.saved_tensors]
        with forward_ad._set_fwd_grad_enabled(True):
            return tangents(*tensors, *ctx.others, *its[: len(its) - len(ctx.others)])

    def at_one_level(*inputs: Any) -> Any:
        # below are other levels of torch.func; PyTorch has switched off their derivatives together with this level's
        with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True), torch._C._AutoDispatchBelowAutograd():
            return operator(*inputs)

    # torch.func has split its levels before it calls an operator, so that a Function of one level is enough
    methods = {"forward": at_one_level, "setup_context": setup_context, "backward": backward, "jvp": jvp}
    one_level = torch.autograd.function._SingleLevelFunction
    function = type(name, (one_level,), {key: staticmethod(method) for key, method in methods.items()})

    def record(*inputs: Any) -> Any:
        if instead is not None and _records(_tensors(inputs)):
            return instead(*inputs)
        with enable_single_level_autograd_function():
            return function.apply(*inputs)

    _library.impl(name, record, "Autograd")

    def call(*inputs: Any) -> Any:
        tensors = _tensors(inputs)
        if torch.compiler.is_dynamo_compiling() or not (_no_mode() and all(map(_is_plain, tensors))) or _records(tensors):
            return _dispatched(operator, *inputs)
        return computed(*inputs)

    return call


def _keys(*names: str) -> int:
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, names[0]))
    for name in names[1:]:
        keys = keys.add(getattr(torch._C.DispatchKey, name))
    return keys.raw_repr()


_PLAIN = {
    keys
    for device in ("CPU", "CUDA")
    for keys in (_keys(device, "ADInplaceOrView", f"Autograd{device}", f"Autocast{device}"), _keys(device, f"Autocast{device}"))
}
_OWN_TYPES = (Tensor, torch.nn.Parameter)
_NO_MODE = {_keys("BackendSelect", "ADInplaceOrView"), _keys("BackendSelect")}
_keys_of, _modes = torch._C._dispatch_keys, torch._C._dispatch_tls_local_include_set


def _no_mode() -> bool:
    """Whether a call is eager, without a transformation, a mode of PyTorch's dispatcher, or a forward derivative."""
    return _modes().raw_repr() in _NO_MODE and forward_ad._current_level < 0


def _is_plain(A: Tensor) -> bool:
    """Whether PyTorch's dispatcher would only record autograd for A, which is no subclass and has no negative bit."""
    return type(A) in _OWN_TYPES and _keys_of(A).raw_repr() in _PLAIN


def _empty(like: Tensor, rows: Any, cols: Any) -> Tensor:
    """Returns an empty tensor as results are stored, each matrix by columns."""
    return like.new_empty(*like.shape[:-2], cols, rows).mT


def _smaller(A: Tensor) -> Any:
    return torch.sym_min(*A.shape[-2:])


def _quoin_qr(A: Tensor, mode: str, pivoting: bool = False) -> Any:
    with torch._C._AutoDispatchBelowADInplaceOrView():
        return _functions.qr(A.detach(), mode=mode, check_finite=False, pivoting=pivoting)


_to_capsule, _from_capsule = torch._C._to_dlpack, torch._C._from_dlpack


def _qr(A: Tensor, complete: bool) -> tuple[Tensor, Tensor]:
    if not A.is_cuda and not complete:
        Q, R = _core.tensor_qr(_to_capsule(A), True)
        return _from_capsule(Q), _from_capsule(R)
    Q, R = _quoin_qr(A, "complete" if complete else "reduced")
    return Q, R


def _fake_qr(A: Tensor, complete: bool) -> tuple[Tensor, Tensor]:
    m, n = A.shape[-2:]
    k = m if complete else _smaller(A)
    return _empty(A, m, k), _empty(A, k, n)


def _pivoted_qr(A: Tensor, complete: bool) -> tuple[Tensor, Tensor, Tensor]:
    def factored(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        Q, R, P = _quoin_qr(A, "complete" if complete else "reduced", pivoting=True)
        return Q, R, torch.as_tensor(P, device=A.device)

    return _each(factored, _fake_pivoted_qr(A, complete), A)


def _fake_pivoted_qr(A: Tensor, complete: bool) -> tuple[Tensor, Tensor, Tensor]:
    return *_fake_qr(A, complete), A.new_empty(*A.shape[:-2], A.shape[-1], dtype=torch.int64)


def _any_rank(A: Tensor, B: Tensor, rcond: float) -> tuple[Tensor, Tensor, Tensor]:
    """Returns X, B − A X if A is tall or an empty tensor, and the rank."""
    X, E, rank = results = _fake_any_rank(A, B, rcond)
    found = _functions.lstsq(A.detach(), B.detach(), rcond, check_finite=False)
    X.copy_(found.x), rank.copy_(torch.as_tensor(found.rank))
    if E.numel():
        with _autocast_off(A.device):
            E.copy_(B - A @ X)
    return results


def _fake_any_rank(A: Tensor, B: Tensor, rcond: float) -> tuple[Tensor, Tensor, Tensor]:
    m, n = A.shape[-2:]
    return _empty(B, n, B.shape[-1]), _empty(B, m if m > n else 0, B.shape[-1]), A.new_empty(A.shape[:-2], dtype=torch.int64)


def _of_full_rank(A: Tensor, missing: Tensor) -> Tensor:
    if bool((missing > 0).any()):
        raise RuntimeError("quoin.torch: a matrix without full rank has no derivative here, and there is one in this call")
    return _empty(A, *A.shape[-2:]).copy_(A)


def _r(A: Tensor) -> Tensor:
    if not A.is_cuda:
        return _from_capsule(_core.tensor_qr(_to_capsule(A), False)[1])
    return _quoin_qr(A, "r")


def _geqrf(A: Tensor) -> tuple[Tensor, Tensor]:
    h, tau = _quoin_qr(A, "raw")
    return h.mT, tau


def _apply_q(A: Tensor, tau: Tensor, C: Tensor, transpose: bool) -> Tensor:
    V = A[..., : tau.shape[-1]]
    return _each(lambda V, tau, C: (_functions.from_raw(V.mT, tau).apply(C, transpose),), (_empty(C, *C.shape[-2:]),), V, tau, C)[0]


def _householder_product(A: Tensor, tau: Tensor) -> Tensor:
    m, n = A.shape[-2:]
    if tau.shape[-1] < n:
        return _apply_q(A, tau, torch.eye(m, n, dtype=A.dtype, device=A.device).expand_as(A), False)
    return _each(lambda A, tau: (_functions.from_raw(A.mT, tau).q(),), (_empty(A, m, n),), A, tau)[0]


def _each(call: Any, results: Any, *stacks: Tensor) -> Any:
    """Sets the parts of `results` for each matrix to `call` of the matrices of `stacks`, and returns `results`."""
    for index in itertools.product(*map(range, results[0].shape[:-2])):
        for result, part in zip(results, call(*(stack[index].detach() for stack in stacks))):
            result[index] = part
    return results


def _solve(A: Tensor, B: Tensor, Q: Tensor, R: Tensor) -> tuple[Tensor, Tensor]:
    """Returns X of `lstsq` from Q and R of A (of Aᵀ if A is wide), and B − A X if A is tall, else an empty tensor."""
    m, n = A.shape[-2:]
    with _autocast_off(A.device):
        X = _over(R, Q.mT @ B) if m >= n else Q @ _under(R, B)
        return X, B - A @ X if m > n else A.new_empty(*A.shape[:-2], 0)


# ---- derivatives -----------------------------------------------------------------------------------------------------


def _over(R: Tensor, B: Tensor) -> Tensor:
    """Returns R⁻¹ B."""
    return torch.linalg.solve_triangular(R, B, upper=True)


def _under(R: Tensor, B: Tensor) -> Tensor:
    """Returns R⁻ᵀ B."""
    return torch.linalg.solve_triangular(R.mT, B, upper=False)


def _times_inverse(B: Tensor, R: Tensor) -> Tensor:
    """Returns B R⁻¹."""
    return torch.linalg.solve_triangular(R, B, upper=True, left=False)


def _first(A: Tensor, k: int) -> Tensor:
    """Returns the first k columns."""
    # a slice of all columns has no rule for some of PyTorch's transformations
    return A if A.shape[-1] == k else A[..., :k]


def _or_zeros(derivative: Tensor | None, like: Tensor) -> Tensor:
    return torch.zeros_like(like) if derivative is None else derivative


def _qr_gradients(Q: Tensor, R: Tensor, complete: bool, gQ: Tensor | None, gR: Tensor | None) -> tuple[Tensor]:
    """Returns the gradient of A = Q R from the gradients of Q (M × K) and R (K × N).

    See Walter and Lehmann (2018), and for M < N Roberts and Roberts (2020). With A = [X Y] and R = [R₁ R₂]:

    Y = Q R₂ gives gY = Q gR₂, and adds Y gR₂ᵀ to gQ;
    gX = (gQ + Q S) R₁⁻ᵀ,    S symmetric with the upper triangle of gR₁ R₁ᵀ − Qᵀ gQ.
    """
    k, n = Q.shape[-1], R.shape[-1]
    if k > n:
        _refuse_complete()
    gQ, gR = _or_zeros(gQ, Q), _or_zeros(gR, R)
    R1, gR1 = _first(R, k), _first(gR, k)
    if n > k:
        R2, gR2 = R[..., k:], gR[..., k:]
        gQ = gQ + Q @ (R2 @ gR2.mT)
    P = (gR1 @ R1.mT - Q.mT @ gQ).triu()
    gX = torch.linalg.solve_triangular(R1.mT, gQ + Q @ (P + P.triu(1).mT), upper=False, left=False)
    return (torch.cat([gX, Q @ gR2], dim=-1) if n > k else gX,)


_LARGEST_OF_LOOPS = 1 << 14  # up to this M K N plain loops take less time than PyTorch's products


class _ThinQR(torch.autograd.Function):
    """The operator qr for plain tensors in eager calls. It takes less time than PyTorch's dispatcher."""

    @staticmethod
    def forward(ctx: Any, A: Tensor) -> tuple[Tensor, Tensor]:
        Q, R = _qr(A, False)
        ctx.save_for_backward(Q, R)
        ctx.set_materialize_grads(False)
        return Q, R

    @staticmethod
    def backward(ctx: Any, gQ: Tensor | None, gR: Tensor | None) -> Tensor:
        Q, R = ctx.saved_tensors
        if Q.shape[-2] * R.shape[-2] * R.shape[-1] <= _LARGEST_OF_LOOPS and not Q.is_cuda and not torch.is_grad_enabled():
            if _no_mode() and _is_plain(Q) and _is_plain(R) and (gQ is None or _is_plain(gQ)) and (gR is None or _is_plain(gR)):
                gQ, gR = gQ if gQ is None else _to_capsule(gQ), gR if gR is None else _to_capsule(gR)
                return _from_capsule(_core.tensor_qr_gradient(_to_capsule(Q), _to_capsule(R), gQ, gR))
        with _autocast_off(Q.device):
            return _qr_gradients(Q, R, False, gQ, gR)[0]


def _thin_qr(A: Tensor) -> tuple[Tensor, Tensor]:
    if torch.compiler.is_dynamo_compiling() or not (_no_mode() and _is_plain(A)):
        return _dispatched(torch.ops.quoin.qr, A, False)
    return _ThinQR.apply(A) if A.requires_grad and torch.is_grad_enabled() else _qr(A, False)


def _qr_tangents(Q: Tensor, R: Tensor, complete: bool, dA: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the tangents of Q and R from the tangent of A.

    With A = [X Y], R = [R₁ R₂], C = dX R₁⁻¹ and the skew W with the strict lower triangle of Qᵀ C:

    dQ = C − Q (QᵀC − W),    dR₁ = (QᵀC − W) R₁,    dR₂ = Qᵀ (dY − dQ R₂).
    """
    k, n = Q.shape[-1], R.shape[-1]
    if k > n:
        _refuse_complete()
    R1 = _first(R, k)
    C = _times_inverse(_first(dA, k), R1)
    B = Q.mT @ C
    upper = B.triu() + B.tril(-1).mT
    dQ, dR = C - Q @ upper, upper @ R1
    if n > k:
        dR = torch.cat([dR, Q.mT @ (dA[..., k:] - dQ @ R[..., k:])], dim=-1)
    return dQ, dR


def _moved(A: Tensor, P: Tensor) -> Tensor:
    """Returns A[:, P] for each matrix of a stack."""
    return A.gather(-1, P.unsqueeze(-2).expand(A.shape))


def _known_full_rank(Q: Tensor, R: Tensor) -> Tensor:
    """Returns R with pivots, if no entry of its diagonal is 0 up to rounding errors."""
    pivots = R.diagonal(dim1=-2, dim2=-1).detach().abs()
    least = max(Q.shape[-2], R.shape[-1]) * torch.finfo(R.dtype).eps
    return _full_rank_operator(R, (pivots <= least * pivots[..., :1]).sum(-1))


def _pivoted_qr_gradients(
    Q: Tensor, R: Tensor, P: Tensor, complete: bool, gQ: Tensor | None, gR: Tensor | None, _: Any
) -> tuple[Tensor]:
    return (_moved(_qr_gradients(Q, _known_full_rank(Q, R), complete, gQ, gR)[0], P.argsort(-1)),)


def _pivoted_qr_tangents(Q: Tensor, R: Tensor, P: Tensor, complete: bool, dA: Tensor) -> tuple[Tensor, Tensor, None]:
    return *_qr_tangents(Q, _known_full_rank(Q, R), complete, _moved(dA, P)), None


def _refuse_complete() -> None:
    raise RuntimeError("The derivative of quoin.torch.qr is not implemented for mode='complete' and M > N")


def _compact(A: Tensor, tau: Tensor) -> tuple[Tensor, ...]:
    """Returns V, D, U, M and T of Q = I − V T Vᵀ (Joffrain et al. 2006).

    D = diag(tau), U is the strict upper triangle of VᵀV, M = I + D U and T = M⁻¹ D.
    """
    k = tau.shape[-1]
    V = A[..., :k].tril(-1) + torch.eye(A.shape[-2], k, dtype=A.dtype, device=A.device)
    D = torch.diag_embed(tau)
    U = (V.mT @ V).triu(1)
    M = D @ U + torch.eye(k, dtype=A.dtype, device=A.device)
    return V, D, U, M, _over(M, D)


def _apply_q_gradients(A: Tensor, tau: Tensor, C: Tensor, transpose: bool, gY: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the gradients of A, tau and C from the gradient of Y = C − V S, with S = op(T) P and P = Vᵀ C."""
    V, D, U, M, T = _compact(A, tau)
    opT = T.mT if transpose else T
    P = V.mT @ C
    gS = -V.mT @ gY
    gP = opT.mT @ gS
    gC = gY + V @ gP
    gT = P @ gS.mT if transpose else gS @ P.mT
    gD = _under(M, gT)
    gM = -gD @ T.mT
    gU = (D @ gM).triu(1)
    gV = C @ gP.mT - gY @ (opT @ P).mT + V @ (gU + gU.mT)
    gtau = gD.diagonal(dim1=-2, dim2=-1) + (gM * U).sum(-1)
    gA = torch.cat([gV.tril(-1), torch.zeros_like(A[..., tau.shape[-1] :])], dim=-1)
    return gA, gtau, gC


def _apply_q_tangents(
    A: Tensor, tau: Tensor, C: Tensor, transpose: bool, dA: Tensor | None, dtau: Tensor | None, dC: Tensor | None
) -> Tensor:
    """Returns the tangent of Y = C − V op(T) Vᵀ C, with dT from M T = D."""
    V, D, U, M, T = _compact(A, tau)
    dV = _or_zeros(dA, A)[..., : tau.shape[-1]].tril(-1)
    dD = torch.diag_embed(_or_zeros(dtau, tau))
    dC = _or_zeros(dC, C)
    dU = (dV.mT @ V + V.mT @ dV).triu(1)
    dT = _over(M, dD - (dD @ U + D @ dU) @ T)
    if transpose:
        T, dT = T.mT, dT.mT
    P = V.mT @ C
    return dC - dV @ (T @ P) - V @ (dT @ P + T @ (dV.mT @ C + V.mT @ dC))


def _columns_of_identity(A: Tensor) -> Tensor:
    return torch.eye(*A.shape[-2:], dtype=A.dtype, device=A.device).expand_as(A)


def _solve_gradients(
    A: Tensor, B: Tensor, Q: Tensor, R: Tensor, X: Tensor, E: Tensor, gX: Tensor | None, gE: Tensor | None
) -> tuple[Tensor | None, ...]:
    """Returns the gradients of A and B from the gradients of X and E = B − A X.

    Q and R depend on A, so that their gradients are included in A's, and None is returned for them.

    For full column rank, with G = gX − Aᵀ gE, W = (AᵀA)⁻¹ G, Z = A W + gE:    gA = E Wᵀ − Z Xᵀ, gB = Z.
    For full row rank, with Y = (A Aᵀ)⁻¹ B, Z = (A Aᵀ)⁻¹ A gX:    gA = Y (gX − Aᵀ Z)ᵀ − Z Xᵀ, gB = Z.
    """
    m, n = A.shape[-2:]
    gX = _or_zeros(gX, X)
    if m < n:
        V = Q.mT @ gX
        Z = _over(R, V)
        return _over(R, _under(R, B)) @ (gX - Q @ V).mT - Z @ X.mT, Z, None, None
    if m == n:
        Z = Q @ _under(R, gX)
        return -Z @ X.mT, Z, None, None
    gE = _or_zeros(gE, E)
    V = _under(R, gX - A.mT @ gE)
    Z = Q @ V + gE
    return E @ _over(R, V).mT - Z @ X.mT, Z, None, None


def _solve_tangents(
    A: Tensor, B: Tensor, Q: Tensor, R: Tensor, X: Tensor, E: Tensor, dA: Tensor | None, dB: Tensor | None, dQ: Any, dR: Any
) -> tuple[Tensor, Tensor]:
    """Returns the tangents of X and E = B − A X. With C = dB − dA X:

    dE = C − A dX,
    dX = R⁻¹ (Qᵀ C + R⁻ᵀ dAᵀ E) for full column rank,    dX = Q R⁻ᵀ C + (I − Q Qᵀ) dAᵀ (A Aᵀ)⁻¹ B for full row rank.
    """
    m, n = A.shape[-2:]
    dA = _or_zeros(dA, A)
    C = _or_zeros(dB, B) - dA @ X
    if m < n:
        G = dA.mT @ _over(R, _under(R, B))
        return Q @ (_under(R, C) - Q.mT @ G) + G, torch.zeros_like(E)
    if m == n:
        return _over(R, Q.mT @ C), torch.zeros_like(E)
    dX = _over(R, Q.mT @ C + _under(R, dA.mT @ E))
    return dX, C - A @ dX


def _factored_at_full_rank(A: Tensor, X: Tensor, rank: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns A, and Q and R of A, or of Aᵀ if A is wide. A matrix whose X is not finite counts as one of full rank."""
    m, n = A.shape[-2:]
    A = _full_rank_operator(A, (min(m, n) - rank) * X.detach().isfinite().flatten(-2).all(-1))
    return A, *_thin_qr(A if m >= n else A.mT)


def _any_rank_gradients(
    A: Tensor, B: Tensor, X: Tensor, E: Tensor, rank: Tensor, rcond: float, gX: Tensor | None, gE: Tensor | None, _: Any
) -> tuple[Tensor | None, ...]:
    A, Q, R = _factored_at_full_rank(A, X, rank)
    return _solve_gradients(A, B, Q, R, X, E, gX, gE)[:2]


def _any_rank_tangents(
    A: Tensor, B: Tensor, X: Tensor, E: Tensor, rank: Tensor, rcond: float, dA: Tensor | None, dB: Tensor | None
) -> tuple[Tensor, Tensor, None]:
    A, Q, R = _factored_at_full_rank(A, X, rank)
    return *_solve_tangents(A, B, Q, R, X, E, dA, dB, None, None), None


_complete_qr = _define("qr(Tensor A, bool complete) -> (Tensor, Tensor)", _qr, _fake_qr, slice(1, 3), _qr_gradients, _qr_tangents)
_full_rank_operator = _define(
    "of_full_rank(Tensor A, Tensor missing) -> Tensor",
    _of_full_rank,
    lambda A, missing: _empty(A, *A.shape[-2:]),
    gradients=lambda gA: (gA, None),
    tangents=lambda dA, _: dA,
)
_pivoted_operator = _define(
    "pivoted_qr(Tensor A, bool complete) -> (Tensor, Tensor, Tensor)",
    _pivoted_qr,
    _fake_pivoted_qr,
    slice(1, 4),
    _pivoted_qr_gradients,
    _pivoted_qr_tangents,
)
_any_rank_operator = _define(
    "lstsq(Tensor A, Tensor B, float rcond) -> (Tensor, Tensor, Tensor)",
    _any_rank,
    _fake_any_rank,
    slice(0, 5),
    _any_rank_gradients,
    _any_rank_tangents,
)
_r_operator = _define(
    "r(Tensor A) -> Tensor",
    _r,
    lambda A: _empty(A, _smaller(A), A.shape[-1]),
    slice(0, 2),
    tangents=lambda A, R, dA: _qr_tangents(_times_inverse(_first(A, R.shape[-2]), _first(R, R.shape[-2])), R, False, dA)[1],
    instead=lambda A: torch.ops.quoin.qr(A, False)[1],  # computes Q as well, because gradients need it
)
_geqrf_operator = _define(
    "geqrf(Tensor A) -> (Tensor, Tensor)",
    _geqrf,
    lambda A: (_empty(A, *A.shape[-2:]), A.new_empty(*A.shape[:-2], _smaller(A))),
)
_householder_product_operator = _define(
    "householder_product(Tensor A, Tensor tau) -> Tensor",
    _householder_product,
    lambda A, tau: _empty(A, *A.shape[-2:]),
    slice(0, 2),
    lambda A, tau, gQ: _apply_q_gradients(A, tau, _columns_of_identity(A), False, gQ)[:2],
    lambda A, tau, dA, dtau: _apply_q_tangents(A, tau, _columns_of_identity(A), False, dA, dtau, None),
)
_apply_q_operator = _define(
    "apply_q(Tensor A, Tensor tau, Tensor C, bool transpose) -> Tensor",
    _apply_q,
    lambda A, tau, C, transpose: _empty(C, *C.shape[-2:]),
    slice(0, 3),
    _apply_q_gradients,
    _apply_q_tangents,
)
_solve_operator = _define(
    "solve(Tensor A, Tensor B, Tensor Q, Tensor R) -> (Tensor, Tensor)", _solve, _solve, slice(0, 6), _solve_gradients, _solve_tangents
)


# ---- PyTorch's own operators -----------------------------------------------------------------------------------------


class override:
    """Serves PyTorch's own operators where Quoin is faster.

    These are torch.linalg.qr, torch.geqrf, torch.ormqr, torch.linalg.householder_product and torch.linalg.lstsq, for
    float32 and float64 on the CPU and on a GPU, also where PyTorch or another package calls them. Other inputs and the
    variants with out= go to PyTorch's kernels, with the same bits as before. The kernels of the devices are replaced,
    and no others: derivatives of all kinds, vmap, torch.compile and the checks of arguments are PyTorch's.

    The call takes effect at once, in all threads. Leaving the block, or `end`, undoes this call and no other, so that
    blocks may be nested and overlap.

    Notes
    -----
    As in torch.linalg, the signs of R's diagonal are not fixed. lstsq factors [A B] and gives PyTorch's kernel the
    triangle, so that each driver decides the rank as before.

    Needs PyTorch 2.9. After the first call in a process an operator that is not served takes 2 µs more.

    Examples
    --------
    >>> import torch, quoin.torch
    >>> A = torch.randn(100_000, 20)
    >>> with quoin.torch.override():
    ...     Q, R = torch.linalg.qr(A)
    >>> bool((Q @ R - A).norm() < 1e-5 * A.norm())
    True
    """

    def __init__(self) -> None:
        _replace_kernels()
        _in_effect.add(self)

    def end(self) -> None:
        """Undoes the call. A second `end` does nothing."""
        _in_effect.discard(self)

    def __enter__(self) -> "override":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


_in_effect: set[override] = set()
_replacing = threading.Lock()
_replaced: list[torch.library.Library] = []


def _replace_kernels() -> None:
    """Registers the kernels, once and for the life of the process: a kernel that another thread runs must not go."""
    if not hasattr(torch.library, "get_kernel"):
        raise RuntimeError(f"quoin.torch.override needs PyTorch 2.9 or later, and this is {torch.__version__}")
    with _replacing, warnings.catch_warnings():
        if _replaced:
            return
        warnings.simplefilter("ignore")  # some versions of PyTorch warn of each kernel that is replaced
        library = torch.library.Library("aten", "IMPL")
        has_cuda = hasattr(_core, "cuda") and torch.backends.cuda.is_built()
        for name, kernel, on_gpus in (
            ("linalg_qr", _qr_or_not, True),
            ("geqrf", _geqrf_or_not, True),
            ("linalg_lstsq", _lstsq_or_not, True),
            ("linalg_householder_product", _householder_product_or_not, False),
            ("ormqr", _ormqr_or_not, False),
        ):
            for device in ("CPU", "CUDA") if on_gpus and has_cuda else ("CPU",):
                before = torch.library.get_kernel(f"aten::{name}", device)
                library.impl(name, _either(kernel, before.call_boxed), device, with_keyset=True)
        _replaced.append(library)


def _either(kernel: Callable[..., Any], before: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a kernel that calls `kernel` while an override is in effect, and `before` for inputs that it declines."""

    def call(keys: Any, A: Tensor, *inputs: Any, **options: Any) -> Any:
        if _in_effect and A.dtype in _COMPUTED and A.dim() >= 2 and A.numel():
            result = kernel(A, *inputs, **options)
            if result is not NotImplemented:
                return result
        return before(keys, A, *inputs, **options)

    return call


def _worth(A: Tensor, columns: int, least: float, stacked: bool = True) -> bool:
    """Whether Quoin takes less time than PyTorch for matrices of the shape of A, by the work of a call.

    The work is 2 M K `columns` flops for each matrix, K = min(M, N), and 1000 for PyTorch's call. `least` is the work
    from which Quoin's call pays, for the stack or, if not `stacked`, for each of its matrices. It was measured on a CPU
    (AMD EPYC, PyTorch 2.15 with MKL).
    """
    m, n = A.shape[-2:]
    work = 2.0 * m * min(m, n) * columns + 1000
    return work * (A.numel() // (m * n) if stacked else 1) >= least


_LEAST_ENTRIES = 20  # for Q and R, where _worth would take as long as what it decides


def _qr_or_not(A: Tensor, mode: str = "reduced") -> Any:
    if mode == "reduced":
        return _qr(A, False) if A.numel() >= _LEAST_ENTRIES else NotImplemented
    if mode not in ("complete", "r") or not _worth(A, max(A.shape[-2:]), 3e5 if mode == "complete" else 1.5e4):
        return NotImplemented
    return _qr(A, True) if mode == "complete" else (A.new_empty(0), _r(A))


def _geqrf_or_not(A: Tensor) -> Any:
    return _geqrf(A) if _worth(A, A.shape[-1], 3e5) else NotImplemented


def _are_reflectors(A: Tensor, tau: Tensor) -> bool:
    m, n, k = *A.shape[-2:], tau.shape[-1] if tau.dim() else 0
    return m >= n >= k and tau.shape == (*A.shape[:-2], k) and _alike(A, tau)


def _alike(A: Tensor, B: Tensor) -> bool:
    return A.dtype == B.dtype and A.device == B.device


def _householder_product_or_not(A: Tensor, tau: Tensor) -> Any:
    if not _are_reflectors(A, tau) or not _worth(A, A.shape[-1], 2e6, stacked=False):
        return NotImplemented
    return _householder_product(A, tau)


def _ormqr_or_not(A: Tensor, tau: Tensor, C: Tensor, left: bool = True, transpose: bool = False) -> Any:
    B = C if left or C.dim() < 2 else C.mT
    if (
        not _are_reflectors(A, tau)
        or not _alike(A, B)
        or B.shape[:-1] != A.shape[:-1]
        or B.shape[-1] < tau.shape[-1]  # T, which is formed, pays for many columns
        or not _worth(A, B.shape[-1], 2e6, stacked=False)
    ):
        return NotImplemented
    if left:
        return _apply_q(A, tau, C, transpose)
    return _empty(C, *C.shape[-2:]).copy_(_apply_q(A, tau, B, not transpose).mT)


def _lstsq_or_not(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """Has PyTorch's driver solve min ‖R X − C‖ in the place of min ‖A X − B‖.

    [A B] = Q [R C; 0 E], Q orthogonal, so that ‖A X − B‖² = ‖R X − C‖² + ‖E‖², and R has the singular values of A.
    """
    m, n = A.shape[-2:]
    vector = B.shape == A.shape[:-1]
    columns = B.unsqueeze(-1) if vector else B
    if m < 4 * n or columns.shape[:-1] != A.shape[:-1] or columns.shape[-1] > n or not _alike(A, B) or not _worth(A, n, 3e5):
        return NotImplemented
    T = _r(torch.cat([A, columns], dim=-1))
    if not T.isfinite().all():
        return NotImplemented
    R, C, E = T[..., :n, :n], T[..., :n, n:], T[..., n:, n:]
    driver = driver or ("gels" if A.is_cuda else "gelsy")
    rcond = torch.finfo(A.dtype).eps * m if rcond is None else rcond
    X, _, rank, values = torch.linalg.lstsq(R, C.squeeze(-1) if vector else C, rcond, driver=driver)
    # as PyTorch: no residuals by gelsy, and none if a rank is deficient
    known = driver != "gelsy" and bool((rank == n).all())
    return X, E.square().sum(dim=-2) if known else A.new_empty(0), rank, values
