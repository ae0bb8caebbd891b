"""Prediction of the links of one graph by graph autoencoders with capsule layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from gcaps.config.tasks import LinkConfig
from gcaps.data.arrays import Array, Floats, Ints, array_digest
from gcaps.documents import Count, Page, validated
from gcaps.errors import DataError, ModelError
from gcaps.tasks.base import State, network_arrays
from gcaps.tasks.encoder_model import EncoderModel
from gcaps.tasks.graph import NodeGraph
from gcaps.tasks.link_split import Pairs, split_links
from gcaps.tasks.link_training import LinkTraining, link_logits, link_metrics, means_of
from gcaps.training.loop import Epoch, reproducible

VECTORS = "vectors"


class CapsuleLinkPredictor(EncoderModel[LinkConfig]):
    """Graph autoencoder (GAE) or variational one (VGAE) with capsule layers as encoder.

    Capsule layers map features and links to a vector z of each node; nodes i and j are linked with the probability
    1 / (1 + exp(−⟨z_i, z_j⟩)). The epoch is the best on validation links, along which no messages pass.

    Args:
        hidden: see :class:`gcaps.config.tasks.LinkConfig` for this and all other settings.
        random_state: seed of all random numbers.
        verbose: show a progress bar.

    Attributes:
        vectors_: [n, d] vectors of the nodes of the training graph.
        curves_: loss and validation score (mean of ROC AUC and average precision) of each epoch.
        epoch_: the epoch that the weights come from.
    """

    settings: ClassVar[type[LinkConfig]] = LinkConfig

    def __init__(
        self,
        hidden: int = 64,
        capsule_size: int = 1,
        degrees: Sequence[int] = (8,),
        weights: Literal["separate", "shared", "decaying"] = "decaying",
        filter: str = "kipf",  # noqa: A002 (the paper's word)
        bound: float | None = 3.0,
        normalize: bool = True,
        input_dropout: float = 0.0,
        dropout: float = 0.0,
        node_dropout: float = 0.0,
        variational: bool = False,
        embedding: int = 64,
        length: float | None = 1.8,
        validation: float = 0.05,
        epochs: int = 300,
        patience: int | None = 50,
        lr: float = 0.01,
        schedule: Literal["step", "cosine"] = "step",
        decay: float = 1.0,
        decay_every: int = 100,
        weight_decay: float = 0.0,
        threads: int = 1,
        device: str = "auto",
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self._store(locals())

    @property
    def _num_outputs(self) -> int:
        """Number of outputs for each node: a vector, or mean and log standard deviation of one."""
        config = self.config
        return config.embedding * (2 if config.variational else 1)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        validation: Pairs | None = None,
        checkpoint: str | Path | None = None,
        keep_checkpoint: bool = False,
        on_epoch: Callable[[Epoch], None] | None = None,
    ) -> Self:
        """Fit on the links of a graph.

        Args:
            X: a :class:`gcaps.tasks.NodeGraph`, a ``.npz`` file or PyTorch Geometric ``Data``. All its links
                are used: hold out test links first, with :func:`gcaps.tasks.split_links`.
            y: ignored.
            validation: links and other pairs that choose the epoch; the graph must not have these links. By default
                a share of the graph's links is held out.
            checkpoint: folder from which an interrupted training is resumed.
            keep_checkpoint: do not remove it at the end; the caller does when the model is saved.
            on_epoch: called after each epoch.
        """
        config, graph, seed = self.config, NodeGraph.of(X), self._seed()
        if validation is None:
            split = split_links(graph, seed, config.validation, 0.0)
            graph, validation = split.graph, split.validation
        require_held_out(graph, validation.positive)
        with reproducible(seed, config.threads), self._progress("links", config.epochs, on_epoch) as report:
            network = self._new_network(graph.x.shape[1], self._num_outputs)
            training = LinkTraining(network, graph, validation, config, [network.first_weight])
            identity = {
                "model": "links",
                "config": config.to_dict(),
                "seed": seed,
                "graph": graph.fingerprint(),
                "validation": array_digest(validation.both),
            }
            self.curves_, epoch = training.fit(seed, identity, checkpoint, keep_checkpoint, report)
            self.vectors_: Floats = training.vectors().cpu().numpy()
        self.network_, self.features_, self.epoch_ = network.eval(), graph.x.shape[1], epoch
        return self

    def transform(self, X: Any) -> Floats:
        """Return the vectors [n, d] of the nodes of a graph, such as the training graph with further links."""
        found: Floats = means_of(self._outputs(X), self.config).cpu().numpy()
        return found

    def decision_function(self, pairs: Any) -> Floats:
        """Return ⟨z_i, z_j⟩ [m] of pairs [m, 2] of nodes of the training graph."""
        check_is_fitted(self)
        given = np.asarray(pairs)
        n = len(self.vectors_)
        if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
            raise DataError(f"pairs are {given.dtype} {given.shape}; expected node numbers [m, 2]")
        if len(given) and (given.min() < 0 or given.max() >= n):
            raise DataError(f"pairs name nodes from {given.min()} to {given.max()}; there are 0 to {n - 1}")
        found: Floats = link_logits(torch.from_numpy(self.vectors_), torch.from_numpy(given.astype(np.int64))).numpy()
        return found

    def predict_proba(self, pairs: Any) -> Floats:
        """Return the probability [m] that the nodes of each pair [m, 2] are linked."""
        return 1 / (1 + np.exp(-self.decision_function(pairs).astype(np.float64)))

    def predict(self, pairs: Any) -> Array:
        """Return whether the nodes of each pair [m, 2] are linked."""
        return self.decision_function(pairs) > 0

    def evaluate(self, pairs: Pairs) -> dict[str, float]:
        """Return ROC AUC and average precision on links and other pairs."""
        return link_metrics(pairs.y, self.decision_function(pairs.both))

    def state(self) -> State:
        """Return the weights and the vectors of the training graph's nodes."""
        return {**network_arrays(self.network_), VECTORS: self.vectors_}, {"features": self.features_}

    def restore(self, arrays: dict[str, Array], values: dict[str, Any]) -> None:
        """Set the fitted state from the values that :meth:`state` returned."""
        found = validated(LinkState, values, "its state is damaged", ModelError)
        vectors = arrays.get(VECTORS)
        if vectors is None or vectors.ndim != 2 or vectors.shape[1] != self.config.embedding:
            raise ModelError("its arrays are not those of its state")
        self.vectors_ = vectors.astype(np.float32)
        self._restore_network(arrays, found.features, self._num_outputs)


class LinkState(Page):
    """JSON values of a fitted predictor of links."""

    features: Count


def require_held_out(graph: NodeGraph, links: Ints) -> None:
    """Check that a graph has none of the held-out links.

    Raises:
        DataError: it has some, so that a model would be trained on links of its evaluation.
    """
    n = len(graph)
    codes = links.min(axis=1) * n + links.max(axis=1) if len(links) else np.zeros(0, np.int64)
    seen = np.isin(codes, graph.edges @ np.array([n, 1]))
    if seen.any():
        raise DataError(f"has {seen.sum()} of the held-out links; take them out with split_links", "graph")
