"""quoin.jax: functions that obey the laws of QR, compile, differentiate and batch."""

import doctest
import os
import pathlib
import subprocess
import sys
import textwrap
import time
import tomllib

import numpy as np
import pytest

import quoin
from laws import assert_orthonormal, assert_product, assert_upper, bound, wide

jax = pytest.importorskip("jax")
qj = pytest.importorskip("quoin.jax", exc_type=ImportError)

import jax.numpy as jnp
from jax.test_util import check_grads

SHAPES = [(6, 4), (4, 4), (3, 5), (2, 7, 3), (2, 3, 4, 4), (2, 3, 6)]
TALL = [shape for shape in SHAPES if shape[-2] >= shape[-1]]
EMPTY = [(0, 3), (3, 0), (0, 0), (0, 4, 3), (2, 0, 3), (2, 3, 0)]


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def normal(rng):
    return lambda *shape, dtype=np.float64: jnp.asarray(rng.standard_normal(shape), dtype)


def norm(A):
    return np.sqrt((wide(A) ** 2).sum(axis=(-2, -1), keepdims=True))


def assert_equal_product(Y, Q, C):
    """Y = Q C for an orthogonal Q."""
    assert np.all(norm(wide(Y) - wide(Q) @ wide(C)) <= bound(np.asarray(Q)) * norm(C))


@pytest.mark.parametrize("shape", [*SHAPES, *EMPTY, (1, 1), (700, 30), (40, 33, 32)], ids=str)
@pytest.mark.parametrize("dtype, compiled", [(np.float32, True), (np.float64, False)])
def test_qr(shape, dtype, compiled, normal):
    A = normal(*shape, dtype=dtype)
    m, n = shape[-2:]
    qr = jax.jit(qj.qr, static_argnames="mode") if compiled else qj.qr
    for mode, k in (("reduced", min(m, n)), ("complete", m)):
        Q, R = map(np.asarray, qr(A, mode=mode))
        assert (Q.shape, R.shape, Q.dtype, R.dtype) == ((*shape[:-1], k), (*shape[:-2], k, n), dtype, dtype)
        assert_orthonormal(Q)
        assert_product(Q, R, A)
        assert_upper(R)
    assert np.array_equal(qj.orthonormalize(A), qj.qr(A).Q)
    R = np.asarray(qr(A, mode="r"))
    assert R.shape == (*shape[:-2], min(m, n), n)
    assert_upper(R)
    difference = wide(A.mT) @ wide(A) - wide(R).swapaxes(-1, -2) @ wide(R)  # of A + E = Q R, the law's E
    assert np.all(norm(difference) <= 2 * bound(R) * norm(A) ** 2)


@pytest.mark.parametrize("shape", [(9000, 40), (2, 300, 200)], ids=str)  # on a GPU alone, and as a batch
def test_larger_matrices(shape, normal):
    A = normal(*shape, dtype=np.float32)
    Q, R = map(np.asarray, jax.jit(qj.qr)(A))
    assert_orthonormal(Q)
    assert_product(Q, R, A)
    assert_upper(R)


@pytest.mark.parametrize("shape", [*TALL, (0, 4, 3), (3, 0)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_reflectors(shape, dtype, normal):
    A = normal(*shape, dtype=dtype)
    m, n = shape[-2:]
    h, taus = qj.qr(A, mode="raw")
    a = h.mT
    assert (a.shape, taus.shape) == (shape, (*shape[:-2], n))
    assert all(np.array_equal(x, y) for x, y in zip(qj.geqrf(A), (a, taus)))
    for k in {n, max(n - 1, 0), 0}:
        some = taus[..., :k]
        Q = np.asarray(qj.apply_q(a, some, jnp.eye(m, dtype=dtype)))
        assert Q.shape == (*shape[:-2], m, m)
        assert_orthonormal(Q)
        assert np.array_equal(qj.householder_product(a, some), Q[..., :n])
        C = normal(*shape[:-2], m, 2, dtype=dtype)
        assert_equal_product(qj.apply_q(a, some, C), Q, C)
        assert_equal_product(qj.apply_q(a, some, C, transpose=True), Q.swapaxes(-1, -2), C)
        assert_equal_product(qj.apply_q(a, some, C.mT, left=False).mT, Q.swapaxes(-1, -2), C)
        assert_equal_product(qj.apply_q(a, some, C.mT, left=False, transpose=True).mT, Q, C)
    assert_product(np.asarray(qj.householder_product(a, taus)), np.asarray(jnp.triu(a[..., :n, :])), A)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lstsq(shape, dtype, normal):
    A = normal(*shape, dtype=dtype)
    m, n = shape[-2:]
    for B in (normal(*shape[:-1], dtype=dtype), normal(*shape[:-1], 3, dtype=dtype), normal(m, 2, dtype=dtype)):
        x, residuals, rank, s = qj.lstsq(A, B)
        vector = B.shape == shape[:-1]
        B, X = (wide(B[..., None]), wide(x[..., None])) if vector else (wide(B), wide(x))
        assert X.shape == (*shape[:-2], n, B.shape[-1]) and x.dtype == dtype and rank.size == s.size == 0
        r = wide(A) @ X - B
        scale = norm(A) * norm(X) + norm(B)
        if m >= n:  # Aᵀ r = 0
            assert np.all(norm(wide(A.mT) @ r) <= bound(np.asarray(A)) * norm(A) * scale)
        else:  # X in the range of Aᵀ
            Q = wide(jnp.linalg.qr(A.mT)[0])
            assert np.all(norm(r) <= bound(np.asarray(A)) * scale)
            assert np.all(norm(X - Q @ (Q.swapaxes(-1, -2) @ X)) <= bound(np.asarray(A)) * norm(X))
        assert residuals.shape == (*shape[:-2], B.shape[-1])
        assert np.all(np.abs(np.sqrt(residuals) - np.sqrt((r**2).sum(-2))) <= bound(np.asarray(A)) * scale[..., 0])


@pytest.mark.parametrize("shape", [*SHAPES, *EMPTY, (1, 1), (300, 20), (20, 300)], ids=str)
@pytest.mark.parametrize("dtype, compiled", [(np.float32, True), (np.float64, False)])
def test_pivoting(shape, dtype, compiled, normal):
    A = normal(*shape, dtype=dtype) * jnp.linspace(0.1, 1, shape[-1], dtype=dtype)
    qr = jax.jit(qj.qr, static_argnames="pivoting") if compiled else qj.qr
    Q, R, P = map(np.asarray, qr(A, pivoting=True))
    k = min(shape[-2:])
    assert (Q.shape, R.shape, P.shape, Q.dtype) == ((*shape[:-1], k), (*shape[:-2], k, shape[-1]), (*shape[:-2], shape[-1]), dtype)
    assert np.array_equal(np.sort(P), np.broadcast_to(np.arange(shape[-1]), P.shape))
    assert_orthonormal(Q)
    assert_product(Q, R, np.take_along_axis(np.asarray(A), P[..., None, :], -1))
    assert_upper(R)
    for index in np.ndindex(shape[:-2]):
        alone = quoin.qr(np.asarray(A)[index], pivoting=True)
        assert np.array_equal(alone.R, R[index]) and np.array_equal(alone.P, P[index])


@pytest.mark.parametrize("m, n, rank", [(9, 4, 2), (4, 4, 3), (4, 9, 3), (5, 3, 0), (200, 20, 19), (12, 5, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_rank(m, n, rank, dtype, rng, normal):
    A = (rng.integers(-2, 3, (m, rank)) @ rng.integers(-2, 3, (rank, n))).astype(dtype)
    s = np.linalg.svd(A.astype(float), compute_uv=False)
    assert np.count_nonzero(s > 1e-10 * s[0]) == rank
    kappa, B = s[0] / s[rank - 1] if rank else 1.0, normal(m, 2, dtype=dtype)
    x, residuals, found, _ = qj.lstsq(A, B, 1e-5)
    inverse = np.linalg.pinv(A.astype(float), rcond=1e-10)
    exact = inverse @ np.asarray(B, float)
    rest = np.linalg.norm(np.asarray(B, float) - A @ exact, axis=0)
    # Wedin (1973)
    allowed = 4 * bound(A) * kappa * (np.linalg.norm(exact, axis=0) + kappa * rest / max(1, np.linalg.norm(A)))
    assert x.dtype == dtype and np.all(np.linalg.norm(x - exact, axis=0) <= allowed)
    assert found == rank == qj.matrix_rank(A)
    terms = np.linalg.norm(np.asarray(B, float), axis=0) + np.linalg.norm(A) * np.linalg.norm(exact, axis=0)
    assert np.all(np.abs(np.sqrt(np.asarray(residuals, float)) - rest) <= 4 * bound(A) * terms)
    assert np.linalg.norm(qj.pinv(A) - inverse) <= 4 * bound(A) * kappa * np.linalg.norm(inverse)
    # beside a matrix of full rank, and one with NaN
    stack = jnp.stack([A, normal(m, n, dtype=dtype), jnp.full_like(A, jnp.nan)])
    for solved in (qj.lstsq(stack, B, 1e-5), jax.jit(jax.vmap(lambda A: qj.lstsq(A, B, 1e-5)))(stack)):
        assert solved.rank.tolist() == [rank, min(m, n), 0] and np.isnan(solved.x[2]).all()
        assert np.all(np.linalg.norm(solved.x[0] - exact, axis=0) <= allowed)
    assert qj.matrix_rank(stack[:2]).tolist() == [rank, min(m, n)]


def test_the_tolerance_decides_the_rank():
    A, b = jnp.diag(jnp.array([1, 1e-3, 1e-6])), jnp.ones(3)
    for rcond, rank in ((1e-15, 3), (1e-4, 2), (1e-2, 1), (1, 0)):
        expected = np.array([1, 1e3, 1e6]) * (np.arange(3) < rank)
        x, _, found, _ = qj.lstsq(A, b, rcond)
        assert found == rank == qj.matrix_rank(A, rcond) and np.allclose(x, expected, rtol=1e-12, atol=0)
        assert np.allclose(qj.pinv(A, rcond), np.diag(expected), rtol=1e-12, atol=0)


def test_nan_propagates_and_stays_in_its_matrix(normal):
    A = normal(3, 20, 4)
    Q, R = qj.qr(A.at[1, 5, 2].set(jnp.nan))
    assert np.isnan(R[1]).any() and np.array_equal(R[::2], qj.qr(A[::2]).R)


def test_without_x64(normal):
    A = np.asarray(normal(9, 3))
    with jax.enable_x64(False):
        Q, R = qj.qr(A)
        assert Q.dtype == R.dtype == np.float32 and qj.lstsq(A, A[:, 0]).x.dtype == np.float32


# ---- derivatives -----------------------------------------------------------------------------------------------------


def of_condition_2(A):
    """A with other singular values of its first K columns: differences of what is nearly singular are no
    derivatives."""
    U, s, Vt = jnp.linalg.svd(A[..., : min(A.shape[-2:])], full_matrices=False)
    return A.at[..., : s.shape[-1]].set((U * jnp.linspace(1, 2, s.shape[-1])) @ Vt)


@pytest.mark.parametrize("shape", [(6, 4), (3, 5), (2, 3, 3)], ids=str)
def test_derivatives_of_first_and_second_order(shape, normal):
    A, B = of_condition_2(normal(*shape)), normal(*shape[:-1], 2)
    functions = [qj.qr, lambda A: qj.qr(A, "r"), qj.orthonormalize]
    if shape[-2] <= shape[-1]:
        functions.append(lambda A: qj.qr(A, "complete"))
    for function in functions:
        check_grads(function, (A,), order=2)
    check_grads(lambda A, B: qj.lstsq(A, B)[:2], (A, B), order=2)


@pytest.mark.parametrize("shape, left_out", [((6, 4), 0), ((2, 3, 3), 1)], ids=str)
def test_derivatives_of_reflectors(shape, left_out, normal):
    a, taus = qj.geqrf(of_condition_2(normal(*shape)))
    taus = taus[..., : shape[-1] - left_out].at[..., 0].set(0)  # H = I
    C = normal(*shape[:-1], 2)
    check_grads(qj.householder_product, (a, taus), order=2)
    for transpose in (True, False):
        check_grads(lambda *x: qj.apply_q(*x, transpose=transpose), (a, taus, C), order=2)
    check_grads(lambda *x: qj.apply_q(*x, left=False), (a, taus, C.mT), order=1)


@pytest.mark.parametrize("shape", TALL, ids=str)
def test_gradients_agree_with_jax(shape, normal):
    A, W, V = of_condition_2(normal(*shape)), normal(*shape), normal(*shape[:-2], shape[-1], shape[-1])

    def loss(A, qr):
        Q, R = qr(A)
        signs = jnp.sign(R.diagonal(0, -2, -1))
        return (Q * signs[..., None, :] * W).sum() + (R * signs[..., None] * V).sum()

    ours, theirs = (jax.grad(loss)(A, qr) for qr in (qj.qr, jnp.linalg.qr))
    assert np.allclose(ours, theirs, atol=1e-9)


@pytest.mark.parametrize("shape", [(6, 4), (3, 5)], ids=str)
def test_derivatives_with_pivots_and_of_any_rank(shape, normal):
    A, W = of_condition_2(normal(*shape)), normal(shape[0], min(shape))
    P = qj.qr(A, pivoting=True).P

    def of_factors(Q, R):
        return (Q * Q[:1] * W).sum() + jnp.sin(R * R[:, :1]).sum()

    def of_lstsq(lstsq):
        return lambda A: jnp.sin(lstsq(A, W * A[:, :1]).x).sum()

    pairs = [(lambda A: of_factors(*qj.qr(A, pivoting=True)[:2]), lambda A: of_factors(*qj.qr(A[:, P]))),
             (of_lstsq(lambda A, b: qj.lstsq(A, b, 1e-9)), of_lstsq(qj.lstsq)),
             (lambda A: jnp.sin(qj.pinv(A)).sum(), lambda A: jnp.sin(jnp.linalg.pinv(A)).sum())]  # fmt: skip
    for ours, theirs in pairs:
        assert np.allclose(jax.jit(jax.grad(ours))(A), jax.grad(theirs)(A), rtol=1e-9, atol=1e-9)
        assert np.allclose(jax.jvp(ours, (A,), (A,))[1], jax.jvp(theirs, (A,), (A,))[1], rtol=1e-9, atol=1e-9)
        second = [jax.jvp(jax.grad(f), (A,), (A,))[1] for f in (ours, theirs)]
        assert np.allclose(*second, rtol=1e-7, atol=1e-7)
        stack = jnp.stack([A, 2 * A])
        assert np.allclose(jax.vmap(jax.grad(ours))(stack)[1], jax.grad(ours)(2 * A))
        # each matrix without full rank has a derivative of NaN alone
        for transform in (jax.grad, jax.jacfwd):
            G = jax.vmap(transform(ours))(stack.at[1].set(1))
            assert np.isnan(G[1]).all() and np.allclose(G[0], jax.grad(theirs)(A), rtol=1e-9, atol=1e-9)


def test_what_has_no_derivative(normal):
    A = normal(6, 3)
    for function in (lambda A: qj.qr(A, "complete").Q.sum(), lambda A: qj.geqrf(A).taus.sum()):
        with pytest.raises(ValueError, match="quoin_geqrf"):
            jax.grad(function)(A)


# ---- transformations -------------------------------------------------------------------------------------------------


def test_a_vmap_is_one_batch(normal):
    A, C, b = normal(5, 8, 3), normal(8, 2), normal(5, 8)
    jaxpr = str(jax.make_jaxpr(jax.vmap(qj.qr))(A))
    assert jaxpr.count("ffi_call[") == 1 and "ShapedArray(float64[5,8,3])" in jaxpr
    Q, R = jax.jit(jax.vmap(qj.qr))(A)
    assert np.array_equal(Q, qj.qr(A).Q) and np.array_equal(R, qj.qr(A).R)
    assert np.array_equal(jax.vmap(lambda A: qj.qr(A, "r"), in_axes=2)(A.transpose(1, 2, 0)), qj.qr(A, "r"))
    assert np.array_equal(jax.vmap(jax.vmap(qj.orthonormalize))(A[None]), qj.orthonormalize(A)[None])
    a, taus = qj.geqrf(A)
    assert np.array_equal(jax.vmap(qj.apply_q, in_axes=(0, 0, None))(a, taus, C), qj.apply_q(a, taus, C))
    assert np.array_equal(jax.vmap(qj.householder_product)(a, taus), qj.householder_product(a, taus))
    assert np.array_equal(jax.vmap(lambda A, b: qj.lstsq(A, b).x)(A, b), qj.lstsq(A, b).x)


def test_gradients_compile_and_batch(normal):
    A = normal(5, 8, 3)

    def loss(A):
        return jnp.log(jnp.abs(qj.qr(A).R.diagonal(0, -2, -1))).sum()

    whole = jax.jit(jax.grad(loss))(A)
    assert np.allclose(whole, jnp.linalg.pinv(A).mT, atol=1e-10)  # the gradient of log det(AᵀA) / 2
    assert np.allclose(jax.vmap(jax.grad(loss))(A), whole) and np.allclose(jax.jacfwd(loss)(A), whole)


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_shards_of_a_batch(platform):
    if platform == "cuda" and (jax.default_backend() != "gpu" or jax.device_count() < 2):
        pytest.skip("one GPU or none")
    program = """
        import jax, jax.numpy as jnp, numpy as np, quoin.jax as qj
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
        mesh = Mesh(jax.devices()[:2], "batch")
        A = jax.random.normal(jax.random.key(7), (6, 50, 4))
        split = jax.device_put(A, NamedSharding(mesh, P("batch")))
        def over_shards(function):
            return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=P("batch"), out_specs=P("batch")))
        Q, R = over_shards(lambda A: tuple(qj.qr(A)))(split)
        assert len(Q.sharding.device_set) == 2 and Q.addressable_shards[0].data.shape == (3, 50, 4)
        assert np.array_equal(Q, qj.qr(A).Q) and np.array_equal(R, qj.qr(A).R)
        assert np.array_equal(over_shards(lambda A: qj.householder_product(*qj.geqrf(A)))(split), qj.householder_product(*qj.geqrf(A)))
        a, taus = qj.geqrf(A[0])  # the same on both devices
        assert np.array_equal(over_shards(lambda C: qj.apply_q(a, taus, C))(split), qj.apply_q(a, taus, A))
        def loss(A):
            volumes = jnp.log(jnp.abs(jax.vmap(qj.qr)(A).R.diagonal(0, -2, -1))).sum(-1)
            return volumes + jnp.sin(qj.apply_q(a, taus, A)).sum((-2, -1))
        assert np.allclose(jax.grad(lambda A: over_shards(loss)(A).sum())(split), jax.grad(lambda A: loss(A).sum())(A), atol=1e-5)
    """
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "JAX_PLATFORMS": platform}
    if platform == "cpu":
        environment["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=environment, check=True)


def test_nothing_waits_for_a_gpu():
    if jax.default_backend() != "gpu":
        pytest.skip("no GPU")
    power = jax.jit(lambda A: jnp.linalg.matrix_power(A, 2**12))  # 12 products of 8192 x 8192
    functions = [jax.jit(f) for f in (qj.qr, qj.orthonormalize, lambda A: qj.qr(A, "r"), lambda A: qj.lstsq(A, A[..., 0]))]
    slow, A = jnp.zeros((8192, 8192)), jnp.ones((3, 500, 100))

    def dispatched():
        P = power(slow)
        start = time.perf_counter()
        results = [f(A + P[0, 0]) for f in functions]
        end = time.perf_counter()
        jax.block_until_ready(P)
        return end - start, time.perf_counter() - start, results

    for _ in range(3):  # compiles, takes memory
        jax.block_until_ready(dispatched())
    enqueued, product, _ = dispatched()
    assert enqueued < product / 2


# ---- what is refused -------------------------------------------------------------------------------------------------


def test_bad_input_is_refused(normal):
    A = normal(6, 3)
    a, taus = qj.geqrf(A)
    for function in (qj.qr, qj.orthonormalize, qj.geqrf, jax.jit(qj.orthonormalize)):
        for bad in (A[0], A.astype(int), A.astype(complex)):
            with pytest.raises(TypeError, match="quoin.jax"):
                function(bad)
    for half in (jnp.float16, jnp.bfloat16):
        with pytest.raises(TypeError, match=r"cast by astype\(jnp.float32\)"):
            qj.lstsq(A, A.astype(half))
    with pytest.raises(TypeError, match="list"):
        qj.qr([[1.0, 2.0]])
    for call in [
        lambda: qj.qr(A, "full"),
        lambda: qj.householder_product(a.mT, taus),
        lambda: qj.householder_product(a, normal(4)),
        lambda: qj.apply_q(a, taus, A[:5]),
        lambda: qj.apply_q(a, taus, A, left=False),
        lambda: qj.lstsq(A, A[:5]),
        lambda: qj.lstsq(A, A, 2.0),
        lambda: qj.pinv(A, -1.0),
        lambda: qj.qr(A, "complete", pivoting=True),
    ]:
        with pytest.raises(ValueError, match="quoin.jax"):
            call()


def test_the_build_takes_the_headers_of_the_oldest_jax_that_the_extra_allows():
    project = tomllib.loads((pathlib.Path(__file__).parents[2] / "pyproject.toml").read_text())
    oldest = project["project"]["optional-dependencies"]["jax"][0].removeprefix("jax>=")
    assert any(needed.startswith(f"jaxlib=={oldest}.0;") for needed in project["build-system"]["requires"])


def test_tracers_are_refused_with_the_way_out():
    import quoin

    A = jnp.ones((4, 2))
    for transform in (jax.jit, jax.grad, jax.vmap):
        with pytest.raises(TypeError, match="quoin.jax has qr"):
            transform(lambda A: quoin.qr(A).R)(A)
    with pytest.raises(TypeError, match="bfloat16"):
        quoin.qr(A.astype("bfloat16"))


def test_docstrings():
    result = doctest.testmod(qj)
    assert result.attempted > 3 and result.failed == 0
