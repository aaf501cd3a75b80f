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


def _load(soname: str) -> None:
    """With global symbols, among which the dynamic loader finds those of `_core`."""
    try:
        ctypes.CDLL(soname, ctypes.RTLD_GLOBAL | os.RTLD_NOLOAD)  # the process has it
        return
    except OSError:
        pass
    for path in _candidates(soname):
        try:
            ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
            return
        except OSError:
            pass


def nccl() -> str:
    """The name by which NCCL can be loaded: as the process has it, or one of the candidates; empty where there is none."""
    soname = "libnccl.so.2"
    try:
        ctypes.CDLL(soname, os.RTLD_NOLOAD)  # PyTorch's, JAX's or CuPy's
        return soname
    except OSError:
        pass
    for path in _candidates(soname):
        try:
            ctypes.CDLL(path)
            return path
        except OSError:
            pass
    return ""


for _soname in SONAMES:
    _load(_soname)
