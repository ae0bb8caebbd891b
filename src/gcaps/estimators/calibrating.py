"""Fitting of a model together with its uncertainty, on the training graphs alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
from sklearn.base import clone

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.data.targets import Target, has_target
from gcaps.errors import ConfigError, DataError
from gcaps.estimators.base import FitOptions, GraphEstimator
from gcaps.estimators.members import Member
from gcaps.estimators.novelty import Domain
from gcaps.estimators.out_of_fold import FoldFit, InnerFolds, Store, comparable, read_fit, write_fit
from gcaps.estimators.predictor import require_finite
from gcaps.estimators.problem import Problem, targets_of
from gcaps.estimators.uncertainty import HOWS, How, Uncertainty
from gcaps.kernels.multi_output import random_splits

HELD_OUT = 5
"""``"split"`` holds out one graph in so many."""


class Held(NamedTuple):
    """Predictions of graphs by models that were not fitted on them."""

    scores: Floats
    """[n, ·] probabilities of all classes, or standardised values."""
    spread: Floats | None
    """[n, T] standard deviation of the members' standardised values; None for a method without members."""


def fit_calibrated(
    estimator: GraphEstimator, graphs: GraphSet, how: How = "cross", folds: int = 5, **options: Unpack[FitOptions]
) -> None:
    """Fit an estimator and its ``uncertainty_``.

    Args:
        estimator: any method.
        graphs: the training graphs.
        how: ``"cross"``: every graph is predicted once in inner folds, and the model is fitted on all graphs;
            ``"split"``: one graph in five is held out, and the model is fitted on the others.
        folds: inner folds.
        options: as of :meth:`gcaps.estimators.base.GraphEstimator.fit_prepared`.
    """
    require_how(how)
    if folds < 2:
        raise ConfigError(f"folds: {folds} is too few; at least 2")
    if how == "split":
        _fit_split(estimator, graphs, options)
    else:
        _fit_cross(estimator, graphs, folds, options)


def require_how(given: str) -> How:
    """Validate the kind of calibration.

    Raises:
        ConfigError: there is no such kind.
    """
    for how in HOWS:
        if given == how:
            return how
    raise ConfigError(f"there is no calibration {given!r}; there are {', '.join(HOWS)}")


def _fit_split(estimator: GraphEstimator, graphs: GraphSet, options: FitOptions) -> None:
    """Hold graphs out at random, fit the others, and measure the errors on those held out."""
    whole = np.flatnonzero(_usable(graphs, options))
    seed, groups = estimator._seed(), options.get("groups")
    parts = random_splits(len(whole), HELD_OUT, seed, None if groups is None else groups[whole])
    if len(parts) < HELD_OUT:
        raise DataError(f"has {len(whole)} graphs, too few to hold some out for calibration", graphs.name)
    learn, check = (whole[part] for part in parts[0])
    own, weight = options.copy(), options.get("sample_weight")
    own["sample_weight"] = None if weight is None else weight[learn]
    own["groups"] = None if groups is None else groups[learn]
    estimator.fit_all(graphs.subset(learn), **own)
    measure(estimator, graphs.subset(check), graphs.subset(learn))


def measure(estimator: GraphEstimator, graphs: GraphSet, known: GraphSet) -> None:
    """Set ``uncertainty_`` of a fitted estimator from graphs that it was not fitted on.

    Args:
        estimator: a fitted estimator.
        graphs: calibration graphs with targets.
        known: graphs of the applicability domain, which new graphs are compared with.
    """
    y = targets_of(graphs)
    rows = np.flatnonzero(has_target(y))
    if not len(rows):
        raise DataError("no graph to calibrate on has a target", graphs.name)
    some, target = graphs.subset(rows), estimator.target_
    if y.reshape(len(y), -1).shape[1] != len(target.names):
        raise DataError(f"has {y.reshape(len(y), -1).shape[1]} targets, the model {len(target.names)}", graphs.name)
    scores = comparable(estimator, target, require_finite(estimator._scores(some)))
    spread = _standardised(target, estimator._spread(some))
    domain = Domain.of(known, estimator._seed())
    estimator.uncertainty_ = Uncertainty.measured(target, "split", scores, target.encode(y[rows]), spread, domain)


def _fit_cross(estimator: GraphEstimator, graphs: GraphSet, folds: int, options: FitOptions) -> None:
    """Predict every graph in inner folds, then fit on all graphs."""
    prepared = PreparedSet(graphs)
    probe: Any = clone(estimator)
    problem = probe._start(prepared, np.arange(len(graphs)), options)
    shared: FitOptions = {"sample_weight": options.get("sample_weight"), "groups": options.get("groups")}
    inner = InnerFolds.of(problem, folds, estimator._seed(), shared)
    if inner is None:
        raise DataError(
            f"has {len(problem.train)} graphs with a target, too few of some class for inner folds", graphs.name
        )
    store = Store.of(_folder(options.get("checkpoint")), prepared, problem, options)
    found = [
        _fold(estimator, prepared, problem, split, shared, store, number) for number, split in enumerate(inner.splits)
    ]
    order = np.argsort(np.concatenate([check for _, check in inner.splits]), kind="stable")
    scores = np.concatenate([one.scores for one in found])[order]
    spreads = [one.spread for one in found if one.spread is not None]
    spread = np.concatenate(spreads)[order] if len(spreads) == len(found) else None
    estimator.fit_all(prepared, **options)
    domain = Domain.of(graphs.subset(problem.train), estimator._seed())
    estimator.uncertainty_ = Uncertainty.measured(
        problem.target, "cross", scores, problem.y[inner.rows], spread, domain
    )
    if not options.get("keep_checkpoint", False):
        store.remove()


def _fold(
    estimator: GraphEstimator,
    prepared: PreparedSet,
    problem: Problem,
    split: tuple[Ints, Ints],
    shared: FitOptions,
    store: Store,
    number: int,
) -> Held:
    """Fit a copy on the training graphs of an inner fold and predict the others, or read a finished fold."""
    learn, check = split
    path, width = store.path(Member("calibration", estimator, chosen=True), number, split), problem.target.outputs
    if (done := read_fit(path, kept=False)) is None:
        copy: Any = clone(estimator)
        checkpoint = None if path is None else path.with_name(path.name + ".training")
        copy.fit_prepared(prepared, learn, **shared, checkpoint=checkpoint)
        scores = comparable(copy, problem.target, require_finite(copy.scores_prepared(prepared, check)))
        spread = _standardised(problem.target, copy._spread(prepared.graphs.subset(check)))
        copy.release()
        done = FoldFit(scores if spread is None else np.concatenate([scores, spread], axis=1), 0.0, 0.0, None)
        if path is not None:
            write_fit(path, done)
    scores, rest = done.scores[:, :width], done.scores[:, width:]
    return Held(scores, rest if rest.shape[1] else None)


def remove_folds(checkpoint: Path) -> None:
    """Remove the inner folds that a fit with ``keep_checkpoint`` left next to its checkpoint."""
    Store(_folder(checkpoint)).remove()


def _folder(checkpoint: Path | None) -> Path | None:
    return None if checkpoint is None else checkpoint.with_name(checkpoint.name + ".folds")


def _standardised(target: Target, spread: Floats | None) -> Floats | None:
    """Return a spread in standard deviations of the targets."""
    if spread is None or target.scale is None:
        return None
    found: Floats = spread / target.scale
    return found


def _usable(graphs: GraphSet, options: FitOptions) -> Array:
    """[G] whether a graph has a target and a weight."""
    weight, known = options.get("sample_weight"), has_target(targets_of(graphs))
    return known if weight is None else known & (weight > 0)
