"""An unchanged NumPy and SciPy with libquoin_lapack.so preloaded: QR and least squares, and what was intercepted."""

import os
import subprocess
import sys

import numpy as np
import scipy.linalg


def check_law(a, q, r):
    """The bounds of tests/checks.hpp with their margin for the products formed here in working precision."""
    u = np.finfo(a.dtype).eps / 2
    k = max(1, min(a.shape))
    assert np.array_equal(r, np.triu(r))
    assert np.linalg.norm(a - q @ r) <= 44 * k * u * np.linalg.norm(a), (a.shape, a.dtype)
    assert np.linalg.norm(q.T @ q - np.eye(q.shape[1])) <= 44 * np.sqrt(k * q.shape[1]) * u, (a.shape, a.dtype)


def check_arrays():
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
        # the residual is orthogonal to A
        b = random.standard_normal((5000, 3)).astype(dtype)
        gels = scipy.linalg.lapack.get_lapack_funcs("gels", (a,))
        _, solution, info = gels(a, b)
        assert info == 0
        gradient = a.T @ (b - a @ solution[:60])
        assert np.linalg.norm(gradient) <= 1000 * 60 * np.finfo(dtype).eps * np.linalg.norm(a) * np.linalg.norm(b)
        # SciPy multiplies by Q through ?ormqr
        c = random.standard_normal((70, 5000)).astype(dtype)
        cq, r = scipy.linalg.qr_multiply(a, c, mode="right")
        q = scipy.linalg.qr(a, mode="economic")[0]
        assert np.linalg.norm(cq - c @ q) <= 44 * 60 * np.finfo(dtype).eps * np.linalg.norm(c)


def main():
    if len(sys.argv) == 1:
        check_arrays()
        return
    environment = dict(os.environ, LD_PRELOAD=sys.argv[1], QUOIN_VERBOSE="1")
    child = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True)
    assert child.returncode == 0, child.stderr[-2000:]
    for routine in ("SGEQRF", "DGEQRF", "SORGQR", "DORGQR", "SORMQR", "DORMQR", "SGELS", "DGELS", "DCOPY"):
        lines = [line for line in child.stderr.splitlines() if line.startswith(f"quoin: {routine} ")]
        assert any("passed on" not in line for line in lines), f"{routine} was not intercepted"
    environment.pop("LD_PRELOAD")
    child = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True)
    assert "quoin:" not in child.stderr, "something was intercepted without the library"


main()
