"""Compares |r_kk| of QR with column pivoting with the singular values, for LAPACK's ?geqp3 through SciPy and for Quoin.

    PYTHONPATH=build/python python3 bench/rivals/pivot_quality.py [--size 300] [--plot NAME]

Six classes of n×n matrices: Kahan's, devil's stairs, spikes, Gks, low rank plus noise, and graded ones. `worst` is the
largest factor between |r_kk| and σ_k for σ_k above the rounding errors. --plot writes NAME.svg and NAME.png.
"""

import argparse
import os
import sys

import numpy as np
import scipy
import scipy.linalg

import quoin

PIVOTS = ("greedy", "randomized", "strong")


def orthogonal(rng, n):
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


def with_values(rng, sigma):
    return orthogonal(rng, len(sigma)) * sigma @ orthogonal(rng, len(sigma))


def classes(n):
    rng = np.random.default_rng(0)
    x = np.arange(n) / n
    upper = np.triu(np.ones((n, n)), 1)
    spikes = orthogonal(rng, n)
    spikes[:: n // 8] *= 1000
    return {
        # columns that shrink a little, so that rounding errors do not decide
        "Kahan": np.sin(1.2) ** np.arange(n)[:, None] * (np.eye(n) - np.cos(1.2) * upper) * (1 - 1e-4 * x),
        "devil's stairs": with_values(rng, 10 ** (-12 * np.floor(10 * x) / 10)),
        "spikes": spikes,
        "Gks": (np.eye(n) - upper) / np.sqrt(np.arange(1, n + 1)),
        "low rank + noise": with_values(rng, np.where(x < 0.2, 1 - x, 1e-6)),
        "graded": with_values(rng, 10 ** (-12 * x)),
    }


def diagonals(A):
    found = {"geqp3": scipy.linalg.qr(A, mode="r", pivoting=True)[0]}
    found.update((kind, quoin.qr(A, "r", pivoting=kind)[0]) for kind in PIVOTS)
    return {name: np.abs(np.diagonal(R)) for name, R in found.items()}


def plot(results, name):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "plots"))
    from style import BLUE, GREEN, GREY, VERMILION, plt, save

    figure, grid = plt.subplots(2, 3, figsize=(11, 6), sharex=True, layout="constrained")
    for axes, (title, (sigma, found)) in zip(grid.flat, results.items()):
        k = np.flatnonzero(sigma > 10 * len(sigma) * np.finfo(float).eps / 2 * sigma[0])
        styles = zip((GREY, BLUE, GREEN, VERMILION), (5, 2.5, 0.8, 0.8))
        for (label, r), (colour, width) in zip(found.items(), styles):
            axes.semilogy(k + 1, r[k] / sigma[k], label=label, color=colour, lw=width)
        axes.set_title(title)
    for axes in grid[1]:
        axes.set_xlabel("k")
    for axes in grid[:, 0]:
        axes.set_ylabel("|r_kk| / σ_k")
    grid[0, 0].legend(frameon=False)
    save(figure, name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=300)
    parser.add_argument("--plot", metavar="NAME")
    given = parser.parse_args()
    results = {title: (np.linalg.svd(A, compute_uv=False), diagonals(A)) for title, A in classes(given.size).items()}
    print(f"# worst factors, {given.size} x {given.size} f64, quoin {quoin.__version__}, SciPy {scipy.__version__}")
    print("class", "geqp3", *PIVOTS, sep=",")
    for title, (sigma, found) in results.items():
        known = sigma > 10 * len(sigma) * np.finfo(float).eps / 2 * sigma[0]
        ratios = [r[known] / sigma[known] for r in found.values()]
        print(title, *(f"{max(ratio.max(), 1 / ratio.min()):.3g}" for ratio in ratios), sep=",")
    if given.plot:
        plot(results, given.plot)


if __name__ == "__main__":
    main()
