"""Types of numba as JSON: ``"float32 2 C"`` for an array, ``"float64"`` for a number, lists and objects for tuples."""

from __future__ import annotations

import importlib
from typing import Any

from numba.core import types as numba_types

types: Any = numba_types  # its stubs lack most of what is used here


def encode(given: Any) -> Any:
    """Return a numba type as a JSON value.

    Raises:
        TypeError: it is neither a number, an array nor a tuple of these.
    """
    if isinstance(given, types.Array):
        read_only = "" if given.mutable else " read-only"
        return f"{given.dtype} {given.ndim} {given.layout}{read_only}"
    if isinstance(given, types.BaseNamedTuple):
        kind = given.instance_class
        return {f"{kind.__module__}:{kind.__qualname__}": [encode(one) for one in given]}
    if isinstance(given, types.BaseTuple):
        return [encode(one) for one in given]
    if isinstance(getattr(types, str(given), None), types.Type):
        return str(given)
    raise TypeError(f"{given} has no form in signatures.json")


def decode(given: Any) -> Any:
    """Return the numba type that :func:`encode` wrote."""
    if isinstance(given, dict):
        ((name, fields),) = given.items()
        module, kind = name.split(":")
        decoded, of = [decode(one) for one in fields], getattr(importlib.import_module(module), kind)
        same = len(set(decoded)) == 1
        return types.NamedUniTuple(decoded[0], len(decoded), of) if same else types.NamedTuple(decoded, of)
    if isinstance(given, list):
        return types.BaseTuple.from_types([decode(one) for one in given])
    name, *rest = given.split()
    if not rest:
        return getattr(types, name)
    return types.Array(getattr(types, name), int(rest[0]), rest[1], readonly=rest[2:] == ["read-only"])
