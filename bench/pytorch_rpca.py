#!/usr/bin/env python3
"""Runs robust PCA written in PyTorch on the GPU and adds its rows to a file of `quoin bench paper rpca --csv FILE`.

    python3 bench/pytorch_rpca.py FILE

Inexact ALM (Lin, Chen and Ma 2010) as one would write it, on a matrix of the same size: a textured background whose
brightness drifts, noise, moving squares. Route qr: torch.linalg.qr(X) and the svd of R; svd: torch.linalg.svd(X).
Seconds of wall time to the tolerance, after a run of three iterations.
"""

import argparse
import sys
import time

import bench_csv

TOLERANCES = ("1e-3", "1e-5")


def pytorch_rows(rows, pursuit_of):
    """One row a route for the size that the file holds; `pursuit_of(rows, cols, route)` returns the columns
    measured."""
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


def pursue(M, route, torch, rho=1.5, most_iterations=100):
    """Columns of the file for one pursuit of M to the least of the tolerances."""
    start = time.perf_counter()
    m, n = M.shape
    lam = max(m, n) ** -0.5
    norm = torch.linalg.norm(M)
    norm2 = torch.linalg.matrix_norm(M, 2)
    Y = M / torch.maximum(norm2, M.abs().max() / lam)
    mu = (1.25 / norm2).item()
    most_mu = 1e7 * mu
    L = torch.zeros_like(M)
    reached = {}
    for iteration in range(1, most_iterations + 1):
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
        mu = min(rho * mu, most_mu)
    seconds = time.perf_counter() - start
    objective = (shrunk.sum() + lam * S.abs().sum()).item()
    found = {"iterations": iteration, "iterations_per_second": f"{iteration / seconds:.6g}",
             "residual": f"{residual:.6g}", "rank": rank, "objective": f"{objective:.6g}"}
    found.update({f"seconds_to_{t}": f"{reached[t]:.6g}" if t in reached else "" for t in TOLERANCES})
    return found


def pursuit_on_gpu(m, n, route):
    import torch

    M = video(m, n, torch)
    pursue(M, route, torch, most_iterations=3)
    torch.cuda.synchronize()
    found = pursue(M, route, torch)
    print(f"pytorch, {route}: {found['iterations']} iterations, {found['iterations_per_second']} a second",
          file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="results of quoin bench paper rpca as CSV, to which rows are added")
    path = parser.parse_args().file
    import torch

    rows = pytorch_rows(bench_csv.read(path), pursuit_on_gpu)
    bench_csv.append(path, rows, f"pytorch: {torch.__version__}")
