"""Docstrings: every parameter of a public function, and of a class that users make, has a sentence."""

import collections.abc
import importlib
import inspect
import re

import pytest

import quoin

MODULES = ["quoin", "quoin.dask", "quoin.distributed", "quoin.torch", "quoin.jax", "quoin.sklearn"]


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
            if not method.startswith("_") and function.__module__.startswith("quoin"):
                yield f"{name}.{method}", function, function.__doc__


def entries(text):
    """The parameters of the section Parameters with the text of their entries; None if there is no such section."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=\n\n\w+\n-+\n|\Z)", inspect.cleandoc(text), re.S | re.M)
    if not section:
        return None
    found, names = {}, []
    for line in section[1].split("\n"):
        if line.startswith(" "):
            found.update((name, found[name] + line.strip()) for name in names)
        elif line:
            names = line.partition(" : ")[0].split(", ")
            found.update(dict.fromkeys(names, ""))
    return found


@pytest.mark.parametrize("name", MODULES)
def test_every_parameter_has_a_sentence(name):
    try:
        module = importlib.import_module(name)
    except (ImportError, AttributeError) as missing:
        pytest.skip(str(missing))
    silent = []
    for what, function, text in documented(module):
        of_text = entries(text or "")
        for parameter in inspect.signature(function).parameters:
            # a docstring without the section, as of a method of two lines, names its parameters in its sentences
            has_a_word = of_text is None and re.search(rf"\b{parameter}\b", text or "")
            if parameter not in ("self", "args", "kwargs") and not has_a_word and not (of_text or {}).get(parameter):
                silent.append(f"{what}({parameter})")
    assert not silent


def test_help_has_a_line_for_every_function():
    table = re.findall(r"^    (\w[\w, ]*?)  +(\w.*)$", quoin.__doc__, re.M)
    named = [name for names, _ in table for name in names.split(", ")]
    made_by_quoin = {"Factorization", "BatchedFactorization"}
    public = [
        name for name in quoin.__all__
        if inspect.isfunction(thing := getattr(quoin, name)) or not issubclass(thing, (Exception, tuple, collections.abc.Sequence))
    ]
    assert sorted(named) == sorted({*public} - made_by_quoin)
