"""Where graphs come from: the data model, its readers and writers, the catalog, and what a set is made of."""

from gcaps.data.audit import Duplicates, Facts, facts
from gcaps.data.catalog import CATALOG, DataSet, load
from gcaps.data.families import FAMILIES, make_families
from gcaps.data.graphset import Graph, GraphSet, SelfLoops
from gcaps.data.networkx import from_networkx, to_networkx
from gcaps.data.pyg import from_pyg, to_pyg
from gcaps.data.tu import read_tu

__all__ = [
    "CATALOG",
    "FAMILIES",
    "DataSet",
    "Duplicates",
    "Facts",
    "Graph",
    "GraphSet",
    "SelfLoops",
    "facts",
    "from_networkx",
    "from_pyg",
    "load",
    "make_families",
    "read_tu",
    "to_networkx",
    "to_pyg",
]
