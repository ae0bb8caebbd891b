"""The mean of several methods' predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np
from sklearn.base import clone

from gcaps.config import EnsembleConfig
from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.data.targets import Task
from gcaps.errors import ConfigError
from gcaps.estimators.auto import resolve
from gcaps.estimators.base import FitOptions, GraphClassifier, GraphEstimator, GraphRegressor, State
from gcaps.estimators.registry import make_estimator


class MeanOfMethods(GraphEstimator):
    """Base class of the ensembles of methods."""

    method: ClassVar[str] = "ensemble"
    shares_folds: ClassVar[bool] = True

    methods: Sequence[str | GraphEstimator] | Literal["auto"]
    estimators_: list[GraphEstimator]

    @property
    def config(self) -> EnsembleConfig:
        """The settings; estimators are given as their method's name."""
        if self.methods == "auto":
            return EnsembleConfig()
        return EnsembleConfig.parse({"methods": tuple(m if isinstance(m, str) else m.method for m in self.methods)})

    def prepare(self, prepared: PreparedSet) -> None:
        """Prepare every member."""
        for m in self._given(resolve(self.config, prepared.graphs, task=self._task)[0]):
            self._made(m).prepare(prepared)

    def fit_prepared(self, prepared: PreparedSet, train: Ints, **options: Unpack[FitOptions]) -> Self:
        """Fit every member on some graphs of a prepared set."""
        self._seed()  # raises for what is none
        problem = self._start(prepared, train, options)
        config, self.resolution_ = resolve(self.config, prepared.graphs, train, problem.target.task)
        given = self._given(config)
        if not given:
            raise ConfigError("an ensemble needs at least one method")
        self.resolved_ = config.to_dict()
        shared: FitOptions = {**options, "watch": None, "checkpoint": None}  # the mean has no curves of its own
        self.estimators_ = [
            (self._made(m) if isinstance(m, str) else clone(m)).fit_prepared(prepared, train, **shared) for m in given
        ]
        names = [m if isinstance(m, str) else m.method for m in given]
        members = zip(names, self.estimators_, strict=True)
        self.chosen_ = {f"{name}.{key}": value for name, m in members for key, value in m.chosen_.items()}
        return self

    def release(self) -> None:
        """Let go of graphs that members keep."""
        for member in self.estimators_:
            member.release()

    @property
    def _task(self) -> Task:
        return "regression" if isinstance(self, GraphRegressor) else "classification"

    def _given(self, config: EnsembleConfig) -> Sequence[str | GraphEstimator]:
        """Return the members, by settings without ``auto``."""
        return config.methods if self.methods == "auto" else self.methods

    def _made(self, method: str | GraphEstimator) -> GraphEstimator:
        """Return the estimator of a method that is given by name, with the features that follow a plus sign."""
        if not isinstance(method, str):
            return method
        name, *extra = method.split("+")
        return make_estimator(name, {"extra_features": ",".join(extra)} if extra else None, self._seed(), self._task)

    def scores_prepared(self, prepared: PreparedSet, indices: Ints) -> Floats:
        """Return scores of some graphs of a prepared set."""
        return self._mean([m._finite(m.scores_prepared(prepared, indices)) for m in self.estimators_])

    def _scores(self, graphs: GraphSet) -> Floats:
        return self._mean([m.scores(graphs) for m in self.estimators_])

    def _mean(self, scores: list[Floats]) -> Floats:
        mean: Floats = np.mean(np.stack([np.asarray(p, dtype=np.float64) for p in scores]), axis=0)
        return mean

    @property
    def describes(self) -> str:
        """What predicts, in words."""
        return "; ".join(member.describes for member in self.estimators_)

    @property
    def members(self) -> list[GraphEstimator]:
        """The estimators that are saved in folders of their own."""
        return self.estimators_

    def state(self) -> State:
        """Return nothing: the members hold everything."""
        return {}, {"methods": [member.method for member in self.estimators_]}

    def restore(self, arrays: dict[str, Array], values: dict[str, Any]) -> None:
        """Do nothing: :mod:`gcaps.persistence` sets ``estimators_``."""


class GraphEnsemble(GraphClassifier, MeanOfMethods):
    """Mean of the class probabilities of several methods.

    Every member is fitted on the same graphs; nothing is chosen or weighted.

    Args:
        methods: names of methods (with their default settings) or estimators; ``"gcaps+descriptors"`` is gcaps with
            ``extra_features="descriptors"``. ``"auto"``: gcaps, capsule-svm and wloa; for molecules gcaps,
            gcaps+descriptors, ecfp, descriptors, and tanimoto up to 10,000 training graphs.
        random_state: of every member that is given by name.

    Attributes:
        estimators_: the fitted members.
    """

    def __init__(
        self,
        methods: Sequence[str | GraphEstimator] | Literal["auto"] = "auto",
        *,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())


class GraphEnsembleRegressor(GraphRegressor, MeanOfMethods):
    """Mean of the values that several methods predict.

    Args:
        methods: names of methods (with their default settings) or estimators; ``"gcaps+descriptors"`` is gcaps with
            ``extra_features="descriptors"``. ``"auto"``: gcaps, capsule-svm and wloa; for molecules gcaps,
            gcaps+descriptors and descriptors.
        random_state: of every member that is given by name.

    Attributes:
        estimators_: the fitted members.
    """

    def __init__(
        self,
        methods: Sequence[str | GraphEstimator] | Literal["auto"] = "auto",
        *,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())
