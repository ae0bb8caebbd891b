"""Base class of the estimators that train a network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Self, Unpack

import numpy as np
import torch
from pydantic import Field
from sklearn.base import TransformerMixin

from gcaps.config import Config, Section, TrainingConfig
from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.documents import Count, Name, Number, Page, validated
from gcaps.errors import ConfigError, ModelError
from gcaps.estimators.auto import resolve, usable_device
from gcaps.estimators.base import FitOptions, GraphEstimator, State
from gcaps.features import NodeFeatures
from gcaps.models.edge_filters import EdgeShape
from gcaps.models.ensemble import Ensemble
from gcaps.models.network import Network
from gcaps.models.random_capsules import RandomCapsuleSVM
from gcaps.models.registry import network_class, random_capsules, restore_network
from gcaps.training import FittedNetwork, TrainingData, fit_network
from gcaps.training.checkpoint import remove_checkpoint
from gcaps.training.random_capsules import svm_beside


class RandomCapsuleState(Page):
    """What the shape of an SVM on random capsules was derived from, and how it was chosen."""

    vectors: Annotated[int, Field(ge=0, le=1 << 30)]
    classes: Annotated[int, Field(ge=0, le=1 << 14)]
    C: Number
    inner: Number


class NetworkState(Page):
    """JSON values of a fitted :class:`NetworkEstimator`."""

    in_channels: Annotated[int, Field(ge=0, le=1 << 26)]
    shape: dict[Name, Annotated[int, Field(ge=0, le=1 << 26)] | Number | EdgeShape]
    """Arguments of the network that its training graphs decide (:meth:`gcaps.models.network.Network.shape_from`)."""
    svm: RandomCapsuleState | None
    features: dict[Name, Any]
    """State of :class:`gcaps.features.NodeFeatures`."""
    seed: Count
    epoch: Annotated[int, Field(ge=0, le=1 << 31)]

    @property
    def shape_args(self) -> dict[str, Any]:
        """``shape`` as plain values."""
        return {name: value.model_dump() if isinstance(value, Page) else value for name, value in self.shape.items()}


class NetworkEstimator(TransformerMixin, GraphEstimator):  # type: ignore[misc]
    """Base class of the estimators that train a network.

    Attributes:
        fitted_: node features and network (:class:`gcaps.training.FittedNetwork`).
    """

    fitted_: FittedNetwork

    def remove_checkpoint(self, folder: Path) -> None:
        """Remove the checkpoint that a fit left in a folder."""
        remove_checkpoint(folder)

    def fit_prepared(self, prepared: PreparedSet, train: Ints, **options: Unpack[FitOptions]) -> Self:
        """Train on some graphs of a prepared set; see :meth:`GraphEstimator.fit_prepared`."""
        given = self.config
        assert isinstance(given, TrainingConfig)
        problem = self._start(prepared, train, options)
        target, train = problem.target, problem.train
        if given.sampling == "balanced" and target.task != "classification":
            raise ConfigError(f"sampling: balanced needs classes; this is {target.task}")
        config, self.resolution_ = resolve(given, prepared.graphs, train, target.task)
        weight = _scaled(problem.weight, train)
        groups = options.get("groups")
        data = TrainingData(prepared, train, problem.y, target.outputs, weight, target.task, groups)
        assert config.epochs != "auto"
        with self._progress(prepared.graphs.name, config.epochs, options.get("on_epoch")) as report:
            self.fitted_, self.curves_, self.epoch_ = fit_network(
                data,
                config,
                self._seed(),
                validation=options.get("validation"),
                watch=options.get("watch"),
                on_epoch=report,
                checkpoint=options.get("checkpoint"),
                keep_checkpoint=options.get("keep_checkpoint", False),
            )
        self._describe(config)
        return self

    def _describe(self, config: Section) -> None:
        """Set ``resolved_`` and ``chosen_`` from the fitted network."""
        network, svm = self._parts()
        self.resolved_ = config.to_dict() | network.shape_args
        self.chosen_ = {} if svm is None else {name: svm.shape_args[name] for name in ("C", "inner")}

    def _parts(self) -> tuple[Any, RandomCapsuleSVM | None]:
        """Return the trained network and the SVM that is averaged with it, if there is one."""
        network = self.fitted_.network
        if isinstance(network, Ensemble) and isinstance(network.networks[-1], RandomCapsuleSVM):
            return network.networks[0], network.networks[-1]
        return network, None

    def _scores(self, graphs: GraphSet) -> Floats:
        return self._in_units(self.fitted_.scores(graphs))

    def _spread(self, graphs: GraphSet) -> Floats | None:
        if self.target_.scale is None or (found := self.fitted_.spread(graphs)) is None:
            return None
        return found * self.target_.scale

    def transform(self, X: Any) -> Floats:
        """Return graph embeddings [G, ·]: the vectors before the fully connected layers.

        Of GCAPS-CNN [μ, C], followed by ``extra_features``.
        """
        graphs = self.loaded(X)
        return self.fitted_.embed(graphs)

    @property
    def describes(self) -> str:
        """What predicts, in words."""
        network, svm = self._parts()
        size = network.ensemble_size
        parts = [f"{size} networks" if size > 1 else "one network", *(["an SVM on random capsules"] if svm else [])]
        count = sum(p.numel() for p in network.parameters())
        return f"{' and '.join(parts)}, {count:,} parameters"

    def state(self) -> State:
        """Return weights, node features and what the network's shape was derived from."""
        network, svm = self._parts()
        weights = {name: t.detach().cpu().contiguous().numpy() for name, t in self.fitted_.network.state_dict().items()}
        return weights, {
            "in_channels": network.in_channels,
            "shape": network.shape_args,
            "svm": None if svm is None else svm.shape_args,
            "features": self.fitted_.features.state(),
            "seed": self.fitted_.seed,
            "epoch": self.epoch_,
        }

    def restore(self, arrays: dict[str, Array], values: dict[str, Any]) -> None:
        """Build the network again and load its weights."""
        kind = type(self.config)
        config = kind.parse({name: value for name, value in self.resolved_.items() if name in kind.model_fields})
        assert isinstance(config, TrainingConfig)
        config = config.model_copy(update={"device": usable_device(config.device)})
        found = validated(NetworkState, values, "the state of the network is damaged", ModelError)
        features, outputs = NodeFeatures.from_state(found.features), self.target_.outputs
        if unknown := self.resolved_.keys() - kind.model_fields.keys() - found.shape_args.keys():
            raise ModelError(f"{min(unknown)}: there is no such setting of {self.method}")
        require_columns(features, found.in_channels, found.shape_args, of_edges=network_class(config).takes_edges)

        def build() -> Network:
            network = restore_network(config, found.in_channels, outputs, found.shape_args, self.target_.task)
            if found.svm is None:
                return network
            if not isinstance(config, Config):
                raise ModelError("the state of the network is damaged (only gcaps is averaged with an SVM)")
            capsules = random_capsules(svm_beside(config), found.in_channels, outputs, features.shape)
            svm = RandomCapsuleSVM(capsules, outputs, task=self.target_.task, **found.svm.model_dump())
            return Ensemble([network, svm])

        network = with_weights(build, arrays)
        network.to(config.device)
        self.fitted_ = FittedNetwork(config, features, network.eval(), found.seed)
        self.epoch_ = found.epoch


def require_columns(features: NodeFeatures, in_channels: int, shape: dict[str, Any], *, of_edges: bool = True) -> None:
    """Raise a ModelError unless a network was built for as many columns as its features have."""
    if features.num_features != in_channels:
        raise ModelError(f"the features have {features.num_features} columns, the network takes {in_channels}")
    own = {name: shape[name] for name in ("num_relations", "edge_dim", "graph_dim") if name in shape}
    if of_edges and own != features.shape:
        raise ModelError(f"the features of edges and graphs are {features.shape}, the network takes {own}")


def with_weights(build: Callable[[], Network], arrays: dict[str, Array]) -> Network:
    """Build a network and load arrays as its state, whose shapes are compared before anything is allocated.

    Raises:
        ModelError: the arrays are not those of such a network.
    """
    with torch.device("meta"):
        shapes = {name: (tuple(t.shape), t.dtype) for name, t in build().state_dict().items()}
    tensors = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
    for name in sorted(shapes.keys() | tensors.keys()):
        found = (tuple(tensors[name].shape), tensors[name].dtype) if name in tensors else None
        if found != shapes.get(name):
            raise ModelError(f"{name} is {found}, the settings make it {shapes.get(name)}")
    network = build()
    network.load_state_dict(tensors)
    for part in network.modules():
        if isinstance(part, RandomCapsuleSVM) and part.task == "classification":
            present = part.present.tolist()
            if present != sorted(set(present)) or any(not 0 <= code < part.outputs for code in present):
                raise ModelError("the SVM is damaged (it names a class that there is not)")
    return network


def _scaled(sample_weight: Floats | None, train: Ints) -> Floats | None:
    """Scale weights to a mean of one over the training graphs, so that the learning rate keeps its meaning."""
    if sample_weight is None:
        return None
    scaled: Floats = sample_weight / sample_weight[train].mean()
    return scaled
