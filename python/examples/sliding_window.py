"""Least squares in a sliding window of rows: the oldest row leaves, a new one comes, Q and R are updated.

    python python/examples/sliding_window.py

The coefficients drift, and the regression over the last 200 samples follows them. Each step is compared with a new
least-squares solution.
"""

import numpy as np
import quoin


def main(window: int = 200, n: int = 10, steps: int = 1000) -> None:
    random = np.random.default_rng(0)
    samples = random.standard_normal((window + steps, n))
    drift = 1 + 0.001 * np.arange(window + steps)[:, None]
    y = np.sum(samples * drift, axis=1) + 0.01 * random.standard_normal(window + steps)
    Q, R = quoin.qr(samples[:window])
    largest = 0.0
    for step in range(steps):
        Q, R = quoin.qr_delete(Q, R, 0)
        Q, R = quoin.qr_insert(Q, R, samples[window + step], window - 1)
        now = slice(step + 1, window + step + 1)
        x = np.linalg.solve(R, Q.T @ y[now])
        largest = max(largest, np.linalg.norm(x - quoin.lstsq(samples[now], y[now]).x))
    print("coefficients at the end", x.round(2))
    print(f"largest difference from a new solution {largest:.1e}")
    assert largest < 1e-11


if __name__ == "__main__":
    main()
