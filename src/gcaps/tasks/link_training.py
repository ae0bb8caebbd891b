"""Training of a graph autoencoder: vectors of nodes whose inner products say which nodes are linked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import Tensor, nn

from gcaps.config.tasks import LinkConfig
from gcaps.data.arrays import Floats, Ints
from gcaps.tasks.graph import NodeGraph
from gcaps.tasks.link_split import Pairs, absent_pairs
from gcaps.tasks.node_training import inputs_of, outputs_of
from gcaps.tasks.training import Score, StepRun, fit_steps
from gcaps.training.loop import Epoch
from gcaps.training.selection import Curves

LARGEST_LOG_SD = 10.0
"""Log of the standard deviation at most."""


def link_logits(Z: Tensor, pairs: Tensor) -> Tensor:
    """⟨z_i, z_j⟩ [m] for each pair [m, 2]."""
    return (Z[pairs[:, 0]] * Z[pairs[:, 1]]).sum(dim=1)


def means_of(outputs: Tensor, config: LinkConfig) -> Tensor:
    """Vectors of nodes [n, d], or their means, of the length that the settings say."""
    means = outputs[:, : config.embedding]
    return means if config.length is None else config.length * F.normalize(means, dim=1)


def divergence(mean: Tensor, log_sd: Tensor) -> Tensor:
    """Mean over the nodes of KL(N(μ, σ²) ‖ N(0, 1)) = ½ Σ (μ² + σ² − 1 − 2 ln σ)."""
    return 0.5 * (mean.square() + (2 * log_sd).exp() - 1 - 2 * log_sd).sum(dim=1).mean()


class LinkTraining:
    """Losses and validation score of an encoder on the links of a graph.

    In each step the links stand against as many pairs drawn anew, which are no links of this graph. Held-out links are
    not known here, so that they may be among those pairs.

    Args:
        network: encoder that maps features and filter to [n, d], or [n, 2d] means and log standard deviations.
        graph: the links that messages pass along and that are learned.
        validation: pairs of the validation score.
        config: settings.
        decayed: the weights that ``config.weight_decay`` regularises.
    """

    def __init__(
        self, network: nn.Module, graph: NodeGraph, validation: Pairs, config: LinkConfig, decayed: Sequence[Tensor]
    ) -> None:
        self.network, self.graph, self.config, self.decayed = network, graph, config, decayed
        self.device = next(network.parameters()).device
        self.inputs = inputs_of(graph, config, self.device)
        self.links = torch.from_numpy(graph.edges).to(self.device)
        self.held = validation

    def losses(self, rng: np.random.Generator) -> Iterator[Tensor]:
        """Yield the loss of the only step of an epoch."""
        others = absent_pairs(self.graph, len(self.links), rng)
        outputs = self.network(*self.inputs)
        Z, loss = self._sampled(outputs)
        pairs = torch.cat([self.links, torch.from_numpy(others).to(self.device)])
        y = torch.arange(len(pairs), device=self.device) < len(self.links)
        loss = loss + F.binary_cross_entropy_with_logits(link_logits(Z, pairs), y.to(Z.dtype))
        if self.config.weight_decay:
            decayed = torch.stack([weight.square().sum() for weight in self.decayed]).sum()
            loss = loss + self.config.weight_decay / 2 * decayed
        yield loss

    def _sampled(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return vectors of nodes, sampled where the model is variational, and their divergence over n."""
        mean = means_of(outputs, self.config)
        if not self.config.variational:
            return mean, outputs.new_zeros(())
        log_sd = outputs[:, self.config.embedding :].clamp(max=LARGEST_LOG_SD)
        return mean + torch.randn_like(mean) * log_sd.exp(), divergence(mean, log_sd) / len(mean)

    def score(self) -> Score:
        """Mean of ROC AUC and average precision, and cross-entropy, on the validation pairs."""
        Z = means_of(self.network(*self.inputs), self.config)
        logits = link_logits(Z, torch.from_numpy(self.held.both).to(self.device)).double().cpu()
        y = self.held.y
        loss = F.binary_cross_entropy_with_logits(logits, torch.from_numpy(y).double())
        return Score(sum(link_metrics(y, logits.numpy()).values()) / 2, float(loss))

    def fit(
        self,
        seed: int,
        identity: dict[str, Any] | None = None,
        checkpoint: str | Path | None = None,
        keep_checkpoint: bool = False,
        on_epoch: Callable[[Epoch], None] | None = None,
    ) -> tuple[Curves, int]:
        """Train; see :func:`gcaps.tasks.training.fit_steps`."""
        run = StepRun(self.network, self.losses, self.config.model_copy(update={"weight_decay": 0.0}), seed)
        return fit_steps(
            run,
            self.score,
            identity=identity,
            checkpoint=checkpoint,
            keep_checkpoint=keep_checkpoint,
            on_epoch=on_epoch,
        )

    def vectors(self) -> Tensor:
        """Return the vectors of all nodes [n, d], or their means, in evaluation mode."""
        return means_of(outputs_of(self.network, self.inputs), self.config)


def link_metrics(y: Ints, scores: Floats) -> dict[str, float]:
    """Return ROC AUC and average precision of the scores of pairs [m] with y [m] one for links."""
    return {"auc": float(roc_auc_score(y, scores)), "ap": float(average_precision_score(y, scores))}
