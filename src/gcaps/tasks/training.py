"""Training of any module by the losses of its steps: full batches, sampled batches or windows of a sequence.

Schedule, choice of the epoch, checkpoints and progress are those of :mod:`gcaps.training`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from gcaps.config.tasks import StepsConfig
from gcaps.errors import DivergenceError
from gcaps.training.checkpoint import Checkpoint
from gcaps.training.fit import SMALLER_LR, require_finite_epoch, require_finite_weights
from gcaps.training.loop import Epoch, learning_rate, train
from gcaps.training.optimizer import FlatAdam
from gcaps.training.selection import BestEpoch, Curves

Losses = Callable[[np.random.Generator], Iterator[Tensor]]
"""One epoch: yields the loss of each step; the weights are updated after each."""


class Score(NamedTuple):
    """Quality of a network on validation data."""

    value: float
    """Higher is better."""
    loss: float
    """Lower is better; breaks ties of ``value``."""


class StepRun:
    """Training of a module with Adam, epoch by epoch; see :class:`gcaps.training.checkpoint.Resumable`.

    Args:
        network: trained in place.
        losses: losses to minimise, see :data:`Losses`.
        config: learning rate, its schedule, and epochs.
        seed: of the generator that ``losses`` receives; dropout follows torch's generator
            (see :func:`gcaps.training.reproducible`).
    """

    def __init__(self, network: nn.Module, losses: Losses, config: StepsConfig, seed: int) -> None:
        self.network, self.losses, self.config = network, losses, config
        self.optimizer = FlatAdam(network, config.lr, config.weight_decay)
        self.rng = np.random.default_rng(seed)
        self.epochs, self.number = config.epochs, 0

    def epoch(self) -> Epoch:
        """Run one epoch."""
        began = time.perf_counter()
        self.number += 1
        self.optimizer.lr = learning_rate(self.config, self.number, self.epochs)
        self.network.train()
        total, steps = 0.0, 0
        for loss in self.losses(self.rng):
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
            total, steps = total + float(loss.detach()), steps + 1
        speed = steps / max(time.perf_counter() - began, 1e-9)
        return Epoch(self.number, total / max(steps, 1), 0.0, speed)


def fit_steps(
    run: StepRun,
    validate: Callable[[], Score] | None = None,
    *,
    patience: int | None = None,
    identity: dict[str, Any] | None = None,
    checkpoint: str | Path | None = None,
    keep_checkpoint: bool = False,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> tuple[Curves, int]:
    """Train until the schedule or the patience ends, then load the weights of the best epoch.

    Call it, and make the network, within :func:`gcaps.training.reproducible`.

    Args:
        run: the training.
        validate: score on validation data, called after each epoch in evaluation mode without gradients; without it
            the last epoch is kept.
        patience: number of epochs without a better one after which the training stops; None: no such number.
        identity: all inputs of the training, as JSON values; only a checkpoint with the same identity is resumed.
        checkpoint: folder for the state of the training, from which an interrupted one is resumed.
        keep_checkpoint: do not remove it at the end; the caller does when the model is saved.
        on_epoch: called after each epoch; ``score`` of its argument is that on validation data.

    Returns:
        Curves, and the number of the epoch that is kept.

    Raises:
        DivergenceError: the loss or the weights are not finite.
    """
    best, curves, done = BestEpoch(run.network), Curves(), False
    saved = None if checkpoint is None else Checkpoint(checkpoint, identity or {})
    if saved is not None and (state := saved.restore(run)) is not None:
        curves, done = best.resume(state)

    def after(epoch: Epoch) -> bool:
        require_finite_epoch(epoch, run.config.lr, run.network, saved)
        curves.loss.append(epoch.loss)
        stop = False
        if validate is not None:
            score = _evaluated(run.network, validate)
            if not math.isfinite(score.loss) or not math.isfinite(score.value):
                raise DivergenceError(
                    f"the training diverged in epoch {epoch.number}: the validation loss is {score.loss}; {SMALLER_LR}"
                )
            curves.validation.append(score.value)
            best.offer(epoch.number, (score.value, -score.loss))
            epoch = Epoch(epoch.number, epoch.loss, score.value, epoch.graphs_per_second)
            stop = best.overdue(epoch.number, patience)
        curves.score.append(epoch.score)
        if saved is not None and not stop and saved.due():
            saved.save(run, best.state(curves, done=False))
        if on_epoch is not None:
            on_epoch(epoch)
        return stop

    if not done:
        train(run, after)
    if saved is not None and keep_checkpoint:
        saved.finish(run, best.state(curves, done=True))
    number = best.number or run.number
    best.load()
    require_finite_weights(run.network)
    if saved is not None and not keep_checkpoint:
        saved.remove()
    return curves, number


@torch.no_grad()
def _evaluated(network: nn.Module, validate: Callable[[], Score]) -> Score:
    network.eval()
    return validate()
