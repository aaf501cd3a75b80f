"""quoin.torch.override: PyTorch's operators obey their laws and keep their derivatives, other inputs their bits."""

import subprocess
import sys
import threading
from unittest import mock

import numpy as np
import pytest

from laws import assert_orthonormal, assert_product, assert_upper

torch = pytest.importorskip("torch")
qt = pytest.importorskip("quoin.torch")
if not hasattr(torch.library, "get_kernel"):
    pytest.skip("needs PyTorch 2.9", allow_module_level=True)

F64 = torch.float64
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]
NAMES = {"linalg.qr", "geqrf", "ormqr", "linalg.householder_product", "linalg.lstsq"}
TALL = (400, 60)  # served by every operator


@pytest.fixture(params=DEVICES)
def device(request):
    torch.manual_seed(7)
    return request.param


@pytest.fixture
def always(monkeypatch):
    """Quoin serves every shape that it can."""
    monkeypatch.setattr(qt, "_worth", lambda *_, **__: True)
    monkeypatch.setattr(qt, "_LEAST_ENTRIES", 0)


@pytest.fixture(scope="module")
def operators():
    pytest.importorskip("expecttest")
    from torch.testing._internal.common_methods_invocations import op_db

    return [op for op in op_db if op.name in NAMES]


def normal(*shape, dtype=F64, device="cpu"):
    return torch.randn(*shape, dtype=dtype, device=device)


def host(tensor):
    return tensor.detach().resolve_neg().cpu().numpy()


def of(result):
    return list(result) if isinstance(result, tuple) else [result]


def equal(one, other):
    return all(x.shape == y.shape and x.dtype == y.dtype and np.array_equal(host(x), host(y), equal_nan=True) for x, y in zip(of(one), of(other), strict=True))


def by_both(function, *inputs, **options):
    before = function(*inputs, **options)
    with qt.override():
        return before, function(*inputs, **options)


def small(difference, n, *scale):
    eps = torch.finfo(difference.dtype).eps
    return bool((difference.norm() <= 10 * max(1, n) * eps * max([1.0, *(float(x.norm()) for x in scale)])))


def assert_law(name, found, A, *inputs, **options):
    """The law of the operator `name`, for what it returned for A."""
    m, n = A.shape[-2:]
    if name == "linalg.qr":
        Q, R = map(host, found)
        assert_upper(R)
        if Q.size:
            assert_orthonormal(Q)
            assert_product(Q, R, host(A))
    elif name == "geqrf":
        a, tau = found
        k = min(m, n)
        Q = torch.linalg.householder_product(a[..., :k], tau)
        assert_orthonormal(host(Q))
        assert_product(host(Q), host(a[..., :k, :].triu()), host(A))
    elif name == "linalg.lstsq" and m >= n:
        B = inputs[0]
        X, B = (found[0].unsqueeze(-1), B.unsqueeze(-1)) if B.shape == A.shape[:-1] else (found[0], B)
        gradient = A.mT @ (A @ X - B)
        assert small(gradient / A.norm() / (A.norm() * X.norm() + B.norm()), n)


def test_pytorchs_own_samples(operators, always, device):
    counted = 0
    for op in operators:
        for dtype in (torch.float32, F64, torch.complex128):
            for sample in op.sample_inputs(device, dtype):
                A = sample.input
                before, found = by_both(op.op, A, *sample.args, **sample.kwargs)
                assert len(of(before)) == len(of(found))
                for x, y in zip(of(before), of(found)):
                    assert (x.shape, x.dtype, x.device, x.stride()) == (y.shape, y.dtype, y.device, y.stride()), (op.name, A.shape)
                if dtype.is_complex or not A.numel():
                    assert equal(before, found)
                    continue
                assert_law(op.name, of(found), A, *sample.args)
                if op.name in ("ormqr", "linalg.householder_product"):
                    # the samples of householder_product are no reflectors: the products may be large
                    assert small(found - before, A.shape[-2], before, *sample.args)
                counted += 1
    assert counted > 100


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("shape", [TALL, (200, 200), (60, 400), (50, 40, 30)], ids=str)
def test_qr_is_served(shape, mode, device):
    A = normal(*shape, device=device)
    with mock.patch.object(qt, "_r" if mode == "r" else "_qr", wraps=qt._r if mode == "r" else qt._qr) as calls:
        _, found = by_both(torch.linalg.qr, A, mode)
    assert calls.call_count == 1
    assert_law("linalg.qr", found, A)
    assert torch.allclose(found.R.abs(), torch.linalg.qr(A, mode).R.abs(), atol=1e-12)


@pytest.mark.parametrize("shape", [TALL, (3, 400, 60)], ids=str)
def test_reflectors_are_served(shape, device):
    A, C = normal(*shape, device=device), normal(*shape[:-1], 80, device=device)
    with mock.patch.object(qt._functions, "qr", wraps=qt._functions.qr) as calls:
        before, (a, tau) = by_both(torch.geqrf, A)
    assert calls.call_count == 1
    assert_law("geqrf", (a, tau), A)
    with mock.patch.object(qt._functions, "from_raw", wraps=qt._functions.from_raw) as calls:
        Qs = by_both(torch.linalg.householder_product, a, tau)
        products = [by_both(torch.ormqr, a, tau, C if left else C.mT, left, transpose) for left in (True, False) for transpose in (True, False)]
        by_both(torch.ormqr, a, tau, C[..., :3])  # not worth T
    assert calls.call_count == (0 if device == "cuda" else 5 * (3 if len(shape) == 3 else 1))
    assert all(small(x - y, shape[-2], x) for x, y in [Qs, *products])


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("deficient", [False, True])
@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize("shape", [TALL, (3, 400, 60)], ids=str)
def test_lstsq_is_served(shape, vector, deficient, driver, device):
    if device == "cuda" and driver not in (None, "gels"):
        pytest.skip("PyTorch has only gels on a GPU")
    if deficient and (driver == "gels" or device == "cuda"):
        pytest.skip("gels needs full rank")
    A, B = normal(*shape, device=device), normal(*shape[:-1], *(() if vector else (3,)), device=device)
    if deficient:
        A[..., 5] = A[..., 7] - A[..., 9]
    with mock.patch.object(qt, "_r", wraps=qt._r) as calls:
        before, found = by_both(torch.linalg.lstsq, A, B, driver=driver)
    assert calls.call_count == 1
    assert [x.shape for x in before] == [x.shape for x in found] and torch.equal(before.rank, found.rank)
    assert_law("linalg.lstsq", found, A, B)
    for x, y in zip(before, found):
        assert torch.allclose(x, y, rtol=1e-10, atol=1e-12)
    for rcond in (1e-3, 0.5):
        before, found = by_both(torch.linalg.lstsq, A, B, rcond=rcond, driver=driver)
        assert torch.equal(before.rank, found.rank) and torch.allclose(before.solution, found.solution, rtol=1e-9, atol=1e-11)


def test_failures_of_lstsq_are_pytorchs(device):
    A, B = normal(*TALL, device=device), normal(400, 1, device=device)
    A[3, 4] = torch.inf
    messages = []
    for context in (torch.no_grad, qt.override):
        try:
            with context():
                torch.linalg.lstsq(A, B, driver="gels")
            messages.append(None)  # some versions say nothing on a GPU
        except RuntimeError as error:
            messages.append((type(error), str(error)))
    assert messages[0] == messages[1] and (messages[0] or device == "cuda")
    with qt.override():
        for call in (
            lambda: torch.linalg.qr(A[0]),
            lambda: torch.linalg.qr(A[0, 0]),
            lambda: torch.linalg.qr(A, "raw"),
            lambda: torch.linalg.qr(A.long()),
            lambda: torch.linalg.lstsq(A, B[:9]),
            lambda: torch.linalg.lstsq(A, B.float()),
            lambda: torch.linalg.lstsq(A[0], B),
            lambda: torch.linalg.lstsq(A, B, driver="qr"),
            lambda: torch.geqrf(A[0]),
            lambda: torch.ormqr(A, A[0], B[:9]),
            lambda: torch.ormqr(A, A[0], A.float()),
            lambda: torch.ormqr(A, A[0], A[:, 0]),
            lambda: torch.linalg.householder_product(A.mT, A[0]),
            lambda: torch.linalg.householder_product(A, A[0, 0]),
            lambda: torch.linalg.householder_product(A, A[0].float()),
        ):
            with pytest.raises((RuntimeError, IndexError)) as found:
                call()
            assert "quoin" not in str(found.value)


def test_other_inputs_go_on_as_before(device):
    A = normal(*TALL, device=device)
    for other in (A.to(torch.complex128), A[:0], A[:, :0]):
        for mode in ("reduced", "complete", "r"):
            assert equal(*by_both(torch.linalg.qr, other, mode))
        assert equal(*by_both(torch.geqrf, other))
    Q, R = (torch.empty(0, dtype=F64, device=device) for _ in range(2))
    expected = torch.linalg.qr(A)
    with qt.override():
        torch.linalg.qr(A, out=(Q, R))
    assert equal((Q, R), expected)
    many = normal(400, 100, device=device)  # more right-hand sides than columns
    assert equal(*by_both(torch.linalg.lstsq, A, many))
    assert equal(*by_both(torch.linalg.lstsq, A[:100], many[:100, :2]))  # M < 4 N


def test_layouts_and_bits_of_pytorchs(device):
    z = torch.randn(400, 60, dtype=torch.complex128, device=device)
    negative = z.conj().imag
    assert negative.is_neg()
    rows = normal(800, 120, device=device)[::2, 1::2]
    for A in (negative, rows, rows.mT.contiguous().mT, normal(60, 1, device=device).mT.expand(400, 60)):
        with qt.override():
            found, again = torch.linalg.qr(A), torch.linalg.qr(A.clone())
            solution = torch.linalg.lstsq(A, negative[:, 0], driver=None if device == "cuda" else "gelsy")
        assert_law("linalg.qr", found, A)
        assert equal(found, again)
        if A.stride(0):
            assert_law("linalg.lstsq", solution, A, negative[:, 0].clone())
    with torch.inference_mode(), qt.override():
        Q, R = torch.linalg.qr(rows)
        assert Q.is_inference() and equal((Q.mul_(1), R), torch.linalg.qr(rows))
    with qt.override():
        assert torch.linalg.qr(torch._efficientzerotensor((400, 60), dtype=F64, device=device)).R.norm() == 0
        rows[1, 1] = torch.nan
        assert torch.linalg.qr(rows).R.isnan().any()


# ---- derivatives and transformations, by PyTorch's own formulas ------------------------------------------------------


@pytest.mark.parametrize("shape", [(6, 4), (4, 4), (3, 5), (2, 5, 3)], ids=str)
def test_derivatives(shape, always, device):
    A = normal(*shape, device=device).requires_grad_()
    with qt.override():
        for mode in ("reduced", "complete") if shape[-2] <= shape[-1] else ("reduced",):
            with mock.patch.object(qt, "_qr", wraps=qt._qr) as calls:
                assert torch.autograd.gradcheck(lambda A: torch.linalg.qr(A, mode), A, check_forward_ad=True, check_batched_grad=True)
                assert torch.autograd.gradgradcheck(lambda A: torch.linalg.qr(A, mode), A, check_fwd_over_rev=True)
            assert calls.call_count > 10
        if shape[-2] < shape[-1]:
            return
        a, tau = (x.requires_grad_() for x in torch.geqrf(A.detach()))
        C = normal(*shape, device=device).requires_grad_()
        assert torch.autograd.gradcheck(torch.linalg.householder_product, (a, tau), check_forward_ad=True)
        assert torch.autograd.gradgradcheck(torch.linalg.householder_product, (a, tau))
        assert torch.autograd.gradcheck(torch.ormqr, (a, tau, C))


def test_derivatives_of_lstsq(always, device):
    A, B = normal(24, 4, device=device).requires_grad_(), normal(24, 2, device=device).requires_grad_()
    with qt.override(), mock.patch.object(qt, "_r", wraps=qt._r) as calls:
        assert torch.autograd.gradcheck(lambda A, B: torch.linalg.lstsq(A, B, driver="gels")[:2], (A, B), check_forward_ad=True)
        assert torch.autograd.gradgradcheck(lambda A, B: torch.linalg.lstsq(A, B, driver="gels")[0], (A, B))
    assert calls.call_count > 10


def test_transformations(device):
    S = normal(5, *TALL, device=device)

    def loss(A):
        Q, R = torch.linalg.qr(A)
        return R.diagonal().abs().log().sum() + Q.square().sum()

    before, found = by_both(lambda: torch.vmap(torch.func.grad(loss))(S))
    assert torch.allclose(before, found, atol=1e-12)
    with qt.override(), mock.patch.object(qt, "_qr", wraps=qt._qr) as calls:
        torch.vmap(torch.linalg.qr)(S)
    assert calls.call_count == 1
    compiled = torch.compile(lambda A: torch.linalg.qr(2 * A), fullgraph=True, backend="aot_eager")
    with qt.override(), mock.patch.object(qt, "_qr", wraps=qt._qr) as calls:
        assert equal(compiled(S), torch.linalg.qr(2 * S))
    assert calls.call_count == 2


# ---- entering and leaving --------------------------------------------------------------------------------------------


def is_served():
    with mock.patch.object(qt, "_qr", wraps=qt._qr) as calls:
        torch.linalg.qr(torch.eye(30))
    return calls.call_count == 1


def test_blocks_may_be_nested_and_overlap():
    assert not is_served()
    with qt.override():
        with qt.override():
            assert is_served()
        assert is_served()
        with pytest.raises(ZeroDivisionError), qt.override():
            1 / 0
        assert is_served()
    assert not is_served()
    first, second = qt.override(), qt.override()
    first.end()
    first.end()
    assert is_served()
    second.end()
    assert not is_served()


def test_threads():
    A, stop, seen = normal(300, 30), threading.Event(), []

    def work():
        while not stop.is_set():
            Q, R = torch.linalg.qr(A)
            seen.append(bool((Q @ R - A).norm() < 1e-12))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        with qt.override():
            torch.linalg.qr(A)
    stop.set()
    for thread in threads:
        thread.join()
    assert seen and all(seen) and not is_served()


FRESH = """
import threading, warnings
warnings.simplefilter("error")
import torch
import quoin.torch

A = torch.randn(300, 30)
before = torch.linalg.qr(A)
ready = threading.Barrier(8)
def enter():
    ready.wait()
    with quoin.torch.override():
        torch.linalg.qr(A)
threads = [threading.Thread(target=enter) for _ in range(8)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
assert all(map(torch.equal, before, torch.linalg.qr(A)))
quoin.torch.override()
assert quoin.torch._replaced and len(quoin.torch._replaced) == 1
try:
    torch.linalg.qr(A[0])
except RuntimeError as error:
    print(error)
"""


def test_a_fresh_process():
    result = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True)
    assert result.returncode == 0 and "2 dimensions" in result.stdout and not result.stderr, result.stderr


def test_an_old_pytorch_is_refused(monkeypatch):
    monkeypatch.delattr(torch.library, "get_kernel")
    with pytest.raises(RuntimeError, match="needs PyTorch 2.9"):
        qt.override()
