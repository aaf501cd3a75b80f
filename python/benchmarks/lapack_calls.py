"""Times QR and least squares of NumPy and SciPy, least of 7 runs, to be compared with and without Quoin's drop-in.

    python python/benchmarks/lapack_calls.py [M N]
    python -m quoin.lapack python/benchmarks/lapack_calls.py [M N]
"""

import sys
import time

import numpy as np
import scipy.linalg

m, n = map(int, sys.argv[1:] or (200_000, 64))
random = np.random.default_rng(1)
A, b = random.standard_normal((m, n)), random.standard_normal(m)
print(f"{m} x {n}, NumPy {np.__version__}, SciPy {scipy.__version__}")
for name, call in {
    "numpy.linalg.qr": lambda: np.linalg.qr(A),
    "scipy.linalg.qr, economic": lambda: scipy.linalg.qr(A, mode="economic"),
    "numpy.linalg.lstsq": lambda: np.linalg.lstsq(A, b, rcond=None),
}.items():
    times = []
    for _ in range(7):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    print(f"{name:28}{min(times):8.3f} s")
