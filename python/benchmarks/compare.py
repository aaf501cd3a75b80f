"""Times of QR, least squares and SVD by Quoin, NumPy, SciPy and, where installed, PyTorch; one process, turns.

    python python/benchmarks/compare.py [MxN | COUNTxMxN ...] [--op qr,lstsq,svd] [--dtype float32,float64] [--repeat 7]
    python python/benchmarks/compare.py --readme [--device cuda]      the tables of README.md, in Markdown
    python python/benchmarks/compare.py --device cuda [MxN ...]

Each library gets its plain call: Q and R, x of min ‖A x − b‖, thin U, S and Vh. A dash stands where a library takes no
stack of matrices. On a GPU Quoin and PyTorch take the same tensors, in C order as PyTorch makes them; times are between
two synchronisations of the device. The column F is quoin.qr of the same matrix in Fortran order.
"""

import argparse
import statistics
import time

import numpy as np

import quoin

SHAPES = {"cpu": ["3x3", "32x32", "100x100", "1000x1000", "8192x256", "110592x100"],
          "cuda": ["100x100", "1000x1000", "8192x256", "110592x100", "1000000x192"],
          "readme": ["1000x10", "100000x50", "1000000x20", "2000x2000", "100000x3x3", "4096x32x32"]}


def of_quoin(operation):
    return {"qr": quoin.qr, "lstsq": lambda A, b: quoin.lstsq(A, b).x, "svd": quoin.svd}[operation]


def of_torch(operation):
    import torch

    return {"qr": torch.linalg.qr, "lstsq": torch.linalg.lstsq, "svd": lambda A: torch.linalg.svd(A, full_matrices=False)}[operation]


def contenders_on_the_host(operation):
    import scipy.linalg

    yield "quoin", of_quoin(operation)
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
    yield "torch", lambda *arrays: of_torch(operation)(*map(torch.from_numpy, arrays))


def contenders_on_a_gpu(operation):
    yield "quoin", of_quoin(operation)
    yield "torch", of_torch(operation)
    if operation == "qr":
        yield "quoin F", lambda A: quoin.qr(A.fortran)


def operands(rng, operation, shape, dtype, device):
    A = rng.standard_normal(shape).astype(dtype)
    if device == "cuda":
        import torch

        A = torch.from_numpy(A).to(device)
        A.fortran = A.mT.contiguous().mT
    return (A, A.sum(-1)[..., None] if device == "cuda" or A.ndim > 2 else A.sum(-1)) if operation == "lstsq" else (A,)


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
    calls = {}  # that take about 10 ms
    for name, function in functions.items():
        try:
            function(*arrays)
        except (ValueError, np.linalg.LinAlgError):
            del times[name]
        else:
            calls[name] = max(1, int(0.01 / measured(function, arrays, wait, 1)))
    for _ in range(repeat):
        for name, mine in times.items():
            mine.append(measured(functions[name], arrays, wait, calls[name]))
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
            times = measure(operation, shape, "float64")
            ours, *others = (times[name] for name in ("quoin", "numpy", "scipy", "torch") if name in times)
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
