"""Robust PCA of an endless sequence of rows."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from .._arguments import gpu_number, integer, positive, real, threads_number
from .._arrays import _FLOAT32, ON_HOST, Place, exactly_2d, located_for, require_one_place, split_mask, to_float
from .._errors import InvalidArgument, NonFiniteEntry, NotFitted
from .._pickles import Pickled
from ._robust_pca import require_finite


_STEPS = 4  # iterations that estimate the masked entries of a row


class OnlineRobustPCA(Pickled):
    """Robust PCA of samples that come one after the other, such as a camera's frames, in bounded memory.

    Each row is split as x = l + s + z. l lies in a subspace that follows the samples, s is sparse, and z is noise. QR
    updates the subspace with each row, whose entries with s != 0 are first replaced by l (Feng, Xu and Yan 2013;
    Rodríguez and Wohlberg 2016). Work is done where the first samples lie, on the CPU or on the GPU that has them in
    its memory (PyTorch, CuPy, JAX). Results lie there, too.

    Masked entries of a `numpy.ma.MaskedArray` are unknown. There l is an estimate from the other entries of the sample,
    and s is 0. Objects can be copied and pickled. A copy is independent and continues with the same bits.

    Parameters
    ----------
    n_components : int
        The largest rank of the subspace.
    forget : float
        Share of its weight that a sample loses with each later sample; with 0 nothing is forgotten. An entry that keeps
        its difference from l for 1/forget samples becomes part of l.
    threshold : float
        Least \\|x − l\\| of an entry of s, for data in [0, 1], or three times the entry's own noise if that is larger.
        Motion that recurs, such as leaves in the wind, counts as noise.
    start : int
        Number of first samples that are kept. The subspace starts with batch fits of them, the last after `start`
        samples.
    threads : int, optional
        As for `qr`.
    device : str, optional
        With 'cuda' (or 'cuda:1') the GPU computes, and samples and results lie in host memory. Each row is copied to
        the GPU once.

    Attributes
    ----------
    low_rank_, sparse_ : array, shape (n_samples, n_features)
        l and s of the samples of the last `partial_fit`, each as it was split when it arrived.
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

    _restored = ("_core", "_place")

    def _where(self) -> Any:
        return self._place.where(threads_number(self.threads))

    def _new(self, place: Place, *state: Any) -> Any:
        kind = "OnlineRobustPca" + ("32" if self._dtype == _FLOAT32 else "64")
        return getattr(place.core, kind)(*self._choices, place.where(threads_number(self.threads)), *state)

    def _save(self) -> Any:
        # `_restore` finds the place from the basis
        return None if self._core is None else (self._core.state(self._where()), self.components_)

    def _restore(self, saved: Any) -> None:
        self._core, self._place = None, ON_HOST
        if saved is not None:
            state, basis = saved
            self._place = located_for(self.device, basis, "OnlineRobustPCA")[1]
            self._core = self._new(self._place, *state)

    def __repr__(self) -> str:
        return (
            f"OnlineRobustPCA({self.n_components!r}, forget={self.forget!r}, threshold={self.threshold!r}, "
            f"start={self.start!r})"
        )

    def partial_fit(self, X: Any, y: Any = None) -> OnlineRobustPCA:
        """Take the rows of X (n_samples, n_features), in order. All calls use the dtype of the first. `y` is not used.

        Raises
        ------
        NonFiniteEntry
            If X holds NaN or Inf. No row of X is taken then.
        InvalidArgument
            If the square of an entry overflows; the rows before it are taken. If a row has no known entry; no row is
            taken.
        """
        name = "OnlineRobustPCA.partial_fit"
        X, known = split_mask(X)
        array, place = located_for(self.device, X, name)
        array = exactly_2d(to_float(array, name))
        if known is not None:
            array = np.where(known, array, array.dtype.type(0))
            if not known.any(axis=1).all():
                raise InvalidArgument(f"all entries of row {int(np.argmin(known.any(axis=1)))} of X are masked: leave it out")
        with self._lock:
            if self._core is None:
                self._choices = (
                    array.shape[1],
                    integer("n_components", self.n_components, 1),
                    real("forget", self.forget),
                    positive("threshold", self.threshold),
                    integer("start", self.start, 1),
                )
                self.n_features_in_: int = array.shape[1]
                self._dtype = array.dtype
                self._core, self._place = self._new(place), place
            require_one_place(name, self._place, place)
            if array.shape[1] != self.n_features_in_:
                raise InvalidArgument(
                    f"X has {array.shape[1]} features, but OnlineRobustPCA is expecting {self.n_features_in_} features as input"
                )
            array = array.astype(self._dtype, copy=False)
            if array.shape[0] > 1:
                require_finite(array, place)
            try:
                if known is None:
                    low, sparse = self._core.next(place.operand(array), self._where())
                else:
                    low, sparse = self._next_known(array, known)
            except NonFiniteEntry:
                require_finite(array, place)  # a single row: names the entry by its place in X
                raise
        self.low_rank_, self.sparse_ = place.give_back(low).T, place.give_back(sparse).T
        return self

    def _next_known(self, X: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns l and s of each row, as columns.

        Unknown entries of a row are filled with an estimate before it is taken.
        """
        low, sparse = (np.empty(X.shape, X.dtype) for _ in range(2))
        for i in range(len(X)):
            row = X[i : i + 1].copy()
            if not known[i].all():
                row[0, ~known[i]] = self._estimate(X, known, i)
            l, s = self._core.next(row, self._where())
            low[i], sparse[i] = l[:, 0], np.where(known[i], s[:, 0], 0)
        return low.T, sparse.T

    def _estimate(self, X: np.ndarray, known: np.ndarray, i: int) -> np.ndarray:
        """Returns estimates of the unknown entries of row i.

        They are entries of U c. c minimises ‖x − U c − s‖ over the known entries, and s holds the excess over the
        threshold. Before the first sample they are the medians of these features over the rows of X.
        """
        here = known[i]
        if self._core.columns == 0:
            row = np.median(X[i, here])
            medians = np.ma.median(np.ma.masked_array(X, ~known), axis=0)
            return np.ma.filled(medians, row)[~here]
        U = np.asarray(self._core.basis(self._where()))
        most = np.maximum(self.threshold, 3 * np.asarray(self._core.noise(self._where()))[here, 0])
        inverse = np.linalg.pinv(U[here])
        c = inverse @ X[i, here]
        for _ in range(_STEPS):
            c = c + inverse @ np.clip(X[i, here] - U[here] @ c, -most, most)
        return U[~here] @ c

    def _fitted(self) -> Any:
        if self._core is None:
            raise NotFitted("this OnlineRobustPCA is not fitted yet; call partial_fit first")
        return self._core

    @property
    def components_(self) -> Any:
        return self._place.give_back(self._fitted().basis(self._where())).T

    @property
    def singular_values_(self) -> np.ndarray:
        return np.asarray(self._fitted().singular_values)

    @property
    def noise_(self) -> Any:
        return self._place.give_back(self._fitted().noise(self._where()))[:, 0]

    @property
    def n_components_(self) -> int:
        return len(self._fitted().singular_values)

    @property
    def n_samples_seen_(self) -> int:
        return self._fitted().columns
