"""Times of QR, least squares and SVD by Quoin, NumPy, SciPy and, where installed, PyTorch; one process, turns.

    python python/benchmarks/compare.py [MxN | COUNTxMxN ...] [--op qr,lstsq,svd] [--dtype float32,float64] [--repeat 7]
    python python/benchmarks/compare.py --readme            the table of README.md, in Markdown
    python python/benchmarks/compare.py --device cuda [MxN ...]

Each library gets its plain call: Q and R, x of min ‖A x − b‖, thin U, S and Vh. A dash stands where a library takes no
stack of matrices. On a GPU quoin.qr and torch.linalg.qr take the same tensors, in C order as PyTorch makes them; times
are between two synchronisations of the device. The column F is quoin.qr of the same matrix in Fortran order.
"""

import argparse
import statistics
import time

import numpy as np

import quoin

SHAPES = {"cpu": ["3x3", "32x32", "100x100", "1000x1000", "8192x256", "110592x100"],
          "cuda": ["100x100", "1000x1000", "8192x256", "110592x100", "1000000x192"],
          "readme": ["1000x10", "100000x50", "1000000x20", "2000x2000", "100000x3x3", "4096x32x32"]}


def contenders_on_the_host(operation):
    import scipy.linalg

    yield "quoin", {"qr": quoin.qr, "lstsq": lambda A, b: quoin.lstsq(A, b).x, "svd": quoin.svd}[operation]
    yield "numpy", {"qr": np.linalg.qr,
                    "lstsq": lambda A, b: np.linalg.lstsq(A, b, rcond=None),
                    "svd": lambda A: np.linalg.svd(A, full_matrices=False)}[operation]
    yield "scipy", {"qr": lambda A: scipy.linalg.qr(A, mode="economic"),
                    "lstsq": scipy.linalg.lstsq,
                    "svd": lambda A: scipy.linalg.svd(A, full_matrices=False)}[operation]
    try:
        import torch
    except ImportError:
        return
    of = {"qr": torch.linalg.qr, "lstsq": torch.linalg.lstsq, "svd": lambda A: torch.linalg.svd(A, full_matrices=False)}[operation]
    yield "torch", lambda *arrays: of(*map(torch.from_numpy, arrays))


def contenders_on_a_gpu(operation):
    import torch

    yield "quoin", quoin.qr
    yield "quoin F", lambda A: quoin.qr(A.fortran)
    yield "torch", torch.linalg.qr


def operands(rng, operation, shape, dtype, device):
    if device == "cpu":
        A = rng.standard_normal(shape).astype(dtype)
        return (A, A.sum(-1, keepdims=A.ndim > 2)) if operation == "lstsq" else (A,)
    import torch

    A = torch.randn(shape, dtype=getattr(torch, dtype), device=device)
    A.fortran = A.mT.contiguous().mT
    return (A,)


def measured(function, arrays, wait, calls):
    wait()
    start = time.perf_counter()
    for _ in range(calls):
        function(*arrays)
    wait()
    return (time.perf_counter() - start) / calls


def medians(functions, arrays, wait, repeat):
    """The median time of each function in seconds, or None where it refuses the arrays."""
    times = {name: [] for name in functions}
    calls = 1
    for name, function in functions.items():
        try:
            function(*arrays)
        except (ValueError, np.linalg.LinAlgError):
            del times[name]
        else:
            if name == "quoin":
                calls = max(1, int(0.01 / measured(function, arrays, wait, 1)))
    for _ in range(repeat):
        for name, mine in times.items():
            mine.append(measured(functions[name], arrays, wait, calls))
    return {name: statistics.median(times[name]) if name in times else None for name in functions}


def shown(seconds):
    value, unit = (1e6 * seconds, "µs") if seconds < 1e-3 else (1e3 * seconds, "ms") if seconds < 1 else (seconds, "s")
    return f"{value:#.3g}".rstrip(".") + f" {unit}"


def readme(measure):
    """Prints a row for each shape: Quoin's time, and how many times longer the other libraries take."""
    print("| float64 | QR | least squares | SVD |\n|---|---|---|---|")
    for shape in SHAPES["readme"]:
        cells = []
        for operation in ("qr", "lstsq", "svd"):
            ours, *others = measure(operation, shape, "float64").values()
            ratios = (other and other / ours for other in others)
            cells.append(shown(ours) + ": " + ", ".join(f"{ratio:.{ratio < 10:d}f}" if ratio else "—" for ratio in ratios))
        sizes = (size if len(size) < 5 else f"{int(size):,}".replace(",", " ") for size in shape.split("x"))
        print(f"| {' × '.join(sizes)} | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*")
    parser.add_argument("--op", default="qr", help="qr, lstsq and svd, separated by commas: qr")
    parser.add_argument("--dtype", default="float64,float32")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--readme", action="store_true")
    arguments = parser.parse_args()

    if arguments.device == "cpu":
        contenders, reference, wait = contenders_on_the_host, "numpy", lambda: None
        where = f"{quoin.info()['blas']}; {quoin.info()['threads']} threads"
    else:
        import torch

        contenders, reference, wait = contenders_on_a_gpu, "torch", torch.cuda.synchronize
        where = f"{quoin.info()['gpus'][0]}; PyTorch {torch.__version__}"
    rng = np.random.default_rng(0)

    def measure(operation, shape, dtype):
        arrays = operands(rng, operation, [int(size) for size in shape.split("x")], dtype, arguments.device)
        return medians(dict(contenders(operation)), arrays, wait, arguments.repeat)

    if arguments.readme:
        return readme(measure)
    print(f"{where}; medians of {arguments.repeat}, in microseconds")
    for operation in arguments.op.split(","):
        names, ratio = [name for name, _ in contenders(operation)], f"{reference}/quoin"
        print(f"{operation:>12} {'dtype':>8} " + " ".join(f"{name:>12}" for name in names) + f" {ratio:>12}")
        for dtype in arguments.dtype.split(","):
            for shape in arguments.shapes or SHAPES[arguments.device]:
                times = measure(operation, shape, dtype)
                cells = (f"{1e6 * seconds:12.1f}" if seconds else f"{'—':>12}" for seconds in times.values())
                against = times[reference] and times[reference] / times["quoin"]
                print(f"{shape:>12} {dtype:>8} " + " ".join(cells) + (f" {against:12.2f}" if against else ""))


if __name__ == "__main__":
    main()
