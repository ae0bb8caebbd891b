"""What every estimator on graphs shares: scikit-learn's manners, targets in the source's words, saving."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypedDict, Unpack

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gcaps.config import CONFIGS, Section
from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.data.targets import Classes
from gcaps.errors import DataError
from gcaps.estimators.auto import Resolution
from gcaps.training import Curves, Epoch, training_bar

State = tuple[dict[str, Array], dict[str, Any]]
"""Arrays and JSON values of a fitted estimator."""


class FitOptions(TypedDict, total=False):
    """Options of :meth:`GraphClassifier.fit_prepared`."""

    sample_weight: Floats | None
    """[G] weights of all graphs of the set."""
    validation: Ints | None
    """Those of the training graphs that pick the epoch, where one is picked."""
    watch: Ints | None
    """Graphs whose accuracy is recorded after each epoch, in ``curves_.watched`` and nowhere else."""
    on_epoch: Callable[[Epoch], None] | None
    """Called after each epoch."""
    checkpoint: Path | None
    """Folder from which an interrupted training is resumed."""


class GraphClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of the classifiers on graphs.

    Graphs are a :class:`gcaps.GraphSet` or anything that :func:`gcaps.load` takes: lists of PyTorch Geometric ``Data``
    or NetworkX graphs, TU folders and zips, tables of molecules, catalog names.

    Attributes:
        classes_: the classes in the source's words, ascending.
        resolved_: the settings of the fit, without any ``auto``.
        resolution_: how each ``auto`` was resolved, and why.
        chosen_: what was chosen on the training graphs, such as a kernel and its SVM's C.
        curves_: loss and accuracy of each epoch; None for a method without epochs.
        epoch_: the epoch that the model comes from; 1 for a method without epochs.
        data_: name, fingerprint and number of the training graphs.
    """

    method: ClassVar[str] = ""
    """Name in :data:`gcaps.estimators.METHODS`; empty for a class without settings of its own."""
    shares_folds: ClassVar[bool] = False
    """Whether the folds of one set share work that is worth running them in one process, one after the other."""

    random_state: Any
    classes_: Array
    resolved_: dict[str, Any]
    resolution_: list[Resolution]
    chosen_: dict[str, Any]
    curves_: Curves | None
    epoch_: int
    data_: dict[str, Any]

    def _store(self, parameters: Mapping[str, Any]) -> None:
        """Store the constructor's arguments as they were given; they are checked in ``fit``."""
        for name, value in parameters.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    @property
    def config(self) -> Section:
        """The settings, validated."""
        kind = CONFIGS[self.method]
        return kind.parse({name: getattr(self, name) for name in kind.model_fields})

    def fit(self, X: Any, y: Sequence[Any] | Array | None = None, sample_weight: Any = None) -> Self:
        """Fit on graphs.

        Args:
            X: the training graphs.
            y: [G] their classes, of any type; by default ``y`` of the graphs.
            sample_weight: [G] weight of each graph; by default all count the same.
        """
        graphs = load(X, labelled=False)
        if y is not None:
            graphs = replace(graphs, y=_targets(y, len(graphs)))
        return self.fit_all(graphs, sample_weight=_weights(sample_weight, len(graphs)))

    def fit_all(self, graphs: GraphSet, **options: Unpack[FitOptions]) -> Self:
        """Fit on all graphs of a set, with the options of :meth:`fit_prepared`."""
        self.fit_prepared(PreparedSet(graphs), np.arange(len(graphs)), **options)
        self.data_ = {"name": graphs.name, "fingerprint": graphs.fingerprint(), "graphs": len(graphs)}
        return self

    def prepare(self, prepared: PreparedSet) -> None:
        """Compute what the folds of a prepared set share; does nothing unless ``shares_folds``."""

    @abstractmethod
    def fit_prepared(self, prepared: PreparedSet, train: Ints, **options: Unpack[FitOptions]) -> Self:
        """Fit on some graphs of a prepared set; nothing of its other graphs reaches the fit.

        Args:
            prepared: a set with what is computed once for all of its folds.
            train: positions of the training graphs.
            options: see :class:`FitOptions`; a method without epochs ignores those about epochs.
        """

    def predict_proba_prepared(self, prepared: PreparedSet, indices: Ints) -> Floats:
        """Return class probabilities [n, C] of some graphs of a prepared set."""
        return self.predict_proba(prepared.graphs.subset(indices))

    def predict_proba(self, X: Any) -> Floats:
        """Return class probabilities [G, C], in the order of ``classes_``."""
        check_is_fitted(self, "classes_")
        return self._predict_proba(load(X, labelled=False))

    @abstractmethod
    def _predict_proba(self, graphs: GraphSet) -> Floats: ...

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each graph [G], in the source's words."""
        probabilities = self.predict_proba(X)
        chosen: Array = self.classes_[probabilities.argmax(axis=1)]
        return chosen

    def score(self, X: Any, y: Sequence[Any] | Array | None = None, sample_weight: Any = None) -> float:
        """Return the accuracy on graphs ``X`` with classes ``y``, by default their own."""
        graphs = load(X, labelled=False)
        truth = targets_of(graphs) if y is None else np.asarray(y)
        return float(np.average(self.predict(graphs) == truth, weights=sample_weight))

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to the folder ``path`` (safetensors and JSON); ``gcaps.load_model`` reads it."""
        from gcaps import persistence

        check_is_fitted(self, "classes_")
        persistence.save(self, path)

    @abstractmethod
    def state(self) -> State:
        """Return the fitted state as arrays and JSON values, for :mod:`gcaps.persistence`."""

    @abstractmethod
    def restore(self, arrays: dict[str, Array], values: dict[str, Any]) -> None:
        """Take up the state that :meth:`state` returned; ``classes_`` and ``resolved_`` are set already."""

    @property
    def describes(self) -> str:
        """What predicts, in words."""
        return type(self).__name__

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def _seed(self) -> int:
        """Return ``random_state`` as a number."""
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _start(self, prepared: PreparedSet, train: Ints) -> tuple[Classes, Ints]:
        """Set ``classes_`` from the training graphs; return them and the class numbers of all graphs of the set."""
        graphs = prepared.graphs
        y = targets_of(graphs)
        classes = Classes.of(y[train], graphs.name)
        self.classes_ = classes.names
        self.curves_, self.epoch_, self.chosen_ = None, 1, {}
        return classes, classes.encode(y)

    @contextmanager
    def _progress(
        self, title: str, epochs: int, on_epoch: Callable[[Epoch], None] | None
    ) -> Iterator[Callable[[Epoch], None] | None]:
        """Yield ``on_epoch``, or with ``verbose`` a progress bar."""
        if on_epoch is not None or not getattr(self, "verbose", False):
            yield on_epoch
            return
        with training_bar(title, epochs) as report:
            yield lambda epoch: report(0, epoch)


def targets_of(graphs: GraphSet) -> Array:
    """Return ``graphs.y``.

    Raises:
        DataError: there is none.
    """
    if graphs.y is None:
        raise DataError(f"{graphs.name} has no graph labels; pass y, or read a source that has them")
    return graphs.y


def _targets(y: Sequence[Any] | Array, graphs: int) -> Array:
    values = np.asarray(y)
    if values.shape != (graphs,) or values.dtype == object:
        raise DataError(f"y must hold {graphs} labels, one for each graph; given {values.dtype} {values.shape}")
    return values


def _weights(sample_weight: Any, graphs: int) -> Floats | None:
    if sample_weight is None:
        return None
    values = np.asarray(sample_weight, dtype=np.float64)
    if values.shape != (graphs,) or not (np.isfinite(values) & (values >= 0)).all() or not values.sum() > 0:
        raise DataError(f"sample_weight must hold {graphs} finite weights of 0 or more, not all of them 0")
    return values
