"""Networks from a batch to logits, one a file; each loads when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcaps.lazy import lazy_names

if TYPE_CHECKING:
    from gcaps.models.dcnn import DCNN as DCNN
    from gcaps.models.deepsets import DeepSets as DeepSets
    from gcaps.models.dgcnn import DGCNN as DGCNN
    from gcaps.models.ecc import ECC as ECC
    from gcaps.models.gcaps import GCAPS as GCAPS
    from gcaps.models.gin import GIN as GIN
    from gcaps.models.network import Network as Network
    from gcaps.models.pscn import PSCN as PSCN
    from gcaps.models.registry import NETWORKS as NETWORKS
    from gcaps.models.registry import build_network as build_network
    from gcaps.models.registry import network_class as network_class

_HOMES = {
    "DCNN": "dcnn",
    "DGCNN": "dgcnn",
    "ECC": "ecc",
    "GCAPS": "gcaps",
    "GIN": "gin",
    "NETWORKS": "registry",
    "Network": "network",
    "PSCN": "pscn",
    "DeepSets": "deepsets",
    "build_network": "registry",
    "network_class": "registry",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names("gcaps.models", _HOMES)
