"""Times of quoin.qr beside numpy.linalg.qr, scipy.linalg.qr and, where installed, torch.linalg.qr; one process, turns.

    python python/benchmarks/compare.py [MxN ...] [--dtype float32,float64] [--repeat 7]
"""

import argparse
import statistics
import time

import numpy as np
import scipy.linalg

import quoin

SHAPES = ["3x3", "32x32", "100x100", "1000x1000", "8192x256", "110592x100"]


def contenders():
    yield "quoin", quoin.qr
    yield "numpy", np.linalg.qr
    yield "scipy", lambda A: scipy.linalg.qr(A, mode="economic")
    try:
        import torch
    except ImportError:
        return
    yield "torch", lambda A: torch.linalg.qr(torch.from_numpy(A))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shapes", nargs="*", default=SHAPES)
    parser.add_argument("--dtype", default="float64,float32")
    parser.add_argument("--repeat", type=int, default=7)
    arguments = parser.parse_args()

    functions = dict(contenders())
    print(f"{quoin.info()['blas']}; {quoin.info()['threads']} threads; medians of {arguments.repeat}, in microseconds")
    print(f"{'shape':>12} {'dtype':>8} " + " ".join(f"{name:>12}" for name in functions) + f" {'numpy/quoin':>12}")
    rng = np.random.default_rng(0)
    for dtype in arguments.dtype.split(","):
        for shape in arguments.shapes:
            A = rng.standard_normal([int(size) for size in shape.split("x")]).astype(dtype)
            start = time.perf_counter()
            functions["quoin"](A)
            calls = max(1, int(0.01 / (time.perf_counter() - start)))
            times = {name: [] for name in functions}
            for _ in range(arguments.repeat):
                for name, function in functions.items():
                    function(A)
                    start = time.perf_counter()
                    for _ in range(calls):
                        function(A)
                    times[name].append((time.perf_counter() - start) / calls)
            medians = {name: 1e6 * statistics.median(values) for name, values in times.items()}
            print(f"{shape:>12} {dtype:>8} " + " ".join(f"{medians[name]:12.1f}" for name in functions)
                  + f" {medians['numpy'] / medians['quoin']:12.2f}")


if __name__ == "__main__":
    main()
