"""Arrays in a GPU's memory: the laws, on host copies; the caller's stream, device and kind of array; errors."""

import concurrent.futures
import copy
import ctypes.util
import importlib
import os
import pickle
import re
import subprocess
import sys
import textwrap
import types

import numpy as np
import pytest
from laws import assert_orthonormal, assert_product, assert_upper, bound, mixture, wide

import quoin
from quoin import _core, _libraries

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_autotune_level=0")  # JAX would try kernels for each product first

SHAPES = [(1, 1), (1, 4), (5, 3), (3, 5), (200, 17), (64, 200), (1000, 64), (20000, 100)]
DTYPES = [np.float32, np.float64]


# ---- Without a GPU ---------------------------------------------------------------------------------------------------


class OnGpu0:
    """Says that it lies on GPU 0, and follows the array API standard as far as a refusal needs."""

    device, ndim, shape, dtype = "cuda:0", 2, (4, 2), np.dtype(np.float32)

    def __array_namespace__(self):
        return types.SimpleNamespace()

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        raise AssertionError("must not be asked for")


CALLS = [lambda a: quoin.qr(a), lambda a: quoin.factor(a), lambda a: quoin.lstsq(a, a), lambda a: quoin.svd(a),
         lambda a: quoin.StreamingQR().partial_fit(a), lambda a: quoin.robust_pca(a), lambda a: quoin.RobustPCA().fit(a)]


@pytest.mark.parametrize("call", CALLS)
def test_a_build_without_cuda_says_so(monkeypatch, call):
    monkeypatch.delattr(_core, "cuda", raising=False)
    with pytest.raises(TypeError, match="lies on GPU 0, and quoin was built without CUDA"):
        call(OnGpu0())


def test_a_plan_and_info_of_a_build_without_cuda(monkeypatch):
    monkeypatch.delattr(_core, "cuda", raising=False)
    with pytest.raises(quoin.InvalidArgument, match="built without CUDA"):
        quoin.plan(100, 10, device="cuda")
    assert quoin.info()["cuda"] == "built without CUDA" and quoin.info()["gpus"] == []
    assert quoin.plan(100, 10, device="cpu") == quoin.plan(100, 10)
    with pytest.raises(quoin.InvalidArgument, match="built without CUDA"):
        quoin.StreamingR(device="cuda")


@pytest.mark.skipif(not _libraries.SONAMES, reason="linked with CUDA's libraries, or built without")
def test_a_missing_library_is_named_when_a_gpu_is_asked_for():
    program = """
        import ctypes, numpy as np
        load = ctypes.CDLL
        def without_cublas(name, *mode):
            if "cublas" in str(name) or "cusolver" in str(name):
                raise OSError
            return load(name, *mode)
        ctypes.CDLL = without_cublas
        import quoin
        assert np.allclose(np.abs(quoin.qr(np.eye(3)).R), np.eye(3))
        try:
            quoin.StreamingR(device="cuda").partial_fit(np.eye(3))
        except quoin.DeviceFailure as error:
            print(error)
    """
    said = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, capture_output=True, text=True).stdout
    assert re.fullmatch(r"GPU 0 cannot be used: cuBLAS was not found: install CUDA's toolkit, or pip install "
                        r"nvidia-cublas\S*==\d+\.\* nvidia-cusolver\S*==\d+\.\*\n", said)


def test_libraries_of_packages_come_before_the_systems(monkeypatch, tmp_path):
    library = tmp_path / "nvidia" / "cu13" / "lib" / "libcublas.so.13"
    library.parent.mkdir(parents=True)
    library.touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    first, *others = _libraries._candidates("libcublas.so.13")
    assert first == str(library) and "libcublas.so.13" in others


def test_the_device_of_a_stream(rng):
    A = rng.standard_normal((30, 4))
    for stream in (quoin.StreamingR, quoin.StreamingQR):
        for wrong in ("gpu", "cuda:", "cuda:-1", 0):
            with pytest.raises(quoin.InvalidArgument, match="device must be 'cpu', 'cuda' or 'cuda:N'"):
                stream(device=wrong)
        assert np.array_equal(stream(device="cpu").partial_fit(A).R, stream().partial_fit(A).R)
    if hasattr(_core, "cuda"):
        with pytest.raises(quoin.DeviceFailure, match="GPU 99 cannot be used"):
            quoin.StreamingR(device="cuda:99").partial_fit(A)


@pytest.mark.parametrize("device", ["tpu", "cuda:x", "cuda:-1", "cpu:", 0])
def test_devices_that_are_none(device):
    with pytest.raises(quoin.InvalidArgument, match="device must be"):
        quoin.plan(100, 10, device=device)


@pytest.mark.skipif(not hasattr(_core, "cuda"), reason="built without CUDA")
@pytest.mark.skipif(bool(quoin.info()["gpus"]), reason="there is a GPU")
@pytest.mark.parametrize("call", CALLS + [lambda _: quoin.plan(100, 10, device="cuda")])
def test_a_machine_without_gpu_says_so(call):
    why = ": there is no NVIDIA driver$" if ctypes.util.find_library("cuda") is None else ""
    with pytest.raises(quoin.DeviceFailure, match="GPU 0 cannot be used" + why):
        call(OnGpu0())


def test_arrays_on_other_devices():
    class OnVulkan(OnGpu0):
        def __dlpack_device__(self):
            return (7, 0)

    with pytest.raises(TypeError, match=r"DLPack device type 7"):
        quoin.qr(OnVulkan())


# ---- With one --------------------------------------------------------------------------------------------------------


class Torch:
    def __init__(self):
        self.xp = pytest.importorskip("torch")
        if not self.xp.cuda.is_available():
            pytest.skip("torch without a GPU")
        self.kind = self.xp.Tensor

    def put(self, A):
        return self.xp.from_numpy(np.array(A, order="C")).cuda()

    def get(self, a):
        assert a.device.type == "cuda" and a.device.index == self.xp.cuda.current_device()
        return a.cpu().numpy()

    def orders(self, a):
        return [a, a.mT.contiguous().mT]

    def strides(self, a):
        return a.stride()


class CuPy:
    def __init__(self):
        self.xp = pytest.importorskip("cupy")
        self.kind = self.xp.ndarray

    def put(self, A):
        return self.xp.asarray(np.array(A, order="C"))

    def get(self, a):
        return self.xp.asnumpy(a)

    def orders(self, a):
        return [a, self.xp.asfortranarray(a)]

    def strides(self, a):
        return a.strides


class JAX:
    def __init__(self):
        jax = pytest.importorskip("jax")
        if not any(device.platform == "gpu" for device in jax.devices()):
            pytest.skip("jax without a GPU")
        jax.config.update("jax_enable_x64", True)
        self.xp, self.kind = jax.numpy, jax.Array

    def put(self, A):
        return self.xp.asarray(A)

    def get(self, a):
        assert a.devices() == self.xp.zeros(1).devices()
        return np.asarray(a)

    def orders(self, a):
        return [a]  # JAX has no Fortran order

    def strides(self, a):
        return None


@pytest.fixture
def gpu():
    if not hasattr(_core, "cuda"):
        pytest.skip("built without CUDA")
    if not quoin.info()["gpus"]:
        pytest.skip(f"no GPU: {quoin.info()['cuda']}")


@pytest.fixture(params=[Torch, CuPy, JAX], ids=lambda library: library.__name__)
def library(request, gpu):
    return request.param()


@pytest.fixture
def torch(gpu):
    Torch()
    return importlib.import_module("torch")


LONG = 400_000_000  # cycles: some 0.2 s


def late_copy(torch, source, order):
    """A copy of `source` that is NaN until the current stream has slept."""
    a = torch.full_like(source, float("nan"))
    if order == "F":
        a = a.mT.contiguous().mT
    torch.cuda._sleep(LONG)
    a.copy_(source)
    return a


def spread(rng, *shape, dtype=np.float64):
    """Columns of norms between 1e-5 and 1e5, two of them nearly equal."""
    A = rng.standard_normal(shape) * np.logspace(-5, 5, shape[-1])
    if shape[-1] > 1:
        A[..., 1] = A[..., 0] * (1 + 1e-6)
    return A.astype(dtype)


def assert_near(mine, reference, n, scale=None):
    """‖mine − reference‖ of order n·u of `scale`, ‖reference‖ by default, u of the reference's type."""
    assert mine.shape == reference.shape
    scale = np.linalg.norm(wide(reference)) if scale is None else scale
    assert np.linalg.norm(wide(mine) - wide(reference)) <= 10 * n * float(np.finfo(reference.dtype).eps) * scale


def thin_q(h, tau, dtype):
    """H_1 ⋯ H_k [I; 0] of LAPACK's reflectors, in the next longer type."""
    h, tau = wide(h), wide(tau)
    k, m = len(tau), h.shape[1]
    Q = np.eye(m, k, dtype=h.dtype)
    for j in reversed(range(k)):
        v = np.concatenate([np.zeros(j), [1.0], h[j, j + 1 :]])
        Q -= np.outer(tau[j] * v, v @ Q)
    return Q.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", ["reduced", "complete", "r", "raw"])
def test_modes(rng, library, mode, shape, dtype):
    if mode == "complete" and shape[0] > 1000:
        pytest.skip("Q would be large")
    A = spread(rng, *shape, dtype=dtype)
    a = library.put(A)
    for given in library.orders(a):
        ours = quoin.qr(given, mode)
        theirs = np.linalg.qr(A, mode)
        if mode == "r":
            ours, theirs = (ours,), (theirs,)
        assert all(isinstance(array, library.kind) for array in ours)
        ours = [library.get(array) for array in ours]
        for mine, reference in zip(ours, theirs, strict=True):
            assert mine.shape == reference.shape and mine.dtype == reference.dtype
        if mode in ("reduced", "complete"):
            Q, R = ours
            assert_orthonormal(Q)
            assert_product(Q, R, A)
            assert_upper(R)
        elif mode == "r":
            assert_upper(ours[0])
            R = wide(ours[0])
            # RᵀR = AᵀA, each entry to the scale of its two columns
            norms = np.linalg.norm(wide(A), axis=0)
            departure = np.abs(R.T @ R - wide(A).T @ wide(A))
            assert np.all(departure <= bound(A) * np.outer(norms, norms))
        else:
            h, tau = ours
            Q = thin_q(h, tau, dtype)
            assert_orthonormal(Q)
            assert_product(Q, np.triu(h.T)[: len(tau)], A)
    assert np.array_equal(library.get(a), A)


@pytest.mark.parametrize("mode", ["reduced", "complete", "r", "raw"])
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
def test_empty_matrices(library, mode, shape):
    ours, theirs = quoin.qr(library.put(np.zeros(shape)), mode), np.linalg.qr(np.zeros(shape), mode)
    if mode == "r":
        ours, theirs = (ours,), (theirs,)
    for mine, reference in zip(ours, theirs, strict=True):
        assert np.array_equal(library.get(mine), reference)


@pytest.mark.parametrize("mode", ["reduced", "complete", "r", "raw"])
@pytest.mark.parametrize("batch", [(0,), (3,), (2, 3)])
@pytest.mark.parametrize("shape", [(6, 4), (4, 6)])
def test_a_batch_is_its_matrices(rng, library, mode, batch, shape):
    A = rng.standard_normal(batch + shape)
    ours, theirs = quoin.qr(library.put(A), mode), np.linalg.qr(A, mode)
    if mode == "r":
        ours, theirs = (ours,), (theirs,)
    for index in np.ndindex(batch):
        alone = quoin.qr(library.put(A[index][None]), mode)
        for mine, one in zip(ours, (alone,) if mode == "r" else alone, strict=True):
            assert np.array_equal(library.get(mine)[index], library.get(one)[0])
    for mine, reference in zip(ours, theirs, strict=True):
        assert mine.shape == reference.shape
    if mode in ("reduced", "complete"):
        assert_orthonormal(library.get(ours[0]))
        assert_product(library.get(ours[0]), library.get(ours[1]), A)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (16, 8), (8, 16), (90, 70), (300, 260)])
def test_factorizations_and_least_squares_of_stacks(rng, library, shape, dtype):
    m, n = shape
    A, b = rng.standard_normal((2, 3) + shape).astype(dtype), rng.standard_normal((m, 2)).astype(dtype)
    f = quoin.factor(library.put(A))
    Q, R = library.get(f.q()), library.get(f.R)
    assert_orthonormal(Q)
    assert_product(Q, R, A)
    there = f.apply(library.put(b), trans=True)
    assert isinstance(there, library.kind) and tuple(there.shape) == (2, 3, m, 2)
    assert_near(library.get(f.apply(there)), np.broadcast_to(b, (2, 3, m, 2)), m)
    solution = quoin.lstsq(library.put(A), library.put(b))
    x, norms, condition = solution.x, solution.residual_norms, solution.condition
    assert isinstance(x, library.kind) and tuple(condition.shape) == (2, 3)
    _, squares, ranks, s = solution
    assert tuple(squares.shape) == (2, 3, 2 if m > n else 0) and (library.get(ranks) == min(m, n)).all()
    exact = np.linalg.svd(A.astype(np.float64), compute_uv=False)
    assert isinstance(s, library.kind) and np.all(np.abs(library.get(s) - exact) <= 100 * np.finfo(dtype).eps * exact[..., :1])
    for index in np.ndindex(2, 3):
        reference = quoin.lstsq(A[index], b)
        assert_near(library.get(x)[index], reference.x, n, 10 * reference.condition**2 * np.linalg.norm(b))
        assert_near(library.get(norms)[index], reference.residual_norms, n, reference.condition * np.linalg.norm(b))


def test_lists_of_matrices(rng, library):
    matrices = [rng.standard_normal(shape) for shape in [(16, 8), (90, 70), (3, 9), (16, 8), (1, 1)]]
    for mode in ("reduced", "complete"):
        Q, R = quoin.qr([library.put(A) for A in matrices], mode)
        for b, A in enumerate(matrices):
            assert_orthonormal(library.get(Q[b]))
            assert_product(library.get(Q[b]), library.get(R[b]), A)
    x = quoin.lstsq([library.put(A) for A in matrices], [library.put(A @ np.ones(A.shape[1])) for A in matrices]).x
    for A, mine in zip(matrices, x, strict=True):
        assert_near(A @ library.get(mine), A @ np.ones(A.shape[1]), 1000)


@pytest.mark.parametrize("method", ["householder", "tsqr", "caqr", "cholesky-qr2", "randomized-cholesky-qr"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_methods(rng, library, method, dtype):
    A = rng.standard_normal((3000, 60)).astype(dtype)
    f = quoin.factor(library.put(A), method, verify=True)
    assert f.report.method == method and not f.report.fell_back
    assert max(f.report.orthogonality, f.report.residual) <= bound(A)
    assert_orthonormal(library.get(f.q()))
    assert_product(library.get(f.q()), library.get(f.R), A)


def test_strided_arrays(rng, library):
    A = rng.standard_normal((2, 61, 40))
    a = library.put(A)
    for key in (np.s_[0, ::2, 1::3], np.s_[:, 5:, :7], np.s_[1, :, :20], np.s_[::-1, 1::2, ::2], np.s_[0, ::-1, ::-1]):
        if isinstance(library, Torch) and "-1" in str(key):
            continue
        for given, host in ((a[key], A[key]), (a[key].swapaxes(-1, -2), A[key].swapaxes(-1, -2))):
            Q, R = quoin.qr(given)
            assert_orthonormal(library.get(Q))
            assert_product(library.get(Q), library.get(R), host)
    for b in (a[0, :, 3], a[0, ::2, 3]) + (() if isinstance(library, Torch) else (a[0, ::-1, 3],)):
        solution = quoin.lstsq(a[0, : len(b), :5], b)
        x, condition = solution.x, solution.condition
        assert isinstance(x, library.kind) and tuple(x.shape) == (5,)
        reference = np.linalg.lstsq(A[0, : len(b), :5], library.get(b))[0]
        assert_near(library.get(x), reference, 5 * condition**2)


def test_torch_expanded_and_inference(rng, torch):
    A = rng.standard_normal((50, 1))
    row = torch.from_numpy(A[:, 0].copy()).cuda()
    Q, R = quoin.qr(row.expand(3, 50))
    assert_product(Q.cpu().numpy(), R.cpu().numpy(), np.broadcast_to(A[:, 0], (3, 50)))
    with torch.inference_mode():
        Q, R = quoin.qr(row[:, None])
    assert_product(Q.cpu().numpy(), R.cpu().numpy(), A)
    with pytest.raises(BufferError, match="grad"):
        quoin.qr(row[:, None].clone().requires_grad_())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(300, 12), (12, 12), (5, 30), (20000, 64)])
def test_factorizations(rng, library, shape, dtype):
    m, n = shape
    A = rng.standard_normal(shape).astype(dtype)
    f = quoin.factor(library.put(A))
    assert f.shape == shape and f.plan.dtype == np.dtype(dtype).name and f.plan.method in f.plan.description
    k = min(shape)
    R, Q = library.get(f.R), library.get(f.q())
    assert_upper(R)
    assert_orthonormal(Q)
    assert_product(Q, R, A)
    C = rng.standard_normal((m, 3)).astype(dtype)
    for side, given in (("left", C), ("right", C.T.copy())):
        there = f.apply(library.put(given), trans=True, side=side)
        back = f.apply(there, side=side)
        assert isinstance(there, library.kind)
        assert_near(library.get(back), given, k)
    there = library.get(f.apply(library.put(C), trans=True))
    assert_near(there[:k], Q.T @ C, k, np.linalg.norm(C))
    assert_near(library.get(f.apply(library.put(C[:, 0]), trans=True)), there[:, 0], k)
    assert_near(library.get(f.q[2:5, :k]), Q[2:5], k, 1.0)
    assert tuple(f.q[3].shape) == (m,) and tuple(f.q[3, 1:3].shape) == (2,) and f.q[1, 1].shape == ()
    if m >= n:
        solution = f.lstsq(library.put(A @ np.ones((n, 2), dtype)))
        assert_near(library.get(solution.x), np.ones((n, 2), dtype), n * solution.condition)


def test_reflectors(rng, library):
    A = rng.standard_normal((120, 9))
    f = quoin.factor(library.put(A), q="reflectors")
    V, T, tau = (library.get(array) for array in (f.V, f.T, f.tau))
    assert V.shape == (120, 9) and T.shape == (9, 9) and np.array_equal(np.diag(T), tau)
    Q = np.eye(120) - V @ T @ V.T
    assert_orthonormal(Q)
    assert_product(Q[:, :9], library.get(f.R), A)
    with pytest.raises(quoin.InvalidArgument):
        quoin.factor(library.put(rng.standard_normal((5000, 9))), "tsqr").V


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(500, 20), (20, 20), (20, 500)])
def test_lstsq_and_svd(rng, library, shape, dtype):
    A = rng.standard_normal(shape).astype(dtype) + 5 * np.eye(*shape, dtype=dtype)
    k = min(shape)
    b = A @ np.ones((shape[1], 2), dtype)
    solution = quoin.lstsq(library.put(A), library.put(b))
    x, norms, condition, report = solution.x, solution.residual_norms, solution.condition, solution.report
    _, squares, rank, s = solution
    assert tuple(squares.shape) == (2 if shape[0] > shape[1] else 0,) and rank == k
    exact = np.linalg.svd(A.astype(np.float64), compute_uv=False)
    assert isinstance(s, library.kind) and np.abs(library.get(s) - exact).max() <= 100 * k * np.finfo(dtype).eps * exact[0]
    reference = np.linalg.lstsq(A.astype(np.float64), b.astype(np.float64), rcond=None)[0].astype(dtype)
    assert isinstance(x, library.kind) and isinstance(norms, library.kind) and tuple(norms.shape) == (2,)
    assert_near(library.get(x), reference, k * condition)
    one = quoin.lstsq(library.put(A), library.put(b[:, 0]), rcond=0)
    assert one.x.shape == (shape[1],) and one.residual_norms.shape == ()
    assert_near(library.get(one.x), reference[:, 0], k * condition)

    U, S, Vh = (library.get(array) for array in quoin.svd(library.put(A)))
    assert_orthonormal(U)
    assert_orthonormal(np.ascontiguousarray(Vh.T))
    assert_near((wide(U) * wide(S)) @ wide(Vh), A, k)
    assert_near(library.get(quoin.svd(library.put(A), compute_uv=False)), S, k)
    values, right = (library.get(array) for array in quoin.svd(library.put(A), "vh"))
    assert_near(values, S, k)
    assert_orthonormal(right.T)
    (m, n), both = shape, np.stack([A, 2 * A])
    U, S, Vh = (library.get(array) for array in quoin.svd(library.put(both)))
    assert_orthonormal(U)
    assert_orthonormal(np.swapaxes(Vh, -1, -2))
    assert_product(U * S[:, None, :], Vh, both)
    assert_near(library.get(quoin.svd(library.put(both), "vh")[0]), S, k)
    U, S, Vh = (library.get(array) for array in quoin.svd(library.put(both), full_matrices=True))
    assert U.shape == (2, m, m) and Vh.shape == (2, n, n)
    assert_orthonormal(U)
    assert_orthonormal(np.swapaxes(Vh, -1, -2))
    assert_product(U[..., :k] * S[:, None, :], Vh[:, :k], both)


def test_streams_of_rows(rng, library):
    A, x = rng.standard_normal((900, 8)), np.arange(8.0)
    blocks = np.split(A, 3)
    r, q = quoin.StreamingR(), quoin.StreamingQR()
    for block in blocks:
        r.partial_fit(library.put(block), library.put(block @ x))
        q.partial_fit(library.put(block))
    assert r.n_rows == q.n_rows == 900
    assert_near(library.get(r.solve().x), x, 8 * r.solve().condition)
    assert isinstance(r.R, library.kind)
    R = library.get(q.R)
    Q = np.vstack([library.get(q.q_rows(library.put(block))) for block in reversed(blocks)][::-1])
    assert_orthonormal(Q)
    assert_product(Q, R, A)
    with pytest.raises(TypeError, match="one lies on GPU 0, another on the host"):
        quoin.StreamingR().partial_fit(library.put(A)).partial_fit(A)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_streams_of_rows_in_host_memory(rng, gpu, order, dtype):
    A, x = rng.standard_normal((9000, 40)).astype(dtype), np.arange(40.0).astype(dtype)
    blocks = [{"C": np.ascontiguousarray, "F": np.asfortranarray, "strided": lambda a: np.repeat(a, 2, 1)[:, ::2]}[order](block)
              for block in np.split(A, [4000, 4001, 4001, 6000])]
    r, q = quoin.StreamingR(device="cuda"), quoin.StreamingQR(device="cuda:0")
    for block in blocks:
        r.partial_fit(block, block @ x)
        q.partial_fit(block)
        r, q = pickle.loads(pickle.dumps(r)), copy.copy(q)
    assert r.n_rows == q.n_rows == 9000
    assert type(r.R) is type(r.solve().x) is np.ndarray and r.R.dtype == dtype
    assert_near(r.solve().x, x, 40 * r.solve().condition)
    rows = []
    for block in reversed(blocks):
        rows.append(q.q_rows(block))
        q = copy.copy(q)
    Q = np.vstack(rows[::-1])
    assert_orthonormal(Q)
    assert_product(Q, q.R, A)
    # merged with what the host has computed
    both = quoin.StreamingR(device="cuda").merge(r).merge(quoin.StreamingR().partial_fit(A, A @ x))
    assert both.n_rows == 18000
    assert_near(both.solve().x, x, 40 * both.solve().condition)


def test_a_stream_on_a_gpu_refuses_arrays_there(rng, library):
    A = library.put(rng.standard_normal((30, 4)))
    for device in ("cuda", "cpu"):
        with pytest.raises(TypeError, match=f"device='{device}' takes blocks in host memory, and this one lies on GPU 0"):
            quoin.StreamingQR(device=device).partial_fit(A)


def test_streams_merge_copy_and_pickle(rng, library):
    A, x = rng.standard_normal((900, 8)), np.arange(8.0)
    blocks = np.split(A, 3)
    parts = [quoin.StreamingR().partial_fit(library.put(block), library.put(block @ x)) for block in blocks]
    merged = quoin.StreamingR().merge(parts[0]).merge(parts[1]).merge(parts[2])
    assert merged.n_rows == 900 and isinstance(merged.R, library.kind)
    assert_near(library.get(merged.solve().x), x, 8 * merged.solve().condition)
    with pytest.raises(TypeError, match="one lies on GPU 0, another on the host"):
        merged.merge(quoin.StreamingR().partial_fit(A, A @ x))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:  # a stream of another thread's
        other = pool.submit(lambda: quoin.StreamingR().partial_fit(library.put(A), library.put(A @ x))).result()
        assert_near(library.get(other.merge(parts[0]).solve().x), x, 8 * other.solve().condition)
    for again in (copy.copy, copy.deepcopy, lambda stream: pickle.loads(pickle.dumps(stream))):
        r, q = again(merged), quoin.StreamingQR()
        assert np.array_equal(library.get(r.R), library.get(merged.R)) and isinstance(r.R, library.kind)
        r.partial_fit(library.put(A), library.put(A @ x))
        assert merged.n_rows == 900
        for block in blocks:
            q = again(q.partial_fit(library.put(block)))
        rows = []
        for block in reversed(blocks):
            rows.append(library.get(q.q_rows(library.put(block))))
            q = again(q)
        Q = np.vstack(rows[::-1])
        assert_orthonormal(Q)
        assert_product(Q, library.get(q.R), A)


def test_types(rng, library):
    A = rng.integers(-9, 9, (30, 4))
    Q, R = quoin.qr(library.put(A))
    assert library.get(Q).dtype == np.float64
    assert_product(library.get(Q), library.get(R), A.astype(np.float64))
    assert library.get(quoin.qr(library.put(A > 0), mode="r")).dtype == np.float64
    for dtype in (np.float16, np.complex64):
        with pytest.raises(TypeError, match=f"supports float32 and float64.*{np.dtype(dtype).name}"):
            quoin.qr(library.put(A.astype(dtype)))
    if hasattr(library.xp, "bfloat16"):
        with pytest.raises(TypeError, match="bfloat16"):
            quoin.qr(library.xp.asarray(library.put(A), dtype=library.xp.bfloat16))
    f = quoin.factor(library.put(A.astype(np.float32)))
    assert library.get(f.apply(library.put(A.astype(np.float64)))).dtype == np.float32
    mixed = quoin.lstsq(library.put(A.astype(np.float32)), library.put(A.astype(np.float64)))
    assert library.get(mixed.x).dtype == np.float64


def test_mixtures_and_errors(rng, library):
    A = rng.standard_normal((30, 4))
    a = library.put(A)
    for call in (lambda: quoin.lstsq(a, A), lambda: quoin.lstsq(A, a), lambda: quoin.factor(a).apply(A),
                 lambda: quoin.factor(A).lstsq(a)):
        with pytest.raises(TypeError, match="needs its arrays in one place"):
            call()
    with pytest.raises(np.linalg.LinAlgError, match="at least two-dimensional"):
        quoin.qr(a[0])
    bad = A.copy()
    bad[7, 2] = np.nan
    with pytest.raises(quoin.NonFiniteEntry) as error:
        quoin.qr(library.put(bad))
    assert (error.value.row, error.value.col) == (7, 2)
    assert np.isnan(library.get(quoin.qr(library.put(bad), mode="r", check_finite=False))).any()
    with pytest.raises(quoin.RankDeficient):
        quoin.lstsq(library.put(np.ones((30, 4))), library.put(A), deficient="error")
    with pytest.raises(quoin.InvalidArgument, match="apply_q"):
        quoin.factor(a).apply(a[:20])
    assert_product(*(library.get(array) for array in quoin.qr(a)), A)  # after all that


def test_pivots(rng, library):
    A = rng.standard_normal((300, 5)) @ rng.standard_normal((5, 280))
    a, bound = library.put(A), 1e-10 * np.linalg.norm(A)
    for pivoting in (True, "greedy", "randomized", "strong"):
        Q, R, P = quoin.qr(a, pivoting=pivoting, rank=5)
        assert np.linalg.norm(library.get(Q) @ library.get(R) - A[:, P]) <= bound
    columns, X = quoin.interpolative(a)
    assert np.linalg.norm(A[:, columns] @ library.get(X) - A) <= bound and len(columns) == 5
    columns, rows, U = quoin.cur(a, rank=5)
    assert np.linalg.norm(A[:, columns] @ library.get(U) @ A[rows] - A) <= 100 * bound
    U, S, Vh = map(library.get, quoin.svd(a, rank=5))
    assert np.linalg.norm((U * S) @ Vh - A) <= bound
    assert quoin.matrix_rank(a) == 5
    solved = quoin.lstsq(a, a[:, 0])
    assert solved.rank == 5 and len(solved.dependent) == 275
    stack = library.put(np.stack([np.ones((8, 3)), rng.standard_normal((8, 3))]))
    assert list(library.get(quoin.lstsq(stack, stack[..., :1]).rank)) == [1, 3]
    Q, R, P = quoin.qr(a, "complete", pivoting=True)
    assert np.linalg.norm(library.get(Q) @ library.get(R) - A[:, P]) <= bound


def test_libraries_mix_on_one_gpu(rng, gpu):
    torch, cupy = Torch(), CuPy()
    A = rng.standard_normal((300, 6))
    x = quoin.lstsq(torch.put(A), cupy.put(A @ np.ones(6))).x
    assert isinstance(x, torch.kind)
    assert_near(torch.get(x), np.ones(6), 20)
    assert isinstance(quoin.factor(torch.put(A)).apply(cupy.put(A)), cupy.kind)


def test_info_and_plan(gpu):
    info = quoin.info()
    assert info["gpus"] and info["cuda"].startswith("driver for CUDA 1")
    there = quoin.plan(1_000_000, 192, device="cuda")
    assert there == quoin.plan(1_000_000, 192, device="cuda:0") != quoin.plan(1_000_000, 192)
    with pytest.raises(quoin.DeviceFailure, match="GPU 99 cannot be used"):
        quoin.plan(100, 10, device="cuda:99")


# ---- Principal component pursuit -------------------------------------------------------------------------------------


def assert_pursued(library, ours, M, theirs):
    """`ours` of M on a GPU is a split to its residual, and `theirs`, the host's, as far as their tolerance says."""
    L, S, Y = (library.get(part) for part in ours[:3])
    assert all(isinstance(part, library.kind) for part in ours[:3])
    assert all(part.shape == M.shape and part.dtype == M.dtype for part in (L, S, Y))
    assert (ours.end, ours.rank) == (theirs.end, theirs.rank)
    assert abs(ours.iterations - theirs.iterations) <= 1 and ours.lam == pytest.approx(theirs.lam, rel=1e-15)
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-4)
    known = np.isfinite(M)
    residual = np.linalg.norm((wide(L) + wide(S) - wide(M))[known]) / np.linalg.norm(wide(M)[known])
    assert residual <= 1.01 * ours.residual + np.finfo(M.dtype).eps
    tol = 1e-5 if M.dtype == np.float32 else 1e-7
    scale = np.linalg.norm(theirs.L)
    for mine, reference in ((L, theirs.L), (S, theirs.S)):
        assert np.linalg.norm(mine - reference) <= 1000 * tol * scale
    return L, S


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(300, 50), (50, 300), (80, 80), (600, 140)])
@pytest.mark.parametrize("route", ["auto", "qr", "gram"])
def test_robust_pca_is_that_of_the_host(rng, library, route, shape, dtype):
    L, S = mixture(rng, *shape, dtype=dtype)
    M = L + S
    theirs = quoin.robust_pca(M, route=route)
    m = library.put(M)
    for given in library.orders(m):
        ours = quoin.robust_pca(given, route=route)
        found = assert_pursued(library, ours, M, theirs)
        assert ours.end == "converged" and ours.rank == 3
        assert ours.nonzeros == np.count_nonzero(found[1])
        assert all(library.strides(part) == library.strides(given) for part in ours[:3])
    assert np.array_equal(library.get(m), M)


def test_robust_pca_with_every_option(rng, library):
    M = sum(mixture(rng, 200, 40))
    m = library.put(M)
    for options in ({"pursuit": "alternating", "tol": 1e-3, "max_iterations": 3000}, {"lam": 0.1}, {"rho": 1.2},
                    {"mu": 0.01}, {"max_rank": 2, "max_iterations": 30}, {"max_iterations": 3}):
        ours, theirs = quoin.robust_pca(m, **options), quoin.robust_pca(M, **options)
        assert (ours.end, ours.rank) == (theirs.end, theirs.rank)
        assert abs(ours.iterations - theirs.iterations) <= 1
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-3)
    whole = quoin.robust_pca(m)
    for L, Y in zip(library.orders(whole.L), library.orders(whole.Y), strict=True):
        warm = quoin.robust_pca(m, L=L, Y=Y, mu=whole.mu)
        assert warm.iterations < whole.iterations / 2
        assert np.linalg.norm(library.get(warm.L) - library.get(whole.L)) <= 1e-5 * np.linalg.norm(M)
        for start in ({"L": L}, {"Y": Y}):
            ours = quoin.robust_pca(m, **start, mu=whole.mu, max_iterations=1)
            on_host = {name: library.get(array) for name, array in start.items()}
            theirs = quoin.robust_pca(M, **on_host, mu=whole.mu, max_iterations=1)
            assert np.linalg.norm(library.get(ours.L) - theirs.L) <= 1e-3 * np.linalg.norm(M)
            assert np.linalg.norm(library.get(ours.S) - theirs.S) <= 1e-3 * np.linalg.norm(M)
    assert library.get(quoin.robust_pca(library.put(M > 0), max_iterations=2).L).dtype == np.float64
    mixed = quoin.robust_pca(library.put(M.astype(np.float32)), L=whole.L, Y=whole.Y, max_iterations=2)
    assert library.get(mixed.L).dtype == np.float32


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(300, 50), (50, 300)])
def test_robust_pca_of_what_is_observed(rng, library, shape, dtype):
    L, _ = mixture(rng, *shape, rank=2, dtype=dtype)
    observed = rng.random(shape) < 0.8
    M = np.where(observed, L, np.nan).astype(dtype)
    theirs = quoin.robust_pca(M, observed=observed, rho=1.2)
    for m in library.orders(library.put(M)):
        for kind in (bool, np.uint8, np.float32):  # any number but 0 is true
            mask = (observed / 2 if kind is np.float32 else observed).astype(kind)
            for known in library.orders(library.put(mask)):
                ours = quoin.robust_pca(m, observed=known, rho=1.2)
                _, S = assert_pursued(library, ours, M, theirs)
                assert not S[~observed].any()


def test_robust_pca_of_strided_arrays(rng, library):
    M, Y = sum(mixture(rng, 120, 80)), rng.standard_normal((120, 80)) / 100
    observed = rng.random((120, 80)) < 0.9
    m, y, known = map(library.put, (M, Y, observed))
    for key in (np.s_[:, 7:27], np.s_[5:65, :], np.s_[3:50, 5:], np.s_[::2, 1::3], np.s_[:, 3:4], np.s_[3:4]):
        for turned in (lambda a: a, lambda a: a.swapaxes(0, 1)):
            ours, theirs = (
                quoin.robust_pca(turned(a[key]), observed=turned(mask[key]), Y=turned(b[key]), max_iterations=5)
                for a, mask, b in ((m, known, y), (M, observed, Y))
            )
            assert (ours.iterations, ours.rank) == (theirs.iterations, theirs.rank)
            for mine, reference in zip(ours[:3], theirs[:3]):
                assert np.linalg.norm(library.get(mine) - reference) <= 1e-3 * np.linalg.norm(reference)


def test_robust_pcas_callback(rng, library):
    M = sum(mixture(rng, 100, 30))
    m = library.put(M)
    steps = []
    whole = quoin.robust_pca(m, callback=steps.append)
    assert [step.iteration for step in steps] == list(range(1, whole.iterations + 1))
    assert (*steps[-1][:6],) == (whole.iterations, *whole[4:9])
    stopped = quoin.robust_pca(m, callback=lambda step: step.iteration < 4)
    assert (stopped.end, stopped.iterations) == ("stopped", 4)
    reference = quoin.robust_pca(M, callback=lambda step: step.iteration < 4)
    assert stopped.residual == pytest.approx(reference.residual, rel=1e-2)

    inner = []  # a callback that computes, here and on the host
    again = quoin.robust_pca(m, callback=lambda step: inner.append(
        quoin.robust_pca(m, max_iterations=2).iterations + quoin.robust_pca(M, max_iterations=2).iterations))
    assert inner == [4] * again.iterations and np.array_equal(library.get(again.L), library.get(whole.L))

    class Mine(Exception):
        pass

    def fail(step):
        raise Mine(step.iteration)

    with pytest.raises(Mine, match="1"):
        quoin.robust_pca(m, callback=fail)
    f = quoin.factor(m)
    with pytest.raises(quoin.InvalidArgument, match="callback cannot use an object"):
        quoin.robust_pca(m, callback=lambda step: f.q())
    assert quoin.robust_pca(m).end == "converged" and f.q() is not None


def test_robust_pcas_errors_and_empty_arrays(rng, library):
    M = rng.standard_normal((6, 4))
    m = library.put(M)
    for arguments in ({"L": M}, {"Y": M}, {"observed": M > 0}):
        with pytest.raises(TypeError, match="needs its arrays in one place"):
            quoin.robust_pca(m, **arguments)
        with pytest.raises(TypeError, match="needs its arrays in one place"):
            quoin.robust_pca(M, **{name: library.put(array) for name, array in arguments.items()})
    with pytest.raises(quoin.InvalidArgument, match="observed must have the shape"):
        quoin.robust_pca(m, observed=library.put(M > 0)[:, 1:])
    with pytest.raises(quoin.InvalidArgument, match="rho"):
        quoin.robust_pca(m, rho=1)
    with pytest.raises(np.linalg.LinAlgError, match="two-dimensional"):
        quoin.robust_pca(m[0])
    bad = M.copy()
    bad[2, 1], bad[1, 2] = np.nan, np.inf
    for given in library.orders(library.put(bad)):
        with pytest.raises(quoin.NonFiniteEntry) as caught:
            quoin.robust_pca(given)
        assert (caught.value.row, caught.value.col) == (2, 1)
        with pytest.raises(quoin.InvalidArgument, match="observed"):
            quoin.robust_pca(given, observed=library.put(np.isfinite(bad) | (np.arange(4) == 2)))
    for shape in ((0, 0), (0, 3), (3, 0), (1, 1), (1, 5), (5, 1)):
        result = quoin.robust_pca(library.put(np.zeros(shape)))
        assert library.get(result.L).shape == shape and result.iterations == 0 and not library.get(result.L).any()


def frames(rng, count, dtype):
    """A background, noise of 0.005 and an object of 20 entries that moves by 31 a frame."""
    X = 0.2 + 0.6 * rng.random(600) + 0.005 * rng.standard_normal((count, 600))
    for t in range(count):
        X[t, (31 * t + np.arange(20)) % 600] += 0.4
    return X.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_online_robust_pca(rng, library, dtype):
    X = frames(rng, 60, dtype)
    expected = quoin.OnlineRobustPCA(start=8).partial_fit(X)
    pca = quoin.OnlineRobustPCA(start=8)
    single = quoin.OnlineRobustPCA(start=8, device="cuda")
    for given in library.orders(library.put(X[:5])):
        quoin.OnlineRobustPCA(start=8).partial_fit(given)
    pca.partial_fit(library.put(X[:31])).partial_fit(library.put(X[31:]))
    for row in X:
        single.partial_fit(row[None])
    assert type(pca.low_rank_) is type(library.put(X)) and type(single.low_rank_) is np.ndarray
    assert (pca.n_samples_seen_, pca.n_components_) == (60, expected.n_components_)
    low, sparse = library.get(pca.low_rank_), library.get(pca.sparse_)
    np.testing.assert_array_equal(single.low_rank_[0], low[-1])
    np.testing.assert_array_equal(single.sparse_[0], sparse[-1])
    np.testing.assert_array_equal(single.components_, library.get(pca.components_))
    np.testing.assert_array_equal(single.noise_, library.get(pca.noise_))
    # each sample rounds the basis about ten times
    unit = 22 * 11 * 60 * np.finfo(dtype).eps
    np.testing.assert_allclose(low, expected.low_rank_[-29:], rtol=0, atol=unit)
    assert np.mean((sparse != 0) != (expected.sparse_[-29:] != 0)) <= (0 if dtype == np.float64 else 0.002)
    np.testing.assert_allclose(pca.singular_values_, expected.singular_values_, rtol=unit)
    assert library.get(pca.components_).shape == (1, 600) and library.get(pca.noise_).shape == (600,)


def test_online_robust_pcas_errors(rng, library):
    X = frames(rng, 3, np.float64)
    pca = quoin.OnlineRobustPCA().partial_fit(library.put(X))
    with pytest.raises(TypeError, match="needs its arrays in one place"):
        pca.partial_fit(X)
    with pytest.raises(TypeError, match="takes blocks in host memory"):
        quoin.OnlineRobustPCA(device="cuda").partial_fit(library.put(X))
    with pytest.raises(quoin.NonFiniteEntry):
        pca.partial_fit(library.put(np.full((1, 600), np.nan)))
    assert pca.n_samples_seen_ == 3


@pytest.mark.parametrize("order", ["C", "F"])
def test_robust_pca_on_the_callers_stream(rng, torch, order):
    L, S = mixture(rng, 4000, 30)
    source, mask = torch.from_numpy(L + S).cuda(), torch.ones(4000, 30, dtype=torch.bool, device="cuda")
    expected = quoin.robust_pca(source, observed=mask).L.cpu().numpy()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        known = torch.zeros_like(mask)
        a = late_copy(torch, source, order)
        known.copy_(mask)
        result = quoin.robust_pca(a, observed=known)
        a.fill_(float("nan"))
        known.fill_(False)
        total, low = result.L + result.S, result.L.clone()
        result.L.fill_(float("nan"))
        del a, known, result
        torch.full((4000, 30), float("nan"), dtype=source.dtype, device="cuda")
    stream.synchronize()
    assert np.linalg.norm(total.cpu().numpy() - L - S) <= 1.01e-7 * np.linalg.norm(L + S)
    assert np.linalg.norm(low.cpu().numpy() - expected) <= 1e-5 * np.linalg.norm(L)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(300, 50), (50, 300)])
def test_the_estimator_is_that_of_the_host(rng, library, shape, dtype):
    X = sum(mixture(rng, *shape, dtype=dtype))
    tol, n = 1e-5 if dtype == np.float32 else 1e-7, min(shape)
    host, x = quoin.RobustPCA().fit(X), library.put(X)
    for given in library.orders(x):
        pca = quoin.RobustPCA().fit(given)
        there = (pca.components_, pca.singular_values_, pca.low_rank_, pca.sparse_)
        assert all(isinstance(array, library.kind) for array in there)
        V, values, L, S = (library.get(array) for array in there)
        assert {array.dtype for array in (V, values, L, S)} == {np.dtype(dtype)}
        assert (pca.n_components_, pca.n_features_in_) == (3, shape[1]) and abs(pca.n_iter_ - host.n_iter_) <= 1
        assert_orthonormal(np.ascontiguousarray(V.T))
        assert np.all(V[range(3), np.abs(V).argmax(axis=1)] > 0)
        assert_near((L @ V.T) @ V, L, n)
        assert_near(values, np.linalg.svd(L.astype(float), compute_uv=False)[:3].astype(dtype), n)
        assert np.linalg.norm(V - host.components_) <= 1000 * tol

        scores = pca.transform(given)
        assert isinstance(scores, library.kind) and library.get(scores).dtype == dtype
        assert np.linalg.norm(library.get(scores) - host.transform(X)) <= 1000 * tol * np.linalg.norm(values)
        assert np.array_equal(library.get(pca.fit_transform(given)), library.get(scores))
        low = pca.inverse_transform(scores)
        assert isinstance(low, library.kind)
        assert_near(library.get(low), (wide(library.get(scores)) @ wide(V)).astype(dtype), 3)
        # rows without errors: the projection
        assert_near(library.get(pca.transform(low)), library.get(scores), shape[1])
    assert np.array_equal(library.get(x), X)


def test_the_estimators_scores_do_not_see_gross_errors(rng, library):
    pca = quoin.RobustPCA().fit(library.put(sum(mixture(rng, 300, 60))))
    scores = 4 * rng.standard_normal((40, 3))
    clean = scores @ library.get(pca.components_)
    rows = clean + np.where(rng.random(clean.shape) < 0.15, 50.0, 0.0)
    found = library.get(pca.transform(library.put(rows)))
    assert np.allclose(found, scores, rtol=0, atol=1e-5)
    # rows that end early leave other rows' scores as they are; types mix as NumPy's do
    rows[::2] = clean[::2]
    assert np.allclose(library.get(pca.transform(library.put(rows))), scores, rtol=0, atol=1e-5)
    assert library.get(pca.transform(library.put(clean.astype(np.float32)))).dtype == np.float64
    with pytest.warns(RuntimeWarning, match="1 iterations"):
        pca.set_params(max_iterations=1).transform(library.put(rows + 1))


def test_what_the_estimator_refuses(rng, library):
    X = sum(mixture(rng, 60, 20))
    x = library.put(X)
    pca, host = quoin.RobustPCA().fit(x), quoin.RobustPCA().fit(X)
    for call in (lambda: pca.transform(X), lambda: host.transform(x), lambda: pca.inverse_transform(host.transform(X)),
                 lambda: host.inverse_transform(pca.transform(x))):
        with pytest.raises(TypeError, match="needs its arrays in one place"):
            call()
    for bad, message in ((X[:, :19], "19 features.*20"), (X[0], "Reshape"), (X[:0], "0 sample"),
                         (X.astype(complex), "Complex")):
        with pytest.raises(quoin.InvalidArgument, match=message):
            pca.transform(library.put(bad))
    bad = X.copy()
    bad[7, 3], bad[9, 1] = np.inf, np.nan
    for call in (pca.transform, quoin.RobustPCA().fit):
        with pytest.raises(quoin.NonFiniteEntry, match="inf") as caught:
            call(library.put(bad))
        assert (caught.value.row, caught.value.col) == (7, 3)
    nothing = quoin.RobustPCA().fit(library.put(np.zeros((4, 3))))
    assert nothing.n_components_ == 0 and nothing.transform(library.put(np.ones((2, 3)))).shape == (2, 0)
    with pytest.warns(RuntimeWarning, match="iteration-limit"):
        few = quoin.RobustPCA(max_iterations=2).fit(library.put(X > 0))
    assert library.get(few.components_).dtype == np.float64


def test_the_estimator_keeps_to_one_library(rng, gpu):
    torch, cupy = Torch(), CuPy()
    X = sum(mixture(rng, 60, 20))
    with pytest.raises(TypeError, match="the library that it was fitted with.*torch.*cupy"):
        quoin.RobustPCA().fit(torch.put(X)).transform(cupy.put(X))


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_estimator_on_the_callers_stream(rng, torch, order):
    source = torch.from_numpy(sum(mixture(rng, 4000, 30))).cuda()
    fitted = quoin.RobustPCA().fit(source)
    expected, components = fitted.transform(source).cpu().numpy(), fitted.components_.cpu().numpy()
    with pytest.raises(BufferError, match="grad"):
        fitted.transform(source.clone().requires_grad_())
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        a = late_copy(torch, source, order)
        pca = quoin.RobustPCA()
        scores = pca.fit_transform(a)
        a.fill_(float("nan"))
        del a
        torch.full((4000, 30), float("nan"), dtype=source.dtype, device="cuda")
        found, V = scores.clone(), pca.components_.clone()
        scores.fill_(float("nan"))
    stream.synchronize()
    assert np.linalg.norm(found.cpu().numpy() - expected) <= 1e-5 * np.linalg.norm(expected)
    assert np.linalg.norm(V.cpu().numpy() - components) <= 1e-5


# ---- Streams, lifetimes, threads -------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("default", [False, True], ids=["side-stream", "default-stream"])
@pytest.mark.parametrize("compute", [
    lambda a: quoin.qr(a),
    lambda a: quoin.qr(a, method="caqr", check_finite=False),
    lambda a: (lambda f: (f.q(), f.R))(quoin.factor(a, check_finite=False)),
    lambda a: (lambda u, s, v: (u, s[:, None] * v))(*quoin.svd(a)),
], ids=["qr", "qr-without-waiting", "factor", "svd"])
def test_on_the_callers_stream(rng, torch, order, default, compute):
    A = rng.standard_normal((4000, 30))
    source = torch.from_numpy(A).cuda()
    compute(source)  # what is made at a first call waits for the device
    stream = torch.cuda.default_stream() if default else torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        a = late_copy(torch, source, order)
        Q, R = compute(a)
        a.fill_(float("nan"))
        product, Q2, R2 = Q @ R, Q.clone(), R.clone()
        Q.fill_(float("nan"))
        del a, Q, R
        torch.full((4000, 30), float("nan"), dtype=source.dtype, device="cuda")  # takes memory that is free again
    stream.synchronize()
    assert_near(product.cpu().numpy(), A, 30)
    assert_product(Q2.cpu().numpy(), R2.cpu().numpy(), A)


@pytest.mark.parametrize("default", [False, True], ids=["side-stream", "default-stream"])
def test_nothing_waits_that_need_not(rng, torch, default):
    a = torch.from_numpy(rng.standard_normal((4000, 30))).cuda()
    stream = torch.cuda.default_stream() if default else torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            Q, R = quoin.qr(a, method="caqr", check_finite=False)
            Q @ R
        stream.synchronize()
        torch.cuda._sleep(LONG)
        Q, R = quoin.qr(a, method="caqr", check_finite=False)
        assert not stream.query()
        product = Q @ R
    stream.synchronize()
    assert_near(product.cpu().numpy(), a.cpu().numpy(), 30)


def test_on_cupys_stream(rng, gpu):
    cupy = CuPy().xp
    A = rng.standard_normal((4000, 30))
    for _ in range(3):  # a stream that is gone leaves no state
        with cupy.cuda.Stream(non_blocking=True) as stream:
            a = cupy.zeros(A.shape)
            a.set(A, stream=stream)
            Q, R = quoin.qr(a)
            f = quoin.factor(a)
            a.fill(np.nan)
            product = Q @ R
            stream.synchronize()
        assert_near(cupy.asnumpy(product), A, 30)
        assert_product(cupy.asnumpy(Q), cupy.asnumpy(R), A)
        del Q, R, stream
        assert_product(cupy.asnumpy(f.q()), cupy.asnumpy(f.R), A)


def test_results_are_the_callers_memory(torch):
    a = torch.randn(20000, 50, device="cuda")
    quoin.qr(a)
    before = torch.cuda.memory_allocated()
    Q, R = quoin.qr(a)
    assert torch.cuda.memory_allocated() - before >= Q.nbytes + R.nbytes
    assert Q.mT.is_contiguous() and R.mT.is_contiguous()
    del Q, R
    assert torch.cuda.memory_allocated() == before


def test_threads_share_nothing_but_what_they_are_given(rng, torch):
    matrices = [rng.standard_normal((3000, 5 + i)) for i in range(6)]
    there = [torch.from_numpy(A).cuda() for A in matrices]
    alone = [[array.cpu() for array in quoin.qr(a)] for a in there]
    shared = quoin.factor(there[0])
    product = shared.apply(there[0], trans=True).cpu()
    torch.cuda.synchronize()

    def work(i):
        with torch.cuda.stream(torch.cuda.Stream()):
            Q, R = quoin.qr(there[i])
            other = shared.apply(there[0], trans=True)
            return Q.cpu(), R.cpu(), other.cpu()

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for _ in range(5):
            for (Q, R, other), (Q1, R1) in zip(pool.map(work, range(6)), alone, strict=True):
                assert torch.equal(Q, Q1) and torch.equal(R, R1) and torch.equal(other, product)
    assert torch.equal(shared.apply(there[0], trans=True).cpu(), product)


def test_a_second_gpu(rng, torch):
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    A = rng.standard_normal((500, 8))
    a, b = torch.from_numpy(A).to("cuda:1"), torch.from_numpy(A).cuda()
    Q, R = quoin.qr(a)
    assert Q.device.index == R.device.index == 1 and torch.cuda.current_device() == 0
    assert_product(Q.cpu().numpy(), R.cpu().numpy(), A)
    assert torch.equal(quoin.factor(a).q().cpu(), quoin.factor(b).q().cpu())
    with pytest.raises(TypeError, match="one lies on GPU 1, another on GPU 0"):
        quoin.lstsq(a, b)
    current = []
    result = quoin.robust_pca(a, max_iterations=2, callback=lambda _: current.append(torch.cuda.current_device()))
    assert result.L.device.index == 1 and current == [0, 0]
    pca = quoin.RobustPCA()
    assert pca.fit_transform(a).device.index == pca.components_.device.index == 1
