"""GraphCapsuleClassifier: GCAPS-CNN with scikit-learn's manners."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gcaps import persistence
from gcaps.config import Config
from gcaps.data.arrays import Array, Floats
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.errors import DataError, ModelError
from gcaps.training import Fitted, fit, training_bar


class GraphCapsuleClassifier(ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Graph classification with graph capsules (GCAPS-CNN).

    Args:
        seed: the same seed gives the same classifier.
        verbose: show a progress bar while fitting.
        settings: any field of :class:`gcaps.Config`, with its default: ``hidden=32``, ``features=("degree",)``, …

    Attributes:
        classes_: the labels, ascending.
        fitted_: the classifier itself (:class:`gcaps.training.Fitted`).
        curves_: loss and accuracy of each epoch.
        epoch_: the epoch the classifier comes from.

    Graphs come as a GraphSet or as anything :func:`gcaps.load` takes: lists of PyTorch Geometric ``Data`` or of
    NetworkX graphs, TU folders and zips, catalog names.
    """

    fitted_: Fitted

    def __init__(self, *, seed: int = 0, verbose: bool = False, **settings: Any) -> None:
        self.seed, self.verbose = seed, verbose
        for name, field in Config.model_fields.items():
            setattr(self, name, settings.pop(name, field.default))
        if settings:
            raise TypeError(f"unknown settings: {', '.join(sorted(settings))}; see gcaps.Config")

    @property
    def config(self) -> Config:
        """The settings, validated."""
        return Config.parse({name: getattr(self, name) for name in Config.model_fields})

    def fit(self, X: Any, y: Sequence[int] | Array | None = None) -> Self:
        """Train on graphs ``X`` with labels ``y``, by default the labels that the graphs bring with them."""
        config = self.config
        graphs = labelled(load(X, labelled=False), y)
        self.classes_ = graphs.classes
        numbers = np.arange(len(graphs))
        if self.verbose:
            with training_bar(graphs.name, config.passes(graphs.sizes)) as report:
                found = fit(graphs, numbers, config, self.seed, on_epoch=lambda epoch: report(0, epoch))
        else:
            found = fit(graphs, numbers, config, self.seed)
        self.fitted_, self.curves_, self.epoch_ = found
        return self

    def predict_proba(self, X: Any) -> Floats:
        """[G, C] the probability of each class, in the order of ``classes_``."""
        check_is_fitted(self, "fitted_")
        return self.fitted_.predict_proba(load(X, labelled=False))

    def predict(self, X: Any) -> Array:
        """[G] the likeliest label of each graph."""
        probabilities = self.predict_proba(X)
        chosen: Array = self.classes_[probabilities.argmax(axis=1)]
        return chosen

    def transform(self, X: Any) -> Floats:
        """[G, ·] graph embeddings: the mean and covariance vector before the fully connected layers."""
        check_is_fitted(self, "fitted_")
        return self.fitted_.embed(load(X, labelled=False))

    def score(self, X: Any, y: Sequence[int] | Array | None = None, sample_weight: Array | None = None) -> float:
        """Accuracy on graphs ``X`` with labels ``y``, by default their own."""
        graphs = load(X, labelled=False)
        truth = graphs.classes[graphs.targets] if y is None else np.asarray(y)
        return float(np.average(self.predict(graphs) == truth, weights=sample_weight))

    def save(self, path: str | Path) -> None:
        """Write the classifier to the folder ``path`` (safetensors and JSON); :func:`gcaps.load_model` reads it."""
        check_is_fitted(self, "fitted_")
        persistence.save(self.fitted_, path)


def load_model(path: str | Path) -> GraphCapsuleClassifier:
    """A classifier that :meth:`GraphCapsuleClassifier.save` or ``gcaps train`` wrote."""
    fitted = persistence.load(path)
    if not isinstance(fitted.config, Config):
        raise ModelError(f"{path}: is a {fitted.config.method} network; gcaps.persistence.load reads it")
    model = GraphCapsuleClassifier(seed=fitted.seed, **fitted.config.model_dump())
    model.fitted_, model.classes_ = fitted, fitted.classes
    return model


def labelled(graphs: GraphSet, y: Sequence[int] | Array | None) -> GraphSet:
    """The graphs with labels ``y`` in the place of their own; at least two classes must be there."""
    values = graphs.classes[graphs.targets] if y is None else np.asarray(y)
    if values.shape != (len(graphs),) or not np.issubdtype(values.dtype, np.integer):
        raise DataError(f"y must be {len(graphs)} integers, one for each graph; given {values.dtype} {values.shape}")
    classes, numbered = np.unique(values, return_inverse=True)
    if len(classes) < 2:
        raise DataError(
            f"{graphs.name}: all graphs have the label {classes[0]}; a classifier needs at least two classes"
        )
    return replace(graphs, labels=numbered.astype(np.int64), classes=classes.astype(np.int64))


def _signature() -> inspect.Signature:
    """The constructor's signature, spelled out from the configuration for ``help`` and scikit-learn's ``clone``."""
    own = [p for p in inspect.signature(GraphCapsuleClassifier.__init__).parameters.values() if p.kind != p.VAR_KEYWORD]
    settings = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.annotation)
        for name, field in Config.model_fields.items()
    ]
    return inspect.Signature([*own, *settings])


GraphCapsuleClassifier.__init__.__signature__ = _signature()  # type: ignore[attr-defined]
