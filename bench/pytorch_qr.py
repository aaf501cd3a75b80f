#!/usr/bin/env python3
"""Times PyTorch's QR on the GPU for the cases of a results file and adds its rows to the file.

    python3 bench/pytorch_qr.py bench/results/h100_table1.csv ...

thin-qr: torch.linalg.qr(A); r-only: torch.linalg.qr(A, mode="r"); geqrf and factor: torch.geqrf(A). A is a stack where
the file has batches. PyTorch returns new tensors and copies A where it must, which counts. Events around the call, the
median of the runs of half a second (3 to 30) after two. Quoin's columns are those that the file holds.
"""

import argparse
import statistics
import sys

import bench_csv


def pytorch_rows(rows, seconds_of):
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


def seconds_on_gpu(shape, dtype, op):
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="results of quoin bench as CSV, to which rows are added")
    arguments = parser.parse_args()
    import torch

    for path in arguments.files:
        rows = pytorch_rows(bench_csv.read(path), seconds_on_gpu)
        bench_csv.append(path, rows, f"pytorch: {torch.__version__}")
