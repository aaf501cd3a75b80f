"""Principal component pursuit, M = L + S, as a function and as an estimator."""

from __future__ import annotations

import inspect
import warnings
from typing import Any, Callable, Literal, NamedTuple

import numpy as np

from .. import _core
from .._arguments import function, integer, positive, real, threads_number
from .._arrays import _FLOAT32, _FLOAT64, Place, exactly_2d, located, require_one_place, split_mask, to_float
from .._cuda import Arithmetic
from .._errors import InvalidArgument, NonFiniteEntry, NotFitted
from .._functions import svd


class RobustPCAStep(NamedTuple):
    """The state of `robust_pca` at the end of one iteration."""

    iteration: int
    residual: float
    dual_residual: float
    objective: float
    rank: int
    nonzeros: int
    mu: float
    seconds: float


class RobustPCAResult(NamedTuple):
    """M = L + S, the multipliers Y, the state after the last iteration, and in `end` the reason why it was the last.

    `route` is the route to the singular values, "qr" or "gram".
    """

    L: Any
    S: Any
    Y: Any
    iterations: int
    residual: float
    dual_residual: float
    objective: float
    rank: int
    nonzeros: int
    mu: float
    seconds: float
    lam: float
    end: str
    route: str

    @property
    def lambda_(self) -> float:
        """The earlier name of `lam`, deprecated."""
        warnings.warn("RobustPCAResult: lambda_ is now called lam", DeprecationWarning, stacklevel=2)
        return self.lam


def _tolerance(tol: float | None, dtype: Any) -> float:
    return positive("tol", tol, optional=True) or (1e-5 if dtype == _FLOAT32 else 1e-7)


def robust_pca(
    M: Any,
    *,
    pursuit: Literal["alm", "alternating", "stable"] = "alm",
    route: Literal["auto", "qr", "gram"] = "auto",
    lam: float | None = None,
    mu: float | None = None,
    noise: float | None = None,
    rho: float = 1.5,
    tol: float | None = None,
    max_iterations: int = 1000,
    max_rank: int | None = None,
    observed: Any = None,
    L: Any = None,
    Y: Any = None,
    callback: Callable[[RobustPCAStep], Any] | None = None,
    threads: int | None = None,
) -> RobustPCAResult:
    """Split M = L + S into a matrix of low rank and a sparse one: min ‖L‖_* + λ‖S‖₁ (Candès, Li, Ma and Wright 2011).

    Parameters
    ----------
    M : array_like, shape (M, N)
        Masked entries of a `numpy.ma.MaskedArray` are not observed. If M lies in a GPU's memory, `observed`, L and Y
        must lie there, too.
    pursuit : {'alm', 'alternating', 'stable'}
        Augmented Lagrange multipliers with growing μ (Lin, Chen and Ma 2010), with constant μ (Yuan and Yang 2009), or
        for M = L + S + Z with noise Z (Zhou, Li, Wright, Candès and Ma 2010). In the last case Z = M − L − S, and Y is
        0.
    route : {'auto', 'qr', 'gram'}
        How singular values are computed: by the faster route; from R by a tree of Householder factorizations (TSQR),
        which is backward stable; or from the Gram matrix summed in float64.
    lam, mu : float, optional
        λ and the first μ; by default 1/√max(M, N), and the choice of the papers.
    noise : float, optional
        For 'stable': the standard deviation of Z's entries.
    rho : float
        Growth factor of μ in each iteration, above 1. Near 1 the pursuit ends nearer to the minimum, after more
        iterations.
    tol : float, optional
        Bound of the residual ‖M − L − S‖ / ‖M‖; by default 1e-7, and 1e-5 in float32. With 'alternating' it also bounds
        the dual residual μ‖S − S'‖ / ‖Y‖, and 1e-3 is good enough. With 'stable' it bounds ‖S − S'‖ / ‖M‖. S' is S of
        the iteration before.
    max_iterations : int
        Largest number of iterations. If they do not suffice, `end` is 'iteration-limit'.
    max_rank : int, optional
        Largest rank of L.
    observed : array_like of bool, shape (M, N), optional
        False where M is not known (and may be NaN). There S is 0, and L is an estimate of M. Masked entries of a masked
        array are not observed.
    L, Y : array_like, shape (M, N), optional
        L and Y of an earlier result, for a warm start. Give its `mu` as well, or the pursuit starts again from the
        first μ.
    callback : callable, optional
        Called after each iteration with a `RobustPCAStep`, in the thread of the caller. The pursuit stops if it
        returns a value that is false and not None; its exceptions end the call.
    threads : int, optional
        As for `qr`.

    Returns
    -------
    RobustPCAResult
        L, S and Y are arrays of the caller's kind, in M's order. `end` is 'converged', 'iteration-limit', 'stopped' (by
        the callback) or 'stalled' (the precision of the type is reached).

    Raises
    ------
    NonFiniteEntry, InvalidArgument
        For NaN or Inf in M; InvalidArgument if they are among the observed entries.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> rng = np.random.default_rng(0)
    >>> low = rng.standard_normal((200, 2)) @ rng.standard_normal((2, 50))
    >>> sparse = rng.choice([-7.0, 0.0, 7.0], (200, 50), p=[0.03, 0.94, 0.03])
    >>> result = quoin.robust_pca(low + sparse)
    >>> result.rank, result.end, bool(np.allclose(result.L, low, atol=1e-4))
    (2, 'converged', True)
    """
    M, unmasked = split_mask(M)
    array, place = located(M)

    def beside(other: Any) -> Any:
        if other is None:
            return None
        other, its_place = located(other)
        require_one_place("robust_pca", place, its_place)
        return other

    # masked entries of `observed` count as not observed
    known = beside(np.ma.filled(observed, False) if isinstance(observed, np.ma.MaskedArray) else observed)
    if unmasked is not None:
        known = unmasked if known is None else np.asarray(known, dtype=bool) & unmasked
    array = exactly_2d(to_float(array, "robust_pca"))
    first_L, first_Y = (
        None if start is None else to_float(start, "robust_pca").astype(array.dtype, copy=False)
        for start in map(beside, (L, Y))
    )
    for name, other in (("observed", known), ("L", first_L), ("Y", first_Y)):
        if other is not None and other.shape != array.shape:
            raise InvalidArgument(f"{name} must have the shape {array.shape} of M, and has {other.shape}")
    if callback is not None:
        function("callback", callback, ", or None")

    def on_step(*step: Any) -> bool:
        go_on = callback(RobustPCAStep(*step))  # type: ignore[misc]
        return go_on is None or bool(go_on)

    # in the extension module's exact types: an array passed by DLPack cannot be read a second time for another overload
    result: Any = place.core.robust_pca(
        place.operand(array),
        pursuit,
        route,
        positive("lam", lam, optional=True),
        positive("mu", mu, optional=True),
        positive("noise", noise, optional=True),
        real("rho", rho),
        _tolerance(tol, array.dtype),
        integer("max_iterations", max_iterations, 1),
        integer("max_rank", max_rank, 1, optional=True),
        None if known is None else place.mask(known),
        None if first_L is None else place.operand(first_L),
        None if first_Y is None else place.operand(first_Y),
        None if callback is None else on_step,
        place.where(threads_number(threads)),
    )
    low, sparse, multipliers, step, *rest = result
    return RobustPCAResult(*map(place.give_back, (low, sparse, multipliers)), *step, *rest)


def _least_absolute_scores(
    library: Arithmetic, X: Any, components: Any, tol: float, max_iterations: int
) -> tuple[Any, bool]:
    """Returns the c that minimise ‖x − c V‖₁ for the rows x of X, and whether all are within tol·‖x‖₁ of the minimum.

    V are the components. The method is alternating directions on x = c V + s (Boyd et al. 2011, section 6.1). Each row
    has its own κ = 1/μ and its own end, so that its scores do not depend on other rows. u/κ is nearly feasible for the
    dual problem, max x yᵀ subject to |y| <= 1 and V yᵀ = 0. Made feasible, it bounds the distance from the minimum.
    """
    xp = library.xp

    def norms(A: Any) -> Any:
        return xp.sum(xp.abs(A), axis=1)

    scores = X @ components.T
    rest = X - scores @ components
    going = norms(rest) > 0
    rows = library.true_rows(going if library.drops_rows else xp.ones_like(going))
    X, going, kappa = X[rows], going[rows], 0.3 * xp.mean(xp.abs(rest[rows]), axis=1)[:, None]
    S, U = xp.zeros_like(X), xp.zeros_like(X)
    left = int(xp.sum(going))
    for iteration in range(1, max_iterations + 1):
        if left == 0:
            break
        # c = (x − s + u)Vᵀ;  s = shrink(x − cV + u, κ);  u = (x − cV + u) − s
        C = (X - S + U) @ components.T
        E = X - C @ components
        Z = E + U
        U = xp.clip(Z, -kappa, kappa)
        S = Z - U
        if iteration % 10 == 0 or iteration == max_iterations:
            scores = library.put(scores, rows, xp.where(going[:, None], C, scores[rows]))
            dual = U / kappa
            dual = dual - (dual @ components.T) @ components
            bound = xp.sum(X * dual, axis=1) / xp.clip(library.row_max(xp.abs(dual)), 1, None)
            going = going & (norms(E) - bound > tol * norms(X))
            left = int(xp.sum(going))
            if library.drops_rows and left <= len(rows) // 2:
                keep = library.true_rows(going)
                rows, going, X, kappa, S, U = (A[keep] for A in (rows, going, X, kappa, S, U))
    return scores, left == 0


class RobustPCA:
    """Principal components of a matrix with gross errors: an estimator like scikit-learn's, which it does not need.

    X = L + S with L of low rank and S sparse (`robust_pca`). The components are right singular vectors of L. X is not
    centred, since the gross errors would distort a mean over its columns. L takes up the mean instead, with one more
    component if necessary. If X lies in a GPU's memory, the attributes are arrays of its library in that memory, and so
    must be the rows given to `transform`.

    Parameters
    ----------
    n_components : int, optional
        The largest rank of L; by default any.
    pursuit, route, lam, mu, rho, threads
        As for `robust_pca`.
    tol : float, optional
        Bound of the pursuit's residual, and of the duality gap of a row's scores relative to its 1-norm; by default
        1e-7, and 1e-5 in float32.
    max_iterations : int
        Largest number of iterations of the pursuit, and of `transform`.
    callback : callable, optional
        As for `robust_pca`.
    max_iter : int, optional
        The earlier name of `max_iterations`, deprecated.

    Attributes
    ----------
    components_ : array, shape (n_components_, n_features)
        Orthonormal rows V. The entry of largest magnitude in each is positive.
    singular_values_ : array, shape (n_components_,)
        The singular values of L.
    low_rank_, sparse_ : array, shape (n_samples, n_features)
        L and S.
    n_components_, n_features_in_, n_iter_ : int
    feature_names_in_ : ndarray of str
        The names of the columns of X, if X has them.

    Examples
    --------
    >>> import numpy as np, quoin
    >>> rng = np.random.default_rng(0)
    >>> low = rng.standard_normal((200, 2)) @ rng.standard_normal((2, 50))
    >>> X = low + rng.choice([-7.0, 0.0, 7.0], (200, 50), p=[0.03, 0.94, 0.03])
    >>> pca = quoin.RobustPCA().fit(X)
    >>> pca.n_components_, bool(np.allclose(pca.inverse_transform(pca.transform(X)), low, atol=1e-4))
    (2, True)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        pursuit: Literal["alm", "alternating", "stable"] = "alm",
        route: Literal["auto", "qr", "gram"] = "auto",
        lam: float | None = None,
        mu: float | None = None,
        rho: float = 1.5,
        tol: float | None = None,
        max_iterations: int = 1000,
        callback: Callable[[RobustPCAStep], Any] | None = None,
        threads: int | None = None,
        max_iter: int | None = None,
    ):
        self.n_components = n_components
        self.pursuit = pursuit
        self.route = route
        self.lam = lam
        self.mu = mu
        self.rho = rho
        self.tol = tol
        self.max_iterations = max_iterations
        self.callback = callback
        self.threads = threads
        self.max_iter = max_iter

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
        return {parameter.name: parameter.default for parameter in parameters}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name. None of them is an estimator, so `deep` changes nothing."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> RobustPCA:
        """Set parameters by name, as keywords `params`."""
        for name in params:
            if name not in self._defaults():
                names = ", ".join(self._defaults())
                raise InvalidArgument(f"{type(self).__name__} has no parameter {name!r}; it has {names}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = self._defaults()
        changed = [f"{name}={value!r}" for name, value in self.get_params().items() if value is not defaults[name]]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "components_")

    def __sklearn_tags__(self) -> Any:
        # only scikit-learn calls this
        from sklearn.utils import Tags, TargetTags, TransformerTags  # type: ignore[import-not-found]

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=["float64", "float32"]),
        )

    def _most_iterations(self) -> int:
        if self.max_iter is None:
            return integer("max_iterations", self.max_iterations, 1)
        warnings.warn("RobustPCA: max_iter is now called max_iterations", DeprecationWarning, stacklevel=3)
        return integer("max_iter", self.max_iter, 1)

    def _require_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFitted(f"this {type(self).__name__} is not fitted yet; call fit first")

    def _samples(self, X: Any, fitting: bool) -> tuple[Any, Place]:
        """Returns X as finite float32 or float64 rows with the features of `fit`, and its place."""
        names = _feature_names(X)
        array, place = located(X)
        if array.dtype.kind == "c":
            raise InvalidArgument("Complex data not supported by quoin.RobustPCA")
        if array.dtype.kind in "mM":
            raise TypeError(f"quoin.RobustPCA computes on numbers, and X is {array.dtype}")
        if array.dtype != _FLOAT32 and array.dtype != _FLOAT64:
            array = array.astype(_FLOAT64)
        if array.ndim != 2:
            raise InvalidArgument(
                f"X must have two dimensions, a row for each sample, and has {array.ndim}. Reshape your data"
            )
        samples, features = array.shape
        if samples == 0 or features == 0:
            empty = "sample" if samples == 0 else "feature"
            raise InvalidArgument(f"0 {empty}(s) (shape={array.shape}) while a minimum of 1 is required.")
        require_finite(array, place)
        if fitting:
            self.n_features_in_: int = features
            if names is not None:
                self.feature_names_in_ = names
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        elif features != self.n_features_in_:
            raise InvalidArgument(
                f"X has {features} features, but {type(self).__name__} is expecting {self.n_features_in_} features "
                "as input"
            )
        elif names is not None and not np.array_equal(names, getattr(self, "feature_names_in_", names)):
            raise InvalidArgument("The feature names should match those that were passed during fit, in their order")
        return array, place

    def _beside_components(self, array: Any, place: Place, method: str) -> tuple[Any, Any]:
        """Returns the argument and the components as arrays of the library, in one type."""
        components, home = located(self.components_)
        require_one_place(f"RobustPCA.{method}", place, home)
        if type(home.library) is not type(place.library):
            mine, theirs = (f"{type(A).__module__}.{type(A).__qualname__}" for A in (self.components_, place.bare(array)))
            raise TypeError(
                f"quoin.RobustPCA.{method} needs an array of the library that it was fitted with; "
                f"its components are a {mine}, and this one is a {theirs}"
            )
        place.operand(array)  # raises the library's own error if it refuses, as for a tensor with a gradient
        dtype = np.promote_types(array.dtype, components.dtype)
        return tuple(place.bare(A.astype(dtype, copy=False)) for A in (array, components))  # type: ignore[return-value]

    def fit(self, X: Any, y: Any = None) -> RobustPCA:
        """Split X (n_samples, n_features) = L + S. Entries that a masked array masks are not observed. `y` is not used.

        Warns if the pursuit does not converge.
        """
        X, known = split_mask(X)
        if known is not None:
            X = np.where(known, X, 0)
        array, place = self._samples(X, fitting=True)
        result = robust_pca(
            place.bare(array),
            pursuit=self.pursuit,
            route=self.route,
            lam=self.lam,
            mu=self.mu,
            rho=self.rho,
            tol=self.tol,
            max_iterations=self._most_iterations(),
            max_rank=integer("n_components", self.n_components, 1, optional=True) or None,
            observed=known,
            callback=self.callback,
            threads=self.threads,
        )
        if result.end != "converged":
            warnings.warn(
                f"RobustPCA: {result.end} after {result.iterations} iterations, at a residual of {result.residual:.1e}",
                RuntimeWarning,
                stacklevel=2,
            )
        _, values, Vh = svd(result.L, threads=self.threads)
        V = Vh[: result.rank]
        with place.library.precise():
            positive = place.library.row_max(V) >= place.library.row_max(-V)
            self.components_ = place.library.xp.where(positive[:, None], V, -V)
        self.singular_values_ = values[: result.rank]
        self.low_rank_, self.sparse_ = result.L, result.S
        self.n_components_, self.n_iter_ = result.rank, result.iterations
        return self

    def transform(self, X: Any) -> Any:
        """Scores C (n_samples, n_components_) of the rows of X. Each row's c minimises ‖x − c V‖₁.

        If x = c V + s and s is sparse enough, c is found exactly. A projection, x Vᵀ, would spread every gross error
        over all scores.
        """
        self._require_fitted()
        array, place = self._samples(X, fitting=False)
        tol, most = _tolerance(self.tol, array.dtype), self._most_iterations()
        rows, components = self._beside_components(array, place, "transform")
        with place.library.precise():
            scores, near = _least_absolute_scores(place.library, rows, components, tol, most)
        if not near:
            warnings.warn(
                f"RobustPCA: {most} iterations leave scores further than tol from their minimum",
                RuntimeWarning,
                stacklevel=2,
            )
        return place.give_back(scores)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """`fit(X)` and `transform(X)`. `y` is not used."""
        return self.fit(X).transform(X)

    def inverse_transform(self, C: Any) -> Any:
        """C V (n_samples, n_features), the low-rank part of the rows with the scores C."""
        self._require_fitted()
        array, place = located(C)
        array = exactly_2d(to_float(array, "RobustPCA.inverse_transform"))
        if array.shape[1] != self.n_components_:
            raise InvalidArgument(f"C has {array.shape[1]} columns, and there are {self.n_components_} components")
        scores, components = self._beside_components(array, place, "inverse_transform")
        with place.library.precise():
            return place.give_back(scores @ components)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """robustpca0, robustpca1, … for the scores, as scikit-learn names them. `input_features` is not used."""
        self._require_fitted()
        return np.array([f"robustpca{i}" for i in range(self.n_components_)], dtype=object)


def require_finite(array: Any, place: Place) -> None:
    library, bare = place.library, place.bare(array)
    with library.precise():
        finite = library.xp.isfinite(bare)
        rows = library.true_rows(~library.xp.all(finite, axis=1))
        if not len(rows):
            return
        row = int(rows[0])
        col = int(library.true_rows(~finite[row])[0])
        error = NonFiniteEntry(f"X has {float(bare[row, col])} (NaN or inf) in row {row}, column {col}")
    error.row, error.col = row, col
    raise error


def _feature_names(X: Any) -> np.ndarray | None:
    """Returns the names of X's columns, or None unless it has columns and all their names are strings."""
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return np.array(list(columns), dtype=object)
