"""Semi-supervised classification of the nodes of one graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin

from gcaps.config.tasks import NodeConfig
from gcaps.data.arrays import Array, Floats, Ints, array_digest
from gcaps.data.targets import Target
from gcaps.documents import Count, Name, Page, validated
from gcaps.errors import DataError, ModelError
from gcaps.estimators.fitting import ClassesMixin
from gcaps.tasks.base import State, network_arrays
from gcaps.tasks.encoder_model import EncoderModel
from gcaps.tasks.graph import NodeGraph, node_indices
from gcaps.tasks.node_training import NodeTraining
from gcaps.training.loop import Epoch, inner_split, reproducible

HELD_BACK = 0.2
"""Share of the training nodes held back to choose the epoch if no validation nodes are given."""


class CapsuleNodeClassifier(ClassifierMixin, ClassesMixin, EncoderModel[NodeConfig]):  # type: ignore[misc]
    """Semi-supervised classification of the nodes of one graph with graph capsules.

    Layers are :class:`gcaps.tasks.encoder.NodeCapsuleConv` on the whole graph (or, with ``batch_size``, on sampled
    neighborhoods). Training uses the features of all nodes and all edges, but only the classes of the training nodes;
    the epoch is the best on the validation nodes. The classes of test nodes are not used.

    Args:
        hidden: see :class:`gcaps.config.tasks.NodeConfig` for this and all other settings.
        random_state: seed of all random numbers.
        verbose: show a progress bar.

    Attributes:
        target_: the classes, and their encoding.
        curves_: loss and validation accuracy of each epoch.
        epoch_: the epoch that the weights come from.
    """

    settings: ClassVar[type[NodeConfig]] = NodeConfig

    def __init__(
        self,
        hidden: int = 32,
        capsule_size: int = 1,
        degrees: Sequence[int] = (1, 1),
        weights: Literal["separate", "shared", "decaying"] = "shared",
        filter: str = "kipf",  # noqa: A002 (the paper's word)
        bound: float | None = 3.0,
        normalize: bool = True,
        input_dropout: float = 0.5,
        dropout: float = 0.5,
        node_dropout: float = 0.0,
        passes: int = 2,
        consistency: float = 1.0,
        temperature: float = 0.5,
        batch_size: int | None = None,
        neighbors: int = 10,
        epochs: int = 500,
        patience: int | None = 100,
        lr: float = 0.01,
        schedule: Literal["step", "cosine"] = "step",
        decay: float = 1.0,
        decay_every: int = 100,
        weight_decay: float = 5e-4,
        threads: int = 1,
        device: str = "auto",
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self._store(locals())

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        train: Any = None,
        validation: Any = None,
        checkpoint: str | Path | None = None,
        keep_checkpoint: bool = False,
        on_epoch: Callable[[Epoch], None] | None = None,
    ) -> Self:
        """Fit on the labelled nodes of a graph.

        Args:
            X: a :class:`gcaps.tasks.NodeGraph`, a ``.npz`` file or PyTorch Geometric ``Data``.
            y: [n] classes, by default those of the graph; only those of training and validation nodes are read.
            train: indices or mask of the training nodes, by default those of the graph.
            validation: nodes that choose the epoch, by default those of the graph; without any, one training node in
                five is held back.
            checkpoint: folder from which an interrupted training is resumed.
            keep_checkpoint: do not remove it at the end; the caller does when the model is saved.
            on_epoch: called after each epoch.
        """
        config, graph, seed = self.config, NodeGraph.of(X), self._seed()
        inner, held = self._parts(graph, train, validation)
        labels = _labels(graph, y)
        used = np.concatenate([inner, held])
        target = Target.of(labels[used], "classification")
        codes = np.full(len(graph), -1)
        codes[used] = target.encode(labels[used])
        if not len(held):
            rows, others = inner_split(codes[inner], HELD_BACK, seed)
            inner, held = inner[rows], inner[others]
        with reproducible(seed, config.threads), self._progress("nodes", config.epochs, on_epoch) as report:
            network = self._new_network(graph.x.shape[1], target.outputs)
            training = NodeTraining(network, graph, codes, inner, held, config, [network.first_weight])
            identity = _identity(graph, codes, inner, held, config, seed)
            self.curves_, epoch = training.fit(seed, identity, checkpoint, keep_checkpoint, report)
        self.network_, self.target_, self.features_ = network.eval(), target, graph.x.shape[1]
        self.epoch_ = epoch
        return self

    def _parts(self, graph: NodeGraph, train: Any, validation: Any) -> tuple[Ints, Ints]:
        """Return the training and the validation nodes."""
        inner = graph.train if train is None else node_indices(train, len(graph), "train")
        if inner is None or not len(inner):
            raise DataError("has no training nodes; give train, indices or a mask", "graph")
        given = graph.validation if validation is None and train is None else validation
        held = np.zeros(0, np.int64) if given is None else node_indices(given, len(graph), "validation")
        if len(np.intersect1d(inner, held)):
            raise DataError("train and validation share nodes", "graph")
        return inner, held

    def predict_proba(self, X: Any) -> Floats:
        """Return class probabilities [n, C] of all nodes of a graph, in the order of ``classes_``."""
        found: Floats = torch.softmax(self._outputs(X).double(), dim=1).cpu().numpy()
        return found

    def predict(self, X: Any) -> Array:
        """Return the class of each node [n], as in ``y``."""
        return self.target_.decode(self.predict_proba(X))

    def score(self, X: Any, y: Any = None, nodes: Any = None) -> float:
        """Return the accuracy on some nodes.

        Args:
            X: a graph.
            y: [n] classes, by default those of the graph.
            nodes: indices or mask, by default the test nodes of the graph.
        """
        graph = NodeGraph.of(X)
        rows = graph.test if nodes is None else node_indices(nodes, len(graph), "nodes")
        if rows is None or not len(rows):
            raise DataError("has no test nodes; give nodes, indices or a mask", "graph")
        return float((self.predict(graph) == _labels(graph, y))[rows].mean())

    def state(self) -> State:
        """Return the weights, the number of features and the target."""
        return network_arrays(self.network_), {"features": self.features_, "target": self.target_.to_dict()}

    def restore(self, arrays: dict[str, Array], values: dict[str, Any]) -> None:
        """Set the fitted state from the values that :meth:`state` returned."""
        found = validated(NodeState, values, "its state is damaged", ModelError)
        self.target_ = Target.from_dict(dict(found.target))
        if self.target_.task != "classification":
            raise ModelError("its target has no classes")
        self._restore_network(arrays, found.features, self.target_.outputs)


class NodeState(Page):
    """JSON values of a fitted classifier of nodes."""

    features: Count
    target: dict[Name, Any]


def _labels(graph: NodeGraph, y: Any) -> Array:
    labels = graph.y if y is None else np.asarray(y)
    if labels is None:
        raise DataError("has no classes; give y", "graph")
    if labels.shape != (len(graph),):
        raise DataError(f"y is {labels.shape}; expected a class for each of {len(graph)} nodes", "graph")
    return labels


def _identity(
    graph: NodeGraph, codes: Ints, train: Ints, validation: Ints, config: NodeConfig, seed: int
) -> dict[str, Any]:
    """Return all inputs of a training; of the classes only those of training and validation nodes."""
    parts = {"train": train, "validation": validation, "train_y": codes[train], "validation_y": codes[validation]}
    return {
        "model": "nodes",
        "config": config.to_dict(),
        "seed": seed,
        "graph": graph.fingerprint(),
        **{name: array_digest(part) for name, part in parts.items()},
    }
