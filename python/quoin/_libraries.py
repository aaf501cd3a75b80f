"""Loads cuBLAS and cuSOLVER for an extension module that is not linked with them, as a wheel's is not.

Where one is missing the package works on the host; `_core` names it when a GPU is to be used.
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
    """Of PyPI's packages nvidia-*, which PyTorch and JAX use too; of the system; of the toolkit."""
    for folder in dict.fromkeys([*sys.path, sysconfig.get_path("purelib")]):
        yield from map(str, pathlib.Path(folder).glob(f"nvidia/*/lib/{soname}"))
    yield soname
    for folder in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if folder:
            yield f"{folder}/lib64/{soname}"


def _load(soname: str, mode: int) -> str:
    """The name that was loaded: as the process has it, or one of the candidates; empty where there is none."""
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
    """The name by which NCCL can be loaded; empty where there is none."""
    return _load("libnccl.so.2", ctypes.RTLD_LOCAL)


for _soname in SONAMES:
    _load(_soname, ctypes.RTLD_GLOBAL)  # global symbols, among which the dynamic loader finds those of `_core`
