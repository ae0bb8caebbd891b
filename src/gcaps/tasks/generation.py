"""Generation of small graphs by Markov chains of edits, trained against a capsule critic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from gcaps.config.generation import GenerationConfig
from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet
from gcaps.documents import Page, validated
from gcaps.errors import DataError, ModelError
from gcaps.tasks.base import State, TaskModel, load_network, network_arrays
from gcaps.tasks.dense_graphs import Alphabet, DenseGraphs, is_connected, orders
from gcaps.tasks.graph_chain import Critic, GraphChain, Limits, random_trees
from gcaps.tasks.training import StepRun, fit_steps
from gcaps.training import reproducible
from gcaps.training.loop import Epoch
from gcaps.training.selection import Curves

MAX_NODES = 64
"""Most nodes of a graph: closed walks and edits use dense matrices."""


class CapsuleGraphGenerator(TaskModel[GenerationConfig]):
    r"""Generate graphs like those of a training set, by chains of edits against a capsule critic.

    The generator is a Markov chain: from a random tree, edges and labels change one by one, so that graphs with a high
    score become likely. The critic D, capsule layers with the mean-covariance readout, is trained to score training
    graphs above those of the generator,

    .. math::
        \min_D \; \mathrm{E}_{\mathrm{chains}} D(G) - \mathrm{E}_{\mathrm{data}} D(G)
        + \lambda \, (\mathrm{E}_{\mathrm{chains}} D(G)^2 + \mathrm{E}_{\mathrm{data}} D(G)^2),

    the objective of a Wasserstein critic; since the chains tend to the distribution exp(D), it is also the gradient
    of the likelihood of the training graphs. Both the score and the edits ignore the order of nodes, so that
    isomorphic graphs are equally probable once the chains have converged. Sizes follow the training graphs. No
    graph exceeds the degree (where edges have labels, the sum of label codes counted from 1: the valence of
    molecules) that the training graphs show for a label; graphs are connected if all training graphs are.

    The settings are those of :class:`gcaps.config.generation.GenerationConfig`.
    """

    settings: ClassVar[type[GenerationConfig]] = GenerationConfig

    def __init__(
        self,
        hidden: int = 16,
        capsule_size: int = 2,
        layers: int = 3,
        walks: int = 6,
        rank: int = 16,
        chains: int = 256,
        batch_size: int = 64,
        steps: int = 20,
        restart: float = 0.05,
        penalty: float = 0.05,
        sampling_steps: int = 1000,
        epochs: int = 20,
        updates: int = 50,
        lr: float = 0.0005,
        schedule: str = "cosine",
        decay: float = 1.0,
        decay_every: int = 100,
        weight_decay: float = 0.0,
        threads: int = 1,
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self._store(locals())

    def fit(
        self,
        graphs: GraphSet,
        y: None = None,
        *,
        checkpoint: str | Path | None = None,
        on_epoch: Callable[[Epoch], None] | None = None,
    ) -> CapsuleGraphGenerator:
        """Train the critic.

        Args:
            graphs: at most :data:`MAX_NODES` nodes each; edge weights and attributes are not used.
            y: ignored.
            checkpoint: folder for the state of the training, from which an interrupted one is resumed.
            on_epoch: called after each epoch.
        """
        config = self.config
        if not len(graphs):
            raise DataError(f"{graphs.name}: has no graphs")
        if (largest := int(graphs.sizes.max())) > MAX_NODES:
            raise DataError(f"{graphs.name}: has a graph of {largest} nodes; the generator takes at most {MAX_NODES}")
        self.alphabet_ = Alphabet.of(graphs)
        data = self.alphabet_.encode(graphs, largest)
        order = torch.zeros(self.alphabet_.num_nodes, dtype=torch.long)
        order.scatter_reduce_(0, data.nodes[data.mask], orders(data)[data.mask], "amax")
        self.limits_ = Limits(order, bool(is_connected(data).all()))
        self.shares_ = torch.bincount(data.nodes[data.mask], minlength=self.alphabet_.num_nodes).float()
        self.sizes_ = torch.from_numpy(np.sort(graphs.sizes))
        seed = self._seed()
        identity = {"parameters": {k: str(v) for k, v in config.model_dump().items()}, "seed": seed}
        identity["data"] = graphs.fingerprint()
        with reproducible(seed, config.threads), self._progress("fitting", config.epochs, on_epoch) as report:
            self.critic_ = self._critic()
            pair = _Adversaries(self.critic_, self._start(config.chains, torch.Generator().manual_seed(seed)))
            run = StepRun(pair, self._losses(data, pair), config, seed)
            self.curves_, self.epoch_ = fit_steps(run, identity=identity, checkpoint=checkpoint, on_epoch=report)
        return self

    def sample(self, count: int, random_state: int = 0) -> GraphSet:
        """Generate graphs, each by its own chain.

        Args:
            count: number of graphs.
            random_state: seed of the chains.
        """
        check_is_fitted(self)
        config = self.config
        generator = torch.Generator().manual_seed(random_state)
        parts = []
        for first in range(0, count, 256):
            start = self._start(min(256, count - first), generator)
            parts.append(self._chain().run(start, config.sampling_steps, generator))
        joined = DenseGraphs(*(torch.cat(columns) for columns in zip(*parts, strict=True)))
        return self.alphabet_.decode(joined, "generated")

    def score_samples(self, graphs: GraphSet) -> Array:
        """[G] scores D of graphs: log-probabilities among graphs of the same size, up to a constant."""
        check_is_fitted(self)
        if graphs.sizes.max(initial=0) > MAX_NODES:
            raise DataError(f"{graphs.name}: has a graph of {graphs.sizes.max()} nodes; at most {MAX_NODES}")
        largest = int(max(graphs.sizes.max(initial=1), self.sizes_[-1]))
        with torch.no_grad():
            found: Array = self._chain().score(self.alphabet_.encode(graphs, largest)).double().numpy()
        return found

    @property
    def num_parameters_(self) -> int:
        """Number of parameters of the critic."""
        return sum(parameter.numel() for parameter in self.critic_.parameters())

    def _critic(self) -> Critic:
        config = self.config
        L, R = self.alphabet_.num_nodes, self.alphabet_.num_edges
        return Critic(L, R, config.hidden, config.capsule_size, config.layers, config.walks, config.rank)

    def _chain(self) -> GraphChain:
        return GraphChain(self.critic_, self.limits_, self.alphabet_.num_nodes, self.alphabet_.num_edges)

    def _start(self, count: int, generator: torch.Generator) -> DenseGraphs:
        """Draw random trees with the sizes and label frequencies of the training graphs."""
        N = int(self.sizes_[-1])
        size = self.sizes_[torch.randint(len(self.sizes_), (count,), generator=generator)]
        mask = torch.arange(N) < size.unsqueeze(1)
        nodes = torch.multinomial(self.shares_, count * N, replacement=True, generator=generator).view(count, N)
        return random_trees(mask, nodes * mask, self.limits_, generator)

    def _losses(self, data: DenseGraphs, pair: _Adversaries) -> Callable[[np.random.Generator], Iterator[Tensor]]:
        config = self.config
        chain, width = self._chain(), min(config.batch_size, config.chains)

        def losses(rng: np.random.Generator) -> Iterator[Tensor]:
            generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
            for _ in range(config.updates):
                chosen = torch.from_numpy(rng.choice(config.chains, width, replace=False))
                restarted = torch.from_numpy(rng.random(width) < config.restart)
                start = self._start(width, generator).where(restarted, pair.states.take(chosen))
                states = chain.run(start, config.steps, generator)
                pair.keep(chosen, states)
                real = data.take(torch.from_numpy(rng.integers(0, len(data.nodes), width)))
                fake, true = chain.score(states), chain.score(real)
                yield fake.mean() - true.mean() + config.penalty * (fake.square().mean() + true.square().mean())

        return losses

    def state(self) -> State:
        """Return the fitted state as arrays and JSON values."""
        arrays = network_arrays(self.critic_)
        arrays |= {"order": self.limits_.order.numpy(), "shares": self.shares_.numpy(), "sizes": self.sizes_.numpy()}
        for name, labels in zip(self.alphabet_._fields, self.alphabet_, strict=True):
            if labels is not None:
                arrays[name] = labels
        return arrays, {"connected": self.limits_.connected}

    def restore(self, arrays: dict[str, Array], values: dict[str, Any]) -> None:
        """Set the fitted state from the values that :meth:`state` returned."""
        page = validated(_GeneratorPage, values, "the model is damaged", ModelError)
        self.alphabet_ = Alphabet(arrays.get("nodes"), arrays.get("edges"))
        L = self.alphabet_.num_nodes
        known = all(arrays.get(name, np.zeros(0)).shape == (L,) for name in ("order", "shares"))
        sizes = arrays.get("sizes", np.zeros(0))
        if not known or sizes.ndim != 1 or not len(sizes) or not 1 <= sizes.min() <= sizes.max() <= MAX_NODES:
            raise ModelError("the model is damaged (its limits, shares or sizes are missing or out of range)")
        self.limits_ = Limits(torch.from_numpy(arrays["order"].copy()), page.connected)
        self.shares_, self.sizes_ = torch.from_numpy(arrays["shares"].copy()), torch.from_numpy(sizes.copy())
        self.critic_, self.curves_ = self._critic(), Curves()
        load_network(self.critic_, arrays)


class _GeneratorPage(Page):
    """JSON values of a fitted generator."""

    connected: bool


class _Adversaries(nn.Module):
    """A critic and the states of the chains, which a checkpoint saves together."""

    def __init__(self, critic: Critic, states: DenseGraphs) -> None:
        super().__init__()
        self.critic = critic
        for name, part in zip(DenseGraphs._fields, states, strict=True):
            self.register_buffer(name, part)

    @property
    def states(self) -> DenseGraphs:
        """The current states."""
        return DenseGraphs(*(self.get_buffer(name) for name in DenseGraphs._fields))

    def keep(self, which: Tensor, states: DenseGraphs) -> None:
        """Replace some of the states."""
        for name, part in zip(DenseGraphs._fields, states, strict=True):
            self.get_buffer(name)[which] = part
