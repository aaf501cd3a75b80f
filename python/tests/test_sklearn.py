"""quoin.sklearn: scikit-learn's own checks, and agreement with its estimators of the same names."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

import sklearn.decomposition
import sklearn.linear_model
from sklearn.utils.estimator_checks import check_estimator

import quoin.sklearn


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", [quoin.sklearn.LinearRegression(), quoin.sklearn.Ridge(), quoin.sklearn.PCA()],
                         ids=lambda estimator: type(estimator).__name__)
def test_scikit_learns_own_checks(estimator):
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert len(results) > 30 and not [result for result in results if result["status"] == "failed"]


@pytest.mark.parametrize("name, options", [("LinearRegression", {}), ("LinearRegression", {"fit_intercept": False}),
                                           ("Ridge", {}), ("Ridge", {"alpha": 20.0, "fit_intercept": False})])
@pytest.mark.parametrize("targets", [(), (3,)])
@pytest.mark.parametrize("weighted", [False, True])
def test_regressions(rng, name, options, targets, weighted):
    X, y = rng.standard_normal((300, 6)) + 2, rng.standard_normal((300, *targets))
    weights = rng.random(300) if weighted else None
    ours = getattr(quoin.sklearn, name)(**options).fit(X, y, sample_weight=weights)
    theirs = getattr(sklearn.linear_model, name)(**options).fit(X, y, sample_weight=weights)
    assert ours.coef_.shape == theirs.coef_.shape
    assert np.allclose(ours.coef_, theirs.coef_, rtol=1e-9, atol=1e-12)
    assert np.allclose(ours.intercept_, theirs.intercept_, rtol=1e-9, atol=1e-12)
    assert np.allclose(ours.predict(X[:7]), theirs.predict(X[:7]), rtol=1e-9, atol=1e-12)


def test_ridge_of_ill_conditioned_columns_has_the_accuracy_of_qr(rng):
    # the normal equations lose the digits of a column that is 1e-9 away from another one
    column = rng.standard_normal(200)
    X = np.column_stack([column, column + 1e-9 * rng.standard_normal(200)])
    model = quoin.sklearn.Ridge(alpha=1e-30, fit_intercept=False).fit(X, X @ [1.0, 2.0])
    assert np.allclose(model.coef_, [1, 2], rtol=0, atol=1e-5)
    with pytest.raises(quoin.InvalidArgument, match="alpha must be finite and not negative, and is -1.0"):
        quoin.sklearn.Ridge(alpha=-1).fit(X, column)


@pytest.mark.parametrize("n_components", [None, 3, 0.7])
@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("shape", [(200, 8), (8, 20)])
def test_principal_components(rng, n_components, whiten, shape):
    X = rng.standard_normal(shape) * np.arange(1.0, shape[1] + 1) + 5
    ours = quoin.sklearn.PCA(n_components, whiten=whiten).fit(X)
    theirs = sklearn.decomposition.PCA(n_components, whiten=whiten, svd_solver="full").fit(X)
    k = theirs.n_components_
    assert ours.n_components_ == k
    for name in ("singular_values_", "explained_variance_", "explained_variance_ratio_", "mean_"):
        assert np.allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-12), name
    sure = k if shape[0] > shape[1] or k < shape[0] else k - 1  # the last of n centred samples has the singular value 0
    signs = np.sign((ours.components_ * theirs.components_).sum(axis=1))
    assert np.allclose(ours.components_[:sure], (signs[:, None] * theirs.components_)[:sure], rtol=0, atol=1e-9)
    assert np.allclose(np.abs(ours.transform(X))[:, :sure], np.abs(theirs.transform(X))[:, :sure], rtol=0, atol=1e-8)
    assert np.allclose(ours.inverse_transform(ours.transform(X)), theirs.inverse_transform(theirs.transform(X)), rtol=0, atol=1e-8)
    names = ours.get_feature_names_out()
    assert len(names) == k and names[0] == "pca0"
