"""QR of rows over ranks with a GPU each: one rank, ranks that share a GPU, and ranks with GPUs of their own that NCCL
connects."""

import gc
import os
import shutil
import socket
import subprocess
import sys

import laws
import numpy as np
import pytest
from test_distributed import on_ranks

import quoin
import quoin.distributed
from quoin import _core, _libraries

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

GPUS = [gpu for gpu in quoin.info()["gpus"] if ": " not in gpu] if hasattr(_core, "cuda") else []
DTYPES = [np.float32, np.float64]
one_gpu = pytest.mark.skipif(len(GPUS) < 1, reason="no GPU")
two_gpus = pytest.mark.skipif(len(GPUS) < 2, reason=f"needs two GPUs, and this machine has {len(GPUS)}")


class Alone:
    rank, size = 0, 1


# ---- Without a GPU ---------------------------------------------------------------------------------------------------


class Link:
    def __init__(self, number):
        self.number, self.closed = number, 0

    def close(self):
        self.closed += 1


def test_a_connection_lives_as_long_as_the_communicator():
    keep, links = quoin.distributed._keep, quoin.distributed._links
    comm = Alone()
    key = id(comm), 0
    first, again, second = Link(5), Link(5), Link(6)
    assert keep(comm, key, first) and links[key] is first
    assert keep(comm, key, again) and first.closed == again.closed == 0
    assert keep(comm, key, second) and again.closed == 1 and second.closed == 0
    del comm
    gc.collect()
    assert second.closed == 1 and key not in links
    # nobody hears of the end of this one
    number = 7.0
    assert not keep(number, (id(number), 0), first) and (id(number), 0) not in links


def test_nccl_is_looked_for():
    assert isinstance(_libraries.nccl(), str)


def test_small_messages_of_a_group_of_nccl_go_by_its_store(monkeypatch):
    torch = pytest.importorskip("torch")
    store = torch.distributed.HashStore()
    monkeypatch.setattr(torch.distributed.distributed_c10d, "_get_process_group_store", lambda group: store)
    here, there = quoin.distributed._Mail(None), quoin.distributed._Mail(None)
    messages = [b"", b"\0\xff", bytes(range(256)) * 100]
    for message in messages:
        here.send(message, 0, 1)
    there.send(b"back", 1, 0)
    assert [there.receive(0, 1) for _ in messages] == messages and here.receive(1, 0) == b"back"
    assert store.num_keys() == 0


# ---- One GPU ---------------------------------------------------------------------------------------------------------


def putter(name):
    if name == "torch":
        torch = pytest.importorskip("torch")
        return (lambda A: torch.from_numpy(np.array(A)).cuda()), (lambda a: a.cpu().numpy()), torch.Tensor
    if name == "cupy":
        cupy = pytest.importorskip("cupy")
        return cupy.asarray, cupy.asnumpy, cupy.ndarray
    jax = pytest.importorskip("jax")
    if not any(device.platform == "gpu" for device in jax.devices()):
        pytest.skip("jax without a GPU")
    jax.config.update("jax_enable_x64", True)
    return jax.numpy.asarray, np.asarray, jax.Array


@one_gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("library", ["torch", "cupy", "jax"])
@pytest.mark.parametrize("method", ["auto", "tsqr"])
def test_one_rank(rng, library, dtype, method):
    put, get, kind = putter(library)
    for m, n in [(3000, 40), (64, 7), (3, 5), (1, 1)]:
        A = rng.standard_normal((m, n)).astype(dtype)
        Q, R = quoin.distributed.qr(put(A), Alone(), method=method)
        assert isinstance(Q, kind) and isinstance(R, kind)
        Q, R = get(Q), get(R)
        assert Q.dtype == R.dtype == dtype
        laws.assert_orthonormal(Q)
        laws.assert_product(Q, R, A)
        laws.assert_upper(R)
        assert np.array_equal(np.abs(get(quoin.distributed.qr(put(A), Alone(), "r", method=method))) > 0, np.abs(R) > 0)
    A, x = rng.standard_normal((500, 6)).astype(dtype), np.arange(6, dtype=dtype)
    u = float(np.finfo(dtype).eps)
    solution = quoin.distributed.lstsq(put(A), put(A @ x), Alone(), method=method)
    assert isinstance(solution.x, kind) and solution.x.shape == (6,)
    assert np.linalg.norm(get(solution.x) - x) <= 100 * 6 * u * np.linalg.norm(x)
    U, S, Vh = quoin.distributed.svd(put(A), Alone(), method=method)
    laws.assert_orthonormal(get(U))
    laws.assert_product(get(U) * get(S), get(Vh), A)
    S_alone = get(quoin.distributed.svd(put(A), Alone(), compute_uv=False, method=method))
    assert np.linalg.norm(S_alone - get(S)) <= 60 * u * get(S)[0]
    for q in ("any", "explicit"):
        f = quoin.distributed.factor(put(A), Alone(), method=method, q=q)
        assert all(isinstance(array, kind) for array in (f.q(), f.R, f.apply_thin(put(x)), f.apply_thin(put(A), trans=True)))
        Q, R = get(f.q()), get(f.R)
        laws.assert_orthonormal(Q)
        laws.assert_product(Q, R, A)
        size_of_A = np.linalg.norm(A)
        assert np.linalg.norm(get(f.apply_thin(f.R)) - A) <= 10 * 6 * u * size_of_A
        assert np.linalg.norm(get(f.apply_thin(put(A), trans=True)) - R) <= 10 * 6 * u * size_of_A
        assert f.apply_thin(put(x)).shape == (500,) and f.apply_thin(put(A[:, 0]), trans=True).shape == (6,)
        assert np.linalg.norm(get(f.lstsq(put(A @ x)).x) - x) <= 100 * 6 * u * np.linalg.norm(x)
        with pytest.raises(TypeError, match="needs its arrays in one place"):
            f.lstsq(A @ x)


@one_gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [2, 3])
def test_ranks_that_share_a_gpu(rng, dtype, size):
    put, get, kind = putter("torch")
    A = rng.standard_normal((400, 9)).astype(dtype)
    rows = np.split(A, np.sort(rng.integers(0, 401, size - 1)))
    # two calls on one communicator: the second one is connected already
    results = on_ranks(size, lambda r: [quoin.distributed.qr(put(rows[r.rank]), r) for _ in range(2)])
    for result in results:
        assert not isinstance(result, Exception), result
    for first, second in results:
        assert np.array_equal(get(first.Q), get(second.Q)) and np.array_equal(get(first.R), get(results[0][0].R))
    Q, R = np.concatenate([get(f.Q) for f, _ in results]), get(results[0][0].R)
    laws.assert_orthonormal(Q)
    laws.assert_product(Q, R, A)
    laws.assert_upper(R)


@one_gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("method", ["tsqr", "cholesky-qr2"])
def test_a_factorization_of_ranks_that_share_a_gpu(rng, dtype, size, method):
    put, get, kind = putter("torch")
    A, b = rng.standard_normal((400, 9)).astype(dtype), rng.standard_normal(400).astype(dtype)
    cuts = [0, 150][: size - 1]  # the first rank has no rows
    rows, of_b = np.split(A, cuts), np.split(b, cuts)

    def use(r):
        mine = put(rows[r.rank])
        f = quoin.distributed.factor(mine, r, method=method)
        with pytest.raises(quoin.InvalidArgument, match=f"rank {size - 1}: .* C has 8 rows"):
            f.apply_thin(f.R[:8] if r.rank == size - 1 else f.R)
        return f.q(), f.R, f.apply_thin(f.R), f.apply_thin(mine, trans=True), f.lstsq(put(of_b[r.rank])).x

    results = on_ranks(size, use)
    for result in results:
        assert not isinstance(result, Exception), result
    Qs, Rs, of_Rs, of_As, xs = ([get(part) for part in parts] for parts in zip(*results))
    laws.assert_orthonormal(np.concatenate(Qs))
    laws.assert_product(np.concatenate(Qs), Rs[0], A)
    laws.assert_upper(Rs[0])
    allowed = laws.bound(A) * np.linalg.norm(A)
    assert np.linalg.norm(np.concatenate(of_Rs) - A) <= allowed
    x = laws.wide(xs[0])
    gradient = laws.wide(A).T @ (laws.wide(b) - laws.wide(A) @ x)
    assert np.linalg.norm(gradient) <= allowed * (np.linalg.norm(A) * np.linalg.norm(x) + np.linalg.norm(b))
    for R, of_A, one in zip(Rs, of_As, xs):
        assert np.array_equal(R, Rs[0]) and np.array_equal(one, xs[0]) and np.linalg.norm(of_A - R) <= allowed


@one_gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_streams_and_columns(rng, dtype, size):
    """A stream beside a GPU gives its state on the host."""
    put, get, kind = putter("torch")
    A, b = rng.standard_normal((400, 9)).astype(dtype), rng.standard_normal(400).astype(dtype)
    rows = np.array_split(np.arange(400), [0, 150][: size - 1])  # the first rank of several has no rows

    def merged(r, **options):
        of_rank, of_b = A[rows[r.rank]], b[rows[r.rank]]
        on = np.asarray if options else put
        return quoin.distributed.merge(quoin.StreamingR(**options).partial_fit(on(of_rank), on(of_b)), r)

    def appended(r):
        mine = A[rows[r.rank]]
        basis = quoin.distributed.GramSchmidt(len(mine), r, dtype)
        basis.append(put(mine[:, 0]))
        basis.append(put(mine[:, 1:]))
        return basis

    def expect_r_of_all(streams):
        R = get(streams[0].R) if isinstance(streams[0].R, kind) else streams[0].R
        gram = laws.wide(A).T @ laws.wide(A)
        assert np.abs(laws.wide(R).T @ laws.wide(R) - gram).max() <= 2 * laws.bound(A) * np.linalg.norm(A.astype(float)) ** 2
        laws.assert_upper(R)
        for stream in streams:
            assert stream.n_rows == 400 and stream.solve().x.shape == (9,)
            assert np.array_equal(get(stream.R) if isinstance(stream.R, kind) else stream.R, R)

    beside = on_ranks(size, lambda r: merged(r, device="cuda"))
    assert all(isinstance(stream.R, np.ndarray) for stream in beside)
    expect_r_of_all(beside)
    streams = on_ranks(size, merged)
    assert all(isinstance(stream.R, kind) for stream in streams)
    expect_r_of_all(streams)
    bases = on_ranks(size, appended)
    Q, R = np.concatenate([get(basis.Q) for basis in bases]), get(bases[0].R)
    laws.assert_orthonormal(Q)
    laws.assert_product(Q, R, A)
    laws.assert_upper(R)
    assert all(np.array_equal(get(basis.R), R) for basis in bases)


@one_gpu
@pytest.mark.parametrize("culprit", [0, 1])
def test_a_fault_of_one_rank_is_that_of_all(rng, culprit):
    put, _, _ = putter("torch")
    A = rng.standard_normal((50, 4))

    def errors(call):
        found = on_ranks(2, lambda r: call(r, r.rank == culprit))
        assert all(isinstance(e, Exception) for e in found)
        return found

    bad = A.copy()
    bad[4, 1] = np.nan
    for e in errors(lambda r, is_bad: quoin.distributed.qr(put(bad if is_bad else A), r)):
        assert isinstance(e, quoin.NonFiniteEntry) and f"rank {culprit}" in str(e) and (e.row, e.col) == (4, 1)
    for e in errors(lambda r, is_bad: quoin.distributed.qr(put(A[:, :3] if is_bad else A), r)):
        assert isinstance(e, quoin.InvalidArgument) and "the number of columns" in str(e)
    for e in errors(lambda r, is_bad: quoin.distributed.qr(put(A.astype(np.float32) if is_bad else A), r)):
        assert isinstance(e, quoin.InvalidArgument) and "the size of an element" in str(e)
    for e in errors(lambda r, is_bad: quoin.distributed.qr(A if is_bad else put(A), r)):
        assert isinstance(e, quoin.InvalidArgument) and "a function of arrays on GPUs" in str(e)
    one, other = errors(lambda r, is_bad: quoin.distributed.qr(put(A.astype(complex) if is_bad else A), r))
    assert str(one).split(": ")[-1] == str(other).split(": ")[-1]


@one_gpu
def test_the_stream_of_the_caller(rng):
    put, get, _ = putter("torch")
    import torch

    A = rng.standard_normal((5000, 20))
    source, late = put(A), torch.full((5000, 20), torch.nan, dtype=torch.float64, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(100_000_000)
        late.copy_(source)
        Q, R = quoin.distributed.qr(late, Alone())
        product = Q @ R
    torch.cuda.synchronize()
    laws.assert_orthonormal(get(Q))
    assert np.linalg.norm(get(product) - A) <= 1e-12 * np.linalg.norm(A)


# ---- GPUs of their own, by NCCL --------------------------------------------------------------------------------------


def in_a_group(rank, size, port, backend):
    """One process of `test_process_groups`."""
    import torch
    from torch.distributed import tensor as tensors

    dist = torch.distributed
    torch.cuda.set_device(rank)
    dist.init_process_group(backend, init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    world = dist.group.WORLD

    def gathered(rows):
        parts = [None] * size
        dist.all_gather_object(parts, rows.cpu().numpy())
        return np.concatenate(parts)

    def expect_error(kind, text, call):
        try:
            call()
        except kind as e:
            assert text in str(e), str(e)
        else:
            raise AssertionError(f"no {kind}")

    rng = np.random.default_rng(rank)
    for dtype in DTYPES:
        for rows, n in [(1000 + 500 * rank, 30), (3000 * rank, 64), (2, 7), (20000, 193)]:
            mine = torch.from_numpy(rng.standard_normal((rows, n)).astype(dtype)).cuda()
            for method in ("auto", "tsqr"):
                Q, R = quoin.distributed.qr(mine, world, method=method)
                assert isinstance(Q, torch.Tensor) and Q.device == R.device == mine.device
                whole_Q, whole, all_R = gathered(Q), gathered(mine), gathered(R[None])
                assert all((one == all_R[0]).all() for one in all_R)
                laws.assert_orthonormal(whole_Q)
                laws.assert_product(whole_Q, all_R[0], whole)
                laws.assert_upper(all_R[0])
            f = quoin.distributed.factor(mine, world)
            allowed = laws.bound(whole) * np.linalg.norm(whole)
            assert np.linalg.norm(gathered(f.apply_thin(f.R)) - whole) <= allowed
            assert np.linalg.norm(f.apply_thin(mine, trans=True).cpu().numpy() - f.R.cpu().numpy()) <= allowed
            laws.assert_orthonormal(gathered(f.q()))
    links = quoin.distributed._links
    assert len(links) == 1, links
    link = next(iter(links.values()))

    A, x = torch.randn(700, 6, dtype=torch.float64, device="cuda"), torch.arange(6.0, dtype=torch.float64, device="cuda")
    solution = quoin.distributed.lstsq(A, A @ x, world)
    assert (solution.x - x).norm() < 1e-11
    f = quoin.distributed.factor(A, world)
    assert (f.lstsq(A @ x).x - x).norm() < 1e-11
    U, S, Vh = quoin.distributed.svd(A, world)
    laws.assert_orthonormal(gathered(U))
    assert (U * S @ Vh - A).norm() < 1e-12 * A.norm() * 10

    last = rank == size - 1
    bad = A.clone()
    bad[4, 1] = torch.nan if last else 1
    qr = quoin.distributed.qr
    expect_error(quoin.NonFiniteEntry, f"rank {size - 1}", lambda: qr(bad, world))
    expect_error(quoin.InvalidArgument, "the number of columns", lambda: qr(A[:, :5] if last else A, world))
    expect_error(quoin.InvalidArgument, "the size of an element", lambda: qr(A.float() if last else A, world))
    expect_error(quoin.InvalidArgument, "a function of arrays on GPUs", lambda: qr(A.cpu() if last else A, world))
    expect_error(quoin.InvalidArgument, f"rank {size - 1}", lambda: f.lstsq(A[: 699 if last else 700, 0]))
    expect_error((TypeError, quoin.InvalidArgument), "needs its arrays in one place", lambda: f.lstsq(A[:, 0].cpu() if last else A[:, 0]))
    # the ranks go on together, with the connection that they have
    qr(A, world)
    assert next(iter(links.values())).number == link.number

    mesh = dist.device_mesh.init_device_mesh("cuda", (size,))
    mine = torch.randn(251 - rank, 8, dtype=torch.float64, device="cuda")
    B = tensors.DTensor.from_local(mine, mesh, [tensors.Shard(0)], run_check=False, shape=(501, 8), stride=(8, 1))
    Q, R = qr(B)
    assert Q.placements == (tensors.Shard(0),) and R.placements == (tensors.Replicate(),)
    assert Q.to_local().is_cuda and Q.shape == (501, 8)
    laws.assert_orthonormal(gathered(Q.to_local()))
    laws.assert_product(gathered(Q.to_local()), R.to_local().cpu().numpy(), gathered(B.to_local()))
    f = quoin.distributed.factor(B)
    of_R = f.apply_thin(f.R)
    assert (of_R.placements, f.R.placements) == ((tensors.Shard(0),), (tensors.Replicate(),))
    assert (of_R.to_local() - mine).norm() <= 1e-13 * mine.norm()
    dist.barrier()
    dist.destroy_process_group()


@two_gpus
@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_process_groups(backend):
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch.distributed.tensor")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(in_a_group, (2, port, backend), 2)


SCRIPT = """
import sys
import numpy as np
from mpi4py import MPI
import quoin, quoin.distributed

comm, library = MPI.COMM_WORLD, sys.argv[1]
rng = np.random.default_rng(comm.rank)
A = rng.standard_normal((1000 + 400 * comm.rank, 12))
if library == "cupy":
    import cupy
    cupy.cuda.Device(comm.rank).use()
    put, get = cupy.asarray, cupy.asnumpy
elif library == "jax":
    import jax
    jax.config.update("jax_enable_x64", True)
    put, get = lambda a: jax.device_put(a, jax.devices()[comm.rank]), np.asarray
else:
    import torch
    put, get = lambda a: torch.from_numpy(a).to(f"cuda:{comm.rank}"), lambda a: a.cpu().numpy()
for _ in range(2):
    a = put(A)
    Q, R = quoin.distributed.qr(a, comm)
    assert type(Q) is type(a)
    Q, R = get(Q), get(R)
    gram = comm.allreduce(Q.T @ Q)
    assert np.abs(gram - np.eye(12)).max() < 1e-13
    assert np.abs(Q @ R - A).max() < 1e-12
assert len(quoin.distributed._links) == 1
try:
    A[3, 2] = np.inf if comm.rank == comm.size - 1 else 1
    quoin.distributed.qr(put(A), comm)
except quoin.NonFiniteEntry as e:
    assert f"rank {comm.size - 1}" in str(e)
    print("passed")
"""


@two_gpus
@pytest.mark.skipif(not shutil.which("mpiexec"), reason="no mpiexec")
@pytest.mark.parametrize("library", ["torch", "cupy", "jax"])
def test_mpi4py(library):
    pytest.importorskip("mpi4py")
    pytest.importorskip(library)
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "OMP_NUM_THREADS": "1", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    command = ["mpiexec", "-n", "2", sys.executable, "-c", SCRIPT, library]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("passed") == 2
