"""Fit a network on training graphs: fixed schedule, or the best epoch on an inner validation split."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcaps.batching import BatchSource
from gcaps.config import Config, TrainingConfig
from gcaps.data.arrays import Array, Floats, Ints, array_digest
from gcaps.data.prepared import PreparedSet
from gcaps.data.targets import Task
from gcaps.errors import ConfigError, DivergenceError
from gcaps.features.nodes import NodeFeatures
from gcaps.models.ensemble import Ensemble
from gcaps.models.losses import mean_loss, mean_outputs, score_sum
from gcaps.models.network import Network
from gcaps.models.random_capsules import RandomCapsuleSVM
from gcaps.models.registry import build_network, extras_of, network_class, svm_beside
from gcaps.training.checkpoint import Checkpoint
from gcaps.training.fitted import FittedNetwork
from gcaps.training.loop import Epoch, TrainingRun, batches_of, inner_split, predict_outputs, reproducible, train
from gcaps.training.random_capsules import fit_random_capsule_svm
from gcaps.training.selection import BestEpoch
from gcaps.training.selection import Curves as Curves


@dataclass(frozen=True)
class TrainingData:
    """Graphs to train on, as positions in a prepared set."""

    prepared: PreparedSet
    indices: Ints
    """The training graphs."""
    y: Array
    """Encoded targets of every graph of the set (:meth:`gcaps.data.targets.Target.encode`)."""
    outputs: int
    """Number of classes, or of targets."""
    sample_weight: Floats | None = None
    """[G] or [G, T] weight of every graph's loss."""
    task: Task = "classification"
    groups: Ints | None = None
    """[G] groups of all graphs, such as scaffolds, that inner validation and inner folds keep whole."""

    def at(self, indices: Array) -> TrainingData:
        """Return the same set with other training graphs."""
        return replace(self, indices=np.asarray(indices, np.int64))


def fit_network(
    data: TrainingData,
    config: TrainingConfig,
    seed: int,
    *,
    validation: Array | None = None,
    watch: Array | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | Path | None = None,
    keep_checkpoint: bool = False,
) -> tuple[FittedNetwork, Curves, int]:
    """Fit on the training graphs; nothing of any other graph reaches features, scaling, weights or epochs.

    Args:
        data: the training graphs.
        config: settings without any ``auto``. ``selection = "last"`` runs the schedule to its end on all training
            graphs. ``"validation"`` holds a part of them back, keeps the epoch that is best on it (by accuracy, then
            by loss; by loss where the task is not classification), and with ``refit`` trains anew on all of them for
            that many epochs.
        seed: decides weights, order, dropout and the inner split.
        validation: the graphs to hold back; by default a stratified share of the training graphs, or whole groups.
        watch: graphs whose score is recorded after each epoch, for curves and optimistic protocols.
        on_epoch: called after each epoch.
        checkpoint: folder in which the training is saved while it runs; where it holds this very training (the same
            graphs, settings and seed), the training is resumed from it.
        keep_checkpoint: leave it there at the end, for a caller who removes it when the result is saved.

    Returns:
        The fitted network, its curves, and the number of the epoch it comes from.

    Raises:
        DivergenceError: loss, weights or outputs are no finite numbers any more.
    """
    if config.selection == "last":
        run = _Run(data, config, seed, None, watch, on_epoch, checkpoint, keep_checkpoint)
        return run.fitted(), run.curves, run.training.epochs
    if validation is None:
        own = None if data.groups is None else data.groups[data.indices]
        inner, held = inner_split(data.y[data.indices], config.validation, seed, own)
        training, validation = data.indices[inner], data.indices[held]
    else:
        training = np.setdiff1d(data.indices, validation)
    if len(training) < 2:
        raise ConfigError(
            f"selection: validation leaves {len(training)} of {len(data.indices)} training graphs for training; "
            "networks need at least two: use selection = last"
        )
    kept = keep_checkpoint and not config.refit
    run = _Run(data.at(training), config, seed, validation, watch, on_epoch, checkpoint, kept)
    if not config.refit:
        return run.fitted(), run.curves, run.best.number
    schedule = config.model_copy(update={"epochs": run.best.number})
    again = _Run(data, schedule, seed, None, None, on_epoch, checkpoint, keep_checkpoint)
    return again.fitted(), run.curves, run.best.number


class _Run:
    """One training with what is evaluated after each of its epochs."""

    def __init__(
        self,
        data: TrainingData,
        config: TrainingConfig,
        seed: int,
        validation: Array | None,
        watch: Array | None,
        on_epoch: Callable[[Epoch], None] | None,
        checkpoint: str | Path | None,
        keep_checkpoint: bool = False,
    ) -> None:
        self.data, self.config, self.seed, self.on_epoch = data, config, seed, on_epoch
        self.curves = Curves()
        self._done = False
        graphs, device = data.prepared.graphs, torch.device(config.device)
        with reproducible(seed, config.threads):
            self.features = NodeFeatures.fit(config, data.prepared, data.indices)  # type: ignore[arg-type]
            source = BatchSource(
                graphs,
                self.features if graphs.mapped else self.features.encode(data.prepared),
                extras=extras_of(config, data.prepared),
                merge=network_class(config).merges(config),
                y=data.y,
                sample_weight=data.sample_weight,
                prepared=data.prepared,
            )
            training = graphs.subset(data.indices)
            self.network = build_network(
                config, source.num_features, data.outputs, training, data.task, source.shape
            ).to(device)
            svm = self._fit_svm(source)
            self._validation = None if validation is None else _HeldOut(source, validation, device)
            self._watch = None if watch is None else _HeldOut(source, watch, device, svm)
            self.training = TrainingRun(self.network, source, data.indices, config, seed, device)
            self.best = BestEpoch(self.network)
            self._checkpoint = None if checkpoint is None else Checkpoint(checkpoint, self._identity(validation))
            if self._checkpoint is not None and (state := self._checkpoint.restore(self.training)) is not None:
                self.curves, self._done = self.best.resume(state)
            if not self._done:
                train(self.training, self._after_epoch)
                self._done = True
                if self._checkpoint is not None and keep_checkpoint:
                    self._checkpoint.finish(self.training, self.best.state(self.curves, done=True))
            self.best.load()
            require_finite_weights(self.network)
            if svm is not None:
                self.network = Ensemble([self.network, svm])
        if self._checkpoint is not None and not keep_checkpoint:
            self._checkpoint.remove()
        self._validation = self._watch = None

    def _fit_svm(self, source: BatchSource) -> RandomCapsuleSVM | None:
        """Fit the SVM whose probabilities are averaged in; it does not depend on the training of the network."""
        if not isinstance(self.config, Config) or not self.config.with_svm:
            return None
        data = self.data
        settings = svm_beside(self.config)
        svm = fit_random_capsule_svm(settings, source, data.indices, data.outputs, self.seed, data.task, data.groups)
        return svm.to(self.config.device)

    def _identity(self, validation: Array | None) -> dict[str, Any]:
        """Return everything that this training is a function of."""
        graphs, indices = self.data.prepared.graphs, self.data.indices
        weight = self.data.sample_weight
        return {
            "config": self.config.to_dict(),
            "seed": self.seed,
            "data": graphs.fingerprint(indices),
            "task": self.data.task,
            "y": array_digest(self.data.y[indices]),
            "sample_weight": None if weight is None else array_digest(weight[indices]),
            "validation": None if validation is None else np.asarray(validation).tolist(),
            "molecules": self._molecules() if self.features.graphs.parts else None,
            **({} if self.data.groups is None else {"groups": array_digest(self.data.groups[indices])}),
        }

    def _molecules(self) -> list[str]:
        """Return what fingerprints are computed from, which is not part of the graphs' arrays."""
        graphs = self.data.prepared.graphs
        smiles = "\n".join(graphs.columns["smiles"][self.data.indices].tolist())
        return [hashlib.sha256(smiles.encode()).hexdigest(), str(graphs.preparation)]

    def _after_epoch(self, epoch: Epoch) -> bool:
        require_finite_epoch(epoch, self.config.lr, self.network, self._checkpoint)
        self.curves.loss.append(epoch.loss)
        self.curves.score.append(epoch.score)
        if self._watch is not None:
            self.curves.watched.append(self._watch.score_and_loss(self.network)[0])
        if self._validation is not None:
            self._select(epoch.number, self._validation)
        patience = None if self._validation is None else self.config.patience  # a refit has a fixed number of epochs
        stop = self.best.overdue(epoch.number, patience)
        if self._checkpoint is not None and not stop and self._checkpoint.due():
            self._checkpoint.save(self.training, self.best.state(self.curves, done=False))
        if self.on_epoch is not None:
            self.on_epoch(epoch)
        return stop

    def _select(self, epoch: int, validation: _HeldOut) -> None:
        """Keep the weights if this epoch is the best so far on the validation graphs."""
        score, loss = validation.score_and_loss(self.network)
        if not math.isfinite(loss):
            raise DivergenceError(
                f"the training diverged in epoch {epoch}: the loss on the validation graphs is {loss}; {SMALLER_LR}"
            )
        self.curves.validation.append(score)
        quality = (score, -loss) if self.data.task == "classification" else (-loss, score)
        self.best.offer(epoch, quality)

    def fitted(self) -> FittedNetwork:
        # so far views of the optimizer's vector: products round by where an array begins in memory, and those of a
        # network that is read from disk begin anew
        for parameter in self.network.parameters():
            parameter.data, parameter.grad = parameter.data.clone(), None
        return FittedNetwork(self.config, self.features, self.network.eval(), self.seed)


class _HeldOut:
    """Graphs that are predicted after every epoch; their batches are kept, unless they come from a mapped file.

    The outputs of an SVM that does not change while the network is trained are computed once.
    """

    def __init__(
        self, source: BatchSource, indices: Array, device: torch.device, svm: RandomCapsuleSVM | None = None
    ) -> None:
        self.source, self.indices, self.device = source, indices, device
        assert source.y is not None
        self.y = torch.from_numpy(source.y[indices]).to(device)
        self._batches = None if source.streams else [b.to(device) for b in batches_of(source, indices)]
        self._svm = [] if svm is None else [self._outputs(svm)]

    def score_and_loss(self, network: Network) -> tuple[float, float]:
        outputs = self._outputs(network)
        if self._svm:
            outputs = mean_outputs(network.task, [outputs, *self._svm])
        score = score_sum(network.task, outputs, self.y) / len(self.y)
        return float(score), mean_loss(network.task, outputs, self.y)

    def _outputs(self, network: Network) -> Tensor:
        if self._batches is not None:
            return predict_outputs(network, self._batches)
        return predict_outputs(network, (b.to(self.device) for b in batches_of(self.source, self.indices)))


SMALLER_LR = "a smaller lr helps, or attributes of a usual size"


def require_finite_epoch(epoch: Epoch, lr: float, network: torch.nn.Module, checkpoint: Checkpoint | None) -> None:
    """Stop a training that has diverged.

    Raises:
        DivergenceError: with the epoch, the likely cause and the last good state.
    """
    if math.isfinite(epoch.loss) and weights_are_finite(network):
        return
    what = (
        f"its loss is {epoch.loss}" if not math.isfinite(epoch.loss) else "its weights are no finite numbers any more"
    )
    good = "" if checkpoint is None or not checkpoint.exists() else f"; {checkpoint.folder} holds the last good state"
    raise DivergenceError(f"the training diverged in epoch {epoch.number}: {what}; lr is {lr:g}: {SMALLER_LR}{good}")


def weights_are_finite(network: torch.nn.Module) -> bool:
    """Return whether all weights and statistics of a network are finite numbers."""
    return all(bool(torch.isfinite(t).all()) for t in network.state_dict().values() if t.is_floating_point())


def require_finite_weights(network: torch.nn.Module) -> None:
    """Raise a DivergenceError for a network whose weights or statistics are no finite numbers."""
    if not weights_are_finite(network):
        raise DivergenceError(f"the training diverged: its weights are no finite numbers any more; {SMALLER_LR}")
