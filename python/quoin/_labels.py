"""Labels of pandas' and xarray's objects, which results keep. Neither package is imported here."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ._errors import InvalidArgument


class Labels:
    """An array, as `values`, and the labels of its axes, if it has any.

    `rows` and `columns` label the last two axes; `rows` labels a vector. This class is for arrays without labels.
    """

    def __init__(self, values: Any, rows: Any = None, columns: Any = None):
        self.values, self.rows, self.columns = values, rows, columns

    def give(self, array: Any, *axes: Any) -> Any:
        """Returns `array` with labels on its last axes. An axis that is None, such as K, gets new ones."""
        return array

    def of_solution(self, b: Labels, x: Any, norms: Any, vector: bool) -> tuple[Any, Any]:
        """Returns x and the norms of the residuals of a x ≈ b with the labels of a, which are these, and of b."""
        give = (b if type(self) is Labels else self).give
        return (give(x, self.columns), give(norms)) if vector else (give(x, self.columns, b.columns), give(norms, b.columns))

    def require_rows_of(self, b: Labels) -> None:
        """Raises an error if both label their rows, and differently."""
        if self.rows is None or b.rows is None:
            return
        if type(self) is not type(b):
            raise TypeError("a and b are labelled by different packages, pandas and xarray: convert one of them")
        if len(self.rows) == len(b.rows) and not self._same_rows(b):
            raise InvalidArgument("the rows of a and b are labelled differently: align them, for example by b.reindex(a.index)")

    def _same_rows(self, other: Labels) -> bool:
        raise NotImplementedError

    def of_columns(self, order: Any) -> Any:
        """Returns the labels of the columns in another order."""
        return None if self.columns is None else self.columns[order]


class _Pandas(Labels):
    """Labels of a DataFrame or a Series, which are an Index for each axis."""

    def __init__(self, pandas: Any, table: Any):
        values = table.to_numpy()
        if values.dtype == object:  # of several types, or with missing entries
            columns = table.items() if table.ndim == 2 else [(table.name, table)]
            for name, column in columns:
                if not pandas.api.types.is_numeric_dtype(column.dtype):
                    raise TypeError(f"quoin computes on numbers, and column {name!r} is of type {column.dtype}")
            values = table.to_numpy(np.float64, na_value=np.nan)
        super().__init__(values, *table.axes)
        self._pandas = pandas

    def give(self, array: Any, *axes: Any) -> Any:
        if array.ndim == 0:
            return array
        return self._pandas.DataFrame(array, *axes) if array.ndim == 2 else self._pandas.Series(array, *axes[:1])

    def _same_rows(self, other: Labels) -> bool:
        return bool(self.rows.equals(other.rows))


class _XArray(Labels):
    """Labels of a DataArray: for each axis a DataArray of this axis alone, with the coordinates that lie on it."""

    def __init__(self, xarray: Any, array: Any):
        self._xarray = xarray
        axes = [self._axis(array, name) for name in array.dims]
        super().__init__(array.data, *axes[-2:])
        self._batch = axes[:-2]

    def _axis(self, array: Any, name: Any) -> Any:
        coords = {key: coord for key, coord in array.coords.items() if coord.dims == (name,)}
        return self._xarray.DataArray(np.empty(array.sizes[name]), coords, [name])

    def give(self, array: Any, *axes: Any) -> Any:
        if array.ndim == 0:
            return array
        axes = (*[None] * array.ndim, *self._batch, *axes)[-array.ndim :]
        labelled = [axis for axis in axes if axis is not None]
        taken = [axis.dims[0] for axis in labelled]
        for name in taken:
            if taken.count(name) > 1:
                raise InvalidArgument(f"the result would have the dimension {name!r} twice: rename it in one of the arrays")
        names = []
        for axis in axes:
            name = "k" if axis is None else axis.dims[0]
            while axis is None and name in taken:
                name += "_"
            names.append(name)
            taken.append(name)
        coords = {key: coord for axis in labelled for key, coord in axis.coords.items()}
        return self._xarray.DataArray(array, coords, names)

    def _same_rows(self, other: Labels) -> bool:
        one, two = ([axis.indexes[name] for name in axis.indexes] for axis in (self.rows, other.rows))
        return self.rows.dims == other.rows.dims and all(map(lambda a, b: a.equals(b), one, two))


def labels_of(array: Any) -> Labels:
    pandas, xarray = sys.modules.get("pandas"), sys.modules.get("xarray")
    if pandas is not None and isinstance(array, (pandas.DataFrame, pandas.Series)):
        return _Pandas(pandas, array)
    if xarray is not None and isinstance(array, xarray.DataArray):
        return _XArray(xarray, array)
    return Labels(array)


UNLABELLED = Labels(None)
