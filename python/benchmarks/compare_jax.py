"""Times quoin.jax and jax.numpy.linalg.qr on JAX's default device, float32: medians of calls, by turns.

python python/benchmarks/compare_jax.py
"""

import statistics
import time

import jax
import jax.numpy as jnp

import quoin.jax

CALLS = 7
STACKS = [(24, 1024, 1024), (8, 2048, 2048), (4, 4096, 4096)]
FUNCTIONS = {
    "quoin.jax.qr": jax.jit(quoin.jax.qr),
    "quoin.jax.orthonormalize": jax.jit(quoin.jax.orthonormalize),
    "jnp.linalg.qr": jax.jit(jnp.linalg.qr),
}


def seconds(function, A):
    start = time.perf_counter()
    jax.block_until_ready(function(A))
    return time.perf_counter() - start


print(jax.devices()[0].device_kind, "JAX", jax.__version__)
for shape in STACKS:
    A = jax.random.normal(jax.random.key(0), shape, jnp.float32)
    times = {name: [] for name in FUNCTIONS}
    for call in range(CALLS + 2):
        for name, function in FUNCTIONS.items():
            duration = seconds(function, A)
            if call >= 2:  # the first two compile and take memory
                times[name].append(duration)
    print("x".join(map(str, shape)), *(f"{name} {1e3 * statistics.median(t):.2f} ms" for name, t in times.items()), sep="  ")
