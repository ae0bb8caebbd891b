"""JSON and TOML from outside: read within limits, then validated by a type that names and bounds every field."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from gcaps.errors import ConfigError, DataError, GcapsError
from gcaps.files import MAX_PARSED_BYTES, read_bytes

MAX_PAGE_BYTES: Final = 1 << 28
"""Size of the largest JSON file of ours, such as run.json (256 MiB); ``GCAPS_MAX_BYTES``."""
MAX_TOML_BYTES: Final = 1 << 18
"""Size of the largest TOML file (256 KiB), which tomllib takes up to seconds for."""
MAX_DEPTH: Final = 64
"""Objects and arrays within one another."""
MAX_DIGITS: Final = 400
"""Digits of a number; 64 bits need 20, and no double has more than 309 before its point."""
MAX_DOTS: Final = 1 << 21
"""Sum over the lines of a TOML file of the square of the number of dots, in which tomllib's time for keys grows."""

# closed or not, so that no text takes quadratic time
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_LONG_NUMBER = re.compile(rb"[eE]\+?\d{3}|\d{%d}" % (MAX_DIGITS // 2))
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_STEP = np.zeros(256, dtype=np.int8)
_STEP[[ord("["), ord("{")]] = 1
_STEP[[ord("]"), ord("}")]] = -1

T = TypeVar("T")
_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}


def _ascending(values: list[int]) -> list[int]:
    if any(a >= b for a, b in pairwise(values)):
        raise ValueError("should ascend, each value once")
    return values


Name = Annotated[str, Field(max_length=4096)]
"""A name, a path or a sentence."""
Count = Annotated[int, Field(ge=0, le=2**62)]
"""Number of things, or a position."""
Label = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
"""An integer of 64 bits."""
Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]
"""Seed of a random number generator."""
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 in hexadecimal."""
Labels = Annotated[list[Label], AfterValidator(_ascending)]
"""Different integers in ascending order."""
Number = Annotated[float, Field(allow_inf_nan=False)]
"""A finite number."""


STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
"""``__pydantic_config__`` of a dataclass that :func:`validated` makes out of a file."""


class Page(BaseModel):
    """Base class of what a JSON file holds: no unknown field, no value of another type, no NaN, nothing infinite."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


def read_json(path: str | Path, limit: int = MAX_PAGE_BYTES) -> Any:
    """Read a JSON file.

    Raises:
        DataError: it cannot be read, is no JSON, or exceeds a limit.
    """
    return parse_json(read_bytes(path, limit), str(path))


def parse_json(content: bytes, place: str, line: int | None = None) -> Any:
    """Parse JSON, in UTF-8, that is at most :data:`MAX_DEPTH` deep and whose numbers are finite.

    Raises:
        DataError: it is no JSON, or exceeds a limit; it names the place.
    """
    if _depth(content) > MAX_DEPTH:
        raise DataError(f"has more than {MAX_DEPTH} levels of brackets; refused", place, line)
    hooks: dict[str, Any] = {"parse_constant": _refused_constant}
    if _LONG_NUMBER.search(content):
        hooks |= {"parse_float": _float, "parse_int": _int}
    try:
        found = json.loads(content.decode("utf-8-sig"), **hooks)
        if _SURROGATE.search(content):  # half of a pair cannot be written or printed
            json.dumps(found, ensure_ascii=False).encode()
        return found
    except (ValueError, RecursionError) as error:
        raise DataError(f"is not JSON ({str(error)[:200]})", place, line) from error


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read a TOML file of settings.

    Raises:
        ConfigError: it cannot be read, is no TOML, or exceeds a limit.
    """
    try:
        content = read_bytes(path, min(MAX_TOML_BYTES, MAX_PARSED_BYTES))
    except DataError as error:
        raise ConfigError(str(error)) from error
    if len(content) > MAX_TOML_BYTES:
        raise ConfigError(f"{path}: has {len(content):,} bytes; a file of settings has at most {MAX_TOML_BYTES:,}")
    if sum(line.count(b".") ** 2 for line in content.splitlines()) > MAX_DOTS:
        raise ConfigError(f"{path}: has a line with too many dots; refused")
    try:
        found = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: {str(error)[:200]}") from error
    _require_plain(found, str(path))
    return found


def validated(kind: type[T], raw: Any, problem: str, error: Callable[[str], GcapsError] = GcapsError) -> T:
    """Return JSON values as a dataclass, model or other type with annotations, which every field must match.

    Args:
        kind: the type.
        raw: what :func:`read_json` returned.
        problem: begins the message, such as ``"run.json: is not a plan of gcaps"``.
        error: makes the exception that is raised from the message.
    """
    try:
        # strict, as JSON: lists become tuples, but no string becomes a number
        found: T = _adapter(kind).validate_json(json.dumps(raw, allow_nan=False), strict=True)
        return found
    except ValidationError as wrong:
        raise error(f"{problem} ({in_words(wrong)})") from wrong
    except (ValueError, RecursionError) as wrong:
        raise error(f"{problem} ({wrong})") from wrong


_WORDS = {"missing": "is missing", "extra_forbidden": "is not a known field"}
"""Instead of pydantic's "Field required" and "Extra inputs are not permitted"."""


def in_words(error: ValidationError) -> str:
    """Return the first thing that is wrong, with its place and what was given."""
    first = error.errors()[0]
    where = ".".join(str(part)[:60] for part in first["loc"])
    given = repr(first.get("input"))
    shown = f", not {given[:60]}" if first["type"] not in ("missing", "extra_forbidden") and len(given) < 500 else ""
    said = _WORDS.get(first["type"]) or first["msg"].removeprefix("Value error, ")
    return f"{where}: {said}{shown}" if where else f"{said}{shown}"


def _adapter(kind: Any) -> TypeAdapter[Any]:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def _depth(content: bytes) -> int:
    """Greatest number of open brackets, those in strings not counted."""
    if content.count(b"[") + content.count(b"{") <= MAX_DEPTH:
        return 0
    steps = _STEP[np.frombuffer(_STRING.sub(b"", content), dtype=np.uint8)]
    deepest = reached = 0
    for first in range(0, len(steps), 1 << 22):
        heights = np.cumsum(steps[first : first + (1 << 22)], dtype=np.int64)
        deepest, reached = max(deepest, reached + int(heights.max(initial=0))), reached + int(heights[-1])
    return deepest


def _refused_constant(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def _float(text: str) -> float:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number has {len(text):,} digits")
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is beyond what a double can hold")
    return value


def _int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number has {len(text):,} digits")
    return int(text)


def _require_plain(value: Any, path: str) -> None:
    """Raise a ConfigError for values of TOML that are no settings: too deep, or beyond 64 bits."""
    waiting = [(value, 0)]
    while waiting:
        one, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise ConfigError(f"{path}: has more than {MAX_DEPTH} levels of tables; refused")
        if isinstance(one, Mapping):
            waiting += [(inner, depth + 1) for inner in one.values()]
        elif isinstance(one, list):
            waiting += [(inner, depth + 1) for inner in one]
        elif isinstance(one, int) and not -(2**63) <= one < 2**63:
            raise ConfigError(f"{path}: a number is beyond 64 bits; refused")
        elif isinstance(one, float) and not math.isfinite(one):
            raise ConfigError(f"{path}: {one} is no setting; give a finite number")
