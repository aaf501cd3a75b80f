"""`OnlineRobustPCA`: rows one by one or many at a time, and what it refuses."""

import copy
import pickle

import numpy as np
import pytest

import quoin


def frames(count, dtype=np.float64, seed=0):
    """A background whose light changes, noise of 0.005 and an object of 20 entries that moves by 5 a frame."""
    rng = np.random.default_rng(seed)
    background = 0.2 + 0.6 * rng.random(600)
    rows, masks = [], []
    for t in range(count):
        row = background * (1 + 0.1 * np.sin(t / 9)) + 0.005 * rng.standard_normal(600)
        mask = np.zeros(600, bool)
        mask[(5 * t + np.arange(20)) % 600] = True
        row[mask] += 0.4
        rows.append(row)
        masks.append(mask)
    return np.array(rows, dtype), np.array(masks)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tells_what_moves_from_what_stays(dtype):
    X, masks = frames(80, dtype)
    pca = quoin.OnlineRobustPCA().partial_fit(X)
    assert pca.low_rank_.dtype == pca.sparse_.dtype == dtype
    assert (pca.n_samples_seen_, pca.n_features_in_, pca.n_components_) == (80, 600, 1)
    np.testing.assert_array_equal(pca.sparse_[40:] != 0, masks[40:])
    found = pca.sparse_ != 0
    np.testing.assert_array_equal(pca.sparse_[found], (X - pca.low_rank_)[found])
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(1), atol=1e-5 if dtype == np.float32 else 1e-13)
    assert pca.components_.shape == (1, 600) and pca.noise_.shape == (600,)
    assert 0.5 < np.median(pca.noise_) / 0.005 < 2


def test_is_the_same_row_by_row():
    X, _ = frames(40)
    together = quoin.OnlineRobustPCA(threads=2).partial_fit(X)
    single = quoin.OnlineRobustPCA(threads=1)
    rows = [single.partial_fit(row[None]).sparse_[0] for row in X]
    np.testing.assert_array_equal(np.array(rows), together.sparse_)
    np.testing.assert_array_equal(single.components_, together.components_)
    np.testing.assert_array_equal(single.singular_values_, together.singular_values_)


def test_every_parameter_counts():
    X, _ = frames(60)
    usual = quoin.OnlineRobustPCA().partial_fit(X)
    for parameters in ({"forget": 0.2}, {"threshold": 0.5}, {"start": 4}):
        other = quoin.OnlineRobustPCA(**parameters).partial_fit(X)
        assert not np.array_equal(other.low_rank_, usual.low_rank_), parameters
    assert repr(quoin.OnlineRobustPCA(3)) == "OnlineRobustPCA(3, forget=0.01, threshold=0.04, start=32)"


def test_refuses_what_is_out_of_range():
    X, _ = frames(3)
    for parameters in ({"n_components": 0}, {"forget": 1}, {"forget": -0.1}, {"threshold": 0}, {"start": 0}):
        with pytest.raises(quoin.InvalidArgument, match=next(iter(parameters))):
            quoin.OnlineRobustPCA(**parameters).partial_fit(X)
    pca = quoin.OnlineRobustPCA()
    with pytest.raises(quoin.NotFitted):
        pca.components_
    pca.partial_fit(X)
    with pytest.raises(quoin.InvalidArgument, match="features"):
        pca.partial_fit(X[:, :5])
    for rows, (row, col) in ((X.copy(), (2, 3)), (X[:1].copy(), (0, 7))):
        rows[row, col] = np.nan
        with pytest.raises(quoin.NonFiniteEntry, match=f"row {row}, column {col}$") as caught:
            pca.partial_fit(rows)
        assert (caught.value.row, caught.value.col) == (row, col) and pca.n_samples_seen_ == 3


@pytest.mark.parametrize("dtype, largest", [(np.float32, 2.0**58), (np.float64, 2.0**119)])
def test_entries_that_are_too_large_are_not_called_nan(dtype, largest):
    X = np.random.default_rng(0).random((70, 20)).astype(dtype)
    X[:, 0] = 1
    assert np.isfinite(quoin.OnlineRobustPCA(threshold=largest / 25).partial_fit(X * dtype(largest)).singular_values_).all()
    most = float(np.finfo(dtype).max)
    for first, size in ((0, 64 * largest), (0, most), (40, most)):  # while it begins, and later
        pca = quoin.OnlineRobustPCA()
        with pytest.raises(quoin.InvalidArgument, match="must be below .*scale the data"):
            pca.partial_fit(X[:first]).partial_fit(X[first:] * dtype(size))
        assert pca.n_samples_seen_ == first


def test_the_device_of_a_stream():
    X, _ = frames(6)
    for wrong in ("gpu", "cuda:", 0):
        with pytest.raises(quoin.InvalidArgument, match="device must be 'cpu', 'cuda' or 'cuda:N'"):
            quoin.OnlineRobustPCA(device=wrong)
    there = quoin.OnlineRobustPCA(start=4, device="cpu").partial_fit(X)
    np.testing.assert_array_equal(there.low_rank_, quoin.OnlineRobustPCA(start=4).partial_fit(X).low_rank_)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda pca: pickle.loads(pickle.dumps(pca))], ids=["copy", "deepcopy", "pickle"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_copy_is_independent_and_has_the_same_bits(again, dtype):
    X, _ = frames(64, dtype)
    pca = quoin.OnlineRobustPCA(start=16, threads=1)
    for begin, end in ((0, 0), (0, 1), (1, 9), (9, 16), (16, 40)):  # before, in, at the end of and after its start
        if end > begin:
            pca.partial_fit(X[begin:end])
        other = again(pca)
        if end == 0:
            with pytest.raises(quoin.NotFitted):
                other.components_
        assert repr(other) == repr(pca)
        other.partial_fit(X[end:])
        whole = quoin.OnlineRobustPCA(start=16, threads=1).partial_fit(X)
        np.testing.assert_array_equal(other.low_rank_, whole.low_rank_[end:])
        np.testing.assert_array_equal(other.sparse_, whole.sparse_[end:])
        np.testing.assert_array_equal(other.components_, whole.components_)
        assert other.n_samples_seen_ == 64 and (end == 0 or pca.n_samples_seen_ == end)
    broken = pca.__getstate__()
    broken["saved"][0][3].resize((600, 0), refcheck=False)
    state, *rest = broken["saved"]
    broken["saved"] = ((*state[:2], state[2][:5], *state[3:]), *rest)
    with pytest.raises(quoin.InvalidArgument, match="do not fit"):
        quoin.OnlineRobustPCA.__new__(quoin.OnlineRobustPCA).__setstate__(broken)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_masked_entries_are_estimated(dtype):
    X, masks = frames(80, dtype)
    rng = np.random.default_rng(1)
    hidden = rng.random(X.shape) < 0.2
    hidden[0, :100] = True
    given = X.copy()
    given[hidden] = rng.choice([np.nan, 1e30, -7], hidden.sum())
    whole, partly = quoin.OnlineRobustPCA().partial_fit(X), quoin.OnlineRobustPCA()
    low, sparse = [], []
    for part in (slice(0, 50), slice(50, 51), slice(51, 80)):
        partly.partial_fit(np.ma.masked_array(given[part], hidden[part]))
        assert partly.low_rank_.dtype == partly.sparse_.dtype == dtype
        low.append(partly.low_rank_)
        sparse.append(partly.sparse_)
    low, sparse = np.vstack(low), np.vstack(sparse)
    # the background to its noise, and what moves where it can be seen
    assert np.abs(low - whole.low_rank_)[40:].max() < 3 * 0.005
    np.testing.assert_array_equal(sparse[40:] != 0, (masks & ~hidden)[40:])
    none = quoin.OnlineRobustPCA().partial_fit(np.ma.masked_array(X))
    np.testing.assert_array_equal(none.low_rank_, whole.low_rank_)
    hidden[2] = True
    with pytest.raises(quoin.InvalidArgument, match="all entries of row 2 of X are masked"):
        quoin.OnlineRobustPCA().partial_fit(np.ma.masked_array(X, hidden))
