"""Training of a graph autoencoder: vectors of nodes whose inner products are the logits of links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import Tensor, nn

from gcaps.config.tasks import LinkConfig
from gcaps.data.arrays import Floats, Ints
from gcaps.tasks.encoder_model import EncoderTraining, outputs_of
from gcaps.tasks.graph import NodeGraph
from gcaps.tasks.link_split import Pairs, absent_pairs
from gcaps.tasks.training import Score

LARGEST_LOG_SD = 10.0
"""Upper bound of the log standard deviation."""


def link_logits(Z: Tensor, pairs: Tensor) -> Tensor:
    """⟨z_i, z_j⟩ [m] for each pair [m, 2]."""
    return (Z[pairs[:, 0]] * Z[pairs[:, 1]]).sum(dim=1)


def means_of(outputs: Tensor, config: LinkConfig) -> Tensor:
    """Vectors of nodes [n, d], or their means, scaled to the length of the settings."""
    means = outputs[:, : config.embedding]
    return means if config.length is None else config.length * F.normalize(means, dim=1)


def divergence(mean: Tensor, log_sd: Tensor) -> Tensor:
    """Mean over the nodes of KL(N(μ, σ²) ‖ N(0, 1)) = ½ Σ (μ² + σ² − 1 − 2 ln σ)."""
    return 0.5 * (mean.square() + (2 * log_sd).exp() - 1 - 2 * log_sd).sum(dim=1).mean()


class LinkTraining(EncoderTraining[LinkConfig]):
    """Losses and validation score of an encoder on the links of a graph.

    Each step contrasts the links with as many newly drawn pairs that are not linked in this graph. Held-out links are
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
        super().__init__(network, graph, config, decayed)
        self.graph = graph
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
        yield self.regularised(loss)

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

    def vectors(self) -> Tensor:
        """Return the vectors of all nodes [n, d], or their means, in evaluation mode."""
        return means_of(outputs_of(self.network, self.inputs), self.config)


def link_metrics(y: Ints, scores: Floats) -> dict[str, float]:
    """Return ROC AUC and average precision of the scores of pairs [m] with y [m] one for links."""
    return {"auc": float(roc_auc_score(y, scores)), "ap": float(average_precision_score(y, scores))}
