"""Search over settings: proposal of trials, pruning, and the record of each trial.

The settings of trial n are a function of the seed, of n and of the trials before it, so that a killed and continued
search makes the same trials as an uninterrupted one. The first trial has the default settings.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from gcaps.config.spaces import Choice, Pruning, Range, Space, combinations
from gcaps.documents import STRICT
from gcaps.errors import ConfigError, GcapsError
from gcaps.tuning.journal import NAME
from gcaps.tuning.workers import FoldWorkers

MAX_TRIALS = 100_000
STARTUP = 8
"""Number of trials with random settings before the sampler uses the scores of earlier ones."""
WARMUP = 2
"""Inner folds of a trial before it may be pruned."""
MIN_FINISHED = 5
"""Finished trials before one may be pruned."""
ATTEMPTS = 200
"""Number of random draws to find settings that were not tried."""
State = Literal["done", "pruned", "failed", "running"]


@dataclass(frozen=True)
class Tuning:
    """Parameters of the search over settings on the training graphs of a fold."""

    __pydantic_config__ = STRICT

    trials: Annotated[int, Field(ge=1, le=MAX_TRIALS)]
    """Number of trials, including the default settings."""
    space: Space
    """Settings to search."""
    folds: Annotated[int, Field(ge=1, le=1000)] = 5
    """Number of inner folds; 1: one tenth of the graphs is held back."""
    pruner: Pruning = "median"

    def __post_init__(self) -> None:
        if not 1 <= self.trials <= MAX_TRIALS or self.folds < 1:
            raise ConfigError(f"a search has 1 to {MAX_TRIALS:,} trials and at least one inner fold")


@dataclass(frozen=True)
class Trial:
    """Settings that were tried."""

    number: int
    """Counted from 0; trial 0 has the default settings."""
    changes: dict[str, Any]
    """The searched settings."""
    state: State
    value: float | None
    """Mean of the metric over the inner folds; of a pruned trial over the finished ones; None if it failed."""
    folds: list[float]
    """The metric of each finished inner fold."""
    seconds: float
    error: str = ""
    """One line, if it failed."""


@dataclass
class Search:
    """Trials of settings, in memory or in a folder.

    Args:
        space: settings to search.
        base: settings of the default, by name; those outside ``space`` are fixed.
        folds: inner folds of a trial.
        greater_is_better: the direction of the metric.
        seed: of the sampler.
        pruner: rule by which trials are pruned.
        storage: of Optuna; None: in memory. See :func:`gcaps.tuning.journal.opened`.
    """

    space: Space
    base: Mapping[str, Any]
    folds: int
    greater_is_better: bool
    seed: int = 0
    pruner: Pruning = "median"
    storage: Any = None

    def __post_init__(self) -> None:
        self._optuna = require_optuna()
        self._distributions = {name: distribution(self._optuna, one) for name, one in self.space.items()}
        self._direction = "maximize" if self.greater_is_better else "minimize"
        pruners = self._optuna.pruners
        rules = {
            "median": lambda: pruners.MedianPruner(n_startup_trials=MIN_FINISHED, n_warmup_steps=WARMUP - 1),
            "hyperband": lambda: pruners.HyperbandPruner(min_resource=1, max_resource=self.folds),
            "none": pruners.NopPruner,
        }
        given: dict[str, Any] = {
            "study_name": NAME,
            "storage": self.storage,
            "sampler": self._optuna.samplers.RandomSampler(seed=0),  # unused: see _suggest
            "pruner": rules[self.pruner](),
        }
        if self.storage is None or NAME not in [one.study_name for one in self.storage.get_all_studies()]:
            self._study = self._optuna.create_study(direction=self._direction, **given)
        else:  # does not write: searches are also read
            self._study = self._optuna.load_study(**given)
            if self._study.direction.name != self._direction.upper():
                raise GcapsError("the journal is of a search for the other end of the metric")
        for frozen in self._study.get_trials(deepcopy=False):
            known = {name: self._distributions.get(name) for name in frozen.distributions}
            whole = frozen.params.keys() == known.keys() and known.keys() <= self._distributions.keys()
            whole = whole and (frozen.number == 0 or len(known) == len(self._distributions))
            if frozen.distributions != known or not whole:
                raise GcapsError(f"trial {frozen.number} of the journal is not one of this search")

    def trials(self) -> list[Trial]:
        """All trials, in the order in which they began."""
        return [self._trial(frozen) for frozen in self._study.get_trials(deepcopy=False)]

    def _trial(self, frozen: Any) -> Trial:
        states = self._optuna.trial.TrialState
        names: dict[Any, State] = {states.COMPLETE: "done", states.PRUNED: "pruned", states.FAIL: "failed"}
        state = names.get(frozen.state, "running")
        means = [frozen.intermediate_values[step] for step in sorted(frozen.intermediate_values)]
        sums = [mean * (step + 1) for step, mean in enumerate(means)]
        folds = [after - before for before, after in zip([0.0, *sums], sums, strict=False)]
        value = means[-1] if means and state in ("done", "pruned") else None
        changes = {name: self.space[name].value_of(frozen.params[name]) for name in self.space if name in frozen.params}
        if frozen.number == 0:
            changes = {name: self.base[name] for name in self.space}
        attributes = frozen.user_attrs
        seconds, error = float(attributes.get("seconds", 0.0)), str(attributes.get("error", ""))
        return Trial(frozen.number, changes, state, value, folds, seconds, error)

    @property
    def best(self) -> Trial | None:
        """The finished trial with the best value, the first of equals; None if there is none."""
        done = [trial for trial in self.trials() if trial.state == "done" and trial.value is not None]
        sign = 1 if self.greater_is_better else -1
        return max(done, key=lambda trial: (sign * (trial.value or 0.0), -trial.number), default=None)

    def settings(self, trial: Trial) -> dict[str, Any]:
        """All settings of a trial."""
        return {**self.base, **trial.changes}

    def run(
        self,
        workers: FoldWorkers,
        trials: int,
        *,
        time_limit: float | None = None,
        on_trial: Callable[[Trial], object] | None = None,
        on_fold: Callable[[Trial], object] | None = None,
    ) -> None:
        """Run trials until there are ``trials`` of them, no combination is left, or the time limit is reached.

        Unfinished trials of an earlier process come first, beginning with their first unfinished inner fold.

        Args:
            workers: compute scores.
            trials: number of trials, including those of earlier processes.
            time_limit: seconds after which no trial begins; running ones stop after their inner fold, except the
                first, and are finished by the next run.
            on_trial: called with each finished trial.
            on_fold: called with a trial after each of its inner folds.

        Raises:
            Exception: the error of the first trial, which has the default settings.
        """
        stop = math.inf if time_limit is None else time.monotonic() + time_limit
        known = self._study.get_trials(deepcopy=False)[:trials]
        unfinished = [one.number for one in known if not one.state.is_finished()]
        waiting = [number for number in unfinished if not self._settle(number)]
        active: dict[Future[float], tuple[int, float]] = {}
        while True:
            late = time.monotonic() >= stop
            while len(active) < workers.count:
                if late and (self.best is not None or active):
                    break
                number = waiting.pop(0) if waiting else self._begin(trials)
                if number is None:
                    break
                active[self._submit(workers, number)] = number, time.monotonic()
            if not active:
                return
            for future in wait(active, return_when=FIRST_COMPLETED).done:
                number, began = active.pop(future)
                trial = self._take(number, future, time.monotonic() - began)
                if trial.state != "running":
                    if on_trial is not None:
                        on_trial(trial)
                    continue
                if on_fold is not None:
                    on_fold(trial)
                if time.monotonic() < stop or self.best is None:
                    active[self._submit(workers, number)] = number, time.monotonic()

    def _submit(self, workers: FoldWorkers, number: int) -> Future[float]:
        trial = self._trial(self._study.get_trials(deepcopy=False)[number])
        return workers.submit(self.settings(trial), len(trial.folds))

    def _take(self, number: int, future: Future[float], seconds: float) -> Trial:
        """Record the score of a trial's next inner fold."""
        frozen = self._study.get_trials(deepcopy=False)[number]
        before, states = self._trial(frozen), self._optuna.trial.TrialState
        trial = self._optuna.trial.Trial(self._study, frozen._trial_id)
        trial.set_user_attr("seconds", round(before.seconds + seconds, 3))
        error = future.exception()
        value = math.nan if error is not None else future.result()
        if error is not None and (number == 0 or not isinstance(error, Exception)):
            raise error
        if not math.isfinite(value):
            text = "the metric is not defined on an inner fold" if error is None else str(error)
            named = text if error is None or isinstance(error, GcapsError) else f"{type(error).__name__}: {text}"
            trial.set_user_attr("error", " ".join(named.split())[:500])
            self._study.tell(number, state=states.FAIL)
        else:
            folds = [*before.folds, value]
            trial.report(float(np.mean(folds)), len(folds) - 1)
            self._settle(number)
        return self._trial(self._study.get_trials(deepcopy=False)[number])

    def _settle(self, number: int) -> bool:
        """Finish a trial if all its inner folds are done or it should be pruned; return whether it is finished."""
        frozen = self._study.get_trials(deepcopy=False)[number]
        done = len(frozen.intermediate_values)
        if done >= self.folds:
            self._study.tell(number, frozen.intermediate_values[max(frozen.intermediate_values)])
        elif number and done and self._optuna.trial.Trial(self._study, frozen._trial_id).should_prune():
            self._study.tell(number, state=self._optuna.trial.TrialState.PRUNED)
        else:
            return False
        return True

    def _begin(self, trials: int) -> int | None:
        """Add the next trial and return its number; None if there are enough, or no combination is left."""
        known = self._study.get_trials(deepcopy=False)
        number = len(known)
        if number >= trials:
            return None
        if number == 0:
            params = {}
            for name, one in self.space.items():
                try:
                    params[name] = one.label_of(self.base[name])
                except ValueError:  # the default lies outside a space given by the user
                    continue
        else:
            found = self._suggest(number, known)
            if found is None:
                return None
            params = found
        create, states = self._optuna.trial.create_trial, self._optuna.trial.TrialState
        distributions = {name: self._distributions[name] for name in params}
        self._study.add_trial(create(state=states.RUNNING, params=params, distributions=distributions))
        return number

    def _suggest(self, number: int, known: list[Any]) -> dict[str, Any] | None:
        """Return untried settings: those that Optuna's sampler proposes, else random ones.

        The sampler works on a copy of the trials in memory, so that the journal has each trial on one line.
        """
        whole = [one for one in known if one.params.keys() == self.space.keys()]
        tried = {_key(one.params) for one in whole}
        if len(tried) >= combinations(self.space):
            return None
        generator = np.random.default_rng([self.seed, number])
        sampler = self._optuna.samplers.TPESampler(seed=int(generator.integers(2**31)), n_startup_trials=STARTUP)
        copy = self._optuna.create_study(direction=self._direction, sampler=sampler)
        for one in whole:
            copy.add_trial(one)
        for attempt in range(ATTEMPTS):
            params = copy.ask(self._distributions).params if attempt == 0 else _random(self.space, generator)
            if _key(params) not in tried:
                return dict(params)
        return None


def _key(params: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, repr(value)) for name, value in params.items()))


def _random(space: Space, generator: np.random.Generator) -> dict[str, Any]:
    """Draw settings from a space."""
    found: dict[str, Any] = {}
    for name, one in space.items():
        if isinstance(one, Choice):
            found[name] = one.labels[int(generator.integers(one.count))]
        elif one.log:
            value = math.exp(generator.uniform(math.log(one.low), math.log(one.high)))
            found[name] = round(value) if one.integer else min(max(value, one.low), one.high)
        else:
            found[name] = (
                int(generator.integers(one.low, one.high, endpoint=True))  # type: ignore[arg-type]
                if one.integer
                else float(generator.uniform(one.low, one.high))
            )
    return found


def distribution(optuna: Any, dimension: Range | Choice) -> Any:
    """Return a range or choices as an Optuna distribution."""
    kinds = optuna.distributions
    if isinstance(dimension, Choice):
        return kinds.CategoricalDistribution(dimension.labels)
    kind = kinds.IntDistribution if dimension.integer else kinds.FloatDistribution
    return kind(dimension.low, dimension.high, log=dimension.log)


def require_optuna() -> Any:
    """Import Optuna and silence its log messages.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise ConfigError("tuning needs Optuna: pip install 'gcaps[tune]'") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
