"""The array API standard's linalg.qr, svd and svdvals (2024.12), of Quoin on the arrays of NumPy, array-api-strict and
PyTorch.

The tests are written from the standard's text, since its own suite is in no package registry. To run that suite in a
checkout of github.com/data-apis/array-api-tests, with what its requirements.txt names, array-api-compat and this folder
on PYTHONPATH:

    for library in numpy torch; do
        ARRAY_API_TESTS_MODULE="exec('import test_array_api; xp =
        test_array_api.with_quoin(\"array_api_compat.$library\")')" \
            pytest array_api_tests/test_linalg.py array_api_tests/test_signatures.py -k "qr or svd"
    done

Complex numbers, for which Quoin has no functions, are the library's own there.
"""

import importlib
import types

import numpy as np
import pytest
from laws import assert_orthonormal, assert_product, assert_upper, bound

import quoin

DTYPES = ["float32", "float64"]
SHAPES = [(5, 3), (3, 5), (4, 4), (1, 1), (0, 3), (3, 0), (0, 0), (2, 5, 3), (2, 3, 3, 4), (0, 4, 2), (2, 0, 3)]


def with_quoin(library):
    """The namespace of a library, with Quoin in its linalg."""
    original = importlib.import_module(library)

    def mine(x):
        return "complex" not in str(x.dtype)

    def qr(x, /, *, mode="reduced"):
        return quoin.qr(x, mode) if mine(x) else original.linalg.qr(x, mode=mode)

    def svd(x, /, *, full_matrices=True):
        return (quoin if mine(x) else original.linalg).svd(x, full_matrices=full_matrices)

    def svdvals(x, /):
        return quoin.svd(x, compute_uv=False) if mine(x) else original.linalg.svdvals(x)

    xp = types.ModuleType(f"{library} with quoin")
    xp.__dict__.update({name: getattr(original, name) for name in dir(original) if not name.startswith("__") or "__array" in name})
    xp.linalg = types.SimpleNamespace(**{name: getattr(original.linalg, name) for name in dir(original.linalg) if name[0] != "_"})
    xp.linalg.qr, xp.linalg.svd, xp.linalg.svdvals = qr, svd, svdvals
    return xp


@pytest.fixture(params=["numpy", "array_api_strict", "torch", "quoin.torch"])
def xp(request):
    library = request.param.removeprefix("quoin.")
    pytest.importorskip(library)
    xp = with_quoin(library)
    if library != request.param:
        xp.linalg.qr = importlib.import_module(request.param).qr
    return xp


def host(array):
    return np.from_dlpack(array)


def normal(xp, rng, shape, dtype="float64"):
    return xp.asarray(rng.standard_normal(shape), dtype=getattr(xp, dtype))


def assert_like(array, x):
    """Fails unless `array` has x's library, type and device."""
    assert type(array) is type(x) and array.dtype == x.dtype and array.device == x.device


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", [{}, {"mode": "reduced"}, {"mode": "complete"}], ids=str)
def test_qr(xp, rng, shape, dtype, options):
    x = normal(xp, rng, shape, dtype)
    *stack, m, n = shape
    k = m if options.get("mode") == "complete" else min(m, n)
    result = xp.linalg.qr(x, **options)
    # "a namedtuple (Q, R) whose first element must have the field name Q, second R"
    assert isinstance(result, tuple) and result._fields == ("Q", "R")
    Q, R = result
    assert Q is result.Q and R is result.R
    assert tuple(Q.shape) == (*stack, m, k) and tuple(R.shape) == (*stack, k, n)
    assert_like(Q, x)
    assert_like(R, x)
    assert_upper(host(R))
    assert_orthonormal(host(Q))
    assert_product(host(Q), host(R), host(x))


def test_qr_of_a_stack_is_that_of_its_matrices(xp, rng):
    x = normal(xp, rng, (2, 3, 6, 4))
    Q, R = xp.linalg.qr(x)
    for i in range(2):
        for j in range(3):
            one = xp.linalg.qr(x[i, j : j + 1, ...])
            assert np.array_equal(host(one.Q)[0], host(Q)[i, j]) and np.array_equal(host(one.R)[0], host(R)[i, j])


def test_the_input_is_unchanged_whatever_its_strides(xp, rng):
    whole = normal(xp, rng, (3, 8, 10))
    for x in (whole[:, ::2, 1::3], xp.permute_dims(whole, (2, 0, 1)) if hasattr(xp, "permute_dims") else whole.permute(2, 0, 1)):
        before = host(x).copy()
        Q, R = xp.linalg.qr(x)
        assert np.array_equal(host(x), before)
        assert_product(host(Q), host(R), before)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("full", [False, True])
def test_svd(xp, rng, shape, dtype, full):
    x = normal(xp, rng, shape, dtype)
    *stack, m, n = shape
    k = min(m, n)
    result = xp.linalg.svd(x, full_matrices=full)
    assert isinstance(result, tuple) and result._fields == ("U", "S", "Vh")
    U, S, Vh = result
    assert tuple(U.shape) == (*stack, m, m if full else k) and tuple(S.shape) == (*stack, k)
    assert tuple(Vh.shape) == (*stack, n if full else k, n)
    for array in result:
        assert_like(array, x)
    U, S, Vh = map(host, result)
    assert (S >= 0).all() and (np.diff(S) <= 0).all()
    assert_orthonormal(U)
    assert_orthonormal(np.swapaxes(Vh, -1, -2))
    assert_product(U[..., :k] * S[..., None, :], Vh[..., :k, :], host(x))
    values = xp.linalg.svdvals(x)
    assert_like(values, x)
    assert tuple(values.shape) == (*stack, k) and np.allclose(host(values), S, rtol=0, atol=bound(S) * max(1, S.max(initial=0)) if k else 0)


def test_what_quoin_refuses(xp, rng):
    """The standard asks for floating-point types, and leaves the kind of an error open."""
    x = normal(xp, rng, (4, 3))
    for call in (lambda: quoin.qr(x, mode="thin"), lambda: quoin.qr(x[0, ...]), lambda: quoin.svd(x[0, ...])):
        with pytest.raises(ValueError):
            call()
    for function in (quoin.qr, quoin.svd):
        with pytest.raises(TypeError, match="complex"):
            function(xp.astype(x, xp.complex128) if hasattr(xp, "astype") else x.to(xp.complex128))
