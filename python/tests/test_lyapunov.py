import os
import signal
import threading

import numpy as np
import pytest
from laws import QUICK

import quoin


def lorenz(x):
    return [10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]]


def lorenz_jvp(x, V):
    return np.array([[-10, 10, 0], [28 - x[2], -1, -x[0]], [x[1], x[0], -8 / 3]]) @ V


def test_a_flow_has_its_spectrum():
    time = 60 if QUICK else 200
    result = quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], time=time, transient=10, alignment=10, step=0.02, every=5)
    known = np.array([0.906, 0, -14.572])
    assert np.all(np.abs(result.exponents - known) <= 5 * result.errors + 0.02)
    assert result.sum.value == pytest.approx(-41 / 3, abs=1e-3)
    assert result.kaplan_yorke.value == pytest.approx(2.062, abs=0.02)
    assert result.kolmogorov_sinai.value == pytest.approx(max(result.exponents[0], 0) + max(result.exponents[1], 0))
    assert result.positive == 1 and result.completed and result.segments == 10 * time and result.time == pytest.approx(time)
    assert result.averages.shape == (3, result.times.size)
    assert result.state.shape == (3,)


@pytest.mark.parametrize("order", ["C", "F"])
def test_products_of_any_order_and_type(order):
    def jvp(x, V):
        assert V.shape == (3, 2) and x.shape == (3,)
        return np.array(lorenz_jvp(x, V), order=order)

    a = quoin.lyapunov(lorenz, jvp, (1, 1, 20), exponents=2, time=5, transient=1, alignment=1)
    b = quoin.lyapunov(lambda x: np.array(lorenz(x)), lorenz_jvp, np.array([1, 1, 20]), exponents=2, time=5, transient=1,
                       alignment=1)
    assert np.array_equal(a.exponents, b.exponents) and a.exponents.shape == (2,)
    assert np.isnan(a.kaplan_yorke.value) or a.exponents[1] < 0


def test_vectors_in_float32_follow_the_same_orbit():
    run = dict(time=20, transient=2, alignment=2)
    wide, narrow = (quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], dtype=dtype, **run) for dtype in ("f8", np.float32))
    assert np.array_equal(wide.state, narrow.state)
    assert np.all(np.abs(wide.exponents - narrow.exponents) <= 1e-4)
    assert not np.array_equal(wide.exponents, narrow.exponents)
    with pytest.raises(quoin.InvalidArgument, match="dtype must be float64 or float32, and is int64"):
        quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], dtype=int, **run)


def test_methods_agree():
    run = dict(time=5, transient=1, alignment=1)
    spectra = [quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], method=method, **run)
               for method in ("householder", "tsqr", "caqr", "cholesky-qr2", "mgs")]
    for other in spectra[1:]:
        assert np.array_equal(other.state, spectra[0].state)
        assert np.allclose(other.exponents, spectra[0].exponents, atol=1e-9)


def test_what_the_callers_code_is_given_may_be_kept():
    kept = []

    def f(x):
        kept.append(x)
        return 4 * x * (1 - x)

    quoin.lyapunov(f, lambda x, V: (4 - 8 * x) * V, [0.3], kind="map", time=30, transient=0, alignment=0, every=1)
    # segments of the state alone, whose time is measured, come again
    states = {x.item() for x in kept}
    assert len(states) == 30 and sum(4 * x * (1 - x) in states for x in states) == 29


def test_callbacks_checkpoints_and_exceptions(tmp_path):
    run = dict(time=20, transient=1, alignment=1)
    whole = quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], **run)
    saved = tmp_path / "run"
    stopped = quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], checkpoint=saved, callback=lambda t, part: t < 7, **run)
    assert not stopped.completed and stopped.time == pytest.approx(5)

    class Mine(Exception):
        pass

    def raising(x, V):
        if raising.left == 0:
            raise Mine
        raising.left -= 1
        return lorenz_jvp(x, V)

    raising.left = 1000
    with pytest.raises(Mine):
        quoin.lyapunov(lorenz, raising, [1, 1, 20], checkpoint=saved, **run)

    def interrupt(time, fraction):
        if time > 12:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], checkpoint=saved, callback=interrupt, **run)
    resumed = quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], checkpoint=os.fspath(saved), **run)
    assert np.array_equal(resumed.exponents, whole.exponents) and np.array_equal(resumed.errors, whole.errors)
    with pytest.raises(quoin.InvalidArgument, match="another run"):
        quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], checkpoint=saved, seed=9, **run)


def test_refusals():
    run = dict(time=1, transient=0, alignment=0)
    for wrong, match in [
        (dict(kind="orbit"), "kind"),
        (dict(exponents=4), "dimension 3"),
        (dict(exponents=0), "exponents"),
        (dict(step=0), "step"),
        (dict(every=0), "every"),
        (dict(seed=-1), "seed"),
        (dict(method="magic"), "magic"),
    ]:
        with pytest.raises(quoin.InvalidArgument, match=match):
            quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], **{**run, **wrong})
    with pytest.raises(quoin.InvalidArgument, match="x0"):
        quoin.lyapunov(lorenz, lorenz_jvp, [[1, 1, 20]], **run)
    with pytest.raises(quoin.InvalidArgument, match=r"jvp must return an array of shape \(3, 3\)"):
        quoin.lyapunov(lorenz, lambda x, V: V[:2], [1, 1, 20], **run)
    with pytest.raises(quoin.InvalidArgument, match=r"f must return"):
        quoin.lyapunov(lambda x: x[:2], lorenz_jvp, [1, 1, 20], **run)
    with pytest.raises(quoin.NonFiniteEntry, match="state at time"):
        quoin.lyapunov(lambda x: [float(x[0]) * 1e200], lambda x, V: V, [2.0], kind="map", **{**run, "time": 100})


def test_runs_in_threads():
    results = {}

    def run(seed):
        results[seed] = quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], seed=seed, time=3, transient=1, alignment=1).exponents

    threads = [threading.Thread(target=run, args=(seed,)) for seed in (1, 2, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = quoin.lyapunov(lorenz, lorenz_jvp, [1, 1, 20], seed=2, time=3, transient=1, alignment=1).exponents
    assert np.array_equal(results[2], alone)
