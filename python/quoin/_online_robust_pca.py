"""Robust PCA of rows that come one after the other, without end."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ._arguments import gpu_number, integer, positive, real, threads_number
from ._arrays import _FLOAT32, ON_HOST, Place, exactly_2d, located_for, require_one_place, to_float
from ._errors import InvalidArgument, NotFitted


class OnlineRobustPCA:
    """Robust PCA of samples that come one after the other, such as a camera's frames, in bounded memory.

    Each row is split x = l + s + z: l in a subspace that follows the samples, s sparse, z noise. The subspace is updated by
    QR with each row, in which s is imputed from l (Feng, Xu and Yan 2013; Rodríguez and Wohlberg 2016). It computes where the first
    samples lie: on the CPU, or on the GPU that has them in its memory (PyTorch, CuPy, JAX); results lie there too.

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
    device : str, optional
        'cuda' (or 'cuda:1'): samples lie in host memory, and so do results; the GPU computes. Each row goes to it once.

    Attributes
    ----------
    low_rank_, sparse_ : array, shape (n_samples, n_features)
        l and s of the samples of the last `partial_fit`, each as it was split when it came.
    components_ : array, shape (n_components_, n_features)
        Orthonormal rows.
    singular_values_ : ndarray, shape (n_components_,)
    noise_ : array, shape (n_features,)
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
        device: Any = None,
    ):
        self.n_components = n_components
        self.forget = forget
        self.threshold = threshold
        self.start = start
        self.threads = threads
        self.device = None if device is None else str(device)
        if device is not None:
            gpu_number(device)
        self._lock = threading.Lock()
        self._core: Any = None
        self._place: Place = ON_HOST

    def __repr__(self) -> str:
        return (
            f"OnlineRobustPCA({self.n_components!r}, forget={self.forget!r}, threshold={self.threshold!r}, "
            f"start={self.start!r})"
        )

    def partial_fit(self, X: Any, y: Any = None) -> OnlineRobustPCA:
        """Take the rows of X (n_samples, n_features), in order. `y` is not used. All calls have the dtype of the first."""
        name = "OnlineRobustPCA.partial_fit"
        array, place = located_for(self.device, X, name)
        array = exactly_2d(to_float(array, name))
        with self._lock:
            if self._core is None:
                kind = "OnlineRobustPca" + ("32" if array.dtype == _FLOAT32 else "64")
                self._core = getattr(place.core, kind)(
                    array.shape[1],
                    integer("n_components", self.n_components, 1),
                    real("forget", self.forget),
                    positive("threshold", self.threshold),
                    integer("start", self.start, 1),
                    place.where(threads_number(self.threads)),
                )
                self.n_features_in_, self._dtype, self._place = array.shape[1], array.dtype, place
            require_one_place(name, self._place, place)
            if array.shape[1] != self.n_features_in_:
                raise InvalidArgument(
                    f"X has {array.shape[1]} features, but OnlineRobustPCA is expecting {self.n_features_in_} features as input"
                )
            rows = place.operand(array.astype(self._dtype, copy=False))
            low, sparse = self._core.next(rows, place.where(threads_number(self.threads)))
        self.low_rank_, self.sparse_ = place.give_back(low).T, place.give_back(sparse).T
        return self

    def _fitted(self) -> Any:
        if self._core is None:
            raise NotFitted("this OnlineRobustPCA is not fitted yet; call partial_fit first")
        return self._core

    @property
    def components_(self) -> Any:
        return self._place.give_back(self._fitted().basis(self._place.where(threads_number(self.threads)))).T

    @property
    def singular_values_(self) -> np.ndarray:
        return np.asarray(self._fitted().singular_values)

    @property
    def noise_(self) -> Any:
        return self._place.give_back(self._fitted().noise(self._place.where(threads_number(self.threads))))[:, 0]

    @property
    def n_components_(self) -> int:
        return len(self._fitted().singular_values)

    @property
    def n_samples_seen_(self) -> int:
        return self._fitted().columns
