"""Networks by the name of their method: how one is built for training graphs, and restored from a saved model."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from gcaps.batching.batch import Extras
from gcaps.config import CapsuleConfig, Config, FeatureConfig, GraphFeatureConfig, RandomCapsuleConfig, Section
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.data.targets import Task
from gcaps.models.ensemble import Ensemble
from gcaps.models.gcaps import GCAPS
from gcaps.models.network import Network

NETWORKS = {
    "gcaps": ("gcaps", "GCAPS"),
    "capsule-svm": ("gcaps", "GCAPS"),
    "dcnn": ("dcnn", "DCNN"),
    "pscn": ("pscn", "PSCN"),
    "ecc": ("ecc", "ECC"),
    "dgcnn": ("dgcnn", "DGCNN"),
    "gin": ("gin", "GIN"),
    "deepsets": ("deepsets", "DeepSets"),
}
"""Module and class of every network, by the method's name."""


def network_class(config: Section) -> type[Network]:
    """Return the class of the network that the settings are for."""
    module, name = NETWORKS[config.method]
    found: type[Network] = getattr(importlib.import_module(f"gcaps.models.{module}"), name)
    return found


def build_network(
    config: Section,
    in_channels: int,
    outputs: int,
    graphs: GraphSet,
    task: Task = "classification",
    features: Mapping[str, int] | None = None,
) -> Network:
    """Build the network for training ``graphs`` with ``in_channels`` node features.

    Args:
        config: settings without any ``auto``.
        in_channels: columns of the node features.
        outputs: number of classes, or of targets.
        graphs: the training graphs, from which some networks derive their shape.
        task: what the outputs mean.
        features: number of relations, edge attributes and graph features (:attr:`gcaps.batching.BatchSource.shape`).
    """
    kind = network_class(config)
    shape = kind.shape_from(config, graphs) | (dict(features or {}) if kind.takes_edges else {})
    return restore_network(config, in_channels, outputs, shape, task)


def restore_network(
    config: Section, in_channels: int, outputs: int, shape_args: dict[str, Any], task: Task = "classification"
) -> Network:
    """Build the network of a shape that :meth:`Network.shape_from` gave before, with fresh weights."""
    make: Any = network_class(config)
    count = int(getattr(config, "ensemble_size", 1))
    networks: list[Network] = [make(in_channels, outputs, config, **shape_args) for _ in range(count)]
    for network in networks:
        network.task = task
    return networks[0] if count == 1 else Ensemble(networks)


def svm_beside(config: Config) -> RandomCapsuleConfig:
    """Return the settings of the SVM that is averaged with a network: capsules of the same kind, twice as wide."""
    kinds = (CapsuleConfig, GraphFeatureConfig, FeatureConfig)
    shared = {name: getattr(config, name) for kind in kinds for name in kind.model_fields}
    wide = {"hidden": 2 * config.hidden, "rank": None if config.rank is None else 2 * config.rank}
    return RandomCapsuleConfig(**{**shared, **wide}, batch_size=config.batch_size, threads=config.threads)


def random_capsules(
    config: RandomCapsuleConfig, in_channels: int, num_classes: int, features: Mapping[str, int]
) -> GCAPS:
    """Build capsule layers and readout with random weights, as GCAPS-CNN starts out; see :func:`build_network`."""
    shape = {name: getattr(config, name) for name in CapsuleConfig.model_fields}
    return GCAPS(in_channels, num_classes, Config(**shape, dropout=0.0, ensemble_size=1), **features)


def extras_of(config: Section, prepared: PreparedSet) -> Extras | None:
    """Return what the network needs of the graphs besides features and edges, computed once for a prepared set."""
    kind = network_class(config)
    key = ("extras", config.method, *(getattr(config, name) for name in kind.prepared_by))
    return prepared.get(key, lambda: kind.prepare(config, prepared.graphs))
