"""From training graphs to a fitted classifier, by the rule that the configuration names."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from gcaps.batching import Batch, BatchSource
from gcaps.config import Config
from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet
from gcaps.features import NodeFeatures
from gcaps.models import GCAPS
from gcaps.training.fitted import Fitted
from gcaps.training.loop import Epoch, batches_of, inner_split, predict_logits, reproducible, train


@dataclass
class Curves:
    """How training went, epoch by epoch."""

    loss: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    """Accuracy on the inner validation split; empty with a fixed schedule."""
    watched: list[float] = field(default_factory=list)
    """Accuracy on the watched graphs; it is written down and nothing else."""


def fit(
    graphs: GraphSet,
    indices: Array,
    config: Config,
    seed: int,
    *,
    validation: Array | None = None,
    watch: Array | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> tuple[Fitted, Curves, int]:
    """Fit on the graphs at ``indices``; nothing of any other graph reaches features, scaling, weights or epochs.

    Args:
        graphs: the whole set, labelled.
        indices: the training graphs.
        config: ``selection = "last"`` runs the schedule to its end on all of them. ``"validation"`` holds a part of
            them back, keeps the epoch that is best on it (by accuracy, then by loss), and with ``refit`` trains anew
            on all of them for that many epochs.
        seed: decides weights, order, dropout and the inner split.
        validation: the graphs to hold back; by default a stratified share of ``indices``.
        watch: graphs whose accuracy is recorded after each epoch, for curves and optimistic protocols.
        on_epoch: called after each epoch.

    Returns:
        The classifier, its curves, and the number of the epoch it comes from.
    """
    everything = np.asarray(indices, dtype=np.int64)
    if config.selection == "last":
        run = _Run(graphs, everything, config, seed, None, watch, on_epoch)
        return run.fitted(), run.curves, config.epochs
    if validation is None:
        inner, held = inner_split(graphs.targets[everything], config.validation, seed)
        training, validation = everything[inner], everything[held]
    else:
        training = np.setdiff1d(everything, validation)
    run = _Run(graphs, training, config, seed, validation, watch, on_epoch)
    if not config.refit:
        return run.fitted(), run.curves, run.best_epoch
    schedule = config.model_copy(update={"epochs": run.best_epoch})
    again = _Run(graphs, everything, schedule, seed, None, None, on_epoch)
    return again.fitted(), run.curves, run.best_epoch


class _Run:
    """One training run, with what is measured beside it."""

    def __init__(
        self,
        graphs: GraphSet,
        training: Array,
        config: Config,
        seed: int,
        validation: Array | None,
        watch: Array | None,
        on_epoch: Callable[[Epoch], None] | None,
    ) -> None:
        self.graphs, self.training, self.config, self.seed, self.on_epoch = graphs, training, config, seed, on_epoch
        self.curves = Curves()
        self.best_epoch = 0
        self._best: tuple[float, float] = (-1.0, 0.0)
        self._best_state: dict[str, Tensor] | None = None
        with reproducible(seed, config.threads):
            self.features = NodeFeatures.fit(config, graphs.subset(training))
            source = BatchSource(graphs, self.features.transform(graphs))
            self.network = GCAPS(source.x.shape[1], graphs.num_classes, config)
            self._validation = None if validation is None else list(batches_of(source, validation))
            self._watch = None if watch is None else list(batches_of(source, watch))
            train(self.network, source, training, config, seed, self._after_epoch)
        self._restore_best()
        self._validation = self._watch = None

    def _restore_best(self) -> None:
        if self._best_state is not None:
            self.network.load_state_dict(self._best_state)

    def _after_epoch(self, epoch: Epoch) -> bool:
        self.curves.loss.append(epoch.loss)
        self.curves.accuracy.append(epoch.accuracy)
        if self._watch is not None:
            self.curves.watched.append(_accuracy_and_loss(self.network, self._watch)[0])
        stop = False
        if self._validation is not None:
            accuracy, loss = _accuracy_and_loss(self.network, self._validation)
            self.curves.validation.append(accuracy)
            if (accuracy, -loss) > self._best:
                self._best, self.best_epoch = (accuracy, -loss), epoch.number
                self._best_state = copy.deepcopy(self.network.state_dict())
            stop = self.config.patience is not None and epoch.number - self.best_epoch >= self.config.patience
        if self.on_epoch is not None:
            self.on_epoch(epoch)
        return stop

    def fitted(self) -> Fitted:
        chosen = self.graphs.subset(self.training)
        about = {"name": self.graphs.name, "fingerprint": chosen.fingerprint(), "graphs": len(chosen)}
        return Fitted(self.config, self.features, self.network.eval(), self.graphs.classes, self.seed, about)


def _accuracy_and_loss(network: GCAPS, batches: list[Batch]) -> tuple[float, float]:
    logits = predict_logits(network, batches)
    y = torch.cat([batch.y for batch in batches if batch.y is not None])
    return float((logits.argmax(1) == y).double().mean()), float(torch.nn.functional.cross_entropy(logits, y))
