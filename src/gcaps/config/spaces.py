"""Search spaces: for each method the settings that ``gcaps tune`` searches, with their ranges or choices.

Settings that a method chooses itself on inner folds, such as the kernel and C of a support vector machine, are not
searched. Every space contains the default of its settings, which is the first trial of a search.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from gcaps.config import CONFIGS
from gcaps.documents import STRICT, Name, Number, Page, read_toml, validated
from gcaps.errors import ConfigError

Value: TypeAlias = bool | int | float | str | None
"""A single setting."""
MAX_CHOICES = 1000
"""Values of a setting that may be listed."""


@dataclass(frozen=True)
class Choice:
    """A setting that takes one of several values; a value may be a list."""

    __pydantic_config__ = STRICT

    values: Annotated[list[Any], Field(min_length=1, max_length=MAX_CHOICES)]

    @property
    def count(self) -> int:
        """Number of values."""
        return len(self.values)

    @property
    def labels(self) -> list[Value]:
        """The values as single ones: a list as its entries with plus signs between them."""
        return ["+".join(map(str, value)) if isinstance(value, list | tuple) else value for value in self.values]

    def label_of(self, value: Any) -> Value:
        """Return the label of a value.

        Raises:
            ValueError: the value is none of the choices.
        """
        for own, label in zip(self.values, self.labels, strict=True):
            if _plain(own) == _plain(value) and isinstance(own, bool) == isinstance(value, bool):
                return label
        raise ValueError(f"{value!r} is none of {self.values!r}")

    def value_of(self, label: Value) -> Any:
        """Return the value of a label."""
        for own, known in zip(self.values, self.labels, strict=True):
            if known == label and isinstance(known, bool) == isinstance(label, bool):
                return own
        raise ValueError(f"{label!r} is none of {self.labels!r}")

    def __str__(self) -> str:
        return ", ".join("none" if label is None else str(label) for label in self.labels)


@dataclass(frozen=True)
class Range:
    """A setting between two numbers, both included; whole numbers where both ends are."""

    __pydantic_config__ = STRICT

    low: int | Number
    high: int | Number
    log: bool = False
    """Whether the scale is logarithmic."""

    @property
    def integer(self) -> bool:
        """Whether the setting is a whole number."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def count(self) -> float:
        """Number of values."""
        return self.high - self.low + 1 if self.integer else float("inf")

    def label_of(self, value: Any) -> Value:
        """Return the value itself.

        Raises:
            ValueError: it is not within the range.
        """
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not self.low <= value <= self.high or (self.integer and not isinstance(value, int)):
            raise ValueError(f"{value!r} is not within {self}")
        return value if self.integer else float(value)

    def value_of(self, label: Value) -> Any:
        """Return the label itself."""
        return label

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}{', logarithmic' if self.log else ''}"


Space: TypeAlias = dict[Name, Range | Choice]
"""Settings to search, by name."""


def _any_of(*values: Any) -> Choice:
    return Choice(list(values))


_DECAYS = _any_of(0.0, 1e-5, 1e-4, 1e-3, 1e-2)
_BATCHES = _any_of(16, 32, 64, 128)
_ON_OFF = _any_of(True, False)
_CAPSULES: Space = {
    "layers": _any_of("auto", 1, 2, 3, 4),
    "capsule_size": Range(1, 4),
    "filter": _any_of("adjacency", "laplacian", "symmetric", "mean"),
    "degree": Range(1, 3),
    "rank": _any_of(16, 32, 64, 128),
    "reduce": _any_of("auto", "mean", "sum"),
    "inputs": _ON_OFF,
}
_FORESTS: Space = {"n_estimators": _any_of(200, 500, 1000)}

SPACES: dict[str, Space] = {
    "gcaps": {
        "hidden": Range(16, 96, log=True),
        **_CAPSULES,
        "lr": Range(5e-4, 2e-2, log=True),
        "dropout": _any_of("auto", 0.0, 0.2, 0.5),
        "weight_decay": _any_of("auto", 1e-5, 1e-4, 1e-3, 1e-2),
        "epochs": _any_of("auto", 30, 60, 100),
    },
    "capsule-svm": {"hidden": Range(16, 128, log=True), **_CAPSULES},
    "dcnn": {
        "hops": Range(1, 8),
        "lr": Range(5e-3, 0.2, log=True),
        "dropout": Range(0.0, 0.6),
        "weight_decay": _DECAYS,
        "batch_size": _BATCHES,
    },
    "pscn": {
        "field": Range(5, 15),
        "channels": _any_of(8, 16, 32),
        "hidden": _any_of(64, 128, 256),
        "lr": Range(2e-4, 1e-2, log=True),
        "dropout": Range(0.0, 0.6),
    },
    "ecc": {
        "hidden": _any_of(16, 32, 48, 64),
        "filter_hidden": _any_of(8, 16, 32),
        "lr": Range(5e-4, 2e-2, log=True),
        "dropout": Range(0.0, 0.6),
    },
    "dgcnn": {
        "layers": Range(2, 4),
        "hidden": _any_of(16, 32, 64),
        "share": Range(0.4, 0.9),
        "lr": Range(1e-4, 1e-2, log=True),
        "dropout": Range(0.0, 0.6),
    },
    "gin": {
        "layers": Range(3, 6),
        "hidden": _any_of(16, 32, 64, 128),
        "readout": _any_of("sum", "mean"),
        "lr": Range(1e-3, 3e-2, log=True),
        "dropout": Range(0.0, 0.6),
        "batch_size": _BATCHES,
    },
    "deepsets": {
        "hidden": _any_of(32, 64, 128),
        "lr": Range(5e-4, 2e-2, log=True),
        "dropout": Range(0.0, 0.6),
        "weight_decay": _DECAYS,
        "batch_size": _BATCHES,
    },
    "rw": {"labels": _ON_OFF, "normalize": _ON_OFF},
    "sp": {"normalize": _ON_OFF},
    "gk": {
        "sizes": _any_of([3, 4, 5, 7], [3, 4, 5], [3, 4], [3]),
        "samples": _any_of(500, 2000, 5000),
        "normalize": _ON_OFF,
    },
    "wl": {"edge_labels": _any_of("auto", False), "normalize": _ON_OFF},
    "wloa": {"edge_labels": _any_of("auto", False), "normalize": _ON_OFF},
    "retgk": {
        "steps": _any_of(10, 25, 50, 100),
        "base": _any_of("laplacian", "gaussian"),
        "labels": _ON_OFF,
        "n_features": _any_of(100, 200, 400),
    },
    "dgk": {"dimension": _any_of(16, 32, 64, 128), "share": Range(0.0, 1.0), "normalize": _ON_OFF},
    "mlg": {
        "radius": _any_of([1], [1, 2]),
        "rank": _any_of(5, 10, 20),
        "samples": _any_of(50, 100, 200),
        "normalize": _ON_OFF,
    },
    "tanimoto": {
        "fingerprints": _any_of(
            ["morgan"], ["morgan_bits"], ["maccs"], ["atom_pairs"], ["morgan", "maccs", "atom_pairs"]
        )
    },
    "fgsd": {"bins": Range(50, 1000, log=True), "spacing": _any_of("uniform", "quantile"), **_FORESTS},
    "ltp": {"bins": _any_of(25, 50, 100), "ranges": _any_of("training", "graph"), "share": _ON_OFF, **_FORESTS},
    "ecfp": {
        "fingerprints": _any_of(
            ["morgan"], ["morgan_bits"], ["maccs"], ["atom_pairs"], ["morgan", "maccs"], ["morgan", "descriptors"]
        ),
        "radius": Range(1, 4),
        "bits": _any_of(1024, 2048, 4096),
        "model": _any_of("forest", "boosting"),
        **_FORESTS,
    },
    "descriptors": {
        "fingerprints": _any_of(["descriptors"], ["descriptors", "morgan"], ["descriptors", "maccs"]),
        "model": _any_of("boosting", "forest"),
        "learning_rate": Range(0.01, 0.2, log=True),
        "n_estimators": _any_of(100, 200, 500, 1000),
    },
}
"""Search space of each method; methods without one choose all of their settings themselves."""


class _Ends(Page):
    """A range in a file of search spaces."""

    low: int | Number
    high: int | Number
    log: bool = False

    @model_validator(mode="after")
    def _ordered(self) -> _Ends:
        if not self.low < self.high:
            raise ValueError("low is less than high")
        if self.log and self.low <= 0:
            raise ValueError("a logarithmic range is above 0")
        return self


def search_space(method: str, given: str | Path | Mapping[str, Any] | None = None) -> Space:
    """Return the search space of a method.

    Args:
        method: its name.
        given: a space to search instead: a TOML file with a table for the method, or such a table as a dictionary. A
            list holds the values to choose from, ``{low = 16, high = 128, log = true}`` is a range.

    Raises:
        ConfigError: there is nothing to search, or the space names no settings of the method.
    """
    if given is None:
        if method not in SPACES:
            why = "weighs other methods" if method == "ensemble" else "chooses its settings itself on inner folds"
            raise ConfigError(f"there is nothing to tune: {method} {why}; methods to tune: {', '.join(SPACES)}")
        return dict(SPACES[method])
    place = "the search space"
    if isinstance(given, str | Path):
        place, tables = str(given), read_toml(given)
        for name in tables:
            if name not in CONFIGS:
                raise ConfigError(f"{place}: there is no method {name!r}; there are {', '.join(CONFIGS)}")
        if method not in tables:
            raise ConfigError(f"{place}: has no table [{method}]; it has {', '.join(tables) or 'none'}")
        given = tables[method]
    if not isinstance(given, Mapping) or not given:
        raise ConfigError(f"{place}: {method} is a table of settings, such as hidden = [16, 32]")
    return {name: _dimension(method, name, value, place) for name, value in given.items()}


def _dimension(method: str, name: str, given: Any, place: str) -> Range | Choice:
    """Return a setting's range or choices, whose values must be valid."""
    what = f"{place}: {method}.{name}"
    if name not in CONFIGS[method].model_fields:
        raise ConfigError(f"{what}: there is no such setting; there are {', '.join(CONFIGS[method].model_fields)}")
    found: Range | Choice
    if isinstance(given, Range | Choice):
        found = given
    elif isinstance(given, Mapping):
        ends = validated(_Ends, dict(given), f"{what}: is no range {{low = 16, high = 128, log = true}}", ConfigError)
        found = Range(ends.low, ends.high, ends.log)
    else:
        values = list(given) if isinstance(given, list | tuple) else [given]
        if not 1 <= len(values) <= MAX_CHOICES:
            raise ConfigError(f"{what}: has {len(values):,} values; give 1 to {MAX_CHOICES:,}")
        found = Choice([None if value == "none" and CONFIGS[method].allows_none(name) else value for value in values])
    for value in [found.low, found.high] if isinstance(found, Range) else found.values:
        try:
            CONFIGS[method].parse({name: value})
        except ConfigError as error:
            raise ConfigError(f"{place}: {method}: {error}") from error
    return found


def combinations(space: Space) -> float:
    """Return the number of settings in a space; infinite where a setting is a real number."""
    return prod(dimension.count for dimension in space.values())


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


Pruning = Literal["median", "hyperband", "none"]
"""Rule by which a trial is pruned before all inner folds are done."""
