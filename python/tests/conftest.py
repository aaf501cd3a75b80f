import os

# threads that spin, of quoin's OpenMP or of NumPy's OpenBLAS, take the core from each other
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# the built-in times choose the methods, whatever table this machine has
os.environ["QUOIN_TUNING"] = "off"

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(20110516)
