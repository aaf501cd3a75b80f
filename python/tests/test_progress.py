"""`callback=`: its shares of the work grow to 1, no bit of the result changes, and its exceptions end the call."""

import signal

import numpy as np
import pytest
from laws import QUICK

import quoin

CALLS = {
    "factor": lambda A, **options: [quoin.factor(A, threads=1, **options).R],
    "lstsq": lambda A, **options: [quoin.lstsq(A, np.ones(len(A)), threads=1, **options).x],
    "svd": lambda A, **options: quoin.svd(A, threads=1, **options),
    "singular values": lambda A, **options: [quoin.svd(A, False, threads=1, **options)],
    "covariant vectors": lambda A, **options: [
        quoin.covariant_lyapunov(lambda x: 3.9 * x * (1 - x), None, [0.3], kind="map", **options).local
    ],
}
COLUMNS = {"factor": 2600, "lstsq": 2600, "svd": 1200, "singular values": 1600}  # for several times 50 ms on one core


@pytest.fixture(params=["covariant vectors"] if QUICK else CALLS)
def call(request, rng):
    n = COLUMNS.get(request.param, 1)
    A = rng.standard_normal((n, n))
    return lambda **options: CALLS[request.param](A, **options)


def test_shares_grow_to_1_and_the_bits_are_the_same(call):
    shares = []
    seen = call(callback=shares.append)
    assert shares == sorted(shares) and 0 <= shares[0] < 1 and shares[-1] == 1
    for one, other in zip(seen, call()):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shape", [(1, 1), (0, 3), (3, 0), (40, 3), (3, 40)])
@pytest.mark.parametrize("name", ["factor", "lstsq", "svd"])
def test_a_short_call_is_done_at_the_end(name, shape):
    shares = []
    CALLS[name](np.ones(shape), callback=shares.append)
    assert shares[-1] == 1


def test_what_it_raises_ends_the_call(call):
    shares = []

    class Mine(Exception):
        pass

    def fail(share):
        shares.append(share)
        raise Mine

    with pytest.raises(Mine):
        call(callback=fail)
    assert len(shares) == 1 and shares[0] < 1


def test_control_c_in_it_and_calls_of_quoin(call, rng):
    A, R = rng.standard_normal((9, 9)), []
    call(callback=lambda _: R.append(quoin.qr(A, mode="r")))
    assert all(np.array_equal(one, R[0]) for one in R)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            call(callback=lambda _: signal.raise_signal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)


def test_it_is_for_one_matrix():
    for A in (np.ones((2, 5, 3)), [np.ones((5, 3)), np.ones((4, 2))]):
        for function in (quoin.factor, quoin.svd, lambda A, **options: quoin.lstsq(A, A, **options)):
            with pytest.raises(quoin.InvalidArgument, match="callback is told the progress of one matrix"):
                function(A, callback=print)
    with pytest.raises(quoin.InvalidArgument, match="'vh'"):
        quoin.svd(np.ones((5, 3)), "vh", callback=print)


def test_tqdms_bar(rng):
    tqdm = pytest.importorskip("tqdm")
    with tqdm.tqdm(total=1, disable=False, file=open("/dev/null", "w")) as bar:
        quoin.svd(rng.standard_normal((400, 400)), callback=lambda done: bar.update(done - bar.n))
    assert bar.n == pytest.approx(1)


def test_the_estimator_passes_it_on(rng):
    M, steps = rng.standard_normal((30, 20)), []
    pca = quoin.RobustPCA(callback=steps.append, max_iterations=5, tol=1e-30)
    with pytest.warns(RuntimeWarning):
        pca.fit(M)
    assert [step.iteration for step in steps] == [1, 2, 3, 4, 5]
