"""Docstrings: every parameter of a public function, and of a class that users make, has a word."""

import importlib
import inspect
import re

import pytest

MODULES = ["quoin", "quoin.dask", "quoin.distributed", "quoin.torch", "quoin.jax"]


def documented(module):
    """(name, function or class, docstring) of what a module exports, with the methods of its classes."""
    for name in module.__all__:
        thing = getattr(module, name)
        if not inspect.isclass(thing):
            yield name, thing, thing.__doc__
            continue
        if issubclass(thing, Exception) or issubclass(thing, tuple):
            continue
        if not {"core", "numpys"} & set(inspect.signature(thing).parameters):  # Quoin alone makes these
            yield name, thing, thing.__doc__
        for method, function in inspect.getmembers(thing, inspect.isfunction):
            if not method.startswith("_"):
                yield f"{name}.{method}", function, function.__doc__


@pytest.mark.parametrize("name", MODULES)
def test_every_parameter_has_a_word(name):
    try:
        module = importlib.import_module(name)
    except (ImportError, AttributeError) as missing:
        pytest.skip(str(missing))
    silent = [
        f"{what}({parameter})"
        for what, function, text in documented(module)
        for parameter in inspect.signature(function).parameters
        if parameter not in ("self", "args", "kwargs") and not re.search(rf"\b{parameter}\b", text or "")
    ]
    assert not silent
