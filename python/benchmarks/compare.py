"""Times of quoin.qr, numpy.linalg.qr, scipy.linalg.qr and, where installed, torch.linalg.qr; one process, turns.

    python python/benchmarks/compare.py [MxN ...] [--dtype float32,float64] [--repeat 7]
    python python/benchmarks/compare.py --device cuda [MxN ...]

On a GPU quoin.qr and torch.linalg.qr take the same tensors, in C order as PyTorch makes them; times are between two
synchronisations of the device. The column F is quoin.qr of the same matrix in Fortran order.
"""

import argparse
import statistics
import time

import numpy as np

import quoin

SHAPES = {"cpu": ["3x3", "32x32", "100x100", "1000x1000", "8192x256", "110592x100"],
          "cuda": ["100x100", "1000x1000", "8192x256", "110592x100", "1000000x192"]}


def contenders_on_the_host():
    import scipy.linalg

    yield "quoin", quoin.qr
    yield "numpy", np.linalg.qr
    yield "scipy", lambda A: scipy.linalg.qr(A, mode="economic")
    try:
        import torch
    except ImportError:
        return
    yield "torch", lambda A: torch.linalg.qr(torch.from_numpy(A))


def contenders_on_a_gpu():
    import torch

    yield "quoin", quoin.qr
    yield "quoin F", lambda A: quoin.qr(A.fortran)
    yield "torch", torch.linalg.qr


def normal(rng, shape, dtype, device):
    if device == "cpu":
        return rng.standard_normal(shape).astype(dtype)
    import torch

    A = torch.randn(shape, dtype=getattr(torch, dtype), device=device)
    A.fortran = A.mT.contiguous().mT
    return A


def measured(function, A, wait, calls):
    wait()
    start = time.perf_counter()
    for _ in range(calls):
        function(A)
    wait()
    return (time.perf_counter() - start) / calls


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shapes", nargs="*")
    parser.add_argument("--dtype", default="float64,float32")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--device", choices=SHAPES, default="cpu")
    arguments = parser.parse_args()

    if arguments.device == "cpu":
        functions, reference, wait = dict(contenders_on_the_host()), "numpy", lambda: None
        where = f"{quoin.info()['blas']}; {quoin.info()['threads']} threads"
    else:
        import torch

        functions, reference, wait = dict(contenders_on_a_gpu()), "torch", torch.cuda.synchronize
        where = f"{quoin.info()['gpus'][0]}; PyTorch {torch.__version__}"
    print(f"{where}; medians of {arguments.repeat}, in microseconds")
    ratio = f"{reference}/quoin"
    print(f"{'shape':>12} {'dtype':>8} " + " ".join(f"{name:>12}" for name in functions) + f" {ratio:>12}")
    rng = np.random.default_rng(0)
    for dtype in arguments.dtype.split(","):
        for shape in arguments.shapes or SHAPES[arguments.device]:
            A = normal(rng, [int(size) for size in shape.split("x")], dtype, arguments.device)
            functions["quoin"](A)
            calls = max(1, int(0.01 / measured(functions["quoin"], A, wait, 1)))
            times = {name: [] for name in functions}
            for _ in range(arguments.repeat):
                for name, function in functions.items():
                    function(A)
                    times[name].append(measured(function, A, wait, calls))
            medians = {name: 1e6 * statistics.median(values) for name, values in times.items()}
            print(f"{shape:>12} {dtype:>8} " + " ".join(f"{medians[name]:12.1f}" for name in functions)
                  + f" {medians[reference] / medians['quoin']:12.2f}")


if __name__ == "__main__":
    main()
