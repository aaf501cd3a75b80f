"""Times QR with column pivoting against LAPACK's ?geqp3 through SciPy, by turns in one process, and prints CSV.

    PYTHONPATH=build/python python3 bench/rivals/pivoted_qr.py [SHAPE]... [--dtype f64] [--rank K] [--repeat 3]

R alone and the pivots, of matrices of independent normal numbers; with --rank Quoin stops there. `worst` is the largest
ratio of |r_kk| of LAPACK to |r_kk| of Quoin: 1 is as good a choice of pivots. OPENBLAS_NUM_THREADS and
OPENBLAS_CORETYPE hold for both.
"""

import argparse
import os
import time

import numpy as np
import scipy.linalg

import quoin


def seconds(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shapes", nargs="*", default=["1000x1000", "4000x4000", "100000x500"])
    parser.add_argument("--dtype", choices=["f32", "f64"], default="f64")
    parser.add_argument("--rank", type=int, default=None)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=None)
    given = parser.parse_args()
    print(f"# quoin {quoin.__version__}, SciPy {scipy.__version__}, {os.cpu_count()} cores")
    print("rows,cols,dtype,rank,seconds,geqp3_seconds,ratio,worst")
    for shape in given.shapes:
        m, n = map(int, shape.split("x"))
        A = np.random.default_rng(0).standard_normal((n, m)).astype({"f32": "f4", "f64": "f8"}[given.dtype]).T
        ours, theirs = [], []
        for _ in range(given.repeat):
            took, (R, _) = seconds(lambda: quoin.qr(A, "r", threads=given.threads, pivoting=True, rank=given.rank))
            ours.append(took)
            took, (reference, _) = seconds(lambda: scipy.linalg.qr(A, mode="r", pivoting=True, check_finite=False))
            theirs.append(took)
        worst = np.max(np.abs(np.diagonal(reference)[: len(R)]) / np.abs(np.diagonal(R)))
        t, t_lapack = np.median(ours), np.median(theirs)
        print(f"{m},{n},{given.dtype},{len(R)},{t:.4g},{t_lapack:.4g},{t_lapack / t:.3g},{worst:.3g}", flush=True)


if __name__ == "__main__":
    main()
