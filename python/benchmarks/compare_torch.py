"""Times quoin.torch and the other ways to QR in deep learning: torch.linalg.qr, streams of it, Muon's Newton-Schulz
steps.

    python python/benchmarks/compare_torch.py --device cuda --csv FILE         the table of docs/deep_learning.md
    python python/benchmarks/compare_torch.py --divide 32                      the same of small matrices, on a CPU

float32, random normal matrices. Prints a table in Markdown: the operation, the stack of matrices, who computes it, the
median and the least time, the largest ‖I − QᵀQ‖ (Frobenius) of the stack, and how often a call waits for a stream.

- Times are between two CUDA events, with nothing else on the GPU, after --warm-up calls; the contenders take turns. A
  call's launches count, since the first event is recorded on an idle GPU.
- "in a loop" calls torch.linalg.qr for each matrix; "4 streams" spreads these calls over 4 streams from one thread, "4
  threads" from a thread for each stream. "graph" replays a CUDA graph of the call.
- "all" is the three stacks of factors one after the other, as an optimizer's step has them.
- "SOAP" is Q := orthonormalize(P Q), P being symmetric and positive definite, the refresh of SOAP's bases (Vyas et al.
  2024).
- "override" times PyTorch's own operators, before and within quoin.torch.override(), for shapes that it serves.
- "Newton-Schulz" is Muon's (Jordan et al. 2024): five steps in bfloat16, whose result is orthonormal only roughly.
- Waits are the profiler's count of cudaStreamSynchronize and cudaEventSynchronize in the steady state, per call.
  quoin.qr, which waits for its check of the input, is there to show that the profiler sees Quoin's calls.
"""

import argparse
import concurrent.futures
import csv
import statistics
import sys
import time

import torch

import quoin
import quoin.torch

FACTORS = [(24, 1024, 1024), (8, 2048, 2048), (4, 4096, 4096)]
TALL = [(8192, 1024), (16384, 2048)]
OVERRIDDEN = {
    "torch.linalg.qr": [(10_000, 3, 3), (1000, 32, 32), (24, 256, 256), (1000, 10), (5000, 50), (100_000, 50), (400, 400), (2000, 2000)],
    "torch.linalg.qr, mode r": [(1000, 10), (100_000, 50), (400, 400)],
    "torch.linalg.lstsq": [(64, 500, 20), (5000, 50), (100_000, 50)],
    "torch.geqrf": [(1000, 32, 32), (5000, 50), (400, 400), (2000, 2000)],
    "torch.linalg.householder_product": [(5000, 50), (400, 400)],
    "torch.ormqr": [(5000, 50), (400, 400)],
}


def newton_schulz(G, steps=5):
    """Muon's orthogonalisation of a tall G: X := a X + X (b XᵀX + c (XᵀX)²)."""
    a, b, c = 3.4445, -4.7750, 2.0315
    X = G.bfloat16().mT
    X = X / (X.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        A = X @ X.mT
        X = a * X + (b * A + c * A @ A) @ X
    return X.mT


def muons(A):
    """The name and the function: compiled where that works, on a GPU."""
    if not A.is_cuda:
        return "Newton-Schulz, eager", newton_schulz
    try:
        compiled = torch.compile(newton_schulz, fullgraph=True, dynamic=False)
        compiled(A)
        return "Newton-Schulz, compiled", compiled
    except Exception as failure:
        print(f"torch.compile failed, so Newton-Schulz is eager: {type(failure).__name__}: {str(failure).splitlines()[0]}", file=sys.stderr)
        return "Newton-Schulz, eager", newton_schulz


def in_a_loop(stacks):
    return [torch.linalg.qr(A) for stack in stacks for A in stack]


class Streams:
    """torch.linalg.qr of the matrices over streams in turn, the largest first; from one thread, or from one thread for
    each stream."""

    def __init__(self, streams, threads):
        self.streams = [torch.cuda.Stream() for _ in range(streams)]
        self.pool = concurrent.futures.ThreadPoolExecutor(streams) if threads else None

    def of(self, stream, matrices):
        with torch.cuda.stream(stream):
            return [torch.linalg.qr(A) for A in matrices]

    def __call__(self, stacks):
        matrices = sorted((A for stack in stacks for A in stack), key=torch.numel, reverse=True)
        current, count = torch.cuda.current_stream(), len(self.streams)
        for stream in self.streams:
            stream.wait_stream(current)
        parts = [(stream, matrices[i::count]) for i, stream in enumerate(self.streams)]
        if self.pool:
            results = [QR for part in self.pool.map(lambda part: self.of(*part), parts) for QR in part]
        else:
            results = [QR for i, A in enumerate(matrices) for QR in self.of(self.streams[i % count], [A])]
        for stream in self.streams:
            current.wait_stream(stream)
        return results


def overridden(name, A):
    """A function of [A] that calls PyTorch's operator `name`, with what else it needs made before."""
    a, tau = torch.geqrf(A) if "ormqr" in name or "product" in name else (None, None)
    return {
        "torch.linalg.qr": lambda _: torch.linalg.qr(A),
        "torch.linalg.qr, mode r": lambda _: torch.linalg.qr(A, "r"),
        "torch.linalg.lstsq": lambda _: torch.linalg.lstsq(A, A[..., :1]),
        "torch.geqrf": lambda _: torch.geqrf(A),
        "torch.linalg.householder_product": lambda _: torch.linalg.householder_product(a, tau),
        "torch.ormqr": lambda _: torch.ormqr(a, tau, A),
    }[name]


def override_contenders(name, A):
    function = overridden(name, A)

    def within(stacks):
        with quoin.torch.override():
            return function(stacks)

    yield name, function
    yield name + " within override()", within


def captured(function, stacks):
    """The replay of a CUDA graph of function(stacks)."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            function(stacks)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        results = function(stacks)

    def replay(_):
        graph.replay()
        return results

    return replay


def each(function):
    return lambda stacks: [function(A) for A in stacks]


def contenders(operation, stacks, options):
    """Pairs of a name and a function of the stacks, which gives Q or (Q, ...) of each stack or matrix."""
    cuda = options.device == "cuda"
    yield "quoin.torch.qr", each(quoin.torch.qr)
    yield "quoin.torch.orthonormalize", each(quoin.torch.orthonormalize)
    if cuda:
        yield "quoin.qr, which checks its input", each(quoin.qr)
    yield "torch.linalg.qr", each(torch.linalg.qr)
    if operation == "tall":
        name, function = muons(stacks[0])
        yield name, each(function)
    else:
        yield "torch.linalg.qr in a loop", in_a_loop
        for streams in options.streams if cuda else []:
            yield f"torch.linalg.qr, {streams} streams", Streams(streams, threads=False)
            yield f"torch.linalg.qr, {streams} threads", Streams(streams, threads=True)


def soap_contenders(stacks):
    """Yields (name, function) for stacks of pairs P, Q."""
    yield "quoin.torch.orthonormalize(P @ Q)", each(lambda PQ: quoin.torch.orthonormalize(PQ[0] @ PQ[1]))
    yield "torch.linalg.qr(P @ Q)", each(lambda PQ: torch.linalg.qr(PQ[0] @ PQ[1]))
    yield "P @ Q alone", each(lambda PQ: PQ[0] @ PQ[1])


def graph_contenders(stacks):
    for function in (quoin.torch.qr, quoin.torch.orthonormalize):
        try:
            yield f"quoin.torch.{function.__name__}, graph", captured(each(function), stacks)
        except RuntimeError as failure:
            print(f"no CUDA graph of {function.__name__} of {shown(stacks)}: {failure}", file=sys.stderr)


def departure(results):
    """The largest ‖I − QᵀQ‖, in float64."""
    if not isinstance(results, torch.Tensor):
        if isinstance(results, tuple):
            return departure(results[0])
        return max(map(departure, results))
    Qs = (Q.double() for Q in results.reshape(-1, *results.shape[-2:]))
    return max(torch.linalg.matrix_norm(Q.mT @ Q - torch.eye(Q.shape[-1], dtype=Q.dtype, device=Q.device)).item() for Q in Qs)


def milliseconds(function, stacks, device):
    if device == "cpu":
        start = time.perf_counter()
        function(stacks)
        return 1e3 * (time.perf_counter() - start)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    function(stacks)
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def waits(function, stacks, calls=3):
    """How often a call makes the host wait for a stream or an event."""
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as trace:
        for _ in range(calls):
            function(stacks)
    names = ("cudaStreamSynchronize", "cudaEventSynchronize", "cuStreamSynchronize", "cuEventSynchronize")
    return sum(event.count for event in trace.key_averages() if event.key in names) / calls


def shown(stacks):
    return " + ".join((f"{A.shape[0]} × " if A.dim() == 3 else "") + f"{A.shape[-2]}×{A.shape[-1]}" for A in stacks)


def measured(operation, name, stacks, functions, options):
    """Rows of the table, in the order of `functions`, a generator: each one is warm before the next one is made."""
    contenders, errors, counts = [], [], []
    for who, function in functions:
        for _ in range(options.warm_up):
            function(stacks)
        contenders.append((who, function))
        errors.append("" if who.endswith("alone") or operation == "override" else f"{departure(function(stacks)):.1e}")
        counts.append(f"{waits(function, stacks):.3g}" if options.device == "cuda" and options.waits else "")
    times = [[] for _ in contenders]
    for _ in range(options.repeat):
        for (_, function), mine in zip(contenders, times):
            mine.append(milliseconds(function, stacks, options.device))
    for (who, _), mine, error, count in zip(contenders, times, errors, counts):
        yield [operation, name, who, f"{statistics.median(mine):.4g}", f"{min(mine):.4g}", error, count]


def random(shape, device):
    return torch.randn(shape, dtype=torch.float32, device=device)


def bases(A):
    """P, whose eigenvalues fall from 1 to 1e-4 in a random basis, and Q, which is close to the basis, as in SOAP."""
    n = A.shape[-1]
    Q = torch.linalg.qr(A).Q
    P = (Q * torch.logspace(0, -4, n, device=A.device)) @ Q.mT
    return P, torch.linalg.qr(Q + 0.01 / n**0.5 * torch.randn_like(Q)).Q


def cases(options):
    """Operation, stack's name, stacks, contenders."""
    torch.manual_seed(0)
    factors, tall = ([random((*batch, m // options.divide, n // options.divide), options.device) for *batch, m, n in shapes]
                     for shapes in (FACTORS, TALL))
    pairs = list(map(bases, factors))
    names = [*(shown([A]) for A in factors), "all"]
    lists = [*([A] for A in factors), factors]
    for name, stacks in zip(names, lists):
        yield "factors", name, stacks, contenders("factors", stacks, options)
    for A in tall:
        yield "tall", shown([A]), [A], contenders("tall", [A], options)
    for name, stacks in zip(names, [*([pair] for pair in pairs), pairs]):
        yield "SOAP", name, stacks, soap_contenders(stacks)
    for name, shapes in OVERRIDDEN.items():
        for shape in shapes:
            A = random([max(1, size // options.divide) for size in shape], options.device)
            yield "override", shown([A]), [A], override_contenders(name, A)
    # the last: PyTorch does not recover from every failure of a capture
    if options.device == "cuda" and options.graphs:
        for name, stacks in zip(names, lists):
            yield "graph", name, stacks, graph_contenders(stacks)


COLUMNS = ["operation", "matrices", "by", "median, ms", "least, ms", "‖I − QᵀQ‖", "waits per call"]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--divide", type=int, default=1, help="divides all sizes, to try the program: 1")
    parser.add_argument("--only", choices=["factors", "tall", "SOAP", "override", "graph"], help="one operation")
    parser.add_argument("--streams", default="4,8,16", help="numbers of streams for torch.linalg.qr: 4,8,16")
    parser.add_argument("--no-graphs", dest="graphs", action="store_false", help="without CUDA graphs")
    parser.add_argument("--no-waits", dest="waits", action="store_false", help="do not count waits: the profiler takes seconds a row")
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--csv", help="file for the same rows")
    options = parser.parse_args(arguments)
    options.streams = [int(count) for count in options.streams.split(",")]
    where = torch.cuda.get_device_name() if options.device == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    about = f"{where}; PyTorch {torch.__version__}, Quoin {quoin.__version__}; float32, median and least of {options.repeat} by turns"
    print(about, "\n", flush=True)
    print("| " + " | ".join(COLUMNS) + " |")
    print("|---" * len(COLUMNS) + "|")
    rows = []
    with torch.no_grad():
        for operation, name, stacks, functions in cases(options):
            for row in measured(operation, name, stacks, functions, options) if options.only in (None, operation) else []:
                print("| " + " | ".join(row) + " |", flush=True)
                rows.append(row)
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            print(f"# {about}", file=file)
            csv.writer(file).writerows([["operation", "matrices", "by", "median_ms", "least_ms", "departure", "waits"], *rows])
    return rows


if __name__ == "__main__":
    sys.exit(not main())
