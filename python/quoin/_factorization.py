"""A = QR with Q held implicitly, of one matrix and of many."""

from __future__ import annotations

import operator
from typing import Any, Generic, Literal

import numpy as np

from ._arguments import flag, integer, one_of, shown, solver
from ._arrays import (
    Place,
    broadcast,
    columns,
    columns_of_stack,
    exactly_2d,
    list_of_matrices,
    list_operands,
    located_beside,
    require_one_place,
)
from ._errors import InvalidArgument
from ._results import LstsqResult, Plan, RawQRResult, Report, solution, solutions, without_columns
from ._types import A, Deficient


class _Q(Generic[A]):
    """Q of a factorization. `q()` is the thin Q, `q[rows, cols]` a block of the M×M Q, which is never formed."""

    def __init__(self, owner: Factorization[A]):
        self._owner = owner

    def __call__(self) -> A:
        owner = self._owner
        return owner._place.give_back(owner._f.q(owner._where()))

    def __getitem__(self, key: Any) -> A:
        owner = self._owner
        m = owner.shape[0]
        indices = key if isinstance(key, tuple) else (key, slice(None))
        if len(indices) != 2:
            raise IndexError(f"q[rows, cols] takes two indices, and was given {len(indices)}")
        ranges: list[tuple[int, int]] = []
        picked: list[Any] = []
        for name, index in zip(("row", "column"), indices):
            if isinstance(index, slice):
                begin, end, step = index.indices(m)
                if step != 1:
                    raise InvalidArgument(f"q[rows, cols] takes slices of step 1, and the step is {step}")
                ranges.append((begin, max(begin, end)))
                picked.append(slice(None))
                continue
            try:
                i = operator.index(index)
            except TypeError:
                raise TypeError(
                    f"q[rows, cols] takes integers and slices, and the {name} is {shown(index)}"
                ) from None
            if not -m <= i < m:
                raise IndexError(f"{name} {shown(i)} is out of bounds: Q is {m}x{m}")
            ranges.append((i % m, i % m + 1))
            picked.append(0)
        block = owner._f.q_block(*ranges[0], *ranges[1], owner._where())[tuple(picked)]
        return block if isinstance(block, np.generic) else owner._place.give_back(block)


class Kept:
    """Factors that an object of the extension module keeps in the memory of `place`."""

    _name: str
    _instead: str  # an expression whose value can be pickled

    def __init__(self, core: Any, place: Place, threads: int):
        self._f = core
        self._place = place
        self._threads = threads

    def _where(self) -> Any:
        return self._place.where(self._threads)

    def __reduce__(self) -> Any:
        raise TypeError(f"a quoin.{self._name} cannot be copied or pickled; keep {self._instead} instead")


class KeptMatrix(Kept):
    """The factors of one matrix."""

    def __repr__(self) -> str:
        m, n = self.shape
        return f"<quoin.{self._name} of a {m}x{n} matrix by {self.report.method}>"

    @property
    def shape(self) -> tuple[int, int]:
        """(M, N) of A."""
        return self._f.shape

    @property
    def report(self) -> Report:
        """The report of the factorization."""
        return Report(*self._f.report)

    @property
    def plan(self) -> Plan:
        """The plan of the factorization."""
        return Plan(**self._f.plan)


class Factorization(KeptMatrix, Generic[A]):
    """A = QR with Q held implicitly; made by `factor`. Calls from several threads at once are safe."""

    _name, _instead = "Factorization", "quoin.qr(a, mode='raw')"

    def _operand(self, array: Any, function: str) -> tuple[Any, Place]:
        """Returns `array` in the type of the factorization, and its place, which must be the factorization's place."""
        return located_beside(self._place, array, f"Factorization.{function}", self._f.dtype)

    @property
    def R(self) -> A:
        """R, shape (min(M, N), N), a new array at each call."""
        return self._place.give_back(self._f.r(self._where()))

    @property
    def q(self) -> _Q[A]:
        """`q()`: the thin Q. `q[rows, cols]`: a block of the M×M Q by slices or integers."""
        return _Q(self)

    @property
    def V(self) -> A:
        """V of Q = I − V T Vᵀ, shape (M, K), K = min(M, N).

        V is unit lower trapezoidal, with its ones and zeros stored. V, T and tau are new arrays at each call. They
        raise InvalidArgument unless the factorization keeps LAPACK's reflectors, as `factor(a, q="reflectors")` does.

        Examples
        --------
        >>> import numpy as np, quoin
        >>> f = quoin.factor(np.random.default_rng(0).standard_normal((50, 3)), q="reflectors")
        >>> bool(np.allclose(np.eye(50) - f.V @ f.T @ f.V.T, f.q[:, :]))
        True
        """
        return self._place.give_back(self._f.v(self._where()))

    @property
    def T(self) -> A:
        """T of Q = I − V T Vᵀ, shape (K, K), upper triangular, in M·K² flops. It is not a transpose."""
        return self._place.give_back(self._f.t(self._where()))

    @property
    def tau(self) -> A:
        """The diagonal of T, shape (K,): LAPACK's tau."""
        return self._place.give_back(self._f.tau(self._where()))

    def apply(self, C: Any, trans: bool = False, side: Literal["left", "right"] = "left") -> A:
        """op(Q) C, or C op(Q) for `side` 'right'. op(Q) is the M×M Q, which is never formed, or Qᵀ with `trans`.

        Parameters
        ----------
        C : array_like, shape (M, P), (M,), or (P, M) for side 'right'
            Converted to the type of the factorization; not changed.
        trans : bool
            Whether to multiply by Qᵀ.
        side : {'left', 'right'}
            The side of C on which op(Q) stands.

        Examples
        --------
        >>> import numpy as np, quoin
        >>> A = np.random.default_rng(0).standard_normal((50, 3))
        >>> f = quoin.factor(A)
        >>> bool(np.allclose(f.apply(A, trans=True)[:3], f.R))
        True
        """
        one_of("side", side, "left", "right")
        trans = flag("trans", trans)
        C, place = self._operand(C, "apply")
        vector = C.ndim == 1
        if vector:
            C = C[:, None] if side == "left" else C[None, :]
        result = self._f.apply(place.operand(exactly_2d(C)), side == "left", trans, place.where(self._threads))
        return place.give_back(result.reshape(-1) if vector else result)

    def lstsq(self, b: Any, rcond: float | None = None, deficient: Deficient = "solve") -> LstsqResult[A]:
        """Minimise ‖A x − b‖₂ with this factorization (M >= N), with or without pivoting.

        b, rcond, deficient and the result are as for `quoin.lstsq`.
        """
        b, place = self._operand(b, "lstsq")
        B = place.operand(columns(b))
        result = self._f.lstsq(B, solver(rcond, deficient), place.where(self._threads))
        return solution(result, self.shape[0], b.ndim, place)


class BatchedFactorization(Kept):
    """The factorizations of a stack (..., M, N), or of a list of matrices; made by `factor`.

    Results with one matrix for each of A are an array with the same leading dimensions for a stack, and a list for a
    list. Calls from several threads at once are safe.
    """

    _name, _instead = "BatchedFactorization", "its raw"

    def __init__(self, core: Any, place: Place, threads: int, stacked: bool):
        super().__init__(core, place, threads)
        self._stacked = stacked

    def _list(self, arrays: Any) -> Any:
        """Returns the caller's kind of array for a stack, or a list of them."""
        return self._place.give_back(arrays) if self._stacked else [self._place.give_back(array) for array in arrays]

    def _operands(self, C: Any, function: str) -> tuple[Any, bool]:
        """Returns C for every matrix, and whether each is a vector."""
        if not self._stacked:
            if not isinstance(C, (list, tuple)) or len(C) != len(self):
                raise InvalidArgument(
                    f"BatchedFactorization.{function} of a list takes a list of {len(self)} arrays, and was given {shown(C)}"
                )
            matrices, place, vector = list_of_matrices(C, f"BatchedFactorization.{function}", vectors=True)
            require_one_place(f"BatchedFactorization.{function}", self._place, place)
            return list_operands(matrices, place, self._f.dtype), vector
        C, place = located_beside(self._place, C, f"BatchedFactorization.{function}", self._f.dtype)
        return place.operand(broadcast(columns_of_stack(C), self.shape[:-2])), C.ndim == 1

    def __len__(self) -> int:
        """The number of matrices."""
        return len(self._f)

    def __repr__(self) -> str:
        kind = f"a stack of shape {self.shape}" if self._stacked else f"{len(self)} matrices"
        return f"<quoin.BatchedFactorization of {kind}>"

    @property
    def shape(self) -> Any:
        """(..., M, N), or the list of (M, N)."""
        return self._f.shape

    @property
    def R(self) -> Any:
        """R, shape (..., K, N), K = min(M, N): new arrays at each call."""
        return self._list(self._f.r(False, self._where()))

    def q(self) -> Any:
        """The thin Q, shape (..., M, K)."""
        return self._list(self._f.q(False, self._where()))

    @property
    def raw(self) -> RawQRResult:
        """LAPACK's reflectors, as `qr(mode="raw")` returns them."""
        return RawQRResult(*map(self._list, self._f.raw(self._where())))

    def report(self, index: int) -> Report:
        """The report of matrix `index`, counted through the leading dimensions in C order."""
        return Report(*self._f.report(integer("index", index, 0, len(self) - 1)))

    def apply(self, C: Any, trans: bool = False) -> Any:
        """Q C, or Qᵀ C with `trans`, for every matrix; the M×M Q are never formed.

        Parameters
        ----------
        C : array_like, shape (M,), (M, P) or (..., M, P), or a list of such
            Its leading dimensions are broadcast to the leading dimensions of the stack, so that one C may serve all.
        trans : bool
            Whether to multiply by Qᵀ.

        Examples
        --------
        >>> import numpy as np, quoin
        >>> A = np.random.default_rng(0).standard_normal((4, 50, 3))
        >>> f = quoin.factor(A)
        >>> bool(np.allclose(f.apply(A, trans=True)[:, :3], f.R))
        True
        """
        trans = flag("trans", trans)
        C, vector = self._operands(C, "apply")
        call = self._f.apply if self._stacked else self._f.apply_list
        result = self._list(call(C, trans, self._where()))
        return without_columns(result) if vector else result

    def lstsq(self, b: Any, rcond: float | None = None, deficient: Deficient = "solve") -> LstsqResult:
        """Minimise ‖A x − b‖₂ with these factorizations (M >= N).

        b, rcond, deficient and the result are as for `quoin.lstsq`.
        """
        B, vector = self._operands(b, "lstsq")
        call = self._f.lstsq if self._stacked else self._f.lstsq_list
        return solutions(call(B, solver(rcond, deficient), self._where()), self.shape, vector, self._place)
