"""Methods by name: what evaluation runs on a fold, whatever is behind it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from gcaps.batching import Extras
from gcaps.config import Section
from gcaps.data.graphset import GraphSet
from gcaps.evaluation.folds import Fold
from gcaps.evaluation.forest_method import ForestMethod
from gcaps.evaluation.kernel_methods import KERNELS, KernelMethod
from gcaps.evaluation.result import FoldResult
from gcaps.models.config import CONFIGS, AnyConfig
from gcaps.models.registry import NETWORKS, extras_of, share_extras
from gcaps.training import Epoch, fit
from gcaps.training.fitted import Fitted


class Method(Protocol):
    """Train on a fold's training graphs, predict its test graphs."""

    @property
    def config(self) -> type[Section]:
        """The configuration it takes."""
        ...

    @property
    def shares(self) -> bool:
        """Whether what its folds share is worth running them in one process, one after the other."""
        ...

    def prepared(self, graphs: GraphSet, config: Any) -> Method:
        """The same method with what all folds share."""
        ...

    def __call__(
        self, graphs: GraphSet, fold: Fold, number: int, config: Any, seed: int, on_epoch: Callable[[Epoch], None]
    ) -> FoldResult:
        """The fold's predictions and curves."""
        ...


@dataclass(frozen=True)
class NetworkMethod:
    """A network on one fold. Test graphs are predicted once, by the model that the configured rule chose."""

    shares: ClassVar[bool] = False

    name: str
    extras: Extras | None = None
    """What the network wants of the graphs beside features and edges, computed once for all folds."""

    @property
    def config(self) -> type[AnyConfig]:
        """The network's own configuration."""
        return CONFIGS[self.name]

    def prepared(self, graphs: GraphSet, config: AnyConfig) -> NetworkMethod:
        """The same method with what all folds share."""
        return replace(self, extras=extras_of(config, graphs))

    def __call__(
        self, graphs: GraphSet, fold: Fold, number: int, config: AnyConfig, seed: int, on_epoch: Callable[[Epoch], None]
    ) -> FoldResult:
        """The fold's predictions and curves."""
        return self.fitted(graphs, fold, number, config, seed, on_epoch)[0]

    def fitted(
        self, graphs: GraphSet, fold: Fold, number: int, config: AnyConfig, seed: int, on_epoch: Callable[[Epoch], None]
    ) -> tuple[FoldResult, Fitted]:
        """The fold's predictions and curves, and the model behind them."""
        began = time.perf_counter()
        share_extras(config, graphs, self.extras)
        model, curves, epoch = fit(
            graphs,
            fold.train,
            config,
            fold_seed(seed, number),
            validation=fold.validation,
            watch=fold.test,
            on_epoch=on_epoch,
        )
        scores = model.predict_proba(graphs.subset(fold.test))
        taken = {"networks": model.network.measured.get("networks"), **model.network.measured.get("machine", {})}
        result = FoldResult(
            fold=number,
            test=fold.test.tolist(),
            labels=graphs.targets[fold.test].tolist(),
            predictions=scores.argmax(axis=1).tolist(),
            scores=np.round(scores.astype(np.float64), 6).tolist(),
            epoch=epoch,
            train_loss=curves.loss,
            train_accuracy=curves.accuracy,
            test_accuracy=curves.watched,
            validation_accuracy=curves.validation,
            seconds=time.perf_counter() - began,
            chosen={name: taken[name] for name in ("networks", "C", "inner") if taken.get(name) is not None},
        )
        return result, model


def fold_seed(seed: int, number: int) -> int:
    """A seed of its own for each fold, the same whichever process runs it."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


METHODS: dict[str, Method] = {
    **{name: NetworkMethod(name) for name in NETWORKS},
    **{name: KernelMethod(name) for name in KERNELS},
    "fgsd": ForestMethod(),
}
"""Every method that ``gcaps evaluate --method`` takes."""
