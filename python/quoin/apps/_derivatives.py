"""Products with the Jacobian of a caller's function: the caller's own, or by JAX, PyTorch or dual numbers."""

from __future__ import annotations

import math
import operator
from typing import Any, Callable

import numpy as np

from .._arguments import function
from .._errors import InvalidArgument


class Dual:
    """value + ε·tangent with ε² = 0, a number with its derivatives in p directions.

    It has arithmetic, comparisons by value, and NumPy's functions of one number, also as entries of arrays.
    """

    __slots__ = ("tangent", "value")

    def __init__(self, value: float, tangent: Any) -> None:
        self.value = float(value)
        self.tangent = tangent

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        # NumPy calls the operators and methods of the entries of an array of objects
        def wrapped(x: Any) -> Any:
            if not isinstance(x, Dual):
                return x
            array = np.empty((), dtype=object)
            array[()] = x
            return array

        return getattr(ufunc, method)(*(wrapped(x) for x in inputs), **options)

    def __repr__(self) -> str:
        return f"Dual({self.value!r}, {self.tangent!r})"

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.tangent + other.tangent)
        return Dual(self.value + other, self.tangent) if _is_number(other) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Dual):
            return Dual(self.value * other.value, other.value * self.tangent + self.value * other.tangent)
        return Dual(self.value * other, other * self.tangent) if _is_number(other) else NotImplemented

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.tangent)

    def __pos__(self) -> Dual:
        return self

    def __abs__(self) -> Dual:
        return -self if self.value < 0 else self

    def __sub__(self, other: Any) -> Any:
        return self + -other if isinstance(other, Dual) or _is_number(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other if _is_number(other) else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Dual):
            quotient = self.value / other.value
            return Dual(quotient, (self.tangent - quotient * other.tangent) / other.value)
        return Dual(self.value / other, self.tangent / other) if _is_number(other) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return Dual(other, 0 * self.tangent) / self if _is_number(other) else NotImplemented

    def __pow__(self, other: Any) -> Any:
        if isinstance(other, Dual):
            return (other * self.log()).exp()
        if not _is_number(other):
            return NotImplemented
        return self._of(self.value**other, other * self.value ** (other - 1) if other != 0 else 0.0)

    def __rpow__(self, other: Any) -> Any:
        if not _is_number(other):
            return NotImplemented
        power = other**self.value
        return self._of(power, power * math.log(other))

    def __mod__(self, other: Any) -> Any:
        return Dual(self.value % other, self.tangent) if _is_number(other) else NotImplemented

    def _of(self, value: float, derivative: float) -> Dual:
        return Dual(value, derivative * self.tangent)

    def __hash__(self) -> int:
        return hash(self.value)


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, np.integer, np.floating))


def _compare(name: str) -> Callable[[Dual, Any], Any]:
    compare = getattr(operator, name)
    return lambda self, other: compare(self.value, other.value if isinstance(other, Dual) else other)


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Dual, f"__{_name}__", _compare(_name))

# name: (g as a function of x, its derivative as a function of x and g(x))
_FUNCTIONS: dict[str, tuple[Callable[[float], float], Callable[[float, float], float]]] = {
    "sin": (math.sin, lambda x, g: math.cos(x)),
    "cos": (math.cos, lambda x, g: -math.sin(x)),
    "tan": (math.tan, lambda x, g: 1 + g * g),
    "arcsin": (math.asin, lambda x, g: 1 / math.sqrt(1 - x * x)),
    "arccos": (math.acos, lambda x, g: -1 / math.sqrt(1 - x * x)),
    "arctan": (math.atan, lambda x, g: 1 / (1 + x * x)),
    "sinh": (math.sinh, lambda x, g: math.cosh(x)),
    "cosh": (math.cosh, lambda x, g: math.sinh(x)),
    "tanh": (math.tanh, lambda x, g: 1 - g * g),
    "exp": (math.exp, lambda x, g: g),
    "log": (math.log, lambda x, g: 1 / x),
    "sqrt": (math.sqrt, lambda x, g: 0.5 / g),
    "square": (lambda x: x * x, lambda x, g: 2 * x),
    "reciprocal": (lambda x: 1 / x, lambda x, g: -g * g),
}


def _method(g: Callable[[float], float], derivative: Callable[[float, float], float]) -> Callable[[Dual], Dual]:
    def method(self: Dual) -> Dual:
        value = g(self.value)
        return self._of(value, derivative(self.value, value))

    return method


for _name, (_g, _derivative) in _FUNCTIONS.items():
    setattr(Dual, _name, _method(_g, _derivative))


def _by_duals(f: Callable[[Any], Any]) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    def jvp(x: np.ndarray, V: np.ndarray) -> np.ndarray:
        duals = np.empty(x.size, dtype=object)
        for i in range(x.size):
            duals[i] = Dual(x[i], V[i])
        try:
            result = list(f(duals))
        except (TypeError, AttributeError) as error:
            raise InvalidArgument(
                f"f cannot be differentiated by dual numbers ({error}): give jvp, or 'jax' or 'torch' for a function of theirs"
            ) from error
        return np.array([y.tangent if isinstance(y, Dual) else np.zeros(V.shape[1]) for y in result])

    return jvp


def _by_jax(f: Callable[[Any], Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    import jax
    import jax.numpy as jnp

    if not jax.config.jax_enable_x64:
        raise InvalidArgument("jvp='jax' needs JAX's float64: jax.config.update('jax_enable_x64', True)")

    def g(x: Any) -> Any:
        return jnp.asarray(f(x))

    motion = jax.jit(g)
    product = jax.jit(lambda x, V: jax.vmap(lambda v: jax.jvp(g, (x,), (v,))[1], 1, 1)(V))
    return lambda x: np.asarray(motion(x)), lambda x, V: np.asarray(product(x, V))


def _by_torch(f: Callable[[Any], Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    import torch

    def g(x: Any) -> Any:
        y = f(x)
        return y if isinstance(y, torch.Tensor) else torch.stack(list(y))

    def product(x: np.ndarray, V: np.ndarray) -> np.ndarray:
        at = torch.from_numpy(x)
        columns = torch.vmap(lambda v: torch.func.jvp(g, (at,), (v,))[1], in_dims=1, out_dims=1)
        return columns(torch.from_numpy(np.ascontiguousarray(V))).resolve_neg().numpy()

    return lambda x: g(torch.from_numpy(x)).resolve_neg().numpy(), product


def jvp_of(f: Callable[[Any], Any], jvp: Any) -> tuple[Callable[[np.ndarray], Any], Callable[[np.ndarray, np.ndarray], Any]]:
    """Returns f and the product with its Jacobian, as functions of NumPy's arrays."""
    if jvp is None:
        return f, _by_duals(f)
    if isinstance(jvp, str):
        if jvp == "jax":
            return _by_jax(f)
        if jvp == "torch":
            return _by_torch(f)
        raise InvalidArgument(f"jvp must be callable, None, 'jax' or 'torch', and is {jvp!r}")
    return f, function("jvp", jvp, ", None, 'jax' or 'torch'")
