"""Training of a network on the labelled nodes of one graph, in full batches or on sampled neighborhoods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gcaps.batching import shuffled
from gcaps.config.tasks import NodeConfig
from gcaps.data.arrays import Ints
from gcaps.nn.filters import edge_filter
from gcaps.tasks.encoder_model import EncoderTraining, Inputs
from gcaps.tasks.graph import NodeGraph
from gcaps.tasks.sampling import NeighborSampler
from gcaps.tasks.sparse_rows import SparseRows
from gcaps.tasks.training import Score


def consistency_loss(passes: Sequence[Tensor], temperature: float) -> Tensor:
    r"""Distance of several passes to their sharpened mean (Feng et al., *Graph Random Neural Networks*, 2020).

    .. math::
        \frac{1}{S n} \sum_{s=1}^{S} \sum_{i,c} (p_{ic}^{(s)} - \hat p_{ic})^2

    where the rows of the sharpened mean are proportional to the mean of the passes to the power of 1/T. No gradient
    flows through the sharpened mean.

    Args:
        passes: S log-probabilities [n, C].
        temperature: T.
    """
    probabilities = [one.exp() for one in passes]
    target = torch.stack(probabilities).mean(dim=0).detach() ** (1 / temperature)
    target = target / target.sum(dim=1, keepdim=True).clamp_min(torch.finfo(target.dtype).tiny)
    return torch.stack([(one - target).square().sum(dim=1).mean() for one in probabilities]).mean()


class NodeTraining(EncoderTraining[NodeConfig]):
    """Losses and validation score of a network on the nodes of a graph.

    Args:
        network: maps :class:`Inputs` to [n, C].
        graph: the graph.
        codes: [n] class numbers; only those of ``train`` and ``validation`` are read.
        train: nodes of the loss.
        validation: nodes of the score.
        config: settings.
        decayed: the weights that ``config.weight_decay`` regularises.
    """

    def __init__(
        self,
        network: nn.Module,
        graph: NodeGraph,
        codes: Ints,
        train: Ints,
        validation: Ints,
        config: NodeConfig,
        decayed: Sequence[Tensor],
    ) -> None:
        super().__init__(network, graph, config, decayed)
        self.train = train
        self.known = torch.full((len(graph),), -1)
        for part in (train, validation):
            self.known[part] = torch.from_numpy(codes[part])
        self.known = self.known.to(self.device)
        self.held = torch.from_numpy(validation).to(self.device)
        self.sampler = None
        if config.batch_size is not None:
            self.edge_index, self.edge_weight = (None if t is None else t.to(self.device) for t in graph.edge_tensors())
            self.sampler = NeighborSampler(graph.edge_index, len(graph), sum(config.degrees), config.neighbors)

    def losses(self, rng: np.random.Generator) -> Iterator[Tensor]:
        """Yield the loss of each step of an epoch: one, or one for each batch of training nodes."""
        if self.sampler is None:
            yield self._loss(self.inputs, self.train, self.train)
            return
        assert self.config.batch_size is not None
        for batch in shuffled(self.train, self.config.batch_size, rng):
            found = self.sampler.sample(batch, rng)
            yield self._loss(self._part(found.nodes, found.edges), np.arange(len(batch)), batch)

    def _part(self, nodes: Ints, edges: Ints) -> Inputs:
        """Return the inputs of a sampled neighborhood, with the nodes renumbered."""
        assert self.edge_index is not None
        at, chosen = torch.from_numpy(nodes).to(self.device), torch.from_numpy(edges).to(self.device)
        number = torch.zeros(len(self.known), dtype=torch.int64, device=self.device)
        number[at] = torch.arange(len(at), device=self.device)
        x = self.inputs.x.take(at) if isinstance(self.inputs.x, SparseRows) else self.inputs.x[at]
        weight = None if self.edge_weight is None else self.edge_weight[chosen]
        like = torch.zeros(len(at), 1, device=self.device)
        return Inputs(x, edge_filter(self.config.filter, number[self.edge_index[:, chosen]], weight, like))

    def _loss(self, inputs: Inputs, rows: Ints, nodes: Ints) -> Tensor:
        """Cross-entropy of the training nodes, which are ``rows`` of the inputs, plus regularisation."""
        config, at = self.config, torch.from_numpy(rows).to(self.device)
        y = self.known[torch.from_numpy(nodes).to(self.device)]
        passes = [F.log_softmax(self.network(*inputs), dim=1) for _ in range(config.passes)]
        loss = torch.stack([F.nll_loss(one[at], y) for one in passes]).mean()
        if config.consistency and config.passes > 1:
            loss = loss + config.consistency * consistency_loss(passes, config.temperature)
        return self.regularised(loss)

    def score(self) -> Score:
        """Accuracy and cross-entropy on the validation nodes."""
        outputs, y = self.network(*self.inputs)[self.held], self.known[self.held]
        accuracy = (outputs.argmax(dim=1) == y).double().mean()
        return Score(float(accuracy), float(F.cross_entropy(outputs, y)))
