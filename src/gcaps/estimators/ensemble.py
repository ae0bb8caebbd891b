"""Ensembles of methods, weighted by their predictions of training graphs that they were not fitted on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np
from sklearn.base import clone

from gcaps.config import ClassWeight, EnsembleConfig
from gcaps.config.limits import mib_of, seconds_of
from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.data.targets import Task
from gcaps.errors import ConfigError
from gcaps.estimators.auto import resolve
from gcaps.estimators.base import FitOptions, GraphClassifier, GraphEstimator, GraphRegressor, State
from gcaps.estimators.members import Member, Memory, installed_mib, named
from gcaps.estimators.out_of_fold import Folds, InnerFolds, Store, comparable
from gcaps.estimators.predictor import require_finite
from gcaps.estimators.problem import Problem
from gcaps.estimators.search import Search, Standing
from gcaps.estimators.stacking import IDENTITY, Calibration, Truth, Weighing, weigh

LEAST_WEIGHT = 0.02
"""Members with a smaller weight are left out, as their predictions cost as much as those of others."""
LEAST_COSTLY_WEIGHT = 0.04
"""The same for networks of several inner folds, which cost most to keep."""

now = time.monotonic
"""The clock of time limits."""


class WeightedMethods(GraphEstimator):
    """Base class of the ensembles of methods."""

    method: ClassVar[str] = "ensemble"
    shares_folds: ClassVar[bool] = True

    methods: Sequence[str | GraphEstimator] | Literal["auto"]
    estimators_: list[GraphEstimator]
    weights_: Floats
    calibrations_: list[Calibration]
    leaderboard_: list[dict[str, Any]]
    inner_loss_: float | None

    @property
    def config(self) -> EnsembleConfig:
        """The settings; estimators are represented by their method's name."""
        fields = [name for name in EnsembleConfig.model_fields if name != "methods" and hasattr(self, name)]
        given: Any = self.methods
        if not isinstance(given, str):
            given = tuple(m if isinstance(m, str) else m.method for m in given)
        return EnsembleConfig.parse({"methods": given, **{name: getattr(self, name) for name in fields}})

    def prepare(self, prepared: PreparedSet) -> None:
        """Prepare every member; with a time limit, each is prepared when it is fitted."""
        config = resolve(self.config, prepared.graphs, task=self._task)[0]
        if config.time_limit is not None:
            return
        memory = _memory(config, prepared)
        for member in self._members(config):
            if memory.admits(member, len(prepared.graphs)) is None:
                member.estimator.prepare(prepared)

    def fit_prepared(self, prepared: PreparedSet, train: Ints, **options: Unpack[FitOptions]) -> Self:
        """Fit members on some graphs of a prepared set, and weigh them."""
        self._seed()  # raises if it is not valid
        began = now()
        problem = self._start(prepared, train, options)
        config, self.resolution_ = resolve(self.config, prepared.graphs, train, problem.target.task)
        members = self._members(config)
        if not members:
            raise ConfigError("an ensemble needs at least one method")
        self.resolved_ = config.to_dict()
        inner, self.inner_loss_ = None, None
        if config.weights != "mean":
            inner = InnerFolds.of(problem, config.inner_folds, self._seed(), options)
        if inner is None:
            self._fit_plain(prepared, train, members, options)
        else:
            self._fit_weighted(prepared, problem, members, config, inner, options, began)
        kept = [row["member"] for row in self.leaderboard_ if row["kept"]]
        chosen = {f"{n}.{key}": v for n, m in zip(kept, self.estimators_, strict=True) for key, v in m.chosen_.items()}
        weights = {f"weight.{n}": round(float(w), 6) for n, w in zip(kept, self.weights_, strict=True)}
        scores = {f"inner.{r['member']}": round(r["score"], 6) for r in self.leaderboard_ if r["score"] is not None}
        judged: dict[str, float] = {} if self.inner_loss_ is None else {"inner_loss": round(self.inner_loss_, 6)}
        self.chosen_ = {"rule": self.rule_, **judged, **weights, **scores, **chosen}
        return self

    def _fit_plain(self, prepared: PreparedSet, train: Ints, members: list[Member], options: FitOptions) -> None:
        """Fit every member on all training graphs, with equal weights."""
        shared: FitOptions = {**options, "watch": None, "checkpoint": None}  # the mean has no curves of its own
        standings = []
        self.estimators_ = []
        for member in members:
            start = time.perf_counter()
            model = member.estimator.fit_prepared(prepared, train, **shared)
            self.estimators_.append(model)
            standings.append(Standing(member, model=model, fit_seconds=time.perf_counter() - start))
        self.rule_, self.calibrations_ = "mean", [IDENTITY] * len(members)
        self.weights_ = np.full(len(members), 1 / len(members))
        self.leaderboard_ = [s.row(float(w)) for s, w in zip(standings, self.weights_, strict=True)]

    def _fit_weighted(
        self,
        prepared: PreparedSet,
        problem: Problem,
        members: list[Member],
        config: EnsembleConfig,
        inner: InnerFolds,
        options: FitOptions,
        began: float,
    ) -> None:
        """Weigh members on inner folds, leave out those of small weight, fit the others on all training graphs."""
        say = options.get("say") or (lambda line: None)
        shared = FitOptions(sample_weight=options.get("sample_weight"), groups=options.get("groups"))
        store = Store.of(options.get("checkpoint"), prepared, problem, options)
        folds = Folds(prepared, problem, inner, shared, store, config.n_jobs, self._seed())
        truth = Truth(problem.target.task, problem.y[inner.rows], _rows(problem.weight, inner.rows))
        limit = seconds_of(config.time_limit)
        ends = None if limit is None else began + limit
        search = Search(folds, truth, config.weights, _memory(config, prepared), ends, lambda: now(), say)
        standings = search.run(members)
        done = [s for s in standings if s.scores is not None]
        found = weigh(truth, np.stack([s.scores for s in done if s.scores is not None]), inner.blocks, config.weights)
        kept = _pruned(done, found.weights)
        self.estimators_ = []
        for k in sorted(kept, key=lambda k: -found.weights[k]):
            standing = done[k]
            if standing.models:
                standing.model = self._average(standing.models)
            elif ends is not None and self._any(done) and now() + standing.refit > ends:
                standing.reason = "time is up before it is fitted on all training graphs"
                continue
            else:
                say(f"{standing.member.name}: is fitted on all training graphs")
                path = None if store.folder is None else store.folder / f"{standing.member.name}.training"
                refit: Any = clone(standing.member.estimator)
                validation = options.get("validation")
                start = time.perf_counter()
                standing.model = refit.fit_prepared(
                    prepared, problem.train, **shared, validation=validation, checkpoint=path
                )
                standing.fit_seconds += time.perf_counter() - start
        self._take(found, standings, done)
        if not options.get("keep_checkpoint", False):
            store.remove()

    def _take(self, found: Weighing, standings: list[Standing], done: list[Standing]) -> None:
        """Set the fitted members, weights and leaderboard."""
        own = [k for k, s in enumerate(done) if s.model is not None]
        weights = found.weights[own] / found.weights[own].sum()
        self.rule_, self.weights_ = found.rule, weights
        self.inner_loss_ = found.losses.get(found.rule)
        self.calibrations_ = [found.calibrations[k] for k in own]
        self.estimators_ = [m for k in own if (m := done[k].model) is not None]
        for k, standing in enumerate(done):
            standing.without = float(found.without[k])
        share = dict(zip((id(done[k]) for k in own), weights.tolist(), strict=True))
        self.leaderboard_ = [standing.row(share.get(id(standing), 0.0)) for standing in standings]

    @staticmethod
    def _any(done: list[Standing]) -> bool:
        return any(standing.model is not None for standing in done)

    def _average(self, models: list[GraphEstimator]) -> GraphEstimator:
        """Return the plain mean of models as one estimator."""
        mean: Any = type(self)([m.method for m in models], weights="mean", random_state=self._seed())
        mean.target_, mean.preparation_ = self.target_, self.preparation_
        mean.resolved_ = models[0].resolved_
        mean.resolution_, mean.chosen_, mean.curves_, mean.epoch_ = [], {}, None, 1
        mean.estimators_, mean.rule_, mean.calibrations_ = models, "mean", [IDENTITY] * len(models)
        mean.weights_, mean.leaderboard_ = np.full(len(models), 1 / len(models)), []
        found: GraphEstimator = mean
        return found

    def remove_checkpoint(self, folder: Path) -> None:
        """Remove the results of members that a fit left in a folder."""
        Store(folder).remove()

    def release(self) -> None:
        """Release the graphs that members keep."""
        for member in self.estimators_:
            member.release()

    @property
    def _task(self) -> Task:
        return "regression" if isinstance(self, GraphRegressor) else "classification"

    def _members(self, config: EnsembleConfig) -> list[Member]:
        """Return the members, by settings without ``auto``, with different names."""
        given: Any = config.methods if isinstance(self.methods, str) else self.methods
        beside = tuple(m if isinstance(m, str) else m.method for m in given)
        chosen, alone = self.methods != "auto", config.weights == "mean"
        found: list[Member] = []
        for name, m in zip(beside, given, strict=True):
            count = sum(member.name.partition("#")[0] == name for member in found)
            estimator: Any
            if isinstance(m, str):
                estimator = named(m, self._seed(), self._task, alone=alone, beside=beside)
            else:
                estimator = clone(m)
            own_weight = getattr(self, "class_weight", None)
            if own_weight is not None and estimator.class_weight is None:
                estimator.set_params(class_weight=own_weight)
            found.append(Member(f"{name}#{count + 1}" if count else name, estimator, chosen))
        return found

    def scores_prepared(self, prepared: PreparedSet, indices: Ints) -> Floats:
        """Return scores of some graphs of a prepared set."""
        return self._mix([require_finite(m.scores_prepared(prepared, indices)) for m in self.estimators_])

    def _scores(self, graphs: GraphSet) -> Floats:
        return self._mix([m.scores(graphs) for m in self.estimators_])

    def _mix(self, scores: list[Floats]) -> Floats:
        """Return the weighted mean of the members' calibrated scores."""
        task = self.target_.task
        if task == "regression":
            return np.asarray(np.einsum("m,mnt->nt", self.weights_, np.stack(scores)))
        wide = [comparable(m, self.target_, s) for m, s in zip(self.estimators_, scores, strict=True)]
        if self.rule_ != "mean":
            wide = [c.apply(task, s) for c, s in zip(self.calibrations_, wide, strict=True)]
        return np.asarray(np.einsum("m,mnk->nk", self.weights_, np.stack(wide)))

    def _spread(self, graphs: GraphSet) -> Floats | None:
        if self.target_.task != "regression":
            return None
        values = np.stack([m.scores(graphs) for m in self.estimators_])
        error = np.square(values - np.einsum("m,mnt->nt", self.weights_, values))
        return np.asarray(np.sqrt(np.einsum("m,mnt->nt", self.weights_, error)))

    @property
    def describes(self) -> str:
        """Description of the model."""
        if self.rule_ == "mean":
            several = {member.describes for member in self.estimators_}
            if len(self.estimators_) > 1 and (len(several) == 1 or not self.leaderboard_):
                return f"{len(self.estimators_)} times {self.estimators_[0].describes}"  # of inner folds
            return "; ".join(member.describes for member in self.estimators_)
        parts = sorted(zip(self.weights_, self.estimators_, strict=True), key=lambda part: -part[0])
        return "; ".join(f"{weight:.2f} × {member.describes}" for weight, member in parts)

    @property
    def members(self) -> list[GraphEstimator]:
        """The estimators that are saved in separate folders."""
        return self.estimators_

    def state(self) -> State:
        """Return weights and calibrations; the members hold the rest."""
        return {}, {
            "methods": [member.method for member in self.estimators_],
            "rule": self.rule_,
            "weights": self.weights_.tolist(),
            "calibrations": [calibration.to_dict() for calibration in self.calibrations_],
            "leaderboard": self.leaderboard_,
            "chosen": self.chosen_,
        }

    def restore(self, arrays: dict[str, Array], values: dict[str, Any]) -> None:
        """Set weights and calibrations; :mod:`gcaps.persistence` sets ``estimators_``."""
        self.rule_, self.weights_ = values["rule"], np.asarray(values["weights"], np.float64)
        self.calibrations_ = [Calibration.from_dict(one) for one in values["calibrations"]]
        self.leaderboard_, self.chosen_ = values["leaderboard"], values["chosen"]


def _rows(weight: Floats | None, rows: Ints) -> Floats | None:
    return None if weight is None else weight[rows]


def _memory(config: EnsembleConfig, prepared: PreparedSet) -> Memory:
    limit = mib_of(config.memory_limit)
    return Memory(prepared, installed_mib() if limit is None else limit)


def _pruned(done: list[Standing], weights: Floats) -> list[int]:
    """Return the positions of the members that are kept; set the reason for the others."""
    kept = []
    for k, (standing, weight) in enumerate(zip(done, weights, strict=True)):
        least = LEAST_COSTLY_WEIGHT if standing.models else LEAST_WEIGHT
        if weight >= min(least, float(weights.max())):
            kept.append(k)
        else:
            standing.reason = f"its weight {weight:.3f} is below {least:g}" if weight > 0 else "it is not chosen"
    return kept


class GraphEnsemble(GraphClassifier, WeightedMethods):
    """Several methods whose class probabilities are calibrated, weighed and averaged.

    Every member predicts the training graphs in inner folds. Probabilities are calibrated and weights are found on
    these predictions: equal weights, those of a regularised stacker, or those of greedy selection, whichever is best on
    graphs that it was not fitted to; simpler rules are preferred. Members of small weight are left out, the others are
    fitted on all training graphs; of networks the models of the inner folds are kept and averaged.

    Args:
        methods: names of methods or estimators, cheapest and strongest first; ``"gcaps+descriptors"`` is gcaps with
            ``extra_features="descriptors"``. ``"auto"``: by task and number of graphs.
        weights: of calibrated members: ``"equal"``, ``"stacked"``, ``"greedy"``, or the ``"best"`` of these;
            ``"mean"``: the plain mean of members with their default settings, without inner folds.
        inner_folds: folds of the training graphs.
        time_limit: time of the fit, ``"10m"`` or seconds; members that do not fit are left out.
        memory_limit: memory of Gram matrices, ``"8G"`` or bytes; None: 80 % of what is installed.
        n_jobs: processes that fit inner folds; the result does not depend on it.
        class_weight: weight of each class: ``"balanced"``, or a dictionary from class to weight; also of members
            that have none of their own.
        random_state: of the inner folds, and of every member that is given by name.

    Attributes:
        estimators_: the fitted members that predict.
        weights_: [M] their weights.
        rule_: how the weights were found.
        leaderboard_: a row for each member: inner score and its standard error, weight, increase of
            the loss without it, seconds, and the reason if it is left out.
    """

    def __init__(
        self,
        methods: Sequence[str | GraphEstimator] | str = "auto",
        *,
        weights: Literal["best", "equal", "stacked", "greedy", "mean"] = "best",
        inner_folds: int = 5,
        time_limit: str | float | None = None,
        memory_limit: str | float | None = None,
        n_jobs: int = 1,
        class_weight: ClassWeight = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())


class GraphEnsembleRegressor(GraphRegressor, WeightedMethods):
    """Several methods whose values are weighed and averaged.

    As :class:`GraphEnsemble`, for real targets: weights minimise the squared error of standardised values, the same
    for all targets.

    Args:
        methods: names of methods or estimators, cheapest and strongest first; ``"gcaps+descriptors"`` is gcaps with
            ``extra_features="descriptors"``. ``"auto"``: by task and number of graphs.
        weights: of members: ``"equal"``, ``"stacked"``, ``"greedy"``, or the ``"best"`` of these; ``"mean"``: the plain
            mean of members with their default settings, without inner folds.
        inner_folds: folds of the training graphs.
        time_limit: time of the fit, ``"10m"`` or seconds; members that do not fit are left out.
        memory_limit: memory of Gram matrices, ``"8G"`` or bytes; None: 80 % of what is installed.
        n_jobs: processes that fit inner folds; the result does not depend on it.
        random_state: of the inner folds, and of every member that is given by name.

    Attributes:
        estimators_: the fitted members that predict.
        weights_: [M] their weights.
        rule_: how the weights were found.
        leaderboard_: a row for each member: inner score and its standard error, weight, increase of
            the loss without it, seconds, and the reason if it is left out.
    """

    def __init__(
        self,
        methods: Sequence[str | GraphEstimator] | str = "auto",
        *,
        weights: Literal["best", "equal", "stacked", "greedy", "mean"] = "best",
        inner_folds: int = 5,
        time_limit: str | float | None = None,
        memory_limit: str | float | None = None,
        n_jobs: int = 1,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())
