"""Rows of a comparison: methods, grids of settings, and experiments as TOML files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from gcaps.config import Section
from gcaps.config.spaces import Space, search_space
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.documents import read_toml
from gcaps.errors import ConfigError
from gcaps.estimators.registry import METHODS, config_class
from gcaps.evaluation.plan import MAX_CONFIGURATIONS
from gcaps.evaluation.planning import Row
from gcaps.evaluation.splits import Fold
from gcaps.tuning.search import MAX_TRIALS, Tuning, require_optuna

SeedNumber = Annotated[int, Field(ge=0, lt=2**32)]

Grid: TypeAlias = Mapping[str, Mapping[str, Any]]
"""For each method its settings: a list holds the values to choose from, any other value is fixed."""
Methods: TypeAlias = str | Sequence[Any] | Mapping[str, Any]
"""Names (as a list or joined with commas), estimators, or ``{label: name | (name, settings) | estimator}``."""

DEFAULT_GRID: Grid = {
    "gcaps": {"hidden": [32, 64], "layers": ["auto", 2]},
    "dcnn": {"hops": [2, 5]},
    "pscn": {"field": [5, 10]},
    "ecc": {"lr": [0.005, 0.001]},
    "dgcnn": {"lr": [0.001, 0.0001]},
    "gin": {"hidden": [16, 32], "dropout": [0.0, 0.5]},
    "deepsets": {"hidden": [32, 64]},
}
"""Small grids around the defaults, after the papers that searched; kernels choose their own parameters."""


class Entry(Section):
    """A row of an experiment on some data sets, with settings of its own."""

    label: str | None = Field(None, description="the row's name; by default the method's")
    name: str = Field("gcaps", alias="method", description="a method of gcaps evaluate")
    methods: tuple[str, ...] = Field((), description="several methods with the same settings, in place of method")
    data: str | tuple[str, ...] | None = Field(None, description="data sets; by default all of the experiment")
    settings: dict[str, Any] = Field({}, description="settings of the method")
    grid: bool = Field(False, description="a list in settings holds values to choose from on inner validation")
    seeds: tuple[SeedNumber, ...] | None = Field(None, min_length=1, description="by default those of the experiment")
    folds: int | None = Field(None, ge=1, description="number of folds; by default that of the experiment")
    first: int | None = Field(None, ge=1, description="run only the first so many folds")
    split: str | None = Field(None, description="as that of the experiment, which is the default")
    tune: int | None = Field(
        None, ge=1, le=MAX_TRIALS, description="search the settings in so many trials on inner folds of each fold"
    )
    tune_folds: int = Field(5, ge=1, le=1000, description="inner folds of such a search")
    space: dict[str, Any] | None = Field(None, description="settings to search, in place of the method's search space")

    def each(self) -> list[Entry]:
        """One entry for each of ``methods``."""
        return [self.model_copy(update={"name": name, "methods": ()}) for name in self.methods] or [self]


class Experiment(Section):
    """What ``gcaps compare --experiment`` computes: methods × data sets, and entries with settings of their own."""

    description: str = Field("", description="what it is for")
    data: tuple[str, ...] = Field((), description="data sets")
    methods: tuple[str, ...] | Literal["all"] | None = Field(
        None, description="methods, each on all data sets; by default all, or none where there are entries"
    )
    folds: int = Field(10, ge=1, description="number of folds; 1: a single 80/10/10 division")
    split: str | None = Field(
        None,
        description="stratified, random, scaffold, scaffold-balanced, group:COLUMN, time:COLUMN, column:COLUMN, a file "
        "of folds or a folder of them; by default stratified for classification, random otherwise",
    )
    seeds: tuple[SeedNumber, ...] = Field((0,), min_length=1, description="each repeats everything with other folds")
    task: str = Field("auto", description="auto, classification, multilabel or regression")
    metric: str | None = Field(None, description="the headline metric; by default that of the task")
    reading: dict[str, Any] = Field(
        {}, description="how tables are read: target, smiles, id, …, as gcaps.load takes them"
    )
    train_sizes: int | tuple[int, ...] = Field(
        (), description="learning curves: sizes of parts of the training graphs, or the number of points"
    )
    grid: dict[str, dict[str, Any]] = Field({}, description="settings of methods; lists are chosen from")
    settings: dict[str, Any] = Field({}, description="settings that all entries share")
    entries: tuple[Entry, ...] = Field((), description="rows with settings, data sets or folds of their own")
    variants: dict[str, dict[str, Any]] = Field(
        {}, description="changes of settings by label: each entry is run once with each of them"
    )
    time_limit: str | None = Field(None, description="of a cell")
    memory_limit: str | None = Field(None, description="of a cell's process")

    def rows(self) -> list[Row]:
        """The rows to run."""
        methods = self.methods if self.methods is not None else () if self.entries else "all"
        how = Evaluation(
            self.folds, self.split, tuple(self.seeds), self.task, self.metric, self.reading, self.train_sizes
        )
        rows = rows_of(self.data, named_methods(methods, self.grid), how, optional=methods == "all")
        return rows + [row for entry in self.entries for one in entry.each() for row in self._rows_of(one, how)]

    def on(self, data: Sequence[str]) -> Experiment:
        """The experiment on other data sets; of the entries that name theirs, those on these data sets."""
        entries = []
        for entry in self.entries:
            own = (entry.data,) if isinstance(entry.data, str) else entry.data
            kept = None if own is None else tuple(name for name in own if name in data)
            if kept is None or kept:
                entries.append(entry.model_copy(update={"data": kept}))
        if self.entries and not entries:
            raise ConfigError(f"the experiment has no entry on {', '.join(data)}")
        return self.model_copy(update={"data": tuple(data), "entries": tuple(entries)})

    def _rows_of(self, entry: Entry, how: Evaluation) -> list[Row]:
        sources = self.data if entry.data is None else (entry.data,) if isinstance(entry.data, str) else entry.data
        if not sources:
            raise ConfigError(f"the entry {entry.label or entry.name!r} has no data set")
        variants = self.variants or {entry.label or entry.name: {}}
        rows = []
        for label, change in variants.items():
            settings = self.settings | entry.settings | change
            fixed = settings if entry.grid else {name: [value] for name, value in settings.items()}
            configs = configurations(entry.name, {entry.name: fixed})
            own = replace(
                how,
                folds=entry.folds or how.folds,
                split=entry.split or how.split,
                seeds=tuple(entry.seeds or how.seeds),
            )
            tuning = None
            if entry.tune is not None:
                tuning = tuning_for(entry.name, configs, entry.tune, entry.tune_folds, space=entry.space)
            rows += [replace(own.row(label, entry.name, configs, one, entry.first), tuning=tuning) for one in sources]
        return rows


def read_experiment(name: str) -> Experiment:
    """Read an experiment from a TOML file, or by its name one of those that come with gcaps."""
    path = Path(name)
    if path.suffix != ".toml":
        places = {place.stem: place for folder in _folders() for place in sorted(folder.glob("*.toml"))}
        if name not in places:
            raise ConfigError(f"there is no experiment {name!r}; there are {', '.join(places)}, or name a .toml file")
        path = places[name]
    raw = read_toml(path)
    entries = raw.get("entries", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError(f"{path}: entries are tables, [[entries]]")
    for table in (raw, *entries):
        if isinstance(table, dict) and "splits" in table:  # the name that split had when it was a file always
            table.setdefault("split", table.pop("splits"))
    _check_keys(raw, Experiment, f"{path}: an experiment")
    for entry in entries:
        _check_keys(entry, Entry, f"{path}: an entry")
    try:
        found = Experiment.parse(raw)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    if not found.data and not found.entries:
        raise ConfigError(f"{path}: names no data sets; an experiment has data = [...] or [[entries]]")
    return found


def _check_keys(raw: Any, kind: type[Section], what: str) -> None:
    known = [field.alias or name for name, field in kind.model_fields.items()]
    for key in raw if isinstance(raw, dict) else {}:
        if key not in known:
            raise ConfigError(f"{what} has no {key}; it has {', '.join(known)}")


def _folders() -> list[Path]:
    """Beside the sources, or inside the installed package."""
    package = Path(str(resources.files("gcaps")))
    return [package.parents[1] / "experiments", package / "experiments"]


def read_grid(given: Grid | str | Path | None) -> Grid:
    """A grid from a TOML file with a table for each method, ``"default"`` or a dictionary."""
    if given is None:
        return {}
    if given == "default":
        return DEFAULT_GRID
    if isinstance(given, str | Path):
        given = read_toml(given)
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
    kind = config_class(method)
    if (count := prod(map(len, values))) > MAX_CONFIGURATIONS:
        raise ConfigError(
            f"the grid of {method} has {count:,} combinations; at most {MAX_CONFIGURATIONS:,} are compared"
        )
    try:
        found = [kind.parse(dict(zip(settings, choice, strict=True))).to_dict() for choice in product(*values)]
    except ConfigError as error:
        raise ConfigError(f"the grid of {method}: {error}") from error
    return list({json.dumps(config, sort_keys=True): config for config in found}.values())


def tuning_for(
    method: str | None,
    configs: Sequence[Mapping[str, Any]],
    trials: int,
    folds: int = 5,
    *,
    space: str | Path | Mapping[str, Any] | None = None,
) -> Tuning:
    """Return the search over the settings of a method on the training graphs of each fold.

    Args:
        method: its name.
        configs: its configuration; settings of the search space that differ from their default are kept fixed.
        trials: number of settings that are tried.
        folds: inner folds.
        space: see :func:`gcaps.config.spaces.search_space`.

    Raises:
        ConfigError: there is nothing to search.
    """
    if method is None or len(configs) != 1:
        raise ConfigError("settings are searched for a method of gcaps, and without a grid")
    require_optuna()
    return Tuning(trials, free_space(method, configs[0], search_space(method, space)), folds)


def free_space(method: str, settings: Mapping[str, Any], space: Space) -> Space:
    """Return a search space without the settings that differ from their default, which the user has fixed.

    Raises:
        ConfigError: none are left.
    """
    default = config_class(method).parse({}).to_dict()
    found = {name: one for name, one in space.items() if settings.get(name) == default[name]}
    if not found:
        raise ConfigError(f"all settings that are searched for {method} are given: {', '.join(space)}")
    return found


Named: TypeAlias = tuple[str | None, list[dict[str, Any]], Any]
"""A method's name (None for an estimator of the caller's), its configurations, and that estimator."""


def named_methods(methods: Methods, grid: Grid | str | Path | None = None) -> dict[str, Named]:
    """Return the given methods, by label, in their order.

    An estimator of gcaps counts as its method with its settings; seeds decide its ``random_state``.
    """
    candidates = read_grid(grid)
    if isinstance(methods, str):
        methods = list(METHODS) if methods == "all" else [name.strip() for name in methods.split(",")]
    if not isinstance(methods, Mapping):
        methods = {_label(method, methods[:place]): method for place, method in enumerate(methods)}
    return {label: _named(method, candidates) for label, method in methods.items()}


def _label(method: Any, before: Sequence[Any]) -> str:
    """A method's name; estimators of one class are numbered from the second on."""
    if isinstance(method, str):
        return method
    name = method.method if _is_ours(method) else type(method).__name__
    count = sum(type(other) is type(method) for other in before)
    return f"{name}-{count + 1}" if count else str(name)


def _is_ours(given: Any) -> bool:
    return getattr(given, "method", None) in METHODS and isinstance(getattr(given, "config", None), Section)


def _named(given: Any, grid: Grid) -> Named:
    if isinstance(given, str):
        return given, configurations(given, grid), None
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str):
        return given[0], [config_class(given[0]).of(given[1]).to_dict()], None
    if isinstance(given, type) or not (hasattr(given, "fit") and hasattr(given, "predict")):
        raise ConfigError(
            f"{given!r} is no method: give a name, (name, settings), or an estimator with fit and predict"
        )
    if _is_ours(given):
        return given.method, [given.config.to_dict()], None
    return None, [{"estimator": describe(given)}], given


def describe(estimator: Any) -> str:
    """``repr`` of an estimator on one line, not shortened and without addresses."""
    try:
        text = estimator.__repr__(N_CHAR_MAX=1_000_000)  # scikit-learn cuts after 700 characters
    except TypeError:
        text = repr(estimator)
    return re.sub(r" at 0x[0-9a-f]+", "", " ".join(text.split()))


def sources_of(data: Any, reading: Mapping[str, Any] | None = None) -> list[str | Path | GraphSet]:
    """The data sets that ``data`` names: one or a list of names, paths and GraphSets, or a list of graphs."""
    kinds = (str, Path, GraphSet)
    if isinstance(data, list | tuple) and all(isinstance(one, kinds) for one in data):
        return list(data)
    return [data if isinstance(data, kinds) else load(data, **(reading or {}))]


@dataclass(frozen=True)
class Evaluation:
    """How methods are evaluated on a data set."""

    folds: int = 10
    split: str | Path | Sequence[Fold] | None = None
    seeds: tuple[int, ...] = (0,)
    task: str = "auto"
    metric: str | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    train_sizes: int | Sequence[int] = ()

    def row(
        self,
        label: str,
        method: str | None,
        configs: list[dict[str, Any]],
        source: str | Path | GraphSet,
        first: int | None = None,
        *,
        optional: bool = False,
    ) -> Row:
        """A row of a comparison that is evaluated so."""
        split = self.split if self.split is None or isinstance(self.split, str | Path) else tuple(self.split)
        return Row(
            *(label, method, configs, source, self.seeds, self.folds, first, split, self.task, self.metric),
            dict(self.reading),
            optional,
            self.train_sizes if isinstance(self.train_sizes, int) else tuple(self.train_sizes),
        )


def rows_of(data: Any, named: Mapping[str, Named], how: Evaluation, *, optional: bool = False) -> list[Row]:
    """Every method on every data set; with ``optional``, where it takes such graphs."""
    if how.split is not None and not isinstance(how.split, str | Path):
        how = replace(how, split=tuple(how.split))  # the same object in every row
    return [
        how.row(label, method, configs, source, optional=optional)
        for source in sources_of(data, how.reading)
        for label, (method, configs, _) in named.items()
    ]
