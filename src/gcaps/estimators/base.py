"""Base classes of the estimators on graphs: fitting, prediction, uncertainty and saving."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict, Unpack

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from gcaps.config import CONFIGS, Section
from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.data.molecules.preparation import MoleculePreparation
from gcaps.data.prepared import PreparedSet
from gcaps.data.targets import Target, Task, missing
from gcaps.errors import ConfigError, DataWarning
from gcaps.estimators.auto import Resolution
from gcaps.estimators.fitting import ClassesMixin, Fitting
from gcaps.estimators.novelty import Novelty
from gcaps.estimators.predictor import loaded, require_finite
from gcaps.estimators.problem import Problem, given_targets, posed, sample_weights, targets_of, with_targets
from gcaps.estimators.uncertainty import How, Uncertainty
from gcaps.training.fit import Curves
from gcaps.training.loop import Epoch

if TYPE_CHECKING:
    from gcaps.explain.explanation import Explanation

State = tuple[dict[str, Array], dict[str, Any]]
"""Arrays and JSON values of a fitted estimator."""


class FitOptions(TypedDict, total=False):
    """Options of :meth:`GraphEstimator.fit_prepared`."""

    sample_weight: Floats | None
    """[G] weights of all graphs of the set."""
    validation: Ints | None
    """Those of the training graphs that pick the epoch, where one is picked."""
    groups: Ints | None
    """[G] groups of all graphs of the set, such as scaffolds, that inner validation and inner folds keep whole."""
    watch: Ints | None
    """Graphs whose score is recorded after each epoch, in ``curves_.watched`` and nowhere else."""
    on_epoch: Callable[[Epoch], None] | None
    """Called after each epoch."""
    checkpoint: Path | None
    """Folder from which an interrupted training is resumed."""
    keep_checkpoint: bool
    """Leave it there when the training is over; the caller removes it when the estimator is saved."""
    say: Callable[[str], None] | None
    """Called with a line about each step of a fit that has several, such as the members of an ensemble."""


class GraphEstimator(Fitting):
    """Base class of the estimators on graphs.

    Graphs are a :class:`gcaps.GraphSet` or anything that :func:`gcaps.load` takes: lists of PyTorch Geometric ``Data``,
    NetworkX graphs, RDKit molecules or SMILES, TU folders and zips, tables of molecules, catalog names.

    Attributes:
        target_: what is predicted: task, names, and classes or units.
        resolved_: the settings of the fit, without any ``auto``.
        resolution_: how each ``auto`` was resolved, and why.
        chosen_: what was chosen on the training graphs, such as a kernel and its SVM's C.
        curves_: loss and score of each epoch; None for a method without epochs.
        epoch_: the epoch that the model comes from; 1 for a method without epochs.
        data_: name, fingerprint and number of the training graphs.
        preparation_: how molecules were made graphs for the fit, and are for predictions; None for other graphs.
        uncertainty_: what :meth:`fit_calibrated` or :meth:`calibrate` measured; None without them.
    """

    method: ClassVar[str] = ""
    """Name in :data:`gcaps.estimators.METHODS`; empty for a class without settings of its own."""
    shares_folds: ClassVar[bool] = False
    """Whether the folds of one set share work that is worth running them in one process, one after the other."""

    target_: Target
    resolved_: dict[str, Any]
    resolution_: list[Resolution]
    chosen_: dict[str, Any]
    curves_: Curves | None
    epoch_: int
    data_: dict[str, Any]
    preparation_: MoleculePreparation | None
    uncertainty_: Uncertainty | None

    @property
    def config(self) -> Section:
        """The settings, validated."""
        if self.method not in CONFIGS:
            raise AttributeError(f"{type(self).__name__} has no settings but its parameters")
        kind = CONFIGS[self.method]
        return kind.parse({name: getattr(self, name) for name in kind.model_fields if hasattr(self, name)})

    @abstractmethod
    def task_of(self, y: Array) -> Task:
        """Return the task that this estimator makes of targets ``y`` [G] or [G, T]."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit on graphs.

        Args:
            X: the training graphs.
            y: [G] their targets, or [G, T] several; by default ``y`` of the graphs. NaN, None and the empty string are
                missing values; a graph without any target is left out.
            sample_weight: [G] weight of each graph; by default all count the same.
        """
        graphs = with_targets(load(X, labelled=False), y)
        return self.fit_all(graphs, sample_weight=sample_weights(sample_weight, len(graphs)))

    def fit_calibrated(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, how: How = "cross", folds: int = 5
    ) -> Self:
        """Fit on graphs, and measure the uncertainty of predictions on graphs that the model was not fitted on.

        Args:
            X: the training graphs.
            y: their targets, as for :meth:`fit`.
            sample_weight: [G] weight of each graph in the fit.
            how: ``"cross"``: every graph is predicted in inner folds, and the model is fitted on all graphs; the
                coverage is approximate. ``"split"``: one graph in five is held out, and the model is fitted on the
                others; the coverage is guaranteed for any model and any distribution.
            folds: inner folds of ``"cross"``; the fit takes about as many times longer.
        """
        from gcaps.estimators.calibrating import fit_calibrated

        graphs = with_targets(load(X, labelled=False), y)
        fit_calibrated(self, graphs, how, folds, sample_weight=sample_weights(sample_weight, len(graphs)))
        return self

    def calibrate(self, X: Any, y: Any = None) -> Self:
        """Measure the uncertainty of the fitted model on graphs that it was not fitted on.

        The coverage is guaranteed for graphs of the same distribution; :meth:`novelty` compares with these graphs, too.

        Args:
            X: graphs that took no part in the fit.
            y: their targets, by default their own.
        """
        from gcaps.estimators.calibrating import measure

        graphs = with_targets(self.loaded(X), y)
        measure(self, graphs, graphs)
        return self

    def novelty(self, X: Any) -> Novelty:
        """Return the similarity of graphs to the training graphs, and which of them are novel."""
        graphs = self.loaded(X)
        return self.known_uncertainty().domain.compare(graphs)

    def known_uncertainty(self) -> Uncertainty:
        """Return the measured uncertainty.

        Raises:
            ConfigError: it was not measured.
        """
        found: Uncertainty | None = getattr(self, "uncertainty_", None)
        if found is None:
            check_is_fitted(self, "target_")
            raise ConfigError(
                "the model is not calibrated; train it with --calibrate cross, or in Python with fit_calibrated"
            )
        return found

    def _spread(self, graphs: GraphSet) -> Floats | None:
        """[G, T] standard deviation of the values of several models, in the units of ``y``; None for a single model."""
        return None

    def fit_all(self, graphs: GraphSet | PreparedSet, **options: Unpack[FitOptions]) -> Self:
        """Fit on all graphs of a set, with the options of :meth:`fit_prepared`."""
        prepared = PreparedSet.of(graphs)
        graphs = prepared.graphs
        self.fit_prepared(prepared, np.arange(len(graphs)), **options)
        self.release()
        self.data_ = {"name": graphs.name, "fingerprint": graphs.fingerprint(), "graphs": len(graphs)}
        return self

    def release(self) -> None:
        """Release the graphs of a prepared set that are kept for :meth:`scores_prepared`."""

    def remove_checkpoint(self, folder: Path) -> None:
        """Remove what a fit with ``keep_checkpoint`` left in a folder; nothing for a method without checkpoints."""

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

    def scores_prepared(self, prepared: PreparedSet, indices: Ints) -> Floats:
        """Return :meth:`scores` of some graphs of a prepared set."""
        return self._scores(prepared.graphs.subset(indices))

    def scores(self, X: Any) -> Floats:
        """Return what predictions are made from.

        Returns:
            For classification probabilities [G, C]; for several binary targets the probability of the second class
            [G, T]; for regression values [G, T] in the units of ``y``.
        """
        return require_finite(self._scores(self.loaded(X)))

    def loaded(self, X: Any) -> GraphSet:
        """Return graphs to predict, with molecules prepared as those of the fit were.

        Raises:
            DataError: they are a GraphSet of molecules that were prepared otherwise.
        """
        check_is_fitted(self, "target_")
        return loaded(X, getattr(self, "preparation_", None))

    @abstractmethod
    def _scores(self, graphs: GraphSet) -> Floats: ...

    def _in_units(self, outputs: Floats) -> Floats:
        """Return scores from probabilities or standardised values."""
        return self.target_.in_units(outputs) if self.target_.task == "regression" else outputs

    def predict(self, X: Any) -> Array:
        """Return the prediction for each graph, [G] or [G, T], in the words or units of ``y``."""
        scores = self.scores(X)
        return self.target_.decode(scores)

    def explain(self, X: Any, target: str | None = None, *, method: str = "auto") -> Explanation:
        """Return the contributions of nodes, edges and features to the predictions; see :func:`gcaps.explain.explain`.

        Args:
            X: graphs.
            target: one of several targets; by default the first.
            method: how contributions are computed; auto: the best way for this model.
        """
        from gcaps import explain

        return explain.explain(self, X, target, method=method)

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to the folder ``path`` (safetensors and JSON); ``gcaps.load_model`` reads it."""
        from gcaps import persistence

        check_is_fitted(self, "target_")
        persistence.save(self, path)

    @abstractmethod
    def state(self) -> State:
        """Return the fitted state as arrays and JSON values, for :mod:`gcaps.persistence`."""

    @abstractmethod
    def restore(self, arrays: dict[str, Array], values: dict[str, Any]) -> None:
        """Set the fitted state from the values of :meth:`state`; ``target_`` and ``resolved_`` are set already."""

    @property
    def describes(self) -> str:
        """Description of the model."""
        return type(self).__name__

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "target_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.multi_output = True
        return tags

    def _start(self, prepared: PreparedSet, train: Ints, options: FitOptions) -> Problem:
        """Set ``target_`` from the training graphs; return what is to be fitted."""
        graphs = prepared.graphs
        problem = posed(graphs, train, self.task_of, getattr(self, "class_weight", None), options.get("sample_weight"))
        self.preparation_, self.target_ = graphs.preparation, problem.target
        self.curves_, self.epoch_, self.chosen_, self.uncertainty_ = None, 1, {}, None
        return problem


class GraphClassifier(ClassifierMixin, ClassesMixin, GraphEstimator):  # type: ignore[misc]
    """Base class of the classifiers on graphs: one target with two or more classes, or several binary targets.

    Attributes:
        classes_: [C] the classes in the source's words, ascending; [2] for several binary targets.
    """

    class_weight: Any = None

    def task_of(self, y: Array) -> Task:
        """Return ``"multilabel"`` for several columns, else ``"classification"``."""
        return "multilabel" if y.ndim == 2 and y.shape[1] > 1 else "classification"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def predict_proba(self, X: Any) -> Floats:
        """Return class probabilities [G, C] in the order of ``classes_``.

        For several binary targets, the probability [G, T] of the second class, as scikit-learn's MLPClassifier does.
        """
        return self.scores(X)

    def predict_calibrated(self, X: Any) -> Floats:
        """Return calibrated probabilities in the form of :meth:`predict_proba`.

        The temperature of classes does not change which is the most probable; several binary targets have a slope and
        an offset each.
        """
        return self.known_uncertainty().probabilities(self.scores(X))

    def predict_set(self, X: Any, coverage: float = 0.9, *, by_class: bool = False) -> Array:
        """Return sets of classes that contain the true one with a probability of about ``coverage``.

        Args:
            X: graphs.
            coverage: probability that a set contains the true class, between 0 and 1.
            by_class: guarantee the coverage for each class separately; sets are larger.

        Returns:
            [G, C] whether each class is in the set; for several binary targets [G, T, 2]. A set may be empty: no class
            is likely enough.
        """
        return self.known_uncertainty().sets(self.scores(X), coverage, by_class=by_class)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy on graphs ``X`` with targets ``y``, by default their own.

        Of several binary targets, the share of all known labels that are predicted correctly.
        """
        graphs = self.loaded(X)
        truth = targets_of(graphs) if y is None else given_targets(y, len(graphs))
        predicted, known = self.predict(graphs), ~missing(truth)
        if y is None and len(unseen := np.setdiff1d(truth[known], self.classes_)):
            remedy = "in cross-validation pass y, so that folds are stratified"
            warnings.warn(f"no training graph has the class {unseen[0]}; {remedy}", DataWarning, stacklevel=2)
        right = (predicted == truth.reshape(predicted.shape)).reshape(known.shape)
        weight = np.ones(len(graphs)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        spread = np.broadcast_to(weight.reshape(-1, *[1] * (known.ndim - 1)), known.shape)
        return float(np.average(right[known], weights=spread[known]))


class GraphRegressor(RegressorMixin, GraphEstimator):  # type: ignore[misc]
    """Base class of the regressors on graphs: one or several real targets.

    Targets are standardised over the training graphs; predictions are in the units of ``y``.
    """

    def task_of(self, y: Array) -> Task:
        """Return ``"regression"``."""
        return "regression"

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Return intervals that contain the true value with a probability of about ``coverage``.

        Intervals of ensembles are wider where the members disagree.

        Args:
            X: graphs.
            coverage: probability that an interval contains the true value, between 0 and 1.

        Returns:
            [G, 2] lower and upper end in the units of ``y``, or [G, T, 2] where ``y`` has columns; infinite where there
            are too few calibration graphs.
        """
        found, graphs = self.known_uncertainty(), self.loaded(X)
        ends = found.intervals(self.scores(graphs), coverage, self._spread(graphs) if found.spread else None)
        return ends if self.target_.columns else ends[:, 0]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R² on graphs ``X`` with targets ``y``, by default their own; the mean over several targets."""
        graphs = self.loaded(X)
        truth = targets_of(graphs) if y is None else given_targets(y, len(graphs))
        predicted = self.predict(graphs).reshape(len(graphs), -1)
        table, known = truth.reshape(len(graphs), -1), ~missing(truth).reshape(len(graphs), -1)
        weight = np.ones(len(graphs)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        found = [
            r2_score(table[rows, t], predicted[rows, t], sample_weight=weight[rows])
            for t, rows in enumerate(known.T)
            if rows.any()
        ]
        return float(np.mean(found))


def load_fitted(path: Path) -> GraphEstimator:
    """Read what :meth:`GraphEstimator.save` wrote."""
    from gcaps import persistence

    return persistence.load_estimator(path)
