"""Arrays in a GPU's memory, from PyTorch, CuPy, JAX or any other library that follows the array API standard."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core

_LEGACY_STREAM = 1  # the name that DLPack and CUDA give to the default stream
_NOTHING_TO_WAIT_FOR = -1  # DLPack's value for a consumer that works after the current stream anyway


class Arithmetic:
    """The functions of an array library.

    `xp` has them under NumPy's names; the methods are for differences of libraries.
    """

    xp: Any
    drops_rows = True  # finished rows leave the arrays; not in a library that compiles for every shape

    _nothing_to_do = contextlib.nullcontext()

    def current(self) -> Any:
        """Returns a context that makes the array's device current, for libraries that do not find it from the array."""
        return self._nothing_to_do

    def precise(self) -> Any:
        """Returns a context, on the array's device, that gives products the precision of their type."""
        return self._nothing_to_do

    def row_max(self, array: Any) -> Any:
        return self.xp.max(array, axis=1)

    def true_rows(self, mask: Any) -> Any:
        return self.xp.nonzero(mask)[0]

    def put(self, array: Any, rows: Any, values: Any) -> Any:
        array[rows] = values
        return array


@functools.cache
def _name_of_torch(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


class _Torch(Arithmetic):
    """PyTorch, whose functions find the device from the arrays."""

    synchronise = False

    def __init__(self, device: int):
        self.xp = self._torch = sys.modules["torch"]
        self._number, self._device = device, self._torch.device("cuda", device)
        self._like: dict[str, Any] = {}

    def stream(self) -> int:
        # the same as torch.cuda.current_stream(device).cuda_stream, which takes 4 to 7 µs;
        # PyTorch's own generated code calls this, too
        return self._torch._C._cuda_getCurrentRawStream(self._number)

    def dtype_name(self, array: Any) -> str:
        return _name_of_torch(array.dtype)

    def astype(self, array: Any, dtype: str) -> Any:
        return array.to(getattr(self._torch, dtype))

    def strides(self, array: Any) -> tuple[int, ...]:
        return array.stride()

    def contiguous(self, array: Any) -> Any:
        return array.contiguous()

    def export(self, array: Any, stream: int) -> Any:
        if stream == _NOTHING_TO_WAIT_FOR and not array.requires_grad and not array.is_sparse:
            return self._torch.to_dlpack(array)  # 0.3 µs; the checks in __dlpack__ take 3 to 6
        with self._torch.cuda.device(array.device):
            return array.__dlpack__(stream=stream)

    def new(self, shape: tuple[int, ...], dtype: str, zeros: bool, swapped: bool) -> tuple[Any, Any]:
        like = self._like.get(dtype)  # new_empty takes two thirds of the time of torch.empty, and less without a tuple
        if like is None:
            like = self._like[dtype] = self._torch.empty(0, dtype=getattr(self._torch, dtype), device=self._device)
        array = like.new_zeros(*shape) if zeros else like.new_empty(*shape)
        return array.mT if swapped else array, array.data_ptr()

    def row_max(self, array: Any) -> Any:
        return array.amax(1)

    def true_rows(self, mask: Any) -> Any:
        return mask.nonzero(as_tuple=True)[0]


class _CuPy(Arithmetic):
    synchronise = False

    def __init__(self, device: int):
        self.xp = self._cupy = sys.modules["cupy"]
        self._device = device

    def current(self) -> Any:
        return self._cupy.cuda.Device(self._device)

    def stream(self) -> int:
        with self.current():
            return self._cupy.cuda.get_current_stream().ptr

    def dtype_name(self, array: Any) -> str:
        return array.dtype.name

    def astype(self, array: Any, dtype: str) -> Any:
        return array.astype(dtype)

    def strides(self, array: Any) -> tuple[int, ...]:
        return tuple(stride // array.itemsize for stride in array.strides)

    def contiguous(self, array: Any) -> Any:
        return self._cupy.ascontiguousarray(array)

    def export(self, array: Any, stream: int) -> Any:
        return array.__dlpack__(stream=stream)

    def new(self, shape: tuple[int, ...], dtype: str, zeros: bool, swapped: bool) -> tuple[Any, Any]:
        with self.current():
            array = (self._cupy.zeros if zeros else self._cupy.empty)(shape, dtype=dtype)
        return array.swapaxes(-2, -1) if swapped else array, array.data.ptr

    def precise(self) -> Any:
        return self.current()


class _ArrayAPI(Arithmetic):
    """JAX and other libraries that do not name their current stream.

    Their work on the arguments is complete before a call, and the call's work when it returns. JAX's arrays have no
    views, so Quoin writes to an array that `new` has made, and swaps its dimensions afterwards.
    """

    synchronise = True
    drops_rows = False  # JAX compiles every operation for every shape

    def __init__(self, array: Any):
        self.xp = array.__array_namespace__()
        self._device = array.device

    def stream(self) -> int:
        return _LEGACY_STREAM

    def dtype_name(self, array: Any) -> str:
        return getattr(array.dtype, "name", str(array.dtype))

    def astype(self, array: Any, dtype: str) -> Any:
        return self.xp.astype(array, getattr(self.xp, dtype))

    def strides(self, array: Any) -> None:
        """Returns None, for unknown: arrays are in C order, as JAX's are."""
        return None

    def contiguous(self, array: Any) -> Any:
        return array

    def export(self, array: Any, stream: int) -> Any:
        if hasattr(array, "block_until_ready"):  # JAX's
            return array.block_until_ready().__dlpack__()
        return array.__dlpack__(stream=_LEGACY_STREAM if stream == _NOTHING_TO_WAIT_FOR else stream)

    def new(self, shape: tuple[int, ...], dtype: str, zeros: bool, swapped: bool) -> tuple[Any, Any]:
        make = self.xp.zeros if zeros else self.xp.empty
        array = make(shape, dtype=getattr(self.xp, dtype), device=self._device)
        return array, self.export(array, _NOTHING_TO_WAIT_FOR)

    def precise(self) -> Any:
        # JAX multiplies float32 in TF32 otherwise
        jax = sys.modules.get("jax")
        return jax.default_matmul_precision("highest") if jax else contextlib.nullcontext()

    def put(self, array: Any, rows: Any, values: Any) -> Any:
        return array.at[rows].set(values) if hasattr(array, "at") else super().put(array, rows, values)


def _library_of(array: Any) -> Any:
    for module, kind, library in (("torch", "Tensor", _Torch), ("cupy", "ndarray", _CuPy)):
        if module in sys.modules and isinstance(array, getattr(sys.modules[module], kind)):
            return library
    if hasattr(array, "__array_namespace__"):
        return _ArrayAPI
    raise TypeError(
        "quoin takes arrays in a GPU's memory from PyTorch, CuPy, JAX and libraries that follow the array API standard; "
        f"this one is a {type(array).__module__}.{type(array).__qualname__}"
    )


class OnGpu:
    """The place of arrays of one library in a GPU's memory.

    Calls compute after the work already on the caller's current stream, and before later work there.
    """

    def __init__(self, library: Any, device: int):
        self.device = device
        self.core: Any = _core.cuda
        self.library = library

    _kept: dict[tuple[Any, int], OnGpu] = {}

    @classmethod
    def of(cls, array: Any, device: int) -> OnGpu:
        """Returns the place of `array`. PyTorch's arrays on one device have the same place, as have CuPy's."""
        if not hasattr(_core, "cuda"):
            raise TypeError(
                f"the array lies on GPU {device}, and quoin was built without CUDA; "
                "where the CUDA toolkit is found, pip install . in a checkout builds quoin-qr with it"
            )
        library = _library_of(array)
        if place := cls._kept.get((library, device)):
            return place
        _core.cuda.require(device)
        if library is _ArrayAPI:
            return cls(library(array), device)
        return cls._kept.setdefault((library, device), cls(library(device), device))

    def __str__(self) -> str:
        return f"GPU {self.device}"

    def where(self, threads: int) -> Any:
        """Returns the extension module's call: the device and its current stream.

        `threads` is not used; it is for hosts.
        """
        library = self.library
        return _core.cuda.Call(self.device, library.stream(), library.synchronise, library.new)

    def give_back(self, array: Any) -> Any:
        return array

    def take(self, array: Any) -> GpuArray:
        return GpuArray(array, self)

    def bare(self, array: GpuArray) -> Any:
        """Returns the library's own array."""
        return array._array

    def operand(self, array: GpuArray) -> Any:
        """Returns the array by DLPack, for the extension module.

        If its library refuses to export it, that library's error is raised.
        """
        library, theirs = self.library, array._place.library
        stream = _NOTHING_TO_WAIT_FOR if type(theirs) is type(library) else library.stream() or _LEGACY_STREAM
        with theirs.current():
            return theirs.export(array._array, stream)

    def mask(self, array: GpuArray) -> Any:
        """Returns an operand, 0 where the array is false and else 1, since not every library exports booleans."""
        return self.operand(array.astype(bool).astype(np.uint8).dense())


@functools.cache
def dtype_named(name: str) -> np.dtype:
    try:
        return np.dtype(name)
    except TypeError:  # bfloat16 and others that NumPy lacks
        return np.dtype(np.void)


def gpu_of_torch(array: Any) -> int | None:
    """Returns the number of the GPU that holds a PyTorch tensor, else None.

    __dlpack_device__ takes four times as long.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(array, torch.Tensor) or not array.is_cuda or torch.version.hip:
        return None
    return int(array.get_device())


def known_place(tensor: Any) -> OnGpu | None:
    """Returns the place of a PyTorch tensor in a GPU's memory if an earlier call has made it; otherwise None.

    Also returns None for a tensor that has to be copied.
    """
    dense = tensor.is_contiguous() or _is_dense(tensor.shape, tensor.stride())
    return OnGpu._kept.get((_Torch, tensor.get_device())) if dense else None


def _is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the rows or the columns of an array's matrices are contiguous."""
    if len(shape) == 0:
        return True
    if len(shape) == 1:  # a column
        (m, n), (row, col) = (shape[0], 1), (strides[0], 1)
    else:
        (m, n), (row, col) = shape[-2:], strides[-2:]
    by_columns = (m <= 1 or row == 1) and (n <= 1 or col >= max(1, m))
    by_rows = (n <= 1 or col == 1) and (m <= 1 or row >= max(1, n))
    return by_columns or by_rows


class GpuArray:
    """An array in a GPU's memory, with the part of NumPy's interface that the package uses."""

    def __init__(self, array: Any, place: OnGpu):
        self._array = array
        self._place = place

    def __getitem__(self, key: Any) -> GpuArray:
        return self._place.take(self._array[key])

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._array.shape)

    @property
    def dtype_name(self) -> str:
        return self._place.library.dtype_name(self._array)

    @property
    def dtype(self) -> np.dtype:
        return dtype_named(self.dtype_name)

    def astype(self, dtype: Any, copy: bool = True) -> GpuArray:
        if np.dtype(dtype) == self.dtype:
            return self
        place = self._place
        with place.library.current():
            return place.take(place.library.astype(self._array, np.dtype(dtype).name))

    def broadcast_to(self, shape: tuple[int, ...]) -> GpuArray:
        place = self._place
        with place.library.current():
            return place.take(place.library.xp.broadcast_to(self._array, shape))

    def dense(self) -> GpuArray:
        """Returns itself if the rows or the columns of its matrices are contiguous, otherwise a copy in C order."""
        library = self._place.library
        strides = library.strides(self._array)
        if strides is None or _is_dense(self.shape, strides):
            return self
        with library.current():
            return self._place.take(library.contiguous(self._array))
