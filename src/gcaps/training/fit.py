"""From training graphs to a fitted classifier, by the rule that the configuration names."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcaps.allocation import freed_memory_kept
from gcaps.batching import BatchSource
from gcaps.config import Config
from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet
from gcaps.features import NodeFeatures
from gcaps.models.config import AnyConfig
from gcaps.models.ensemble import together
from gcaps.models.machine import CapsuleMachine
from gcaps.models.network import Network
from gcaps.models.registry import build_network, extras_of, network_class, with_machine
from gcaps.training.fitted import Fitted
from gcaps.training.loop import Epoch, TrainingRun, batches_of, inner_split, predict_logits, reproducible, train
from gcaps.training.machine import fit_machine
from gcaps.training.snapshot import Kept, Snapshot


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
    config: AnyConfig,
    seed: int,
    *,
    validation: Array | None = None,
    watch: Array | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    snapshot: str | Path | None = None,
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
        watch: graphs whose accuracy is recorded after each epoch, for curves and optimistic protocols; a machine that
            predicts beside the network has its say after each.
        on_epoch: called after each epoch.
        snapshot: a folder in which the training is kept while it runs; where it holds this very training (the same
            graphs, configuration and seed), it goes on from there.

    Returns:
        The classifier, its curves, and the number of the epoch it comes from.
    """
    everything = np.asarray(indices, dtype=np.int64)
    if config.selection == "last":
        run = _Run(graphs, everything, config, seed, None, watch, on_epoch, snapshot)
        return run.fitted(), run.curves, config.passes(graphs.sizes[everything])
    if validation is None:
        inner, held = inner_split(graphs.targets[everything], config.validation, seed)
        training, validation = everything[inner], everything[held]
    else:
        training = np.setdiff1d(everything, validation)
    run = _Run(graphs, training, config, seed, validation, watch, on_epoch, snapshot)
    if not config.refit:
        return run.fitted(), run.curves, run.best_epoch
    schedule = config.model_copy(update={"epochs": run.best_epoch})
    again = _Run(graphs, everything, schedule, seed, None, None, on_epoch, snapshot)
    return again.fitted(), run.curves, run.best_epoch


class _Run:
    """One training run, with what is measured beside it."""

    def __init__(
        self,
        graphs: GraphSet,
        training: Array,
        config: AnyConfig,
        seed: int,
        validation: Array | None,
        watch: Array | None,
        on_epoch: Callable[[Epoch], None] | None,
        snapshot: str | Path | None,
    ) -> None:
        self.graphs, self.training, self.config, self.seed, self.on_epoch = graphs, training, config, seed, on_epoch
        self.curves = Curves()
        self.best_epoch = 0
        self._best: tuple[float, float] = (-1.0, 0.0)
        self._best_state: dict[str, Tensor] | None = None
        with freed_memory_kept(), reproducible(seed, config.threads):
            self.features = NodeFeatures.fit(config, graphs, training)
            x = self.features if graphs.mapped else self.features.encode(graphs)
            merge = network_class(config).merges(config)
            source = BatchSource(graphs, x, extras=extras_of(config, graphs), merge=merge)
            self.network = build_network(config, source.num_features, graphs.subset(training))
            machine = self._machine(source)
            self._validation = None if validation is None else _Held(source, validation)
            self._watch = None if watch is None or not config.trains else _Held(source, watch, machine)
            self._training = TrainingRun(self.network, source, training, config, seed)
            self._snapshot = None if snapshot is None else Snapshot(snapshot, self._identity(validation))
            if self._snapshot is not None and (kept := self._snapshot.restore(self._training)) is not None:
                self._take_up(kept)
            train(self._training, self._after_epoch)
            self._training.settle()
            self._restore_best()
            if machine is not None and isinstance(config, Config):
                self.network = with_machine(config, self.network, machine)
        if self._snapshot is not None:
            self._snapshot.remove()
        self._validation = self._watch = None

    def _machine(self, source: BatchSource) -> CapsuleMachine | None:
        """The machine that predicts, alone or beside the network; training changes nothing about it."""
        if not isinstance(self.config, Config) or not self.config.machine(self.graphs.sizes[self.training]):
            return None
        began = time.perf_counter()
        machine = fit_machine(self.config, source, self.training, self.seed)
        if self.on_epoch is not None and not self.config.trains:  # the one thing that there is to tell
            speed = len(self.training) / (time.perf_counter() - began)
            self.on_epoch(Epoch(1, 0.0, machine.measured["machine"]["inner"], speed))
        return machine

    def _identity(self, validation: Array | None) -> dict[str, Any]:
        """What this training is a function of."""
        held = None if validation is None else np.asarray(validation).tolist()
        data = self.graphs.fingerprint(self.training)
        return {"config": self.config.to_dict(), "seed": self.seed, "data": data, "validation": held}

    def _keep(self) -> Kept:
        page = {"curves": asdict(self.curves), "best": [self.best_epoch, *self._best]}
        return Kept(page, self._best_state or {})

    def _take_up(self, kept: Kept) -> None:
        self.curves = Curves(**kept.page["curves"])
        self.best_epoch, *best = kept.page["best"]
        self._best = (best[0], best[1])
        self._best_state = kept.tensors or None

    def _restore_best(self) -> None:
        if self._best_state is not None:
            self.network.load_state_dict(self._best_state)

    def _after_epoch(self, epoch: Epoch) -> bool:
        self.curves.loss.append(epoch.loss)
        self.curves.accuracy.append(epoch.accuracy)
        if self._watch is not None or self._validation is not None:
            with self._training.predicting():
                self._look(epoch.number)
        patience = None if self._validation is None else self.config.patience  # a refit has its number of epochs
        stop = patience is not None and epoch.number - self.best_epoch >= patience
        if self._snapshot is not None and not stop and self._snapshot.due():
            self._snapshot.save(self._training, self._keep())
        if self.on_epoch is not None:
            self.on_epoch(epoch)
        return stop

    def _look(self, epoch: int) -> None:
        """How the network does on the graphs that are held back or watched."""
        if self._watch is not None:
            self.curves.watched.append(self._watch.accuracy_and_loss(self.network)[0])
        if self._validation is not None:
            accuracy, loss = self._validation.accuracy_and_loss(self.network)
            self.curves.validation.append(accuracy)
            if (accuracy, -loss) > self._best:
                self._best, self.best_epoch = (accuracy, -loss), epoch
                self._best_state = copy.deepcopy(self.network.state_dict())

    def fitted(self) -> Fitted:
        fingerprint = self.graphs.fingerprint(self.training)
        about = {"name": self.graphs.name, "fingerprint": fingerprint, "graphs": len(self.training)}
        return Fitted(self.config, self.features, self.network.eval(), self.graphs.classes, self.seed, about)


class _Held:
    """Graphs that are predicted after every epoch; their batches are kept, unless they come out of a mapped file.

    So is what a machine says of them that predicts beside the network.
    """

    def __init__(self, source: BatchSource, indices: Array, machine: CapsuleMachine | None = None) -> None:
        self.source, self.indices = source, indices
        self.y = torch.from_numpy(source.graphs.targets[indices])
        self._batches = None if source.streams else list(batches_of(source, indices))
        self._beside = [] if machine is None else [self._logits(machine)]

    def accuracy_and_loss(self, network: Network) -> tuple[float, float]:
        logits = self._logits(network)
        if self._beside:
            logits = together([logits, *self._beside])
        right = (logits.argmax(1) == self.y).double().mean()
        return float(right), float(torch.nn.functional.cross_entropy(logits, self.y))

    def _logits(self, network: Network) -> Tensor:
        return predict_logits(
            network, batches_of(self.source, self.indices) if self._batches is None else self._batches
        )
