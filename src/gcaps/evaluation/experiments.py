"""Experiments: comparisons that are written down, so that one word runs them again."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from gcaps.config import Section
from gcaps.errors import ConfigError


class Experiment(Section):
    """What ``gcaps compare`` is to compute."""

    description: str = Field("", description="what it is for")
    data: tuple[str, ...] = Field(min_length=1, description="data sets")
    methods: tuple[str, ...] | Literal["all"] = Field("all", description="methods")
    folds: int = Field(10, ge=2, description="stratified folds")
    splits: str | None = Field(None, description="a file of folds, or a folder of them")
    seeds: tuple[int, ...] = Field((0,), min_length=1, description="seeds")
    grid: dict[str, dict[str, Any]] = Field({}, description="settings of methods; lists are chosen from")
    time_limit: str | None = Field(None, description="of a cell")
    memory_limit: str | None = Field(None, description="of a cell's process")


def read_experiment(name: str) -> Experiment:
    """The experiment in a TOML file, or one of those that come with gcaps."""
    path = Path(name)
    if path.suffix != ".toml":
        places = {place.stem: place for folder in _folders() for place in sorted(folder.glob("*.toml"))}
        if name not in places:
            raise ConfigError(f"there is no experiment {name!r}; there are {', '.join(places)}, or name a .toml file")
        path = places[name]
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    for key in raw:
        if key not in Experiment.model_fields:
            raise ConfigError(f"{path}: an experiment has no {key}; it has {', '.join(Experiment.model_fields)}")
    try:
        return Experiment.parse(raw)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def _folders() -> list[Path]:
    """Beside the sources, or inside the installed package."""
    package = Path(str(resources.files("gcaps")))
    return [package.parents[1] / "experiments", package / "experiments"]
