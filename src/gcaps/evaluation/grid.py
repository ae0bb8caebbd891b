"""Grids: which configurations of a method are chosen from, on inner validation only."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from gcaps.errors import ConfigError
from gcaps.evaluation.methods import METHODS

Grid = Mapping[str, Mapping[str, Any]]
"""For each method its settings: a list holds the values to choose from, anything else is fixed."""

DEFAULT: Grid = {
    "gcaps": {"hidden": [32, 64], "layers": ["auto", 2]},
    "dcnn": {"hops": [2, 5]},
    "pscn": {"field": [5, 10]},
    "ecc": {"lr": [0.005, 0.001]},
    "dgcnn": {"lr": [0.001, 0.0001]},
    "gin": {"hidden": [16, 32], "dropout": [0.0, 0.5]},
    "set": {"hidden": [32, 64]},
}
"""Small grids around the defaults, after the papers where these searched; kernels choose inside and need none."""


def read_grid(given: Grid | str | Path | None) -> Grid:
    """A grid from a TOML file with a table a method, ``"default"`` or a dictionary."""
    if given is None:
        return {}
    if given == "default":
        return DEFAULT
    if isinstance(given, str | Path):
        try:
            given = tomllib.loads(Path(given).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"{given}: {error}") from error
    for method, settings in given.items():
        if method not in METHODS:
            raise ConfigError(f"the grid names a method {method!r}; there are {', '.join(METHODS)}")
        if not isinstance(settings, Mapping):
            raise ConfigError(f"the grid's {method} must be a table of settings, such as hidden = [16, 32]")
    return given


def configurations(method: str, grid: Grid) -> list[dict[str, Any]]:
    """The configurations of ``method`` to choose from, in the grid's order, the last setting changing fastest."""
    settings = grid.get(method, {})
    values = [value if isinstance(value, list) else [value] for value in settings.values()]
    if not all(values):
        raise ConfigError(f"the grid of {method} has a setting without values")
    kind = METHODS[method].config
    try:
        found = [kind.parse(dict(zip(settings, choice, strict=True))).to_dict() for choice in product(*values)]
    except ConfigError as error:
        raise ConfigError(f"the grid of {method}: {error}") from error
    return [config for place, config in enumerate(found) if config not in found[:place]]
