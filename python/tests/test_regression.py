"""quoin.regression against R 4.2.2's summary(lm()), NumPy and SciPy."""

import pickle

import numpy as np
import pytest
import quoin

X = np.array(
    [[1.2, 0.5], [-0.7, 1.1], [3.1, -0.4], [0.4, 2.3], [2.2, 0.0], [-1.5, 1.7], [0.9, -1.2], [1.8, 0.8], [-0.3, 2.9]]
    + [[2.7, -0.6], [0.1, 1.3], [-2.0, 0.2]]
)
y = np.array([3.9, 1.2, 6.8, 4.4, 5.1, 0.3, 1.0, 5.6, 4.9, 5.9, 2.7, -2.1])
w = np.array([1, 2, 0.5, 1, 3, 1, 0, 2, 1, 0.25, 1, 4])


def test_is_rs_summary_of_lm():
    fit = quoin.regression(X, y, intercept=True, weights=w, names=["height", "width"], leverages=True)
    # summary(lm(y ~ x1 + x2, weights = w)); κ < 3, so that 12 digits remain
    np.testing.assert_allclose(fit.coefficients, [1.20746811576602, 1.82257379872229, 1.23697920460668], rtol=1e-13)
    np.testing.assert_allclose(
        fit.standard_errors, [0.1205959665733635, 0.0530500934805255, 0.1038083539355077], rtol=1e-13
    )
    np.testing.assert_allclose(
        fit.p_values, [8.40932483250906e-06, 5.63202436920369e-10, 2.26173638614644e-06], rtol=1e-12
    )
    assert fit.residual_standard_errors == pytest.approx(3.58997496570294e-01, rel=1e-13)
    assert (fit.r_squared, fit.f_values) == (pytest.approx(0.993384857637068), pytest.approx(600.673305659138))
    assert (fit.observations, fit.degrees_of_freedom, fit.rank, fit.dependent) == (11, 8, 3, [])
    assert fit.leverages.sum() == pytest.approx(3, rel=1e-13) and fit.leverages[6] == 0
    assert "\nwidth             1.23698 " in fit.summary()
    copied = pickle.loads(pickle.dumps(fit))
    assert copied.summary() == fit.summary() and (copied.R == fit.R).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_several_right_hand_sides_and_layouts(dtype):
    Y = np.column_stack([y, y[::-1], 2 * y]).astype(dtype)
    A = X.astype(dtype)
    fit = quoin.regression(A, Y, intercept=True)
    assert fit.coefficients.shape == fit.t_values.shape == (3, 3) and fit.r_squared.shape == (3,)
    for other in (quoin.regression(np.asfortranarray(A), Y, intercept=True), quoin.regression(A[::-1], Y[::-1], intercept=True)):
        np.testing.assert_allclose(other.t_values, fit.t_values, rtol=1000 * np.finfo(dtype).eps)
    np.testing.assert_allclose(fit.t_values[:, 2], fit.t_values[:, 0], rtol=1000 * np.finfo(dtype).eps)
    assert fit.summary(1) != fit.summary(0)
    (x, *_) = np.linalg.lstsq(np.column_stack([np.ones(12), X]), Y.astype(float), rcond=None)
    np.testing.assert_allclose(fit.coefficients, x, rtol=1000 * np.finfo(dtype).eps)


def test_ridge_and_dependent_columns():
    fit = quoin.regression(X, y, ridge=2.5)
    np.testing.assert_allclose(fit.coefficients, np.linalg.solve(X.T @ X + 2.5 * np.eye(2), X.T @ y), rtol=1e-13)
    assert np.isnan(fit.p_values).all() and np.isnan(fit.f_values) and fit.leverages is None
    s = np.linalg.svd(X, compute_uv=False) ** 2
    assert 12 - fit.degrees_of_freedom == pytest.approx(np.sum(s / (s + 2.5)), rel=1e-13)
    twice = quoin.regression(np.column_stack([X, X[:, 0]]), y)
    assert twice.dependent == [2] and twice.rank == 2
    assert np.isnan(twice.coefficients[2]) and twice.coefficients[0] == pytest.approx(quoin.regression(X, y).coefficients[0])


def test_scipys_linregress_agrees():
    stats = pytest.importorskip("scipy.stats")
    for seed in range(5):
        random = np.random.default_rng(seed)
        t, b = random.standard_normal((2, 30))
        line, fit = stats.linregress(t, b), quoin.regression(t[:, None], b, intercept=True)
        np.testing.assert_allclose(fit.coefficients, [line.intercept, line.slope], rtol=1e-10)
        np.testing.assert_allclose(fit.p_values[1], line.pvalue, rtol=1e-10)
        np.testing.assert_allclose(fit.standard_errors, [line.intercept_stderr, line.stderr], rtol=1e-12)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"weights": w[:5]}, "5 weights were given for 12 observations"),
        ({"weights": []}, "0 weights were given for 12 observations"),
        ({"weights": -w}, "weight 0 is -1, and weights are finite and not negative"),
        ({"weights": X}, "a vector of weights"),
        ({"ridge": -1.0}, "the ridge is -1, and must not be negative"),
        ({"names": ["x"]}, "1 names were given for the 2 columns"),
    ],
)
def test_refuses_in_a_sentence(arguments, message):
    with pytest.raises(quoin.InvalidArgument, match=message):
        quoin.regression(X, y, **arguments)


def test_refuses_nan_and_shapes():
    with pytest.raises(quoin.NonFiniteEntry, match="A.*row 3"):
        quoin.regression(np.where(np.arange(24).reshape(12, 2) == 7, np.nan, X), y)
    with pytest.raises(quoin.InvalidArgument, match="B has 11 rows, and A is 12x2"):
        quoin.regression(X, y[:-1])
    with pytest.raises(TypeError, match="intercept must be True or False"):
        quoin.regression(X, y, intercept=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constraints_as_lapacks_gglse(dtype):
    lapack = pytest.importorskip("scipy.linalg.lapack")
    random = np.random.default_rng(3)
    A, b, C, d = (random.standard_normal(shape).astype(dtype) for shape in [(20, 6), 20, (2, 6), 2])
    gglse = lapack.dgglse if dtype is np.float64 else lapack.sgglse
    x = gglse(A, C, b, d)[3]
    solution = quoin.constrained_lstsq(A, b, C, d)
    assert solution.x.dtype == dtype and solution.rank == 4
    np.testing.assert_allclose(solution.x, x, rtol=0, atol=200 * np.finfo(dtype).eps)
    np.testing.assert_allclose(C @ solution.x, d, rtol=0, atol=50 * np.finfo(dtype).eps)
    assert solution.residual_norms == pytest.approx(np.linalg.norm(A @ x - b), rel=1000 * float(np.finfo(dtype).eps))
    with pytest.raises(quoin.RankDeficient, match="linearly dependent: leave out row"):
        quoin.constrained_lstsq(A, b, np.vstack([C, C[:1]]), np.append(d, d[0]))
    with pytest.raises(quoin.InvalidArgument, match="7 constraints on 6 unknowns"):
        quoin.constrained_lstsq(A, b, random.standard_normal((7, 6)), np.ones(7))
    with pytest.raises(quoin.InvalidArgument, match="b has 1 dimensions, and values has 2"):
        quoin.constrained_lstsq(A, b, C, d[:, None])
