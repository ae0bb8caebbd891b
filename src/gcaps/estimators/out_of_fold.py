"""Out-of-fold predictions of training graphs by the members of an ensemble, computed in processes, kept in files."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.npy import read_npz
from gcaps.data.prepared import PreparedSet
from gcaps.data.targets import Target
from gcaps.errors import GcapsError
from gcaps.estimators.base import FitOptions, GraphEstimator, load_fitted
from gcaps.estimators.members import Member
from gcaps.estimators.problem import Problem
from gcaps.files import read_bytes, replacing
from gcaps.kernels.multi_output import random_splits
from gcaps.kernels.svm import inner_splits

NESTED = 5
"""Number of blocks into which the held-out graphs of a single fold are divided."""


class InnerFolds(NamedTuple):
    """Inner folds of the training graphs."""

    splits: list[tuple[Ints, Ints]]
    """Training graphs and held-out graphs of each, as positions in the set."""
    rows: Ints
    """[R] all held-out graphs, ascending."""
    blocks: Ints
    """[R] block of each: its fold, or a part of the only fold."""

    @property
    def several(self) -> bool:
        """Whether every graph is held out once."""
        return len(self.splits) > 2

    @classmethod
    def of(cls, problem: Problem, folds: int, seed: int, options: FitOptions) -> Self | None:
        """Divide the training graphs without dividing groups; validation graphs, if there are any, are the only fold.

        Returns:
            None if there are too few graphs, or a fold would train on a single class.
        """
        train, y = problem.train, problem.y[problem.train]
        groups, validation = options.get("groups"), options.get("validation")
        own = None if groups is None else groups[train]
        if validation is not None and (held := np.isin(train, validation)).any():
            parts = [(np.flatnonzero(~held), np.flatnonzero(held))]
        elif y.ndim == 1:
            parts = inner_splits(y, folds, seed, own)
        else:
            parts = random_splits(len(y), folds, seed, own)
        if not parts or not all(_teaches(problem, y[learn]) for learn, _ in parts):
            return None
        fold_of = np.full(len(train), -1)
        for number, (_, check) in enumerate(parts):
            fold_of[check] = number
        rows = np.flatnonzero(fold_of >= 0)
        blocks = fold_of[rows]
        if len(parts) == 1:
            codes = np.arange(len(rows)) if own is None else np.unique(own[rows], return_inverse=True)[1]
            order = np.random.default_rng([seed, 3]).permutation(codes.max() + 1)
            blocks = order[codes] % NESTED
        return cls([(train[learn], train[check]) for learn, check in parts], train[rows], blocks)


def _teaches(problem: Problem, y: Array) -> bool:
    """Whether there are at least two graphs, and two classes unless targets are values."""
    known = y[~np.isnan(y)] if y.dtype.kind == "f" else y
    return len(y) > 1 and (problem.target.task == "regression" or len(np.unique(known)) > 1)


class FoldFit(NamedTuple):
    """A member that was fitted on the training graphs of an inner fold."""

    scores: Floats
    """[·, ·] of the held-out graphs: probabilities of all classes of the ensemble, or standardised values."""
    fit_seconds: float
    predict_seconds: float
    model: GraphEstimator | None
    """The fitted member, if it is kept."""


def comparable(member: GraphEstimator, target: Target, scores: Floats) -> Floats:
    """Return a member's scores for all classes of the ensemble, or as values standardised like its targets."""
    found = np.asarray(scores, dtype=np.float64)
    if target.task == "regression":
        assert target.mean is not None
        assert target.scale is not None
        return np.asarray((found - target.mean) / target.scale)
    if target.task == "multilabel" or found.shape[1] == target.outputs:
        return found
    wide = np.zeros((len(found), target.outputs))
    assert member.target_.classes is not None
    wide[:, target.encode(member.target_.classes)] = found
    return wide


@dataclass(frozen=True)
class Store:
    """A folder with a file, or a folder, for each result; results of other fits are ignored.

    Args:
        folder: its path; None: nothing is kept.
        identity: all inputs of the fit, except members and folds.
    """

    folder: Path | None
    identity: str = ""

    @classmethod
    def of(cls, folder: Path | None, prepared: PreparedSet, problem: Problem, options: FitOptions) -> Store:
        """Return the store of a fit."""
        if folder is None:
            return cls(None)
        graphs, groups = prepared.graphs, options.get("groups")
        facts = {
            "data": graphs.fingerprint(problem.train),
            "target": problem.target.to_dict(),
            "y": digest(problem.y[problem.train]),
            "weight": None if problem.weight is None else digest(problem.weight[problem.train]),
            "groups": None if groups is None else digest(groups[problem.train]),
            "preparation": str(graphs.preparation),
            "smiles": digest(graphs.columns["smiles"][problem.train]) if "smiles" in graphs.columns else None,
        }
        return cls(Path(folder), json.dumps(facts, sort_keys=True, default=str))

    def path(self, member: Member, fold: int, split: tuple[Ints, Ints]) -> Path | None:
        """Return the path of a result, without a suffix."""
        if self.folder is None:
            return None
        parameters = sorted((k, repr(v)) for k, v in member.estimator.get_params(deep=False).items())
        own = json.dumps([self.identity, type(member.estimator).__name__, parameters, *map(digest, split)])
        key = hashlib.sha256(own.encode()).hexdigest()[:16]
        return self.folder / f"{member.name.replace('/', '-')}-{fold}-{key}"

    def remove(self) -> None:
        """Remove the folder of a finished fit."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def digest(values: Array) -> str:
    """Return a digest of an array."""
    own = np.ascontiguousarray(values)
    return hashlib.sha256(own.tobytes() + str((own.dtype, own.shape)).encode()).hexdigest()


def read_fit(path: Path | None, *, kept: bool) -> FoldFit | None:
    """Read a result; return None if there is none, or it is damaged."""
    if path is None:
        return None
    try:
        file = path.with_name(path.name + ".npz")
        found = read_npz(read_bytes(file), str(file))
        scores, seconds = found["scores"], found["seconds"].reshape(2)
        if scores.dtype.kind != "f" or not np.isfinite(scores).all():
            return None
        model = load_fitted(path.with_name(path.name + ".model")) if kept else None
        return FoldFit(scores, float(seconds[0]), float(seconds[1]), model)
    except (ValueError, KeyError, GcapsError):
        return None


def write_fit(path: Path, fit: FoldFit) -> None:
    """Write a result atomically: the model first, so that a result with scores is complete."""
    if fit.model is not None:
        fit.model.save(path.with_name(path.name + ".model"))
    with replacing(path.with_name(path.name + ".npz")) as draft, draft.open("wb") as file:
        np.savez(file, scores=fit.scores, seconds=np.array([fit.fit_seconds, fit.predict_seconds]))


@dataclass(frozen=True)
class Folds:
    """Fits members on inner folds."""

    prepared: PreparedSet
    problem: Problem
    inner: InnerFolds
    options: FitOptions
    """Weights and groups."""
    store: Store
    n_jobs: int
    seed: int

    def kept(self, member: Member) -> bool:
        """Whether the models of a member's inner folds are kept."""
        return member.bagged and self.inner.several

    def fit(self, member: Member, folds: list[int]) -> list[FoldFit]:
        """Fit a member on some inner folds, in processes where there are several; finished ones are read."""
        paths = {f: self.store.path(member, f, self.inner.splits[f]) for f in folds}
        found = {f: read_fit(paths[f], kept=self.kept(member)) for f in folds}
        left = [f for f in folds if found[f] is None]
        if len(left) > 1 and self.n_jobs > 1:
            lent = replace(self, prepared=self.prepared.used_by(member.estimator.prepare))
            pool = Parallel(n_jobs=min(self.n_jobs, len(left)))
            fitted = pool(delayed(lent._fold)(member, f, paths[f]) for f in left)
        else:
            fitted = [self._fold(member, f, paths[f]) for f in left]
        found |= dict(zip(left, fitted, strict=True))
        return [fit for f in folds if (fit := found[f]) is not None]

    def _fold(self, member: Member, fold: int, path: Path | None) -> FoldFit:
        learn, check = self.inner.splits[fold]
        estimator: Any = clone(member.estimator)
        if self.kept(member):  # networks that start from different weights differ more
            estimator.set_params(random_state=int(np.random.SeedSequence([self.seed, fold]).generate_state(1)[0]))
        checkpoint = None if path is None else path.with_name(path.name + ".training")
        began = time.perf_counter()
        estimator.fit_prepared(self.prepared, learn, **self.options, checkpoint=checkpoint)
        middle = time.perf_counter()
        scores = estimator.scores_prepared(self.prepared, check)
        end = time.perf_counter()
        estimator.release()
        model = estimator if self.kept(member) else None
        fit = FoldFit(comparable(estimator, self.problem.target, scores), middle - began, end - middle, model)
        if path is not None and np.isfinite(fit.scores).all():
            write_fit(path, fit)
        return fit

    def out_of_fold(self, fits: list[FoldFit]) -> Floats:
        """[R, ·] scores of all held-out graphs."""
        held = np.concatenate([check for _, check in self.inner.splits])
        scores = np.concatenate([fit.scores for fit in fits])
        found: Floats = scores[np.argsort(held, kind="stable")]
        return found
