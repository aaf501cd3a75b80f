"""Times of quoin.dask and dask.array.linalg, by turns in one process.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python python/benchmarks/compare_dask.py [MxN] [--chunks 20] [--workers 2]
    [--repeat 5]
"""

import argparse
import time

import dask
import dask.array as da

import quoin.dask

CASES = {
    "Q and R": (lambda A, b: quoin.dask.qr(A), lambda A, b: da.linalg.qr(A)),
    "R": (lambda A, b: quoin.dask.qr(A, mode="r"), lambda A, b: da.linalg.qr(A)[1]),
    "S": (lambda A, b: quoin.dask.svd(A, compute_uv=False), lambda A, b: da.linalg.svd(A)[1]),
    "lstsq": (lambda A, b: quoin.dask.lstsq(A, b).x, lambda A, b: da.linalg.lstsq(A, b)[0]),
}


def seconds(call, A, b, workers):
    start = time.perf_counter()
    dask.compute(call(A, b), scheduler="threads", num_workers=workers)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", nargs="?", default="400000x64")
    parser.add_argument("--chunks", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    m, n = map(int, arguments.shape.split("x"))
    A = da.random.default_rng(1).standard_normal((m, n), chunks=(-(-m // arguments.chunks), n)).persist()
    b = A @ da.ones(n)
    print(f"Dask {dask.__version__}, {m}x{n} float64 in {A.numblocks[0]} chunks, {arguments.workers} workers; least of {arguments.repeat}")
    print(f"{'':>8} {'quoin.dask':>12} {'dask':>12} {'ratio':>6}")
    for name, calls in CASES.items():
        turns = [[seconds(call, A, b, arguments.workers) for call in calls] for _ in range(arguments.repeat)]
        ours, theirs = map(min, zip(*turns))
        print(f"{name:>8} {ours:10.3f} s {theirs:10.3f} s {theirs / ours:6.1f}")


if __name__ == "__main__":
    main()
