#!/usr/bin/env python3
"""Times PyTorch on the GPU for the cases of results files, and adds its rows to them.

    python3 bench/rivals/pytorch.py bench/results/h100_table1.csv ...

QR, in files of `quoin bench`: thin-qr: torch.linalg.qr(A); r-only: torch.linalg.qr(A, mode="r"); geqrf and factor:
torch.geqrf(A). A is a stack where the file has batches. PyTorch returns new tensors and copies A where it must; that
time counts. Events around the call, the median of the runs of half a second (3 to 30) after two.

Robust PCA, in files of `quoin bench paper caqr table2`: inexact ALM (Lin, Chen and Ma 2010) as one would write it, on a
matrix of the same size: a textured background whose brightness drifts, noise, moving squares. Route qr:
torch.linalg.qr(X) and the svd of R; svd: torch.linalg.svd(X). Seconds of wall time to the tolerance, after a run of
three iterations.
"""

import argparse
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import bench_csv

TOLERANCES = ("1e-3", "1e-5")


def rows_of_qr(rows, seconds_of):
    """One row against "pytorch" for every case of Quoin; `seconds_of(shape, dtype, op)`, None: not measured."""
    added, seen, times = [], set(), {}
    for row in rows:
        shape, dtype, op = tuple(int(row[size]) for size in ("count", "rows", "cols") if size in row), row["dtype"], row["op"]
        case = (shape, dtype, op, row.get("method"))
        if case in seen or not row["seconds"]:
            continue
        seen.add(case)
        run = (shape, dtype, "geqrf" if op == "factor" else op)
        if run not in times:
            times[run] = seconds_of(*run)
        if times[run] is None:
            continue
        new = {"reference": "pytorch", "reference_seconds": f"{times[run]:.6g}",
               "reference_gflops": f"{1e-9 * bench_csv.flops(row) / times[run]:.6g}",
               "ratio": f"{times[run] / float(row['seconds']):.6g}", "required_ratio": ""}
        added.append({column: new.get(column, value) for column, value in row.items()})
    return added


def qr_on_gpu(shape, dtype, op):
    import torch

    name = "x".join(map(str, shape))
    try:
        A = torch.randn(shape, device="cuda", dtype=torch.float32 if dtype == "f32" else torch.float64)
        run = {"thin-qr": lambda: torch.linalg.qr(A), "r-only": lambda: torch.linalg.qr(A, mode="r"),
               "geqrf": lambda: torch.geqrf(A)}[op]
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

        def seconds():
            torch.cuda.synchronize()
            begin.record()
            run()
            end.record()
            end.synchronize()
            return 1e-3 * begin.elapsed_time(end)

        seconds()
        warm_up = seconds()
        times = [seconds() for _ in range(min(30, max(3, round(0.5 / max(warm_up, 1e-3)))))]
        print(f"{name} {dtype} {op}: pytorch {statistics.median(times):.4g} s", file=sys.stderr, flush=True)
        return statistics.median(times)
    except torch.cuda.OutOfMemoryError:
        print(f"{name} {dtype} {op}: pytorch skipped, out of memory", file=sys.stderr, flush=True)
        return None
    finally:
        torch.cuda.empty_cache()


def rows_of_rpca(rows, pursuit_of):
    """Returns a row for each route at the file's size; `pursuit_of(rows, cols, route)` returns the columns measured."""
    size = {(int(row["rows"]), int(row["cols"])) for row in rows}
    added = []
    for m, n in sorted(size):
        for route in ("qr", "svd"):
            added.append(dict(rows=m, cols=n, dtype="f32", code="pytorch", method="alm", route=route,
                              **pursuit_of(m, n, route)))
    return added


def video(m, n, torch):
    """A camera's n frames of m pixels in [0, 1]."""
    generator = torch.Generator(device="cuda").manual_seed(1)
    pixel = torch.arange(m, device="cuda", dtype=torch.float32)
    wall = 0.5 + 0.2 * torch.sin(0.013 * pixel) + 0.1 * torch.rand(m, generator=generator, device="cuda")
    M = torch.empty(m, n, device="cuda")
    for t in range(n):
        frame = wall * (1 + 0.05 * torch.sin(torch.tensor(0.05 * t)).item())
        frame += 0.01 * torch.randn(m, generator=generator, device="cuda")
        for k in range(4):
            left = (k * m // 4 + (k + 1) * t * m // 400) % m
            frame[left:left + m // 80] = 0.9 - 0.2 * k
        M[:, t] = (255 * frame.clamp(0, 1)).round() / 255
    return M


def pursue(M, route, torch, rho=1.5, max_iterations=100):
    """Columns of the file for one pursuit of M to the least of the tolerances."""
    start = time.perf_counter()
    m, n = M.shape
    lam = max(m, n) ** -0.5
    norm = torch.linalg.norm(M)
    norm2 = torch.linalg.matrix_norm(M, 2)
    Y = M / torch.maximum(norm2, M.abs().max() / lam)
    mu = (1.25 / norm2).item()
    max_mu = 1e7 * mu
    L = torch.zeros_like(M)
    reached = {}
    for iteration in range(1, max_iterations + 1):
        R = M - L + Y / mu
        S = torch.sign(R) * torch.clamp(R.abs() - lam / mu, min=0)
        X = M - S + Y / mu
        if route == "qr":
            Q, R = torch.linalg.qr(X)
            U, s, Vh = torch.linalg.svd(R)
            U = Q @ U
        else:
            U, s, Vh = torch.linalg.svd(X, full_matrices=False)
        rank = int((s > 1 / mu).sum())
        shrunk = s[:rank] - 1 / mu
        L = (U[:, :rank] * shrunk) @ Vh[:rank]
        Z = M - L - S
        Y = Y + mu * Z
        residual = (torch.linalg.norm(Z) / norm).item()
        for tolerance in TOLERANCES:
            if residual <= float(tolerance):
                reached.setdefault(tolerance, time.perf_counter() - start)
        if residual <= float(TOLERANCES[-1]):
            break
        mu = min(rho * mu, max_mu)
    seconds = time.perf_counter() - start
    objective = (shrunk.sum() + lam * S.abs().sum()).item()
    found = {"iterations": iteration, "iterations_per_second": f"{iteration / seconds:.6g}",
             "residual": f"{residual:.6g}", "rank": rank, "objective": f"{objective:.6g}"}
    found.update({f"seconds_to_{t}": f"{reached[t]:.6g}" if t in reached else "" for t in TOLERANCES})
    return found


def rpca_on_gpu(m, n, route):
    import torch

    M = video(m, n, torch)
    pursue(M, route, torch, max_iterations=3)
    torch.cuda.synchronize()
    found = pursue(M, route, torch)
    print(f"pytorch, {route}: {found['iterations']} iterations, {found['iterations_per_second']} a second",
          file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="results of quoin bench as CSV, to which rows are added")
    arguments = parser.parse_args()
    import torch

    for path in arguments.files:
        rows = bench_csv.read(path)
        added = rows_of_rpca(rows, rpca_on_gpu) if "route" in rows[0] else rows_of_qr(rows, qr_on_gpu)
        bench_csv.append(path, added, f"pytorch: {torch.__version__}")
