"""Converts any library's arrays for the extension module, to NumPy or GPU arrays, and results to the caller's kind."""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable

import numpy as np

from . import _core
from ._arguments import gpu_number
from ._cuda import Arithmetic, GpuArray, OnGpu, dtype_named, gpu_of_torch, known_place
from ._errors import InvalidArgument

_FLOAT64 = np.dtype(np.float64)
_FLOAT32 = np.dtype(np.float32)
_CPU, _CUDA, _CUDA_HOST = 1, 2, 3  # DLPack's numbers; the last is pinned host memory


def _identity(array: Any) -> Any:
    return array


def _from_dlpack_of(array: Any) -> Callable[[Any], Any]:
    """Returns the function that converts NumPy's arrays to arrays of the library of `array`."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__().from_dlpack
    module = sys.modules[type(array).__module__.partition(".")[0]]
    return getattr(module, "from_dlpack", _identity)


class _NumPy(Arithmetic):
    xp = np


class OnHost:
    """The place of arrays in host memory, where calls on them compute.

    `give_back` converts results to the caller's kind of array.
    """

    core: Any = _core
    library: Arithmetic = _NumPy()

    def __init__(self, give_back: Callable[[Any], Any] = _identity):
        self.give_back = give_back

    def __str__(self) -> str:
        return "the host"

    def where(self, threads: int) -> int:
        return threads

    def operand(self, array: np.ndarray) -> np.ndarray:
        return array

    def bare(self, array: np.ndarray) -> np.ndarray:
        return array

    def mask(self, array: np.ndarray) -> np.ndarray:
        return np.asarray(array, dtype=bool).view(np.uint8)


class BesideGpu(OnHost):
    """The place of arrays in host memory on which a GPU computes. `require` raises if it cannot."""

    def __init__(self, device: int, give_back: Callable[[Any], Any] = _identity):
        super().__init__(give_back)
        self.device = device
        self.core = _core.cuda

    def __str__(self) -> str:
        return f"the host, for GPU {self.device}"

    def where(self, threads: int = 0) -> Any:
        return _core.cuda.Call(self.device, 0, False, None)


ON_HOST = OnHost()
Place = OnHost | OnGpu


@functools.cache
def _on_host_of_torch() -> OnHost:
    return OnHost(sys.modules["torch"].from_numpy)  # takes a third of the time of from_dlpack


def unconverted(array: Any) -> tuple[Any, Place] | None:
    """Returns `array` as the extension module takes it, and its place, if nothing has to be converted; otherwise None.

    The short way past `located`, `to_float` and `operand`, for NumPy's arrays and PyTorch's tensors of float32 and
    float64. On the long way a small tensor takes more time than its factorization.
    """
    if type(array) is np.ndarray:
        computed = array.dtype is _FLOAT64 or array.dtype is _FLOAT32
        return (array, ON_HOST) if computed and array.flags.aligned else None
    torch = sys.modules.get("torch")
    if torch is None or type(array) is not torch.Tensor or array.layout is not torch.strided:
        return None
    if array.dtype is not torch.float32 and array.dtype is not torch.float64:
        return None
    address = array.data_ptr()  # 0 for zeros that PyTorch keeps as a bit
    if array.requires_grad or array.is_neg() or address == 0 or address % array.itemsize:
        return None
    place = _on_host_of_torch() if array.is_cpu else known_place(array) if array.is_cuda else None
    return None if place is None else (torch.to_dlpack(array), place)


def _settled(array: Any) -> Any:
    """Returns `array` with its values in memory.

    A PyTorch tensor that keeps a sign, conjugate or zero as a bit is copied.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(array, torch.Tensor):
        return array
    return array.clone() if array._is_zerotensor() else array.resolve_conj().resolve_neg()


def _from_dlpack(array: Any) -> np.ndarray:
    try:
        return np.from_dlpack(array)
    except (BufferError, RuntimeError):
        name = str(array.dtype).rpartition(".")[2]
        if dtype_named(name).kind != "V":
            raise
    raise TypeError(
        f"quoin computes in float32 and float64, and this array is {name}: convert it, or take quoin.torch, which computes bfloat16 and "
        "float16 tensors in float32"
    )


def located(array: Any) -> tuple[Any, Place]:
    """Returns `array` as a NumPy array or a GpuArray, and its place.

    NumPy's arrays and arrays that support DLPack are not copied.
    """
    if isinstance(array, np.ndarray):
        return (array if type(array) is np.ndarray else without_mask(array)), ON_HOST
    if (short := unconverted(array)) is not None:
        place = short[1]
        return (array.numpy() if isinstance(place, OnHost) else place.take(array)), place
    if "jax" in sys.modules and isinstance(array, sys.modules["jax"].core.Tracer):
        raise TypeError(
            "quoin's functions take arrays with values, and this is a tracer of jax.jit, grad or vmap: quoin.jax has qr, lstsq, "
            "orthonormalize, geqrf and apply_q, which JAX can transform"
        )
    array = [_settled(one) for one in array] if isinstance(array, (list, tuple)) else _settled(array)
    if (gpu := gpu_of_torch(array)) is not None:
        place = OnGpu.of(array, gpu)
        return place.take(array), place
    if hasattr(array, "__dlpack__") and not isinstance(array, np.generic):
        kind, device = array.__dlpack_device__()
        if int(kind) == _CUDA:
            place = OnGpu.of(array, int(device))
            return place.take(array), place
        if int(kind) not in (_CPU, _CUDA_HOST):
            raise TypeError(
                "quoin computes on arrays in host memory or in that of an NVIDIA GPU; this one lies elsewhere "
                f"(DLPack device type {int(kind)})"
            )
        return _from_dlpack(array), OnHost(_from_dlpack_of(array))
    if hasattr(array, "toarray"):
        raise TypeError("quoin computes on dense arrays, and this one is sparse; toarray() makes it dense")
    if isinstance(array, (list, tuple)):
        for one in array:
            if isinstance(one, np.ma.MaskedArray):
                without_mask(one)
    try:
        return np.asarray(array), ON_HOST
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        several = any(getattr(one, "ndim", 0) >= 2 for one in array)
        raise InvalidArgument(
            "matrices of several shapes are a batch for qr, factor and lstsq alone: call this function for each of them"
            if several
            else "a nested list must have rows of one length, and this one has not; qr, factor and lstsq take a list of arrays of several "
            "shapes as a batch"
        ) from None


def without_mask(array: Any) -> Any:
    """Returns `array`, or the data of a masked array without masked entries."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    if np.ma.is_masked(array):
        raise InvalidArgument(
            f"quoin computes on whole arrays, and this one has {np.ma.count_masked(array)} masked of {array.size} entries: fill them "
            "(numpy.ma.filled), leave out their rows, or estimate them (quoin.robust_pca)"
        )
    return array.data


def split_mask(array: Any) -> tuple[Any, Any]:
    """Returns the data of a masked array and the mask of its known entries, or None for the mask if all are known.

    Other objects are returned unchanged, with None.
    """
    if isinstance(array, np.ma.MaskedArray):
        return array.data, ~np.ma.getmaskarray(array) if np.ma.is_masked(array) else None
    return array, None


def on_host(array: Any, function: str) -> tuple[np.ndarray, OnHost]:
    """As `located`, for functions that compute on the host only."""
    array, place = located(array)
    if not isinstance(place, OnHost):
        raise TypeError(f"quoin.{function} computes on the host, and this array lies on {place}")
    return array, place


def located_for(device: str | None, array: Any, function: str) -> tuple[Any, Place]:
    """As `located`. With a `device` the array must lie in host memory, and the named GPU computes on it."""
    array, place = located(array)
    if device is None:
        return array, place
    if not isinstance(place, OnHost):
        raise TypeError(f"quoin.{function} with device={device!r} takes blocks in host memory, and this one lies on {place}")
    gpu = gpu_number(device)
    if gpu is None:
        return array, place
    _core.cuda.require(gpu)
    return array, BesideGpu(gpu, place.give_back)


def require_one_place(function: str, one: Place, other: Place) -> None:
    if one is not other and str(one) != str(other):
        raise TypeError(f"quoin.{function} needs its arrays in one place; one lies on {one}, another on {other}")


def located_beside(one: Place, array: Any, function: str, dtype: Any) -> tuple[Any, Place]:
    """Returns `array` in the type `dtype`, and its place, which must be the place `one`."""
    array, place = located(array)
    require_one_place(function, one, place)
    return to_float(array, function).astype(dtype, copy=False), place


def to_float(array: Any, function: str) -> Any:
    """Returns float32 and float64 arrays in native byte order, integers and booleans as float64.

    Raises TypeError for other types.
    """
    dtype = array.dtype
    if dtype == _FLOAT64 or dtype == _FLOAT32:
        result = array
    elif dtype.kind in "iub":
        result = array.astype(_FLOAT64)
    elif dtype.kind == "f" and dtype.itemsize in (4, 8):
        result = array.astype(dtype.newbyteorder("="))
    else:
        raise TypeError(
            f"quoin.{function} supports float32 and float64, and computes integers and booleans in float64; "
            f"the array is {getattr(array, 'dtype_name', dtype)}"
        )
    if isinstance(result, GpuArray):
        return result.dense()
    return aligned(result)


def aligned(array: np.ndarray) -> np.ndarray:
    """Returns `array`, or a copy if elements do not lie at multiples of their size, as strides must count elements."""
    if any(stride % array.itemsize for stride in array.strides) or not array.flags.aligned:
        return array.copy(order="C")
    return array


def at_least_2d(array: Any) -> Any:
    if array.ndim < 2:
        raise np.linalg.LinAlgError(
            f"{array.ndim}-dimensional array given. Array must be at least two-dimensional, and its shape is {array.shape}"
        )
    return array


def exactly_2d(array: Any) -> Any:
    if array.ndim != 2:
        raise np.linalg.LinAlgError(
            f"{array.ndim}-dimensional array given. Array must be two-dimensional, and its shape is {array.shape}"
        )
    return array


def columns(array: Any) -> Any:
    """Returns `array`, a vector as a matrix of one column."""
    if array.ndim not in (1, 2):
        raise np.linalg.LinAlgError(
            f"{array.ndim}-dimensional array given. Array must be one-dimensional or two-dimensional"
        )
    return array[:, None] if array.ndim == 1 else array


def columns_of_stack(array: Any) -> Any:
    """Returns `array`, a vector as a matrix of one column.

    Other arrays are stacks of matrices, as for numpy.linalg.solve.
    """
    if array.ndim == 0:
        raise np.linalg.LinAlgError("0-dimensional array given. Array must be at least one-dimensional")
    return array[:, None] if array.ndim == 1 else array


def broadcast(array: Any, leading: tuple[int, ...]) -> Any:
    """Returns a stack of matrices with the dimensions `leading` in front.

    Dimensions that it lacks repeat the same memory.
    """
    shape = tuple(leading) + array.shape[-2:]
    if array.shape == shape:
        return array
    try:
        np.broadcast_shapes(array.shape, shape)
        return array.broadcast_to(shape) if isinstance(array, GpuArray) else np.broadcast_to(array, shape)
    except ValueError:
        raise InvalidArgument(
            f"the leading dimensions of an array of shape {array.shape} do not broadcast to {tuple(leading)}"
        ) from None


def is_ragged(a: Any) -> bool:
    """Whether `a` is a list of matrices that NumPy cannot stack: of different shapes, or in a GPU's memory."""
    if not isinstance(a, (list, tuple)) or not a or not all(hasattr(one, "shape") and len(one.shape) == 2 for one in a):
        return False
    return len({tuple(one.shape) for one in a}) > 1 or not isinstance(located(a[0])[1], OnHost)


def list_of_matrices(arrays: Any, function: str, vectors: bool = False) -> tuple[list[Any], Place, bool]:
    """Returns the arrays as floating-point matrices, their one place, and whether all were vectors."""
    found = [located(array) for array in arrays]
    place = found[0][1] if found else ON_HOST
    for _, other in found:
        require_one_place(function, place, other)
    matrices = [to_float(array, function) for array, _ in found]
    vector = vectors and all(array.ndim == 1 for array in matrices)
    return [columns(array) if vectors else exactly_2d(array) for array in matrices], place, vector


def common_type(matrices: list[Any]) -> np.dtype:
    return np.result_type(*(array.dtype for array in matrices)) if matrices else np.dtype(np.float64)


def list_operands(matrices: list[Any], place: Place, dtype: np.dtype) -> list[Any]:
    """Returns the matrices, in the type `dtype`, as the extension module takes them."""
    return [place.operand(array.astype(dtype, copy=False)) for array in matrices]
