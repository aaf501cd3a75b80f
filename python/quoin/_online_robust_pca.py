"""Robust PCA of rows that come one after the other, without end."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from . import _core
from ._arguments import integer, positive, real, threads_number
from ._arrays import _FLOAT32, exactly_2d, on_host, to_float
from ._errors import InvalidArgument, NotFitted


class OnlineRobustPCA:
    """Robust PCA of samples that come one after the other, such as a camera's frames, in bounded memory.

    Each row is split x = l + s + z: l in a subspace that follows the samples, s sparse, z noise. The subspace is updated by
    QR with each row, in which s is imputed from l (Feng, Xu and Yan 2013; Rodríguez and Wohlberg 2016). It computes on the CPU.

    Parameters
    ----------
    n_components : int
        The largest rank of the subspace.
    forget : float
        Share of its weight that a sample loses with each later one; 0: none is forgotten. An entry that keeps its difference
        from l for 1/forget samples becomes part of l.
    threshold : float
        Least \\|x − l\\| of an entry of s, for data in [0, 1]; three times the entry's own noise where that is more. What recurs,
        as the leaves of a tree, is noise.
    start : int
        Samples after which the last of the batch pursuits takes place that the subspace starts with.
    threads : int, optional
        As for `qr`.

    Attributes
    ----------
    low_rank_, sparse_ : ndarray, shape (n_samples, n_features)
        l and s of the samples of the last `partial_fit`, each as it was split when it came.
    components_ : ndarray, shape (n_components_, n_features)
        Orthonormal rows.
    singular_values_ : ndarray, shape (n_components_,)
    noise_ : ndarray, shape (n_features,)
        The standard deviation of each feature's noise.
    n_components_, n_features_in_, n_samples_seen_ : int

    Examples
    --------
    >>> import numpy as np, quoin
    >>> rng = np.random.default_rng(0)
    >>> background = rng.random(500)
    >>> pca = quoin.OnlineRobustPCA()
    >>> for t in range(60):
    ...     frame = background * (1 + 0.1 * np.sin(t / 9)) + 0.005 * rng.standard_normal(500)
    ...     frame[5 * t : 5 * t + 20] += 0.5
    ...     pca = pca.partial_fit(frame[None])
    >>> np.flatnonzero(pca.sparse_[0])[[0, -1]], pca.n_components_
    (array([295, 314]), 1)
    """

    def __init__(
        self,
        n_components: int = 4,
        *,
        forget: float = 0.01,
        threshold: float = 0.04,
        start: int = 32,
        threads: int | None = None,
    ):
        self.n_components = n_components
        self.forget = forget
        self.threshold = threshold
        self.start = start
        self.threads = threads
        self._lock = threading.Lock()
        self._core: Any = None

    def __repr__(self) -> str:
        return (
            f"OnlineRobustPCA({self.n_components!r}, forget={self.forget!r}, threshold={self.threshold!r}, "
            f"start={self.start!r})"
        )

    def partial_fit(self, X: Any, y: Any = None) -> OnlineRobustPCA:
        """Take the rows of X (n_samples, n_features), in order. `y` is not used. All calls have the dtype of the first."""
        array, _ = on_host(X, "OnlineRobustPCA.partial_fit")
        array = exactly_2d(to_float(array, "OnlineRobustPCA.partial_fit"))
        with self._lock:
            if self._core is None:
                kind = _core.OnlineRobustPca32 if array.dtype == _FLOAT32 else _core.OnlineRobustPca64
                self._core = kind(
                    array.shape[1],
                    integer("n_components", self.n_components, 1),
                    real("forget", self.forget),
                    positive("threshold", self.threshold),
                    integer("start", self.start, 1),
                    threads_number(self.threads),
                )
                self.n_features_in_, self._dtype = array.shape[1], array.dtype
            if array.shape[1] != self.n_features_in_:
                raise InvalidArgument(
                    f"X has {array.shape[1]} features, but OnlineRobustPCA is expecting {self.n_features_in_} features as input"
                )
            low, sparse = self._core.next(array.astype(self._dtype, copy=False).T, threads_number(self.threads))
        self.low_rank_, self.sparse_ = low.T, sparse.T
        return self

    def _fitted(self) -> Any:
        if self._core is None:
            raise NotFitted("this OnlineRobustPCA is not fitted yet; call partial_fit first")
        return self._core

    @property
    def components_(self) -> np.ndarray:
        return self._fitted().basis().T

    @property
    def singular_values_(self) -> np.ndarray:
        return np.asarray(self._fitted().singular_values)

    @property
    def noise_(self) -> np.ndarray:
        return np.asarray(self._fitted().noise(), dtype=np.float32)

    @property
    def n_components_(self) -> int:
        return len(self._fitted().singular_values)

    @property
    def n_samples_seen_(self) -> int:
        return self._fitted().columns
