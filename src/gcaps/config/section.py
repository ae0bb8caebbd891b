"""Base classes of settings: parsing, validation, names of choices and class weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args, get_type_hints

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
)

from gcaps.documents import read_toml
from gcaps.errors import ConfigError

Auto = Literal["auto"]
FeatureName = Literal["labels", "attributes", "degree", "constant", "fgsd", "return_probabilities"]
EdgeFeatureName = Literal["labels", "attributes"]
FingerprintName = Literal["morgan", "morgan_bits", "descriptors", "maccs", "atom_pairs"]
FOLDED = ("morgan", "morgan_bits", "atom_pairs")
"""Fingerprints that are folded to a given number of bits."""
CountName = Literal["morgan", "morgan_bits", "maccs", "atom_pairs"]
"""Fingerprints that count substructures."""
CapsuleName = Literal["moments", "central", "polynomial", "density", "routing"]
FilterName = Literal["laplacian", "symmetric", "random_walk", "adjacency", "kipf", "mean", "chebyshev", "cayley"]
DeviceName = Literal["auto", "cpu", "cuda", "mps"]
ClassWeight = Literal["balanced"] | dict[Any, float] | None
""""balanced", or the weight of each class, as a constructor takes it."""
LARGEST_SETTING = 1e12
"""Largest number that any setting may be."""
MOST_ROUNDS = 1000
"""Largest number of rounds, levels or radii."""
MOST = 1_000_000_000
"""Largest number that a setting without a bound of its own may be."""


def check_parameters(estimator: Any) -> None:
    """Check the parameters of an estimator without settings against the annotations of its constructor.

    Raises:
        ConfigError: in one line, which parameter is wrong and what was given.
    """
    kind: Any = type(estimator)
    for name, adapter in _parameter_types(kind).items():
        value = getattr(estimator, name)
        try:
            adapter.validate_python(value.item() if isinstance(value, np.generic) else value, strict=True)
        except ValidationError as error:
            message = " or ".join(dict.fromkeys(one["msg"] for one in error.errors()))
            raise ConfigError(f"{name}: {message} (given: {value!r})") from error


@cache
def _parameter_types(estimator: Any) -> dict[str, TypeAdapter[Any]]:
    """The type of each parameter of a constructor."""
    hints = get_type_hints(estimator.__init__)
    return {name: TypeAdapter(hint) for name, hint in hints.items() if name != "return"}


class Section(BaseModel):
    """Settings that belong together; the settings of a method are made of such sections."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)
    method: ClassVar[str] = ""
    """The method whose settings these are; empty for a section."""

    @field_validator("*", mode="after")
    @classmethod
    def _within_reason(cls, given: Any) -> Any:
        """Refuse numbers that no formula can take; whole numbers of a list are counts or sizes."""
        several = isinstance(given, tuple)
        for value in given if several else (given,):
            if isinstance(value, int | float) and not isinstance(value, bool):
                if not abs(value) <= LARGEST_SETTING:
                    raise ValueError(f"numbers are at most {LARGEST_SETTING:g}")
                if several and value < 0:
                    raise ValueError("numbers to choose from are not negative")
        return given

    @classmethod
    def parse(cls, values: dict[str, Any]) -> Self:
        """Validate plain values.

        Raises:
            ConfigError: in one line, which setting is wrong and what was given.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"][:1]) or "configuration"
            if first["type"] == "extra_forbidden":
                verb = "train" if cls.method == "gcaps" else f"train --method {cls.method}"
                hint = f"see gcaps {verb} --help" if cls.method else f"there are {', '.join(cls.model_fields)}"
                raise ConfigError(f"{where}: there is no such setting; {hint}") from error
            message = first["msg"].removeprefix("Value error, ")
            given = f" (given: {values.get(where)!r})" if first["loc"] else ""  # it is not one setting that is wrong
            raise ConfigError(f"{where}: {message}{given}") from error

    @classmethod
    def from_toml(cls, path: str | Path) -> dict[str, Any]:
        """Read settings from a TOML file without validating them, so that options can override them.

        ``method`` says whose settings they are; "none" stands for no value, which TOML does not have.

        Raises:
            ConfigError: the file cannot be read, or holds settings of another method.
        """
        found = read_toml(path)
        method = found.pop("method", cls.method)
        if method != cls.method:
            raise ConfigError(f"{path}: holds settings of {method}, not of {cls.method}; give --method {method}")
        return {name: None if value == "none" and cls.allows_none(name) else value for name, value in found.items()}

    @classmethod
    def allows_none(cls, name: str) -> bool:
        """Whether a setting may have no value."""
        return name in cls.model_fields and type(None) in get_args(cls.model_fields[name].annotation)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, from which :meth:`parse` makes the same settings."""
        return self.model_dump(mode="json")

    @classmethod
    def of(cls, given: Any) -> Self:
        """Return ``given`` as settings of this method: None is the default, a dictionary is parsed."""
        if given is None or isinstance(given, dict):
            return cls.parse(given or {})
        if not isinstance(given, cls):
            raise ConfigError(f"{cls.method} takes a {cls.__name__}, not a {type(given).__name__}")
        return given


class ClassConfig(Section):
    """How classes of different frequency count; without effect in regression."""

    class_weight: Literal["balanced"] | dict[str, float] | None = Field(
        None,
        description="weight of each class: balanced (inversely to its number of training graphs), or weights by class, "
        "no=1,yes=4",
    )

    @field_validator("class_weight", mode="before")
    @classmethod
    def _named_as_strings(cls, given: Any) -> Any:
        """Name classes as JSON does, so that 1 and "1" are the same class."""
        return {str(name): weight for name, weight in given.items()} if isinstance(given, Mapping) else given

    @field_validator("class_weight")
    @classmethod
    def _not_negative(cls, given: Any) -> Any:
        if isinstance(given, dict) and not all(math.isfinite(weight) and weight >= 0 for weight in given.values()):
            raise ValueError("weights are finite numbers of 0 or more")
        return given


def as_names(given: Any, *, may_be_none: bool = False) -> Any:
    """Return names joined with commas as a tuple; what is no such string stays as it is."""
    if may_be_none and (given is None or given in ("none", "", ("none",), ["none"])):
        return ()
    if isinstance(given, str) and given != "auto":
        return tuple(name.strip() for name in given.split(","))
    return given


def as_positive(given: tuple[float, ...]) -> tuple[float, ...]:
    """Require positive numbers to choose from."""
    if not all(value > 0 for value in given):
        raise ValueError("numbers to choose from are positive")
    return given


def as_small(given: tuple[int, ...]) -> tuple[int, ...]:
    """Require numbers of rounds, sizes or levels to choose from that can be computed."""
    if not all(value <= MOST_ROUNDS for value in given):
        raise ValueError(f"numbers to choose from are at most {MOST_ROUNDS}")
    return given


def with_default(section: type[Section], name: str, default: Any) -> Any:
    """Return a section's field with another default, for the settings of a method that differs in it."""
    field = copy(section.model_fields[name])
    field.default = default
    return field


# fields come in reverse order of the bases
