"""A fitted network restored from its saved state, and prediction with it, without the imports of fitting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import Field

from gcaps.config import CONFIGS, Config, TrainingConfig
from gcaps.data.arrays import Array, Floats
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.data.molecules.preparation import MoleculePreparation
from gcaps.data.targets import Target
from gcaps.documents import Count, Name, Number, Page, validated
from gcaps.errors import DataError, DivergenceError, ModelError
from gcaps.estimators.auto import usable_device
from gcaps.features.nodes import NodeFeatures
from gcaps.models.edge_filters import EdgeShape
from gcaps.models.ensemble import Ensemble
from gcaps.models.network import Network
from gcaps.models.random_capsules import RandomCapsuleSVM
from gcaps.models.registry import network_class, random_capsules, restore_network, svm_beside
from gcaps.training.fitted import FittedNetwork


class RandomCapsuleState(Page):
    """Values that determine the shape of an SVM on random capsules, and its chosen parameters."""

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


class NetworkPredictor:
    """A network with what it predicts, as :func:`gcaps.persistence.load_predictor` reads it.

    Its predictions are those of the estimator that :func:`gcaps.load_model` reads from the same folder; it is not a
    scikit-learn estimator and loads in a fraction of the time.

    Args:
        fitted: node features and network.
        target: what is predicted.
        preparation: how molecules were made graphs for the fit; None for other graphs.
    """

    def __init__(self, fitted: FittedNetwork, target: Target, preparation: MoleculePreparation | None) -> None:
        self.fitted_, self.target_, self.preparation_ = fitted, target, preparation

    def scores(self, X: Any) -> Floats:
        """Return probabilities, or values in the units of the targets; see ``GraphEstimator.scores``."""
        outputs = self.fitted_.scores(loaded(X, self.preparation_))
        return require_finite(self.target_.in_units(outputs) if self.target_.task == "regression" else outputs)


def loaded(X: Any, preparation: MoleculePreparation | None) -> GraphSet:
    """Return graphs to predict, with molecules prepared as those of the fit were.

    Raises:
        DataError: they are a GraphSet of molecules that were prepared otherwise.
    """
    options: dict[str, Any] = {} if preparation is None else preparation.to_dict()
    graphs = load(X, labelled=False, **options)
    if preparation is not None and graphs.preparation not in (preparation, None):
        raise DataError(
            f"its molecules were read with {graphs.preparation}, those of the training with {preparation}; read them "
            "again with the same options",
            graphs.name,
        )
    return graphs


def require_finite(scores: Floats) -> Floats:
    """Return scores.

    Raises:
        DivergenceError: some are no finite numbers; they would be the first class, or no number at all.
    """
    if not np.isfinite(scores).all():
        wrong = int((~np.isfinite(scores).all(axis=tuple(range(1, scores.ndim)))).sum())
        raise DivergenceError(
            f"the predictions for {wrong:,} of {len(scores):,} graphs are no finite numbers: the model has "
            "diverged, or the graphs hold numbers far beyond those of the training"
        )
    return scores


def restored(
    method: str, resolved: dict[str, Any], target: Target, arrays: dict[str, Array], values: dict[str, Any]
) -> tuple[FittedNetwork, int]:
    """Build a network again and load its weights; return it with the epoch that it comes from.

    Args:
        method: name of the method, whose settings these are.
        resolved: settings and shape of the network.
        target: what it predicts.
        arrays: the network's weights.
        values: see :class:`NetworkState`.
    """
    kind = CONFIGS[method]
    config = kind.parse({name: value for name, value in resolved.items() if name in kind.model_fields})
    assert isinstance(config, TrainingConfig)
    config = config.model_copy(update={"device": usable_device(config.device)})
    found = validated(NetworkState, values, "the state of the network is damaged", ModelError)
    features, outputs = NodeFeatures.from_state(found.features), target.outputs
    if unknown := resolved.keys() - kind.model_fields.keys() - found.shape_args.keys():
        raise ModelError(f"{min(unknown)}: there is no such setting of {method}")
    require_columns(features, found.in_channels, found.shape_args, of_edges=network_class(config).takes_edges)

    def build() -> Network:
        network = restore_network(config, found.in_channels, outputs, found.shape_args, target.task)
        if found.svm is None:
            return network
        if not isinstance(config, Config):
            raise ModelError("the state of the network is damaged (only gcaps is averaged with an SVM)")
        capsules = random_capsules(svm_beside(config), found.in_channels, outputs, features.shape)
        svm = RandomCapsuleSVM(capsules, outputs, task=target.task, **found.svm.model_dump())
        return Ensemble([network, svm])

    network = with_weights(build, arrays)
    network.to(config.device)
    return FittedNetwork(config, features, network.eval(), found.seed), found.epoch


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
