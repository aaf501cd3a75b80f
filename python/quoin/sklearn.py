"""Estimators of scikit-learn that compute by QR: linear and ridge regression and principal components.

They take and give what scikit-learn's estimators of these names do, for dense X, and work in its pipelines and
searches. `quoin.RobustPCA` and `quoin.OnlineRobustPCA` are estimators too. `pip install 'quoin-qr[sklearn]'`
installs scikit-learn.

>>> import numpy as np, quoin.sklearn
>>> X = np.random.default_rng(0).standard_normal((1000, 5))
>>> model = quoin.sklearn.LinearRegression().fit(X, X @ np.arange(5.0) + 7)
>>> model.coef_.round(9), round(model.intercept_, 9)
(array([0., 1., 2., 3., 4.]), 7.0)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, MultiOutputMixin, RegressorMixin, TransformerMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ._arguments import integer, real
from ._errors import InvalidArgument
from ._functions import lstsq, svd
from ._streaming import StreamingR

__all__ = ["LinearRegression", "PCA", "Ridge"]

_FLOATS = [np.float64, np.float32]


class _Regression(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Fits y ≈ X coef_ᵀ + intercept_, with the weights of samples as the squares of factors of their rows."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the coefficients.

        Parameters
        ----------
        X : array_like, shape (n_samples, n_features)
            The samples, without NaN.
        y : array_like, shape (n_samples,) or (n_samples, n_targets)
            Their values.
        sample_weight : array_like, shape (n_samples,), optional
            Weights of the squared residuals.
        """
        X, y = validate_data(self, X, y, dtype=_FLOATS, multi_output=True, y_numeric=True)
        y = y.astype(X.dtype, copy=False)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=X.dtype)
        x_mean, y_mean = np.zeros(X.shape[1], X.dtype), np.zeros(y.shape[1:], X.dtype)
        if self.fit_intercept:
            x_mean, y_mean = (np.average(array, axis=0, weights=weights) for array in (X, y))
            X, y = X - x_mean, y - y_mean
        if weights is not None:
            roots = np.sqrt(weights)
            X, y = X * roots[:, None], (y.T * roots).T
        self.coef_: Any = self._solve(X, y).T
        self.intercept_: Any = y_mean - x_mean @ self.coef_.T if self.fit_intercept else 0.0
        return self

    def predict(self, X: Any) -> Any:
        """X coef_ᵀ + intercept_ for rows X (n_samples, n_features)."""
        check_is_fitted(self)
        return validate_data(self, X, dtype=_FLOATS, reset=False) @ self.coef_.T + self.intercept_


class LinearRegression(_Regression):
    """Least squares, as sklearn.linear_model.LinearRegression: the coefficients of least norm if X has not full rank.

    Parameters
    ----------
    fit_intercept : bool
        Whether to centre X and y, and to add an intercept.
    rcond : float, optional
        As for `quoin.lstsq`.
    threads : int, optional
        As for `quoin.qr`.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,) or (n_targets, n_features)
    intercept_ : float or ndarray, shape (n_targets,)
    rank_ : int
    n_features_in_ : int
    """

    def __init__(self, *, fit_intercept: bool = True, rcond: float | None = None, threads: int | None = None):
        self.fit_intercept = fit_intercept
        self.rcond = rcond
        self.threads = threads

    def _solve(self, X: Any, y: Any) -> Any:
        solution = lstsq(X, y, self.rcond, threads=self.threads)
        self.rank_ = solution.rank
        return solution.x


class Ridge(_Regression):
    """Ridge regression, min ‖X w − y‖² + α ‖w‖², as sklearn.linear_model.Ridge.

    It is the least squares of [X; √α I] and [y; 0], from their R, so that XᵀX is not formed and the condition number of
    X is not squared.

    Parameters
    ----------
    alpha : float
        α >= 0.
    fit_intercept : bool
        Whether to centre X and y, and to add an intercept without a penalty.
    threads : int, optional
        As for `quoin.qr`.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,) or (n_targets, n_features)
    intercept_ : float or ndarray, shape (n_targets,)
    n_features_in_ : int
    """

    def __init__(self, alpha: float = 1.0, *, fit_intercept: bool = True, threads: int | None = None):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.threads = threads

    def _solve(self, X: Any, y: Any) -> Any:
        alpha, n = real("alpha", self.alpha), X.shape[1]
        if not 0 <= alpha < np.inf:
            raise InvalidArgument(f"alpha must be finite and not negative, and is {alpha}")
        penalty = np.sqrt(alpha) * np.eye(n, dtype=X.dtype)
        stream = StreamingR(threads=self.threads).partial_fit(X, y)
        return stream.partial_fit(penalty.astype(X.dtype), np.zeros((n, *y.shape[1:]), X.dtype)).solve().x


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Principal components, as sklearn.decomposition.PCA, by the SVD of R of the centred X.

    The covariance matrix is not formed: small components keep their accuracy.

    Parameters
    ----------
    n_components : int or float, optional
        Their number; or from 0 to 1 the least number that explains more than this share of the variance. By default
        min(n_samples, n_features).
    whiten : bool
        Whether `transform` divides the scores by their standard deviations.
    threads : int, optional
        As for `quoin.qr`.

    Attributes
    ----------
    components_ : ndarray, shape (n_components_, n_features)
        Orthonormal rows. The entry of largest magnitude in each is positive.
    singular_values_, explained_variance_, explained_variance_ratio_ : ndarray, shape (n_components_,)
    mean_ : ndarray, shape (n_features,)
    n_components_, n_samples_, n_features_in_ : int
    """

    def __init__(self, n_components: Any = None, *, whiten: bool = False, threads: int | None = None):
        self.n_components = n_components
        self.whiten = whiten
        self.threads = threads

    def fit(self, X: Any, y: Any = None) -> PCA:
        """Find the components of X (n_samples, n_features). `y` is not used."""
        X = validate_data(self, X, dtype=_FLOATS, ensure_min_samples=2)
        self.mean_: Any = X.mean(axis=0)
        S, Vh = svd(X - self.mean_, "vh", threads=self.threads)
        variances = S**2 / (len(X) - 1)
        shares = variances / (variances.sum() or 1)
        if self.n_components is None:
            k = len(S)
        elif isinstance(self.n_components, float) and 0 < self.n_components < 1:
            k = min(int(np.searchsorted(np.cumsum(shares), self.n_components, side="right")) + 1, len(S))
        else:
            k = integer("n_components", self.n_components, 1, len(S))
        V = Vh[:k]
        signs = np.where(V.max(axis=1) >= -V.min(axis=1), 1, -1).astype(V.dtype)
        self.components_ = signs[:, None] * V
        self.singular_values_, self.explained_variance_, self.explained_variance_ratio_ = S[:k], variances[:k], shares[:k]
        self.n_components_, self.n_samples_ = k, len(X)
        return self

    def _scales(self) -> Any:
        # as scikit-learn's, which does not divide by zero
        deviations = np.sqrt(self.explained_variance_)
        return np.maximum(deviations, np.finfo(deviations.dtype).eps) if self.whiten else deviations.dtype.type(1)

    def transform(self, X: Any) -> Any:
        """Scores (X − mean_) components_ᵀ (n_samples, n_components_) of the rows X."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=_FLOATS, reset=False)
        return (X - self.mean_) @ self.components_.T / self._scales()

    def inverse_transform(self, X: Any) -> Any:
        """Rows (n_samples, n_features) with the scores X."""
        check_is_fitted(self)
        return (X * self._scales()) @ self.components_ + self.mean_

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
