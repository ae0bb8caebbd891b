"""Data sets of graphs: data model, readers, writers, catalog and audits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcaps.lazy import lazy_names

if TYPE_CHECKING:
    from gcaps.data.audit import Duplicates as Duplicates
    from gcaps.data.audit import Facts as Facts
    from gcaps.data.audit import facts as facts
    from gcaps.data.catalog import CATALOG as CATALOG
    from gcaps.data.catalog import DataSet as DataSet
    from gcaps.data.catalog import convert as convert
    from gcaps.data.catalog import load as load
    from gcaps.data.graphset import Graph as Graph
    from gcaps.data.graphset import GraphSet as GraphSet
    from gcaps.data.graphset import SelfLoops as SelfLoops
    from gcaps.data.graphset import Skipped as Skipped
    from gcaps.data.io.networkx import from_networkx as from_networkx
    from gcaps.data.io.networkx import to_networkx as to_networkx
    from gcaps.data.io.objects import from_graphs as from_graphs
    from gcaps.data.io.pyg import from_pyg as from_pyg
    from gcaps.data.io.pyg import to_pyg as to_pyg
    from gcaps.data.io.smiles import read_smiles as read_smiles
    from gcaps.data.io.tu import read_tu as read_tu
    from gcaps.data.prepared import PreparedSet as PreparedSet
    from gcaps.data.synthetic import FAMILIES as FAMILIES
    from gcaps.data.synthetic import make_families as make_families
    from gcaps.data.synthetic import random_molecules as random_molecules
    from gcaps.data.writer import GraphSetWriter as GraphSetWriter
    from gcaps.data.writer import write_graphs as write_graphs

_HOMES = {
    "CATALOG": "catalog",
    "DataSet": "catalog",
    "Duplicates": "audit",
    "FAMILIES": "synthetic",
    "Facts": "audit",
    "Graph": "graphset",
    "GraphSet": "graphset",
    "GraphSetWriter": "writer",
    "PreparedSet": "prepared",
    "SelfLoops": "graphset",
    "Skipped": "graphset",
    "convert": "catalog",
    "facts": "audit",
    "from_graphs": "io.objects",
    "from_networkx": "io.networkx",
    "from_pyg": "io.pyg",
    "load": "catalog",
    "make_families": "synthetic",
    "random_molecules": "synthetic",
    "read_smiles": "io.smiles",
    "read_tu": "io.tu",
    "to_networkx": "io.networkx",
    "to_pyg": "io.pyg",
    "write_graphs": "writer",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names("gcaps.data", _HOMES)
