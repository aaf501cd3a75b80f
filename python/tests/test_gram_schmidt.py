"""quoin.GramSchmidt and the methods 'mgs' and 'cgs'."""

import numpy as np
import pytest
from laws import assert_orthonormal, assert_product, assert_upper

import quoin


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scheme", [{}, {"method": "mgs", "reorthogonalize": "always"}, {"method": "cgs", "reorthogonalize": "selective"}])
def test_appended_columns_obey_the_law(dtype, scheme):
    A = np.random.default_rng(0).standard_normal((200, 60)).astype(dtype)
    A[:, 40] = A[:, 3]
    basis = quoin.GramSchmidt(200, dtype=dtype, **scheme)
    basis.append(A[:, 0])
    basis.append(A[:, 1:30])
    basis.append(np.ascontiguousarray(A[:, 30:]))
    assert basis.shape == (200, 60)
    Q, R = basis.Q, basis.R
    assert Q.dtype == R.dtype == dtype
    assert_orthonormal(Q)
    assert_product(Q, R, A)
    assert_upper(R)
    assert R[40, 40] == 0 and np.count_nonzero(np.diag(R)) == 59


def test_a_dependent_column_is_an_error_without_reorthogonalization():
    A = np.random.default_rng(0).standard_normal((50, 4))
    basis = quoin.GramSchmidt(50, method="mgs")
    basis.append(A)
    with pytest.raises(quoin.NumericalBreakdown, match="column 4"):
        basis.append(A @ np.ones(4))
    assert basis.shape == (50, 4)


def test_coefficients_of_vectors_that_are_not_appended():
    rng = np.random.default_rng(0)
    basis = quoin.GramSchmidt(50)
    basis.append(rng.standard_normal((50, 4)))
    for v in (rng.standard_normal(50), rng.standard_normal((50, 3))):
        left, H = basis.orthogonalize(v)
        assert left.shape == v.shape and H.shape == (4,) + v.shape[1:]
        np.testing.assert_allclose(basis.Q @ H + left, v, rtol=0, atol=1e-14)
        np.testing.assert_allclose(basis.Q.T @ left, 0, rtol=0, atol=1e-14)
    basis.truncate(2)
    assert basis.shape == (50, 2)


def test_refusals():
    with pytest.raises(quoin.InvalidArgument, match="^method must be 'auto', 'mgs' or 'cgs', and is 'householder'$"):
        quoin.GramSchmidt(5, method="householder")
    for arguments in ({"m": -1}, {"m": 3, "method": "tsqr"}, {"m": 3, "method": "mgs", "reorthogonalize": "twice"}, {"m": 3, "dtype": int}):
        with pytest.raises(quoin.InvalidArgument):
            quoin.GramSchmidt(**arguments)
    basis = quoin.GramSchmidt(3)
    for columns in (np.ones((2, 1)), np.ones((3, 4))):
        with pytest.raises(quoin.InvalidArgument):
            basis.append(columns)


@pytest.mark.parametrize("method", ["mgs", "cgs"])
def test_qr_by_name(method):
    A = np.random.default_rng(0).standard_normal((300, 20))
    Q, R = quoin.qr(A, method=method)
    assert_product(Q, R, A)
    assert np.linalg.norm(Q.T @ Q - np.eye(20)) < 1e-12
