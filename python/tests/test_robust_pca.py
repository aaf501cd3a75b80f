import pickle
import warnings

import numpy as np
import pytest
from laws import mixture

import quoin


def distance(A, B):
    return np.linalg.norm(A - B) / np.linalg.norm(B)


@pytest.mark.parametrize("option", [dict(route="qr"), dict(lam=0.2), dict(mu=0.3), dict(rho=1.3), dict(tol=1e-3), dict(max_rank=2),
                                    dict(pursuit="alternating"), dict(pursuit="stable", noise=0.1), dict(max_iterations=3)], ids=lambda option: [*option][0])
def test_every_option_reaches_the_iteration(rng, option):
    M = rng.standard_normal((60, 10))
    assert not np.array_equal(quoin.robust_pca(M, **option).L, quoin.robust_pca(M).L)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(300, 50), (50, 300), (80, 80)])
@pytest.mark.parametrize("route", ["auto", "qr", "gram"])
def test_both_parts_are_recovered(rng, route, shape, order, dtype):
    L, S = mixture(rng, *shape, dtype=dtype)
    M = np.array(L + S, order=order)
    kept = M.copy()
    result = quoin.robust_pca(M, route=route)
    tol = 1e-5 if dtype == np.float32 else 1e-7
    assert result.end == "converged" and result.rank == 3
    assert result.route == ("gram" if route == "auto" else route)
    assert result.residual <= tol
    assert result.lam == pytest.approx(1 / np.sqrt(max(shape)), rel=1e-15)
    for part in (result.L, result.S, result.Y):
        assert part.shape == shape and part.dtype == dtype and part.flags[f"{order}_CONTIGUOUS"]
    # what the residual bounds is amplified by some condition number of the problem
    assert distance(result.L, L) <= 100 * tol and distance(result.S, S) <= 100 * tol
    assert result.nonzeros == np.count_nonzero(result.S)
    assert distance(result.L.astype(float) + result.S, M) <= 1.01 * result.residual + np.finfo(dtype).eps
    assert np.array_equal(M, kept)


def test_the_objective_is_that_of_its_parts(rng):
    M = sum(mixture(rng, 120, 30))
    result = quoin.robust_pca(M, lam=0.1)
    expected = np.linalg.svd(result.L, compute_uv=False).sum() + 0.1 * np.abs(result.S).sum()
    assert result.lam == 0.1 and result.objective == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("layout", [
    lambda A: A[:, 7:27],
    lambda A: np.asfortranarray(A)[5:65, 7:27],
    lambda A: A[::2, ::-1],
    lambda A: A.T,
    lambda A: A.astype(">f8"),
    lambda A: A[:, 3:4],
    lambda A: A[3:4],
])
def test_layouts_give_the_same_bits(rng, layout):
    L, S = mixture(rng, 120, 40)
    M, L, Y = layout(L + S), layout(L), layout(S)
    observed = layout(rng.random((120, 40)) < 0.9)
    result = quoin.robust_pca(M, max_iterations=5, observed=observed, L=L, Y=Y)
    fortran = [np.array(X, dtype=X.dtype.newbyteorder("="), order="F") for X in (M, observed, L, Y)]
    reference = quoin.robust_pca(fortran[0], max_iterations=5, observed=fortran[1], L=fortran[2], Y=fortran[3])
    for mine, theirs in zip(result[:3], reference):
        assert np.array_equal(mine, theirs)


def test_threads_do_not_change_the_bits(rng):
    M = sum(mixture(rng, 3000, 30))
    one, three = quoin.robust_pca(M, threads=1), quoin.robust_pca(M, threads=3)
    assert np.array_equal(one.L, three.L) and np.array_equal(one.S, three.S)


def test_alternating_directions_reach_the_same_minimum(rng):
    M = sum(mixture(rng, 150, 30, rank=2))
    alm = quoin.robust_pca(M)
    alternating = quoin.robust_pca(M, pursuit="alternating", tol=1e-4, max_iterations=5000)
    assert alternating.end == "converged" and alternating.mu == pytest.approx(M.size / (4 * np.abs(M).sum()))
    assert alternating.objective == pytest.approx(alm.objective, rel=1e-3)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("masked", [False, True])
def test_what_is_not_observed_is_imputed(rng, masked, order):
    L, _ = mixture(rng, 300, 50, rank=2)
    observed = np.array(rng.random(L.shape) < 0.8, order=order)
    M = np.array(np.where(observed, L, np.nan), order=order)
    if masked:
        result = quoin.robust_pca(np.ma.masked_array(M, ~observed), rho=1.2)
    else:
        result = quoin.robust_pca(M, observed=observed, rho=1.2)
    assert result.end == "converged" and distance(result.L, L) <= 1e-5
    assert not result.S[~observed].any()
    partly = quoin.robust_pca(np.ma.masked_array(M, ~observed & (np.arange(50) < 25)),
                              observed=observed | (np.arange(50) < 25), rho=1.2)
    assert np.array_equal(partly.L, result.L)
    assert np.array_equal(quoin.robust_pca(np.ma.masked_array(L)).L, quoin.robust_pca(L).L)
    # what is masked in `observed` is not observed, whatever is there
    known = np.ma.masked_array(observed | (np.arange(50) < 25), ~observed & (np.arange(50) < 25))
    assert np.array_equal(quoin.robust_pca(M, observed=known, rho=1.2).L, quoin.robust_pca(M, observed=observed, rho=1.2).L)
    estimator = quoin.RobustPCA(rho=1.2).fit(np.ma.masked_array(M, ~observed))
    assert np.array_equal(estimator.low_rank_, quoin.robust_pca(np.where(observed, M, 0), observed=observed, rho=1.2).L)


def test_a_callback_sees_each_iteration_and_may_stop(rng):
    M = sum(mixture(rng, 100, 30))
    steps = []
    whole = quoin.robust_pca(M, callback=steps.append)
    assert [step.iteration for step in steps] == list(range(1, whole.iterations + 1))
    assert (*steps[-1][:6],) == (whole.iterations, *whole[4:9])
    assert all(isinstance(step, quoin.RobustPCAStep) for step in steps)
    assert all(before.mu < after.mu and before.seconds <= after.seconds for before, after in zip(steps, steps[1:]))
    stopped = quoin.robust_pca(M, callback=lambda step: step.iteration < 4)
    assert (stopped.end, stopped.iterations) == ("stopped", 4)
    limited = quoin.robust_pca(M, max_iterations=3)
    assert (limited.end, limited.iterations) == ("iteration-limit", 3)
    assert quoin.robust_pca(M, tol=1e-19).end == "stalled"
    assert quoin.robust_pca(M, max_rank=2, max_iterations=30).rank == 2


def test_a_callback_may_call_quoin_and_what_it_raises_propagates(rng):
    M = sum(mixture(rng, 100, 30))
    inner = []
    result = quoin.robust_pca(M, callback=lambda step: inner.append(quoin.robust_pca(M, max_iterations=2).iterations))
    assert inner == [2] * result.iterations
    assert np.array_equal(result.L, quoin.robust_pca(M).L)

    class Mine(Exception):
        pass

    def fail(step):
        raise Mine(step.iteration)

    with pytest.raises(Mine) as caught:
        quoin.robust_pca(M, callback=fail)
    assert caught.value.args == (1,)
    with pytest.raises(TypeError):
        quoin.robust_pca(M, callback=lambda: None)
    assert quoin.robust_pca(M).end == "converged"


def test_a_warm_start_saves_iterations(rng):
    M = sum(mixture(rng, 200, 40))
    whole = quoin.robust_pca(M)
    warm = quoin.robust_pca(M, L=whole.L, Y=whole.Y, mu=whole.mu)
    assert warm.iterations < whole.iterations / 2 and distance(warm.L, whole.L) <= 1e-5


@pytest.mark.parametrize("arguments", [
    {"pursuit": "admm"}, {"route": "svd"}, {"lam": 0}, {"lam": -1.0}, {"lam": np.nan}, {"mu": np.inf}, {"mu": 0},
    {"rho": 1}, {"tol": 0}, {"max_iterations": 0}, {"max_rank": 0}, {"observed": np.ones((3, 4), bool)},
    {"L": np.ones((4, 4))}, {"Y": np.ones(3)}, {"threads": 0},
])
def test_arguments_out_of_their_domain(arguments):
    (name,) = arguments
    with pytest.raises(quoin.InvalidArgument, match=name):
        quoin.robust_pca(np.eye(4, 3), **arguments)


@pytest.mark.parametrize("order", ["C", "F"])
def test_entries_that_are_not_finite(order):
    M = np.ones((4, 3), order=order)
    M[2, 1], M[1, 2] = np.nan, np.inf
    with pytest.raises(quoin.NonFiniteEntry) as caught:
        quoin.robust_pca(M)
    assert (caught.value.row, caught.value.col) == (2, 1)
    with pytest.raises(quoin.InvalidArgument, match="observed"):
        quoin.robust_pca(M, observed=np.isfinite(M) | (np.arange(3) == 2))


def test_other_types_and_shapes():
    with pytest.raises(TypeError, match="supports float32 and float64"):
        quoin.robust_pca(np.eye(3, dtype=complex))
    for bad in (np.ones(3), np.ones((2, 3, 4))):
        with pytest.raises(np.linalg.LinAlgError, match="two-dimensional"):
            quoin.robust_pca(bad)
    assert quoin.robust_pca([[1, 0], [0, 1]]).L.dtype == np.float64
    for shape in ((0, 0), (0, 3), (3, 0), (1, 1), (1, 5), (5, 1)):
        result = quoin.robust_pca(np.zeros(shape))
        assert result.L.shape == shape and result.iterations == 0 and not result.L.any()
    copy = pickle.loads(pickle.dumps(quoin.robust_pca(np.eye(3))))
    assert isinstance(copy, quoin.RobustPCAResult)


# ---- the estimator --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(300, 50), (50, 300)])
def test_the_estimator_fits_components_of_the_low_rank_part(rng, shape, dtype):
    L, S = mixture(rng, *shape, dtype=dtype)
    X = L + S
    pca = quoin.RobustPCA()
    assert pca.fit(X) is pca
    result = quoin.robust_pca(X)
    assert np.array_equal(pca.low_rank_, result.L) and np.array_equal(pca.sparse_, result.S)
    assert (pca.n_components_, pca.n_features_in_, pca.n_iter_) == (3, shape[1], result.iterations)
    V = pca.components_
    assert V.shape == (3, shape[1]) and V.dtype == pca.singular_values_.dtype == dtype
    unit = 10 * min(shape) * float(np.finfo(dtype).eps)
    assert np.linalg.norm(V @ V.T - np.eye(3)) <= unit
    assert np.all(V[range(3), np.abs(V).argmax(axis=1)] > 0)
    scale = np.linalg.norm(X)
    assert np.linalg.norm(result.L - (result.L @ V.T) @ V) <= unit * scale
    reference = np.linalg.svd(result.L.astype(np.float64), compute_uv=False)[:3]
    assert np.abs(pca.singular_values_ - reference).max() <= unit * scale
    assert not hasattr(pca, "feature_names_in_") and not hasattr(pca, "mean_")


def test_scores_of_new_rows_do_not_see_gross_errors(rng):
    L, S = mixture(rng, 300, 60)
    pca = quoin.RobustPCA().fit(L + S)
    scores = 4 * rng.standard_normal((40, 3))
    clean = pca.inverse_transform(scores)
    gross = np.where(rng.random(clean.shape) < 0.15, 50.0, 0.0)
    found = pca.transform(clean + gross)
    assert np.allclose(found, scores, rtol=0, atol=1e-5)
    assert np.abs((clean + gross) @ pca.components_.T - scores).max() > 1
    # without errors it is the projection
    assert np.allclose(pca.transform(clean), clean @ pca.components_.T, rtol=0, atol=1e-12)
    # a row's scores do not depend on the other rows
    for i in range(5):
        assert np.allclose(pca.transform((clean + gross)[i : i + 1]), found[i], rtol=0, atol=1e-12)
    assert distance(pca.inverse_transform(pca.transform(L + S)), L) <= 1e-4
    again = quoin.RobustPCA()
    assert np.array_equal(again.fit_transform(L + S, None), pca.transform(L + S))


def test_scores_minimise_the_1_norm(rng):
    """Against linear programming; the rows have no sparse error, and so no exact answer."""
    optimize = pytest.importorskip("scipy.optimize")
    n, r = 25, 3
    pca = quoin.RobustPCA(n_components=r, tol=1e-6, max_iterations=100000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a matrix of rank 3 is far from a normal one
        pca.fit(rng.standard_normal((60, n)))
    V = pca.components_
    for x in rng.standard_normal((5, n)):
        # min 1ᵀt, −t <= x − Vᵀc <= t
        program = optimize.linprog(np.r_[np.zeros(len(V)), np.ones(n)], bounds=[(None, None)] * (len(V) + n),
                                   A_ub=np.block([[V.T, -np.eye(n)], [-V.T, -np.eye(n)]]), b_ub=np.r_[x, -x])
        found = np.abs(x - pca.transform(x[None])[0] @ V).sum()
        assert program.fun * (1 - 1e-9) <= found <= program.fun + 1.01e-6 * np.abs(x).sum()


def test_fit_and_transform_warn_where_they_do_not_converge(rng):
    X = sum(mixture(rng, 60, 20))
    with pytest.warns(RuntimeWarning, match="iteration-limit after 3 iterations"):
        pca = quoin.RobustPCA(max_iterations=3).fit(X)
    with pytest.warns(RuntimeWarning, match="3 iterations") as caught:
        pca.transform(X)
        quoin.RobustPCA(max_iterations=3).fit(X)
    assert [warning.filename for warning in caught] == 2 * [__file__]  # the caller's line, not one of quoin


def test_parameters():
    pca = quoin.RobustPCA(n_components=2, lam=0.3)
    assert repr(pca) == "RobustPCA(n_components=2, lam=0.3)" and repr(quoin.RobustPCA()) == "RobustPCA()"
    parameters = pca.get_params()
    assert parameters["n_components"] == 2 and parameters["max_iterations"] == 1000
    assert parameters == pca.get_params(deep=False)
    assert pca.set_params(tol=1e-3, rho=1.2) is pca and (pca.tol, pca.rho) == (1e-3, 1.2)
    assert quoin.RobustPCA(**pca.get_params()).get_params() == pca.get_params()
    with pytest.raises(quoin.InvalidArgument, match="gamma"):
        pca.set_params(gamma=1, tol=0)
    assert pca.tol == 1e-3
    quoin.RobustPCA(tol=-1)  # parameters are looked at by fit
    with pytest.raises(quoin.InvalidArgument, match="tol must be positive"):
        quoin.RobustPCA(tol=-1).fit(np.eye(3))


def test_an_estimator_that_is_not_fitted(rng):
    pca = quoin.RobustPCA()
    for call in (lambda: pca.transform(np.eye(3)), lambda: pca.inverse_transform(np.eye(3)), pca.get_feature_names_out):
        with pytest.raises(quoin.NotFitted, match="not fitted") as caught:
            call()
        assert isinstance(caught.value, ValueError) and isinstance(caught.value, AttributeError)


def test_rows_that_do_not_fit(rng):
    X = sum(mixture(rng, 60, 20))
    pca = quoin.RobustPCA().fit(X)
    for bad, message in ((X[:, :19], "19 features.*20"), (X[0], "Reshape"), (X[:0], "0 sample"),
                         (X.astype(complex), "Complex"), (X[:, :0], "0 feature")):
        with pytest.raises(quoin.InvalidArgument, match=message):
            pca.transform(bad)
    with pytest.raises(quoin.InvalidArgument, match="19 columns"):
        pca.inverse_transform(np.ones((3, 19)))
    X[7, 3] = np.inf
    for call in (pca.transform, quoin.RobustPCA().fit):
        with pytest.raises(quoin.NonFiniteEntry, match="inf") as caught:
            call(X)
        assert (caught.value.row, caught.value.col) == (7, 3)
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="sparse"):
        pca.transform(sparse.eye(20))


class Frame:
    """A data frame, as far as NumPy and the estimator need one."""

    def __init__(self, array, columns):
        self.array, self.columns = array, columns

    def __array__(self, dtype=None, copy=None):
        return self.array


def test_names_of_features(rng):
    X = sum(mixture(rng, 60, 3))
    pca = quoin.RobustPCA().fit(Frame(X, ["a", "b", "c"]))
    assert list(pca.feature_names_in_) == ["a", "b", "c"]
    assert np.array_equal(pca.transform(Frame(X, ["a", "b", "c"])), pca.transform(X))
    with pytest.raises(quoin.InvalidArgument, match="feature names"):
        pca.transform(Frame(X, ["b", "a", "c"]))
    assert list(pca.get_feature_names_out()) == [f"robustpca{i}" for i in range(pca.n_components_)]
    assert not hasattr(pca.fit(Frame(X, [0, 1, 2])), "feature_names_in_")


def test_a_fitted_estimator_pickles(rng):
    X = sum(mixture(rng, 60, 20))
    pca = quoin.RobustPCA(n_components=2, max_iterations=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pca.fit(X)
    assert pca.n_components_ == 2
    copy = pickle.loads(pickle.dumps(pca))
    assert np.array_equal(copy.components_, pca.components_)
    nothing = quoin.RobustPCA().fit(np.zeros((4, 3)))
    assert nothing.n_components_ == 0 and nothing.transform(np.ones((2, 3))).shape == (2, 0)
    assert np.array_equal(nothing.inverse_transform(np.empty((2, 0))), np.zeros((2, 3)))


@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks():
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    results = checks.check_estimator(quoin.RobustPCA(), on_fail=None, on_skip=None)
    assert len(results) > 30 and not [result for result in results if result["status"] == "failed"]


def test_in_a_pipeline_of_scikit_learn(rng):
    sklearn = pytest.importorskip("sklearn")
    pytest.importorskip("sklearn.pipeline"), pytest.importorskip("sklearn.linear_model")
    L, S = mixture(rng, 200, 30)
    model = sklearn.pipeline.make_pipeline(quoin.RobustPCA(), sklearn.linear_model.LinearRegression())
    y = L[:, 0] - L[:, 7]
    assert model.fit(L + S, y).score(L + S, y) > 1 - 1e-6
    assert sklearn.base.clone(model)[0].get_params() == model[0].get_params()


def test_old_names_are_deprecated():
    M = np.random.default_rng(0).standard_normal((30, 10))
    with pytest.warns(DeprecationWarning, match="max_iter is now called max_iterations"):
        old = quoin.RobustPCA(max_iter=5000).fit(M)
    assert old.n_iter_ == quoin.RobustPCA(max_iterations=5000).fit(M).n_iter_
    result = quoin.robust_pca(M)
    with pytest.warns(DeprecationWarning, match="lambda_ is now called lam"):
        assert result.lambda_ == result.lam
