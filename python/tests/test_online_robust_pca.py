"""`OnlineRobustPCA`: rows one by one or many at a time, and what it refuses."""

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
    with pytest.raises(quoin.NonFiniteEntry):
        pca.partial_fit(np.full((1, 600), np.nan))
    assert pca.n_samples_seen_ == 3


def test_the_device_of_a_stream():
    X, _ = frames(6)
    for wrong in ("gpu", "cuda:", 0):
        with pytest.raises(quoin.InvalidArgument, match="device must be 'cpu', 'cuda' or 'cuda:N'"):
            quoin.OnlineRobustPCA(device=wrong)
    there = quoin.OnlineRobustPCA(start=4, device="cpu").partial_fit(X)
    np.testing.assert_array_equal(there.low_rank_, quoin.OnlineRobustPCA(start=4).partial_fit(X).low_rank_)
