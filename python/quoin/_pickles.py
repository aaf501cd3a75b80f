"""Copies and pickles of objects whose state is in the extension module."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ._arrays import aligned
from ._errors import InvalidArgument

VERSION = 1


def _aligned(saved: Any) -> Any:
    """Applies `aligned` to each array, since arrays in a message may lie at any address."""
    if isinstance(saved, (list, tuple)):
        return type(saved)(_aligned(item) for item in saved)
    return aligned(saved) if isinstance(saved, np.ndarray) else saved


class Pickled:
    """Pickles and copies an object, with the same bits.

    `_save` returns the state for `_restore`, and runs under `_lock`.
    """

    _lock: threading.Lock
    _restored: tuple[str, ...]  # the attributes that `_restore` sets

    def _save(self) -> Any:
        raise NotImplementedError

    def _restore(self, saved: Any) -> None:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            rest = {name: value for name, value in self.__dict__.items() if name not in ("_lock", *self._restored)}
            return {"version": VERSION, "saved": self._save(), "attributes": rest}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["version"] != VERSION:
            raise InvalidArgument(
                f"the pickled {type(self).__name__} is of version {state['version']}, and this quoin reads version {VERSION}"
            )
        self.__dict__.update(state["attributes"])
        self._lock = threading.Lock()
        self._restore(_aligned(state["saved"]))
