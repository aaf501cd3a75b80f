"""quoin.torch: operators that obey the laws of QR, agree with torch.linalg, train, compile and batch."""

import doctest
import socket

import numpy as np
import pytest

import quoin
import quoin.distributed
from quoin._arrays import unconverted
from laws import assert_orthonormal, assert_product, assert_upper, bound

torch = pytest.importorskip("torch")
qt = pytest.importorskip("quoin.torch")

F64 = torch.float64
SHAPES = [(6, 4), (4, 4), (3, 5), (2, 7, 3), (2, 3, 4, 4), (2, 3, 6)]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


@pytest.fixture(params=DEVICES)
def device(request):
    torch.manual_seed(7)
    return request.param


def normal(*shape, dtype=F64, device="cpu", grad=False):
    return torch.randn(*shape, dtype=dtype, device=device, requires_grad=grad)


def host(tensor):
    return tensor.detach().cpu().numpy()


@pytest.mark.parametrize("shape", [*SHAPES, (0, 3), (3, 0), (0, 4, 3), (1, 1), (700, 30), (40, 33, 32)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, F64], ids=str)
def test_qr(shape, dtype, device):
    A = normal(*shape, dtype=dtype, device=device)
    m, n = shape[-2:]
    for mode in ("reduced", "complete"):
        Q, R = qt.qr(A, mode)
        theirs = torch.linalg.qr(A, mode)
        assert (Q.shape, R.shape, Q.dtype, Q.device) == (theirs.Q.shape, theirs.R.shape, dtype, A.device)
        assert_orthonormal(host(Q))
        assert_product(host(Q), host(R), host(A))
        assert_upper(host(R))
    empty, R = qt.qr(A, "r")
    assert empty.shape == (0,) and torch.allclose(R.abs(), torch.linalg.qr(A, "r").R.abs(), atol=1e-4)
    assert_orthonormal(host(qt.orthonormalize(A)))
    assert torch.allclose(qt.orthonormalize(A).abs(), qt.qr(A).Q.abs(), atol=1e-4)


def test_half_precision_is_computed_in_float32_and_rounded_once(device):
    for half in (torch.float16, torch.bfloat16):
        A = normal(300, 8, dtype=half, device=device)
        exact = qt.qr(A.float())
        Q, R = qt.qr(A)
        assert Q.dtype == R.dtype == torch.float32 and torch.equal(Q, exact.Q) and torch.equal(R, exact.R)
        Q, R = qt.qr(A, dtype=half)
        assert torch.equal(Q, exact.Q.to(half)) and torch.equal(R, exact.R.to(half))
        assert torch.equal(qt.orthonormalize(A, dtype=half), exact.Q.to(half))
        assert qt.lstsq(A, A[:, 0]).solution.dtype == torch.float32


def test_autocast_computes_in_float32(device):
    A = normal(50, 4, dtype=torch.float32, device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        B = A @ torch.eye(4, device=device)
        assert B.dtype == torch.bfloat16
        Q, R = qt.qr(B)
        assert torch.ops.quoin.qr(B, False)[0].dtype == torch.float32
    assert Q.dtype == torch.float32 and torch.equal(Q, qt.qr(B.float()).Q)


@pytest.mark.parametrize("shape", [(30, 6), (6, 6), (6, 30)], ids=str)
def test_derivatives_under_autocast_are_float32s(shape, device):
    A, T = normal(*shape, dtype=torch.float32, device=device), normal(*shape, dtype=torch.float32, device=device)
    B = normal(shape[0], 2, dtype=torch.float32, device=device)
    functions = [
        lambda A: qt.qr(A).Q.sin().sum() + qt.qr(A).R.cos().sum(),
        lambda A: qt.orthonormalize(A).sin().sum(),
        lambda A: qt.lstsq(A, B * A[:, :1]).solution.sin().sum(),
        lambda A: (qt.lstsq(A, B).residuals + 0 * A.sum()).sum(),
        lambda A: qt.qr(A, pivoting=True).Q.sin().sum() + qt.qr(A, pivoting=True).R.cos().sum(),
        lambda A: qt.lstsq(A, B * A[:, :1], driver="gelsy").solution.sin().sum(),
        lambda A: (qt.lstsq(A, B, driver="gelsy").residuals + 0 * A.sum()).sum(),
        lambda A: qt.pinv(A).sin().sum(),
    ]
    if shape[0] >= shape[1]:
        functions.append(lambda A: qt.householder_product(A / 9, A[0] / 9).sin().sum())
        functions.append(lambda A: qt.apply_q(A / 9, A[0] / 9, B).sin().sum())
    for f in functions:
        G = A.clone().requires_grad_()
        for derivative in (
            lambda: torch.autograd.grad(f(G), G)[0],
            lambda: torch.func.grad(f)(A),
            lambda: torch.func.jvp(f, (A,), (T,))[1],
        ):
            expected = derivative()
            with torch.autocast(device, dtype=torch.bfloat16):
                assert (A @ A.mT).dtype == torch.bfloat16
                assert torch.equal(derivative(), expected)
    with torch.autocast(device, dtype=torch.bfloat16):
        solution = qt.lstsq(A, B).solution
    exact = torch.linalg.lstsq(A.cpu().double(), B.cpu().double(), driver="gels").solution
    assert (solution.cpu() - exact).norm() < 1e-4 * exact.norm()


def test_nan_propagates_and_stays_in_its_matrix(device):
    A = normal(3, 20, 4, device=device)
    A[1, 5, 2] = torch.nan
    Q, R = qt.qr(A)
    assert R[1].isnan().any() and torch.equal(R[[0, 2]], qt.qr(A[[0, 2]]).R)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reflectors(shape, device):
    A = normal(*shape, device=device)
    a, tau = qt.geqrf(A)
    m, n = shape[-2:]
    theirs = torch.geqrf(A)
    assert (a.shape, tau.shape) == (theirs.a.shape, theirs.tau.shape)
    if m < n:
        return
    for k in {n, n - 1, 0}:
        some = tau[..., :k]
        Q = qt.householder_product(a, some)
        assert torch.allclose(Q, torch.linalg.householder_product(a, some), atol=1e-13)
        for left in (True, False):
            C = normal(*shape[:-2], *((m, 2) if left else (2, m)), device=device)
            for transpose in (True, False):
                expected = torch.ormqr(a[..., :k], some, C, left, transpose)
                assert torch.allclose(qt.apply_q(a, some, C, left, transpose), expected, atol=1e-13)
    assert_product(host(qt.householder_product(a, tau)), host(a[..., :n, :].triu()), host(A))
    one = normal(m, 2, device=device)  # for all matrices of the batch
    assert torch.allclose(qt.apply_q(a, tau, one), torch.ormqr(a, tau, one.expand(*shape[:-2], m, 2).contiguous()), atol=1e-13)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_lstsq(shape, device):
    A = normal(*shape, device=device)
    m, n = shape[-2:]
    for B in (normal(*shape[:-1], device=device), normal(*shape[:-1], 1, device=device), normal(*shape[:-1], 3, device=device)):
        ours, theirs = qt.lstsq(A, B), torch.linalg.lstsq(A.cpu(), B.cpu(), driver="gels")
        assert torch.allclose(ours.solution.cpu(), theirs.solution, atol=1e-10)
        assert ours.residuals.shape == theirs.residuals.shape
        assert torch.allclose(ours.residuals.cpu(), theirs.residuals, atol=1e-10)
        assert ours.rank.numel() == ours.singular_values.numel() == 0


EMPTY = [(0, 3), (3, 0), (0, 4, 3), (2, 0, 3), (2, 3, 0)]


@pytest.mark.parametrize("shape", [*SHAPES, *EMPTY, (1, 1), (700, 30), (40, 300)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, F64], ids=str)
def test_pivoting(shape, dtype, device):
    A = normal(*shape, dtype=dtype, device=device) * torch.linspace(0.1, 1, shape[-1], dtype=dtype, device=device)
    m, n = shape[-2:]
    for mode, k in (("reduced", min(m, n)), ("complete", m)):
        Q, R, P = qt.qr(A, mode, pivoting=True)
        assert (Q.shape, R.shape, P.shape) == ((*shape[:-1], k), (*shape[:-2], k, n), (*shape[:-2], n))
        assert (Q.dtype, R.dtype, P.dtype) == (dtype, dtype, torch.int64) and Q.device == R.device == P.device == A.device
        assert torch.equal(P.sort(-1).values, torch.arange(n, device=device).expand_as(P))
        assert_orthonormal(host(Q))
        assert_product(host(Q), host(R), host(A.gather(-1, P.unsqueeze(-2).expand_as(A))))
        assert_upper(host(R))
    empty, r, p = qt.qr(A, "r", pivoting=True)
    assert empty.shape == (0,) and torch.equal(p, P) and torch.equal(r, qt.qr(A, pivoting=True).R)
    if A.numel() > 0:
        alone = [quoin.qr(one, pivoting=True) for one in A.reshape(-1, m, n)]
        for one, mine, order in zip(alone, r.reshape(-1, *r.shape[-2:]), P.reshape(-1, n)):
            assert torch.equal(one.R, mine) and np.array_equal(one.P, order.cpu())
    assert qt.qr(A, pivoting=True, dtype=torch.float16).R.dtype == torch.float16


def deficient(m, n, rank, device, dtype=F64):
    """A matrix of integers, of this rank exactly, and its condition without the singular values that are 0."""
    L, R = torch.randint(-2, 3, (m, rank)), torch.randint(-2, 3, (rank, n))
    A = (L @ R).to(dtype).to(device)
    s = torch.linalg.svdvals(A.cpu().double())
    assert int((s > 1e-10 * s[:1]).sum()) == rank
    return A, float(s[0] / s[rank - 1]) if rank else 1.0


@pytest.mark.parametrize("m, n, rank", [(9, 4, 2), (4, 4, 3), (4, 9, 3), (5, 3, 0), (200, 20, 19), (12, 5, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, F64], ids=str)
def test_any_rank(m, n, rank, dtype, device):
    A, kappa = deficient(m, n, rank, device, dtype)
    B = normal(m, 2, dtype=dtype, device=device)
    X, residuals, found, values = qt.lstsq(A, B, driver="gelsy")
    inverse = torch.linalg.pinv(A.cpu().double(), rtol=1e-10)
    exact = inverse @ B.cpu().double()
    rest = (B.cpu().double() - A.cpu().double() @ exact).norm(dim=0)
    # Wedin (1973)
    allowed = 4 * bound(host(A)) * kappa * (exact.norm(dim=0) + kappa * rest / max(1, A.norm().item()))
    assert ((X.cpu().double() - exact).norm(dim=0) <= allowed).all() and found == rank == qt.matrix_rank(A) and values.numel() == 0
    assert residuals.shape == ((2,) if m > n else (0,))
    if m > n:
        terms = B.cpu().double().norm(dim=0) + A.cpu().double().norm() * exact.norm(dim=0)
        assert ((residuals.cpu().double().sqrt() - rest).abs() <= 4 * bound(host(A)) * terms).all()
    assert (qt.pinv(A).cpu().double() - inverse).norm() <= 4 * bound(host(A)) * kappa * inverse.norm()
    # beside a matrix of full rank, and one with NaN
    other = normal(m, n, dtype=dtype, device=device)
    stack = torch.stack([A, other, torch.full_like(A, torch.nan), A])
    of_stack = qt.lstsq(stack, B, driver="gelsy")
    assert of_stack.rank.tolist() == [rank, min(m, n), 0, rank] and of_stack.solution[2].isnan().all()
    assert ((of_stack.solution[[0, 3]].cpu().double() - exact).norm(dim=-2) <= allowed).all()
    assert qt.matrix_rank(stack[:2]).tolist() == [rank, min(m, n)]
    for call in (lambda A: qt.lstsq(A, B, driver="gelsy").solution, lambda A: qt.lstsq(A, B, driver="gelsy").rank, qt.pinv, qt.matrix_rank):
        assert torch.allclose(torch.vmap(call)(stack[:2]), torch.stack([call(A), call(other)]), rtol=1e-4, atol=1e-5)


def test_the_tolerance_decides_the_rank(device):
    A, b = torch.diag(torch.tensor([1, 1e-3, 1e-6], dtype=F64, device=device)), torch.ones(3, dtype=F64, device=device)
    for rcond, rank in ((None, 3), (1e-4, 2), (1e-2, 1), (1, 0)):
        found = qt.lstsq(A, b, rcond, driver="gelsy")
        expected = torch.tensor([1, 1e3, 1e6], dtype=F64, device=device) * (torch.arange(3, device=device) < rank)
        assert found.rank == rank == qt.matrix_rank(A, rtol=rcond) and torch.allclose(found.solution, expected, rtol=1e-12, atol=0)
        assert torch.allclose(qt.pinv(A, rtol=rcond), expected.diag(), rtol=1e-12, atol=0)


# ---- derivatives -----------------------------------------------------------------------------------------------------


def fixed_signs(Q, R):
    """Not the signs that rounding may turn."""
    signs = R.diagonal(dim1=-2, dim2=-1).detach().sign()
    return Q * signs.unsqueeze(-2), R * signs.unsqueeze(-1)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_of_first_and_second_order(shape, device):
    A = normal(*shape, device=device, grad=True)
    m, n = shape[-2:]
    functions = [lambda A: qt.qr(A), lambda A: qt.qr(A, "r").R, qt.orthonormalize]
    of_any_rank = len(shape) < 4  # a fourth dimension adds time alone
    if of_any_rank:
        functions += [lambda A: qt.qr(A, pivoting=True)[:2], qt.pinv]
    if m <= n:
        functions.append(lambda A: qt.qr(A, "complete"))
    for function in functions:
        assert torch.autograd.gradcheck(function, A, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)
        assert torch.autograd.gradgradcheck(function, A, check_fwd_over_rev=True)
    B = normal(*shape[:-1], 2, device=device, grad=True)
    outputs = slice(0, 2 if m > n else 1)
    for driver in ("gels", "gelsy")[: 1 + of_any_rank]:
        assert torch.autograd.gradcheck(lambda A, B: qt.lstsq(A, B, driver=driver)[outputs], (A, B), check_forward_ad=True)
        assert torch.autograd.gradgradcheck(lambda A, B: qt.lstsq(A, B, driver=driver)[outputs], (A, B), check_fwd_over_rev=True)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape[-2] >= shape[-1]], ids=str)
@pytest.mark.parametrize("left_out", [0, 1])
def test_gradients_of_reflectors(shape, left_out, device):
    a, tau = qt.geqrf(normal(*shape, device=device))
    tau = tau[..., : shape[-1] - left_out].clone()
    tau[..., 0] = 0  # H = I
    a, tau = a.requires_grad_(), tau.requires_grad_()
    C = normal(*shape[:-1], 2, device=device, grad=True)
    for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
        forward = {"check_forward_ad" if check is torch.autograd.gradcheck else "check_fwd_over_rev": True}
        assert check(qt.householder_product, (a, tau), **forward)
        for transpose in (True, False):
            assert check(lambda a, tau, C: qt.apply_q(a, tau, C, True, transpose), (a, tau, C), **forward)
    right = C.detach().mT.contiguous().requires_grad_()
    assert torch.autograd.gradcheck(lambda a, tau, C: qt.apply_q(a, tau, C, False), (a, tau, right))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_agree_with_torch(shape, device):
    A = normal(*shape, device=device, grad=True)
    W, V = normal(*shape[:-1], min(shape[-2:]), device=device), normal(*shape[:-2], min(shape[-2:]), shape[-1], device=device)
    gradients = []
    for qr in (qt.qr, torch.linalg.qr):
        Q, R = fixed_signs(*qr(A))
        gradients.append(torch.autograd.grad((Q * W).sum() + (R * V).sum(), A)[0])
    assert torch.allclose(*gradients, atol=1e-9)


@pytest.mark.parametrize("shape", [(6, 4), (3, 3), (3, 5), (2, 5, 3), (2, 2, 3, 4), (80, 40)], ids=str)
def test_the_gradient_by_loops_is_that_by_products(shape, device):
    k = min(shape[-2:])
    A = normal(*shape, device=device, grad=True)
    gQ, gR = normal(*shape[:-1], k, device=device), normal(*shape[:-2], k, shape[-1], device=device)
    gradients = [(gQ, gR), (gQ, None), (None, gR), (gQ.mT.contiguous().mT, gR[..., :1].expand_as(gR))]
    z = torch.complex(gQ, gQ)
    gradients.append((z.conj().imag, gR))  # with the bit for a negative
    for of_Q, of_R in gradients:
        outputs = [(x, g) for x, g in zip(qt.qr(A), (of_Q, of_R)) if g is not None]
        loops = torch.autograd.grad([x for x, _ in outputs], A, [g for _, g in outputs], retain_graph=True)[0]
        products = torch.autograd.grad([x for x, _ in outputs], A, [g for _, g in outputs], create_graph=True)[0]
        assert products.requires_grad and torch.allclose(loops, products, rtol=1e-10, atol=1e-10)


def test_a_is_not_kept_for_the_backward(device):
    for shape in ((6, 4), (4, 6)):
        A = normal(*shape, device=device, grad=True)
        B, kept = A * 1, []
        with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.data_ptr()) or x, lambda x: x):
            Q, R = qt.qr(B)
            X = qt.orthonormalize(B)
        assert len(kept) == 4 and B.data_ptr() not in kept
        B.zero_()
        (Q.sum() + R.sum() + X.sum()).backward()
        other = A.detach().clone().requires_grad_()
        Q, R = qt.qr(other)
        (2 * Q.sum() + R.sum()).backward()
        assert torch.allclose(A.grad, other.grad)


def nested(of):
    """Functions of A by quoin.torch and by torch.linalg, as pairs."""
    m, n = of.shape
    W, V, b = normal(m, min(m, n)), normal(min(m, n), n), normal(m, 2)

    def by(qr):
        def function(A):
            Q, R = qr(A)
            return (Q * Q[:1] * W).sum() + (R * R[:, :1] * V).sin().sum()

        return function

    yield by(qt.qr), by(torch.linalg.qr)
    yield lambda A: (qt.qr(A, "r").R ** 2 * V).sum(), lambda A: (torch.linalg.qr(A).R ** 2 * V).sum()
    yield tuple(lambda A, q=q: (q(A) * q(A)[:1] * W).sum() for q in (qt.orthonormalize, lambda A: torch.linalg.qr(A).Q))
    yield tuple(lambda A, s=s: s(A, b * A[:, :1]).solution.sin().sum() for s in (qt.lstsq, torch.linalg.lstsq))
    if m >= n:
        tau = torch.linspace(0.5, 1, n, dtype=F64)

        def reflected(A, tau, C, transpose):
            V = A.tril(-1) + torch.eye(m, n, dtype=F64)
            for i in range(n) if transpose else reversed(range(n)):
                C = C - tau[i] * V[:, i : i + 1] @ (V[:, i : i + 1].mT @ C)
            return C

        for transpose in (False, True):
            yield (lambda A, t=transpose: qt.apply_q(A, tau * A[0], b * A[:, :1], True, t).sin().sum(),
                   lambda A, t=transpose: reflected(A, tau * A[0], b * A[:, :1], t).sin().sum())  # fmt: skip
        eye = torch.eye(m, n, dtype=F64)
        yield (lambda A: (qt.householder_product(A, tau * A[0]).sin() * A).sum(),
               lambda A: (reflected(A, tau * A[0], eye, False).sin() * A).sum())  # fmt: skip

    def pivoted(A):
        P = qt.qr(A, pivoting=True).P
        return torch.linalg.qr(A.gather(-1, P.unsqueeze(-2).expand(A.shape)))

    yield by(lambda A: qt.qr(A, pivoting=True)[:2]), by(pivoted)
    yield tuple(lambda A, s=s: s(A, b * A[:, :1], driver="gelsy").solution.sin().sum() for s in (qt.lstsq, torch.linalg.lstsq))
    yield tuple(lambda A, p=p: (p(A) * p(A)[:1] * W.mT[: A.shape[1]].sum()).sum() for p in (qt.pinv, torch.linalg.pinv))


DERIVATIVES = {
    "grad": lambda f: lambda A: (torch.func.grad(f)(A) * A.cos()).sum(),
    "vjp": lambda f: lambda A: torch.func.vjp(f, A)[0].sin() + (torch.func.vjp(f, A)[1](torch.ones((), dtype=F64))[0] * A).sum(),
    "jvp": lambda f: lambda A: torch.stack(torch.func.jvp(f, (A,), (A.cos(),))).sin().sum(),
    "jacrev": lambda f: lambda A: (torch.func.jacrev(f)(A) * A.cos()).sum(),
    "jacfwd": lambda f: lambda A: (torch.func.jacfwd(f)(A) * A.cos()).sum(),
    "hessian": lambda f: lambda A: torch.func.hessian(f)(A).flatten()[:7].sum(),
    "vmap": lambda f: lambda A: torch.vmap(f)(torch.stack([A, 1.5 * A + 0.1])).sum(),
    "autograd": lambda f: lambda A: (torch.autograd.grad(f(A), A, create_graph=True)[0] * A.cos()).sum(),
}
TWO = [(a, b) for a in ("grad", "vjp", "jvp", "vmap") for b in ("grad", "vjp", "jvp", "vmap")]
MORE = [("jacrev", "jacrev"), ("jacfwd", "jacrev"), ("jacrev", "jacfwd"), ("hessian",)]
THREE = [("grad", "grad", "grad"), ("jvp", "jvp", "jvp"), ("grad", "jvp", "grad"), ("jvp", "grad", "vjp"), ("vmap", "jacfwd", "jacrev"),
         ("jacrev", "vmap", "jvp"), ("grad", "vmap", "grad")]  # fmt: skip


def derivative(path, f):
    for name in path:
        f = DERIVATIVES[name](f)
    return f


@pytest.mark.parametrize("shape", [(5, 3), (3, 3), (3, 4)], ids=str)
def test_nested_derivatives(shape):
    torch.manual_seed(3)
    A = normal(*shape)
    near = A * (1 + 4 * torch.finfo(F64).eps * torch.sign(normal(*shape)))
    for ours, theirs in nested(A):
        for path in TWO if shape == (3, 3) else [*TWO, *MORE, *THREE]:
            found, expected, moved = derivative(path, ours)(A), derivative(path, theirs)(A), derivative(path, theirs)(near)
            # third derivatives are large, and the sine of one has an error as large as rounding of A makes
            assert torch.all((found - expected).abs() <= 1e-8 * (1 + expected.abs()) + 20 * (moved - expected).abs()), path
        for path in [("autograd", "autograd"), ("grad",), ("jvp",), ("vjp", "grad")]:  # with ordinary autograd outside
            of_both = []
            for f in (ours, theirs):
                B = A.clone().requires_grad_()
                of_both.append(torch.autograd.grad(derivative(path, f)(B) + B.sin().sum(), B)[0])
            assert torch.allclose(*of_both, rtol=1e-8, atol=1e-8), path


@pytest.mark.parametrize("path", [("grad", "grad"), ("jvp", "grad")], ids="-".join)
def test_nested_derivatives_compile(path):
    torch.manual_seed(4)
    A = normal(4, 3)
    functions = [ours for ours, _ in nested(A)][:5:2]  # qr, orthonormalize, apply_q
    functions += [ours for ours, _ in nested(A)][-3:]  # pivots and any rank
    functions.append(lambda A: (qt.qr(A, "r").R ** 2).sin().sum() + qt.lstsq(A, A[:, 0].sin()).residuals.sum())
    compiled = torch.compile(lambda A: [derivative(path, f)(A) for f in functions], fullgraph=True, backend="aot_eager")
    for f, result in zip(functions, compiled(A)):
        assert torch.allclose(result, derivative(path, f)(A), rtol=1e-10, atol=1e-10)


def test_other_ways_to_a_jacobian(device):
    A, T = normal(5, 3, device=device), normal(5, 3, device=device)

    def f(A):
        Q, R = qt.qr(A)
        return torch.cat([Q, R]).sin()

    expected = torch.autograd.functional.jacobian(lambda A: torch.cat(tuple(torch.linalg.qr(A))).sin(), A)
    for options in ({}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}):
        assert torch.allclose(torch.autograd.functional.jacobian(f, A, **options), expected, atol=1e-10)
    with torch.autograd.forward_ad.dual_level():
        tangent = torch.autograd.forward_ad.unpack_dual(f(torch.autograd.forward_ad.make_dual(A, T))).tangent
    assert torch.allclose(tangent, (expected * T).sum((-2, -1)), atol=1e-10)
    value, product = torch.func.linearize(f, A)
    assert torch.allclose(value, f(A)) and torch.allclose(product(T), tangent)


def test_what_has_no_derivative(device):
    A = normal(6, 3, device=device, grad=True)
    with pytest.raises(RuntimeError, match="complete"):
        qt.qr(A, "complete").Q.sum().backward()
    with pytest.raises(RuntimeError, match="complete"):
        torch.func.jvp(lambda A: qt.qr(A, "complete").Q, (A.detach(),), (A.detach(),))
    with pytest.raises(RuntimeError, match="not implemented"):
        qt.geqrf(A).tau.sum().backward()
    with pytest.raises(RuntimeError, match="not implemented"):
        torch.func.jvp(lambda A: qt.geqrf(A).tau, (A.detach(),), (A.detach(),))
    one = torch.ones(6, 3, dtype=F64, device=device)
    for dependent in (one, 0 * one, torch.stack([A.detach(), one])):
        torch._dynamo.reset()  # which compiles one function a few times only
        b = dependent[..., 0] + 1
        for call in (lambda A: qt.qr(A, pivoting=True).R.sum(), lambda A: qt.lstsq(A, b, driver="gelsy").solution.sum(),
                     lambda A: qt.pinv(A).sum(), lambda A: qt.pinv(A.mT).sum()):  # fmt: skip
            for derivative in (
                lambda: call(dependent.clone().requires_grad_()).backward(),
                lambda: torch.func.grad(call)(dependent),
                lambda: torch.func.jvp(call, (dependent,), (dependent,)),
                lambda: torch.compile(torch.func.grad(call), fullgraph=True, backend="aot_eager")(dependent),
            ):
                with pytest.raises(RuntimeError, match="without full rank"):
                    derivative()


def test_derivatives_with_nan_are_nan(device):
    A = normal(2, 5, 3, device=device)
    A[1, 2, 1] = torch.nan
    for call in (lambda A: qt.qr(A, pivoting=True).R, lambda A: qt.lstsq(A, A[..., :1], driver="gelsy").solution):
        gradient = torch.func.grad(lambda A: call(A).sum())(A)
        assert gradient[0].isfinite().all() and gradient[1].isnan().any()


# ---- transformations -------------------------------------------------------------------------------------------------


def test_opcheck(device):
    A, C = normal(2, 6, 4, device=device), normal(2, 6, 3, device=device)
    a, tau = qt.geqrf(A)
    ops = torch.ops.quoin
    for op, arguments in [(ops.qr, (A, False)), (ops.qr, (A, True)), (ops.qr, (A[0].mT, False)), (ops.r, (A,)), (ops.r, (A.mT,)),
                          (ops.pivoted_qr, (A, False)), (ops.pivoted_qr, (A.mT, True)), (ops.lstsq, (A, C, 1e-9)),
                          (ops.lstsq, (A.mT, A.mT, 1e-9)), (ops.of_full_rank, (A, torch.zeros(2, device=device))),
                          (ops.geqrf, (A,)), (ops.householder_product, (a, tau)),
                          (ops.householder_product, (a, tau[:, :2])), (ops.apply_q, (a, tau, C, False)), (ops.apply_q, (a, tau, C, True))]:
        for grad in (False, op not in (ops.geqrf, ops.r) and (op != ops.qr or not arguments[1])):
            torch.library.opcheck(op.default, [x.clone().requires_grad_(grad) if torch.is_tensor(x) else x for x in arguments])


def test_compiles_as_one_graph(device):
    def step(A, B):
        Q, R = qt.qr(A @ B)
        x = qt.lstsq(A, Q[:, 0]).solution
        a, tau = qt.geqrf(A.detach())
        pivoted, any_rank = qt.qr(A, pivoting=True), qt.lstsq(A, Q[:, 0], driver="gelsy")
        return *pivoted, any_rank.solution, any_rank.rank, qt.matrix_rank(A), qt.pinv(A), Q, qt.orthonormalize(A).square().sum(), R.diagonal().abs().log().sum() + x.sum(), qt.apply_q(a, tau, Q)

    A, B = normal(20, 5, device=device, grad=True), normal(5, 5, device=device)
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    for ours, expected in zip(compiled(A, B), step(A, B)):
        assert torch.allclose(ours, expected)
    gradients = [torch.autograd.grad(f(A, B)[9] + sum(f(A, B)[i].sin().sum() for i in (1, 3, 6)), A)[0] for f in (compiled, step)]
    assert torch.allclose(*gradients)
    for function in (lambda A: qt.qr(A).R, lambda A: qt.qr(A, pivoting=True).R, lambda A: qt.lstsq(A, A[:, :2].sin(), driver="gelsy").solution):
        dynamic = torch.compile(function, fullgraph=True, dynamic=True, backend="aot_eager")
        for m in (5, 9, 13):
            A = normal(m, 4, device=device)
            assert torch.equal(dynamic(A), function(A))


def test_a_vmap_is_one_batch(device):
    from unittest import mock

    A = normal(5, 8, 3, device=device)
    where, name = (qt._core, "tensor_qr") if device == "cpu" else (quoin._functions, "qr")
    with mock.patch.object(where, name, wraps=getattr(where, name)) as calls:
        Q, R = torch.vmap(qt.qr)(A)
    assert calls.call_count == 1 and torch.equal(Q, qt.qr(A).Q) and torch.equal(R, qt.qr(A).R)
    last = A.permute(1, 2, 0)
    assert torch.equal(torch.vmap(lambda A: qt.qr(A).R, in_dims=2)(last), R)
    assert torch.equal(torch.vmap(torch.vmap(qt.orthonormalize))(A[None]), qt.orthonormalize(A)[None])
    a, tau = qt.geqrf(A)
    C = normal(8, 2, device=device)
    assert torch.allclose(torch.vmap(qt.apply_q, in_dims=(0, 0, None))(a, tau, C), qt.apply_q(a, tau, C))
    assert torch.allclose(torch.vmap(qt.householder_product)(a, tau), qt.householder_product(a, tau))
    b = normal(5, 8, device=device)
    assert torch.allclose(torch.vmap(lambda A, b: qt.lstsq(A, b).solution)(A, b), qt.lstsq(A, b).solution)

    def loss(A):
        return qt.qr(A).R.diagonal().abs().log().sum()

    whole = A.clone().requires_grad_()
    qt.qr(whole).R.diagonal(dim1=-2, dim2=-1).abs().log().sum().backward()
    assert torch.allclose(torch.vmap(torch.func.grad(loss))(A), whole.grad)
    assert torch.allclose(torch.func.jacrev(loss)(A[0]), whole.grad[0])


def test_bad_input_is_refused_in_pytorchs_way(device):
    A = normal(6, 3, device=device)
    a, tau = qt.geqrf(A)
    for call in [
        lambda: qt.qr(A[0]),
        lambda: qt.qr(A.long()),
        lambda: qt.qr(A.to(torch.complex128)),
        lambda: qt.qr(A, "raw"),
        lambda: qt.qr(A, dtype=torch.int64),
        lambda: qt.orthonormalize(A[0]),
        lambda: qt.householder_product(a, tau.float()),
        lambda: qt.householder_product(a.mT, tau),
        lambda: qt.householder_product(a, normal(4, device=device)),
        lambda: qt.apply_q(a, tau, A[:5]),
        lambda: qt.apply_q(a, tau, A, left=False),
        lambda: qt.apply_q(a, tau, A.float()),
        lambda: qt.lstsq(A, A[:5]),
        lambda: qt.lstsq(A, A.float()),
        lambda: qt.lstsq(A, A, driver="gelsd"),
        lambda: qt.lstsq(A, A, rcond=0.1),
        lambda: qt.lstsq(A, A, 2, driver="gelsy"),
        lambda: qt.pinv(A, rtol=-1),
        lambda: qt.pinv(A[0]),
        lambda: qt.matrix_rank(A.long()),
        lambda: qt.lstsq(A, A.to("meta")),
    ]:
        with pytest.raises(RuntimeError, match="quoin|qr received"):
            call()
    with pytest.raises(TypeError, match="must be Tensor"):
        qt.qr(np.eye(3))


def test_bits_of_pytorchs_are_read(device):
    """A sign, a conjugate and zero that PyTorch keeps as a bit."""
    z = torch.randn(12, 3, dtype=torch.complex128, device=device)
    A = z.conj().imag
    assert A.is_neg()
    plain, b = A.clone(), A[:, 0]
    assert not plain.is_neg() and b.is_neg() and torch.equal(A, plain)

    def equal(ours, expected):
        assert all(torch.equal(x, y) for x, y in zip(ours, expected) if torch.is_tensor(x))

    for call in (
        quoin.qr,
        lambda A: quoin.qr([A, A[:5]])[1],
        lambda A: [torch.as_tensor(quoin.qr([A, A]).R)] if device == "cpu" else quoin.qr([A, A]).R,
        lambda A: [quoin.factor(A).R, quoin.factor(A).apply(A)],
        quoin.svd,
        lambda A: quoin.lstsq(A, A[:, 0])[:1],
        lambda A: quoin.robust_pca(A)[:2],
        qt.qr,
        lambda A: [qt.orthonormalize(A), *qt.geqrf(A)],
    ):
        equal(call(A), call(plain))
    # PyTorch's products in it depend on the layout of b in the last bits
    assert torch.allclose(qt.lstsq(A, b).solution, qt.lstsq(plain, b.clone()).solution, rtol=0, atol=1e-14)
    if device == "cpu":
        stream = quoin.StreamingR()
        stream.partial_fit(A)
        assert (torch.as_tensor(stream.R).abs() - torch.linalg.qr(plain).R.abs()).norm() < 1e-13
    with pytest.raises(TypeError, match="complex128"):
        quoin.qr(z.conj())
    zero = torch._efficientzerotensor((4, 2), dtype=F64, device=device)
    assert float(abs(quoin.qr(zero).R).max()) == 0 == float(abs(qt.qr(zero).R).max())


def layouts(A):
    """Returns matrices and stacks of every storage in the memory of a stack of three dimensions."""
    one = A[0]
    parts = [one, one.mT, one[::2], one[:, 1::3], one[:0], one[:, :0], one[:1], one[:, :1]]
    repeated = [one[:1].expand(5, -1), one[:, :1].expand(-1, 3), A[:, :1].expand(-1, 5, -1), A[:1].expand(3, -1, -1)]
    return [*parts, *repeated, A, A.mT, A.transpose(0, 1), A[::2, 1:, 2:], A[:0], A[None]]


@pytest.mark.parametrize("dtype", [torch.float32, F64], ids=str)
def test_tensors_of_any_storage_have_the_bits_of_arrays_in_c_order(dtype):
    def lstsq(A):
        result = quoin.lstsq(A, A)
        return result.x, result.residual_norms

    def lstsq_of_vector(A):
        result = quoin.lstsq(A, A[..., 0]) if A.ndim == 2 and A.shape[1] else quoin.lstsq(A, A)
        return result.x, result.residual_norms

    calls = [lambda A, mode=mode: quoin.qr(A, mode=mode) for mode in ("reduced", "complete", "raw")]
    calls += [lambda A: (quoin.qr(A, "r"), quoin.factor(A).R, quoin.svd(A, False)), quoin.svd, lstsq, lstsq_of_vector]
    for A in layouts(normal(9, 6, 8, dtype=dtype)):
        for call in calls:
            for ours, numpys in zip(call(A), call(A.numpy().copy()), strict=True):
                assert type(ours) is torch.Tensor and ours.dtype == dtype and ours.shape == numpys.shape
                assert torch.equal(ours, torch.from_numpy(numpys))


def test_a_list_of_tensors_is_solved_as_a_list_of_arrays():
    A, b = [normal(8, 3), normal(9, 2)], [normal(8), normal(9)]
    ours, numpys = quoin.lstsq(A, b), quoin.lstsq([M.numpy() for M in A], [x.numpy() for x in b])
    for name in ("x", "residual_norms", "residuals", "s"):
        for one, other in zip(getattr(ours, name), getattr(numpys, name), strict=True):
            assert type(one) is torch.Tensor and torch.equal(one, torch.from_numpy(np.asarray(other)))
    assert ours.condition == numpys.condition and ours.rank == numpys.rank


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_what_a_tensor_must_not_be():
    A, b = normal(6, 3), normal(6)
    for call in (quoin.qr, quoin.factor, quoin.svd, lambda A: quoin.lstsq(A, b)):
        for grad in (A.clone().requires_grad_(), torch.nn.Parameter(A)):
            with pytest.raises(BufferError, match="detach"):
                call(grad)
        with pytest.raises(np.linalg.LinAlgError, match="1-dimensional"):
            call(b)
        for sparse in (A.to_sparse(), A.to_sparse_csr()):
            with pytest.raises(BufferError, match="layout"):
                call(sparse)
        with pytest.raises(RuntimeError, match="storage"):
            torch.vmap(call)(A.expand(2, 6, 3))
    with pytest.raises(BufferError, match="detach"):
        quoin.lstsq(A, b.clone().requires_grad_())
    assert quoin.lstsq(A.float(), b).x.dtype == F64
    with pytest.raises(quoin.InvalidArgument, match="rows"):
        quoin.lstsq(A, b[:5])


def test_a_misaligned_tensor_is_copied():
    A = np.random.default_rng(5).standard_normal((6, 4))
    there = torch.from_numpy(np.frombuffer(bytearray(b"x" + A.tobytes()), np.uint8)[1:].view(np.float64).reshape(6, 4))
    assert there.data_ptr() % 8 and unconverted(there) is None and unconverted(there.clone()) is not None
    assert all(torch.equal(x, torch.from_numpy(y)) for x, y in zip(quoin.qr(there), quoin.qr(A)))


def test_types_that_are_not_computed_are_named(device):
    for dtype in (torch.bfloat16, torch.float16):
        with pytest.raises(TypeError, match=str(dtype).removeprefix("torch.") + ".*float32|float32.*" + str(dtype).removeprefix("torch.")):
            quoin.qr(normal(4, 2, device=device).to(dtype))


def test_docstrings():
    result = doctest.testmod(qt)
    assert result.attempted > 3 and result.failed == 0


def in_a_group(rank, size, port):
    """One process of `test_process_groups`."""
    dist = torch.distributed
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    world = dist.group.WORLD
    torch.manual_seed(rank)
    A = normal(40 * rank, 6)
    Q, R = quoin.distributed.qr(A, world)
    assert isinstance(Q, torch.Tensor) and Q.shape == A.shape
    gram, parts = Q.T @ Q, [torch.empty_like(R) for _ in range(size)]
    dist.all_reduce(gram)
    dist.all_gather(parts, R)
    assert (gram - torch.eye(6, dtype=F64)).abs().max() < 1e-13
    assert rank == 0 or (Q @ R - A).abs().max() < 1e-13
    assert all(torch.equal(part, R) for part in parts)
    x = torch.arange(6, dtype=F64)
    assert (quoin.distributed.lstsq(A, A @ x, world).x - x).abs().max() < 1e-11
    f = quoin.distributed.factor(A, world)
    product = f.apply_thin(f.R)
    assert isinstance(product, torch.Tensor) and (rank == 0 or (product - A).abs().max() < 1e-13)
    assert f.q().shape == A.shape and (f.lstsq(A @ x).x - x).abs().max() < 1e-11
    U, S, Vh = quoin.distributed.svd(A, world)
    assert rank == 0 or (U * S @ Vh - A).abs().max() < 1e-12
    with pytest.raises(quoin.NonFiniteEntry, match=f"rank {size - 1}"):
        quoin.distributed.qr(torch.full((9, 2), torch.inf if rank == size - 1 else 1.0), world)
    # ranks of a group that differ from the world's
    some = dist.new_group([0, 2])
    if rank != 1:
        Q, _ = quoin.distributed.qr(normal(30, 3), some)
        gram = Q.T @ Q
        dist.all_reduce(gram, group=some)
        assert (gram - torch.eye(3, dtype=F64)).abs().max() < 1e-13
    dist.barrier()
    dist.destroy_process_group()


def in_a_mesh(rank, size, port):
    """One process of `test_dtensors`."""
    from torch.distributed import tensor as tensors

    dist = torch.distributed
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    mesh = dist.device_mesh.init_device_mesh("cpu", (size,))
    by_rows, everywhere = (tensors.Shard(0),), (tensors.Replicate(),)
    qr, lstsq, svd, factor = quoin.distributed.qr, quoin.distributed.lstsq, quoin.distributed.svd, quoin.distributed.factor

    def expect_law(A):
        """A, a DTensor; its Q and R."""
        Q, R = qr(A)
        whole, k = A.full_tensor(), min(A.shape)
        assert (Q.placements, R.placements, Q.device_mesh, R.device_mesh) == (by_rows, everywhere, mesh, mesh)
        assert Q.shape == (len(whole), k) and Q.to_local().shape[0] == A.to_local().shape[0]
        assert R.shape == R.to_local().shape == (k, A.shape[1])
        assert_orthonormal(host(Q.full_tensor()))
        assert_product(host(Q.full_tensor()), host(R.to_local()), host(whole))
        assert torch.equal(qr(A, mode="r").to_local().abs() > 0, R.to_local().abs() > 0)
        parts = [torch.empty_like(R.to_local()) for _ in range(size)]
        dist.all_gather(parts, R.to_local().contiguous())
        assert all(torch.equal(part, parts[0]) for part in parts)
        # an operation of PyTorch's on what comes back
        assert ((Q @ R).full_tensor() - whole).norm() <= 1e-4 * whole.norm()
        f = factor(A)
        of_R, of_A = f.apply_thin(f.R), f.apply_thin(A, trans=True)
        assert (f.q().placements, f.R.placements, of_R.placements, of_A.placements) == (by_rows, everywhere, by_rows, everywhere)
        assert_orthonormal(host(f.q().full_tensor()))
        allowed = 10 * k * torch.finfo(whole.dtype).eps * whole.norm()
        assert (of_R.full_tensor() - whole).norm() <= allowed and (of_A.to_local() - f.R.to_local()).norm() <= allowed

    torch.manual_seed(7)
    # even and uneven shards, empty ones, fewer rows than columns
    for shape in [(90, 6), (100, 6), (4, 3), (1, 2), (2, 5)]:
        for dtype in (torch.float32, F64):
            expect_law(tensors.distribute_tensor(normal(*shape, dtype=dtype), mesh, by_rows))
    # shards that PyTorch would not make
    mine = normal(30 * rank, 4)
    f = qr(tensors.DTensor.from_local(mine, mesh, by_rows, run_check=False, shape=(90, 4), stride=(4, 1)))
    assert (f.Q.to_local() @ f.R.to_local() - mine).norm() < 1e-13 * max(1, len(mine)) and f.Q.shape == (90, 4)

    A, x = tensors.distribute_tensor(normal(100, 6), mesh, by_rows), torch.arange(6, dtype=F64)
    for b in (A.full_tensor() @ x, (A.full_tensor() @ x)[:, None]):
        solution = lstsq(A, tensors.distribute_tensor(b, mesh, by_rows))
        assert solution.x.placements == solution.residual_norms.placements == everywhere
        assert solution.x.shape == (6, *b.shape[1:]) and solution.condition >= 1
        assert (solution.x.to_local().reshape(6) - x).abs().max() < 1e-11
        again = factor(A).lstsq(tensors.distribute_tensor(b, mesh, by_rows))
        assert again.x.placements == everywhere and torch.equal(again.x.to_local(), solution.x.to_local())
    f = factor(A)
    product = f.apply_thin(tensors.distribute_tensor(x, mesh, everywhere))
    assert (product.placements, product.shape) == (by_rows, (100,))
    assert (product.full_tensor() - f.q().full_tensor() @ x).abs().max() < 1e-13
    with pytest.raises(quoin.InvalidArgument, match=r"redistribute\(placements=\[Replicate\(\)\]\)"):
        f.apply_thin(A)
    with pytest.raises(TypeError, match="either all arrays are DTensors, or none is"):
        f.apply_thin(x)
    U, S, Vh = svd(A)
    assert (U.placements, S.placements, Vh.placements) == (by_rows, everywhere, everywhere)
    assert (U.full_tensor() * S.to_local() @ Vh.to_local() - A.full_tensor()).norm() < 1e-12
    assert (svd(A, compute_uv=False).to_local() - S.to_local()).abs().max() < 1e-12

    spoiled = A.to_local().clone()
    spoiled[0, 0] = torch.nan if rank == 1 else 1
    with pytest.raises(quoin.NonFiniteEntry, match="rank 1"):
        qr(tensors.DTensor.from_local(spoiled, mesh, by_rows, run_check=False, shape=A.shape, stride=A.stride()))
    grid = dist.device_mesh.init_device_mesh("cpu", (1, size))
    for other in (A.redistribute(placements=everywhere), A.redistribute(placements=[tensors.Shard(1)]),
                  tensors.distribute_tensor(A.full_tensor(), grid, [tensors.Replicate(), tensors.Shard(0)])):
        for call in (qr, factor, svd, lambda B: lstsq(A, B), lambda B: lstsq(B, A)):
            with pytest.raises(quoin.InvalidArgument, match=r"redistribute\(placements=\[Shard\(0\)\]\)"):
                call(other)
    with pytest.raises(TypeError, match="leave comm out"):
        qr(A, dist.group.WORLD)
    for a, b, comm in ((A, A.to_local(), None), (A.to_local(), A, dist.group.WORLD)):
        with pytest.raises(TypeError, match="either all arrays are DTensors, or none is"):
            lstsq(a, b, comm)
    dist.barrier()
    dist.destroy_process_group()


def spawn(process, size):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(process, (size, port), size)


def test_process_groups():
    spawn(in_a_group, 3)


def test_dtensors():
    pytest.importorskip("torch.distributed.tensor")
    spawn(in_a_mesh, 3)
