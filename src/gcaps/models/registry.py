"""Networks by the name of their method, how one is built for training graphs, and what is computed once for a set."""

from __future__ import annotations

import importlib
from typing import Any
from weakref import WeakKeyDictionary

from gcaps.batching.batch import Extras
from gcaps.config import Config
from gcaps.data.graphset import GraphSet
from gcaps.models.config import AnyConfig
from gcaps.models.ensemble import Ensemble
from gcaps.models.gcaps import GCAPS
from gcaps.models.machine import CapsuleMachine
from gcaps.models.network import Network

NETWORKS = {
    "gcaps": ("gcaps", "GCAPS"),
    "dcnn": ("dcnn", "DCNN"),
    "pscn": ("pscn", "PSCN"),
    "ecc": ("ecc", "ECC"),
    "dgcnn": ("dgcnn", "DGCNN"),
    "gin": ("gin", "GIN"),
    "set": ("set", "SetNetwork"),
}
"""Module and class of every network, by the method's name."""


def network_class(config: AnyConfig) -> type[Network]:
    """The network that a configuration is for."""
    module, name = NETWORKS[config.method]
    found: type[Network] = getattr(importlib.import_module(f"gcaps.models.{module}"), name)
    return found


def build_network(config: AnyConfig, in_channels: int, graphs: GraphSet) -> Network:
    """The network of a configuration, shaped for training ``graphs`` with ``in_channels`` node features."""
    measured = network_class(config).measure(config, graphs) | {"networks": config.networks(graphs.sizes)}
    return restore_network(config, in_channels, graphs.num_classes, measured)


def restore_network(config: AnyConfig, in_channels: int, num_classes: int, measured: dict[str, Any]) -> Network:
    """The network as it was built, with weights of its own."""
    kind: Any = network_class(config)
    shape = {name: value for name, value in measured.items() if name not in ("networks", "machine")}
    count = int(measured.get("networks", 1))
    counted = config.model_copy(update={"members": count})  # what has to fit in memory
    networks: list[Network] = [kind(in_channels, num_classes, counted, **shape) for _ in range(count)]
    network = networks[0] if count == 1 else Ensemble(networks, networks=count)
    if "machine" not in measured or not isinstance(config, Config):
        return network
    capsules = untrained_capsules(config, in_channels, num_classes, shape)
    return with_machine(config, network, CapsuleMachine(capsules, num_classes, **measured["machine"]))


def untrained_capsules(config: Config, in_channels: int, num_classes: int, measured: dict[str, Any]) -> GCAPS:
    """What a machine takes its graph vectors from: twice as wide as what is trained, with weights of its own."""
    rank = None if config.rank is None else 2 * config.rank
    wide = config.model_copy(update={"hidden": 2 * config.hidden, "rank": rank, "members": 1})
    return GCAPS(in_channels, num_classes, wide, **measured)


def with_machine(config: Config, network: Network, machine: CapsuleMachine) -> Network:
    """What predicts where the head is a machine, or a trained network and a machine."""
    return machine if config.head == "svm" else Ensemble([network, machine])


_known: WeakKeyDictionary[GraphSet, dict[tuple[Any, ...], Extras | None]] = WeakKeyDictionary()


def extras_of(config: AnyConfig, graphs: GraphSet) -> Extras | None:
    """What the configuration's network wants of ``graphs``, computed once and kept as long as the set is."""
    known, key = _known.setdefault(graphs, {}), _key(config)
    if key not in known:
        known[key] = network_class(config).prepare(config, graphs)
    return known[key]


def share_extras(config: AnyConfig, graphs: GraphSet, extras: Extras | None) -> None:
    """Let :func:`extras_of` answer with what another process has computed."""
    _known.setdefault(graphs, {})[_key(config)] = extras


def _key(config: AnyConfig) -> tuple[Any, ...]:
    return (config.method, *(getattr(config, name) for name in network_class(config).prepared_by))
