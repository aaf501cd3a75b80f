"""CSV of updates of Q and R by Quoin and by SciPy: medians of interleaved runs.

SciPy's updates use one core but for a QR of the new columns, where its BLAS must not wait for a second thread.

    export OMP_NUM_THREADS=2 OMP_PLACES=cores OMP_PROC_BIND=true OPENBLAS_NUM_THREADS=1 PYTHONPATH=build/python
    chrt -f 50 python3 bench/rivals/updates.py --rows 2000 --cols 500 --block 20
"""

import argparse
import time

import numpy as np
import quoin
import scipy.linalg


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--cols", type=int, default=500)
    parser.add_argument("--block", type=int, default=20, help="rows or columns of a change, and its rank")
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--dtype", choices=["f32", "f64"], default="f64")
    given = parser.parse_args()
    m, n, p = given.rows, given.cols, given.block
    random = np.random.default_rng(0)

    def normal(rows, cols):
        return np.asfortranarray(random.standard_normal((rows, cols)).astype({"f32": "f4", "f64": "f8"}[given.dtype]))

    Q, R = scipy.linalg.qr(normal(m, n), mode="economic")
    Q, R = np.asfortranarray(Q), np.asfortranarray(R)
    U, V, rows = normal(m, p), normal(n, p), normal(p, n)
    calls = {
        f"insert {p} columns at 0": ("qr_insert", U, 0, "col"),
        f"insert {p} columns at {n // 2}": ("qr_insert", U, n // 2, "col"),
        f"delete {p} columns at 0": ("qr_delete", 0, p, "col"),
        f"insert {p} rows": ("qr_insert", rows, m // 2, "row"),
        f"delete {p} rows": ("qr_delete", m // 2, p, "row"),
        f"update of rank {p}": ("qr_update", U, V),
    }
    print("rows,cols,dtype,operation,ms,ms_scipy,times_faster")
    for name, (function, *arguments) in calls.items():
        times = [
            [seconds(lambda: getattr(library, function)(Q, R, *arguments)) for library in (quoin, scipy.linalg)]
            for _ in range(given.repeat)
        ]
        ours, theirs = 1e3 * np.median(times, axis=0)
        print(f"{m},{n},{given.dtype},{name},{ours:.2f},{theirs:.1f},{theirs / ours:.2f}", flush=True)


if __name__ == "__main__":
    main()
