"""Networks by the name of their method, how one is built for training graphs, and what is computed once for a set."""

from __future__ import annotations

import importlib
from typing import Any
from weakref import WeakKeyDictionary

from gcaps.batching.batch import Extras
from gcaps.data.graphset import GraphSet
from gcaps.models.config import AnyConfig
from gcaps.models.ensemble import Ensemble
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
    kind = network_class(config)
    return restore_network(config, in_channels, graphs.num_classes, kind.measure(config, graphs))


def restore_network(config: AnyConfig, in_channels: int, num_classes: int, measured: dict[str, Any]) -> Network:
    """The network as it was built, with weights of its own."""
    kind: Any = network_class(config)
    networks: list[Network] = [kind(in_channels, num_classes, config, **measured) for _ in range(config.members)]
    return networks[0] if len(networks) == 1 else Ensemble(networks)


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
