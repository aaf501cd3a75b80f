"""Loads cuBLAS and cuSOLVER for an extension module that is not linked with them, such as a wheel's.

If one is missing, the package works on the host, and `_core` names the missing one when a GPU is to be used.
"""

import ctypes
import os
import pathlib
import sys
import sysconfig
from collections.abc import Iterator

try:
    from ._sonames import SONAMES  # written by the build
except ImportError:
    SONAMES = ()


def _candidates(soname: str) -> Iterator[str]:
    """Yields paths to try: in PyPI's packages nvidia-*, which PyTorch and JAX use too, the system and the toolkit."""
    for folder in dict.fromkeys([*sys.path, sysconfig.get_path("purelib")]):
        yield from map(str, pathlib.Path(folder).glob(f"nvidia/*/lib/{soname}"))
    yield soname
    for folder in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if folder:
            yield f"{folder}/lib64/{soname}"


def _load(soname: str, mode: int) -> str:
    """Loads a library and returns its name: the one loaded in the process, else a candidate; empty if there is none."""
    try:
        ctypes.CDLL(soname, mode | os.RTLD_NOLOAD)  # PyTorch's, JAX's or CuPy's
        return soname
    except OSError:
        pass
    for path in _candidates(soname):
        try:
            ctypes.CDLL(path, mode)
            return path
        except OSError:
            pass
    return ""


def nccl() -> str:
    """Returns the name under which NCCL can be loaded, or an empty string if there is none."""
    return _load("libnccl.so.2", ctypes.RTLD_LOCAL)


# global, so that the dynamic loader finds the symbols that `_core` needs; empty names of missing libraries
LOADED = [_load(soname, ctypes.RTLD_GLOBAL) for soname in SONAMES]
