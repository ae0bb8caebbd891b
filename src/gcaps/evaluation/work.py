"""The work of a cell: choose a configuration inside the training graphs, train it on all of them, test once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gcaps.config import Section
from gcaps.data.arrays import Floats
from gcaps.data.graphset import GraphSet
from gcaps.errors import GcapsError
from gcaps.evaluation.folds import Fold
from gcaps.evaluation.methods import METHODS, Method, NetworkMethod, fold_seed
from gcaps.evaluation.result import FoldResult
from gcaps.training import Epoch
from gcaps.training.loop import inner_split

INNER_SHARE = 0.1
"""Share of a fold's training graphs that chooses among configurations, where a file sets none aside."""


@dataclass(frozen=True)
class Worked:
    """What a cell's work gave."""

    config: dict[str, Any]
    result: FoldResult
    candidates: list[dict[str, Any]]
    embedding: list[list[float]] | None


class Worker:
    """A method with its configurations on one set, ready for any fold.

    Args:
        graphs: the whole set.
        method: its name.
        configs: the configurations to choose from.
        seed: decides training and the inner split.
    """

    def __init__(self, graphs: GraphSet, method: str, configs: Sequence[dict[str, Any]], seed: int) -> None:
        self.graphs, self.seed = graphs, seed
        self.configs: list[Section] = [METHODS[method].config.parse(config) for config in configs]
        self._methods: list[Method] = [METHODS[method].prepared(graphs, config) for config in self.configs]

    def run(self, fold: Fold, number: int) -> Worked:
        """The fold's outcome: exactly what :func:`gcaps.evaluate` gives with the configuration that was chosen."""
        inner = [self._inner_accuracy(at, fold, number) for at in range(len(self.configs) if self._chooses else 0)]
        best = int(np.argmax(inner)) if inner else 0  # the first of equals
        method, config = self._methods[best], self.configs[best]
        embedding = None
        if isinstance(method, NetworkMethod):
            result, model = method.fitted(self.graphs, fold, number, config, self.seed, _silent)  # type: ignore[arg-type]
            _check_finite(result)
            if number == 0:
                embedding = plane(model.embed(self.graphs)).round(4).tolist()
        else:
            result = method(self.graphs, fold, number, config, self.seed, _silent)
        candidates = [
            {"config": config.to_dict(), "inner": accuracy}
            for config, accuracy in zip(self.configs if inner else [], inner, strict=True)
        ]
        return Worked(config.to_dict(), result, candidates, embedding)

    @property
    def _chooses(self) -> bool:
        return len(self.configs) > 1

    def _inner_accuracy(self, at: int, fold: Fold, number: int) -> float:
        """Accuracy of a configuration on graphs held back from training; the fold's test graphs are not looked at."""
        inside = inner_fold(self.graphs, fold, fold_seed(self.seed, number))
        return self._methods[at](self.graphs, inside, number, self.configs[at], self.seed, _silent).accuracy


def inner_fold(graphs: GraphSet, fold: Fold, seed: int) -> Fold:
    """The training graphs of ``fold`` as a fold of their own: those that a file sets aside, or a share, are tested."""
    if fold.validation is not None:
        return Fold(np.setdiff1d(fold.train, fold.validation), fold.validation)
    training, held = inner_split(graphs.targets[fold.train], INNER_SHARE, seed)
    return Fold(fold.train[training], fold.train[held])


def plane(vectors: Floats) -> Floats:
    """[G, 2] the vectors [G, d] on their first two principal components, whose signs are fixed."""
    from sklearn.decomposition import PCA

    x = np.asarray(vectors, dtype=np.float64)
    kept = min(2, *x.shape)
    with np.errstate(all="ignore"):  # the share of a variance that is zero
        found = PCA(kept, random_state=0).fit_transform(x)
    return np.pad(found, ((0, 0), (0, 2 - kept))) + 0.0  # no negative zeros


def _check_finite(result: FoldResult) -> None:
    if not np.isfinite([*result.train_loss, *np.ravel(result.scores)]).all():
        raise GcapsError("the training diverged: its loss is not a number any more; a smaller lr helps")


def _silent(epoch: Epoch) -> None:
    pass
