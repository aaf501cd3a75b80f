"""An unchanged NumPy and SciPy with libquoin_lapack.so preloaded: QR and least squares, and what was intercepted; and
what the library does to a process that it is loaded into."""

import ctypes
import os
import subprocess
import sys


def check_law(a, q, r):
    """The bounds of tests/checks.hpp with their margin for the products formed here in working precision."""
    import numpy as np

    u = np.finfo(a.dtype).eps / 2
    k = max(1, min(a.shape))
    assert np.array_equal(r, np.triu(r))
    assert np.linalg.norm(a - q @ r) <= 44 * k * u * np.linalg.norm(a), (a.shape, a.dtype)
    assert np.linalg.norm(q.T @ q - np.eye(q.shape[1])) <= 44 * np.sqrt(k * q.shape[1]) * u, (a.shape, a.dtype)


def check_arrays():
    import numpy as np
    import scipy.linalg

    random = np.random.default_rng(1)
    for dtype in (np.float32, np.float64):
        for m, n in ((0, 3), (1, 1), (3, 3), (32, 32), (500, 80), (300, 300), (80, 300), (20000, 40), (70000, 20)):
            a = random.standard_normal((m, n)).astype(dtype)
            q, r = np.linalg.qr(a)
            check_law(a, q, r)
            if m > 0 and m <= 500:
                check_law(a, *np.linalg.qr(a, mode="complete"))
                check_law(a, *scipy.linalg.qr(a))
        a = random.standard_normal((5000, 60)).astype(dtype)
        x = random.standard_normal((60, 3)).astype(dtype)
        for solution in (np.linalg.lstsq(a, a @ x, rcond=None)[0], scipy.linalg.lstsq(a, a @ x)[0],
                         scipy.linalg.lstsq(a, a @ x, lapack_driver="gelsy")[0]):
            assert np.linalg.norm(solution - x) <= 1000 * 60 * np.finfo(dtype).eps * np.linalg.norm(x)
        # of rank 150: the system's ?gelsy calls ?tzrzf and ?ormrz; Quoin's takes tall matrices
        for m in (300, 2000):
            low = random.standard_normal((m, 150)) @ random.standard_normal((150, 300))
            b = random.standard_normal((m, 3))
            solution, _, rank, _ = scipy.linalg.lstsq(low.astype(dtype), b.astype(dtype), 1e-4, lapack_driver="gelsy")
            exact = np.linalg.lstsq(low, b, rcond=1e-4)[0]
            assert rank == 150
            assert np.linalg.norm(solution - exact) <= 1000 * 150 * np.finfo(dtype).eps * np.linalg.norm(exact)
        # the residual is orthogonal to A
        b = random.standard_normal((5000, 3)).astype(dtype)
        gels = scipy.linalg.lapack.get_lapack_funcs("gels", (a,))
        _, solution, info = gels(a, b)
        assert info == 0
        gradient = a.T @ (b - a @ solution[:60])
        assert np.linalg.norm(gradient) <= 1000 * 60 * np.finfo(dtype).eps * np.linalg.norm(a) * np.linalg.norm(b)
        q, r, p = scipy.linalg.qr(a, mode="economic", pivoting=True)
        check_law(a[:, p], q, r)
        assert np.all(np.diff(abs(np.diag(r))) <= 0)
        # ?gesdd of a wide matrix calls ?gelqf and ?orglq; ?gerqf is the system's
        u, s, vt = scipy.linalg.svd(a.T, full_matrices=False)
        assert np.linalg.norm(a.T - (u * s) @ vt) <= 44 * 60 * np.finfo(dtype).eps * np.linalg.norm(a)
        r, q = scipy.linalg.rq(a.T, mode="economic")
        check_law(a[::-1, ::-1], q[::-1, ::-1].T, r[::-1, ::-1].T)
        # SciPy multiplies by Q through ?ormqr
        c = random.standard_normal((70, 5000)).astype(dtype)
        cq, r = scipy.linalg.qr_multiply(a, c, mode="right")
        q = scipy.linalg.qr(a, mode="economic")[0]
        assert np.linalg.norm(cq - c @ q) <= 44 * 60 * np.finfo(dtype).eps * np.linalg.norm(c)
    check_nothing_else_changed_hands()


def check_nothing_else_changed_hands():
    """NumPy's BLAS and LAPACK are loaded for NumPy alone: other routines of those names would come before them."""
    everyone = ctypes.CDLL(None)
    for symbol in ("dgemm_", "dgesv_", "cblas_dgemm", "LAPACKE_dgeqrf"):
        assert not hasattr(everyone, symbol), symbol


# ---- processes that know no BLAS: the library alone, called as from C ------------------------------------------------


def integer(value):
    return ctypes.byref(ctypes.c_int(value))


def copy():
    """A ?copy by threads."""
    n = 1 << 20
    x, y = (ctypes.c_double * n)(*range(9)), (ctypes.c_double * n)()
    ctypes.CDLL(None).dcopy_(integer(n), x, integer(1), y, integer(1))
    assert y[:10] == [*range(9), 0]


def factor(m=2000, n=32):
    """Quoin's by default. Returns R, whose columns must have the norms of A's."""
    a = (ctypes.c_double * (m * n))(*((i * 7919 % 1009 - 504) / 504 for i in range(m * n)))
    squares = [sum(x * x for x in a[j * m:(j + 1) * m]) for j in range(n)]
    tau, work, info = (ctypes.c_double * n)(), (ctypes.c_double * (32 * n))(), ctypes.c_int(99)
    ctypes.CDLL(None).dgeqrf_(integer(m), integer(n), a, integer(m), tau, work, integer(32 * n), ctypes.byref(info))
    assert info.value == 0
    r = [a[j * m:j * m + j + 1] for j in range(n)]
    for j in range(n):
        assert abs(sum(x * x for x in r[j]) - squares[j]) <= 1e-12 * squares[j]
    return r


def check_alone():
    with open("/proc/self/maps") as maps:
        libraries = maps.read()
    assert "libquoin_lapack" in libraries
    for name in ("libopenblas", "libblas", "libcblas", "liblapack"):
        assert name not in libraries, name
    check_nothing_else_changed_hands()
    copy()
    factor()
    factor(5, 3)


def check_fork():
    copy()
    factor()
    child = os.fork()
    if child == 0:
        copy()
        factor()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def check_closed_lapack():
    import _ctypes

    lapack = ctypes.CDLL("liblapack.so.3")
    r = factor(5, 3)
    _ctypes.dlclose(lapack._handle)
    assert factor(5, 3) == r


def check_threads(expected):
    copy()
    factor()
    assert len(os.listdir("/proc/self/task")) == int(expected)


def main(library):
    def run(check, *arguments, preload=library, **variables):
        """Runs a function of this file in a process of its own and returns what that says on stderr."""
        environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
        environment.update(variables, QUOIN_VERBOSE="1", **({"LD_PRELOAD": preload} if preload else {}))
        child = subprocess.run([sys.executable, __file__, check, *arguments], env=environment, capture_output=True,
                               text=True, timeout=300)
        assert child.returncode == 0, (check, arguments, variables, child.stderr[-2000:])
        return child.stderr.splitlines()

    said = run("check_arrays")
    for routine in ("SGEQRF", "DGEQRF", "SORGQR", "DORGQR", "SORMQR", "DORMQR", "SGELS", "DGELS", "DCOPY", "SGEQP3",
                    "DGEQP3", "SGELQF", "DGELQF", "SORGLQ", "DORGLQ", "SGELSY", "DGELSY", "STZRZF", "DTZRZF", "SORMRZ",
                    "DORMRZ"):
        lines = [line for line in said if line.startswith(f"quoin: {routine} ")]
        assert any("passed on" not in line for line in lines), f"{routine} was not intercepted"
    assert not any("quoin:" in line for line in run("check_arrays", preload=None)), "intercepted without the library"

    run("check_alone")
    run("check_fork", OMP_NUM_THREADS="2")
    closed = run("check_closed_lapack")
    assert sum("DGEQRF 5 x 3, k 3: passed on" in line for line in closed) == 2, closed
    # the smallest of those that are set
    for variables, expected in (({"OMP_NUM_THREADS": "3"}, "3"),
                                ({"OMP_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "2"}, "2"),
                                ({"OMP_NUM_THREADS": "3", "MKL_NUM_THREADS": "2"}, "2"),
                                ({"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "3"}, "2"),
                                ({"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "8", "MKL_NUM_THREADS": "0"}, "2")):
        run("check_threads", expected, **variables)


name, *arguments = sys.argv[1:]
globals().get(name, lambda: main(name))(*arguments)
