"""Where graphs come from: the data model, readers, writers, the catalog and facts about a set."""

from gcaps.data.audit import Duplicates, Facts, facts
from gcaps.data.catalog import CATALOG, DataSet, convert, load
from gcaps.data.graphset import Graph, GraphSet, SelfLoops, Skipped
from gcaps.data.io.networkx import from_networkx, to_networkx
from gcaps.data.io.objects import from_graphs
from gcaps.data.io.pyg import from_pyg, to_pyg
from gcaps.data.io.smiles import read_smiles
from gcaps.data.io.tu import read_tu
from gcaps.data.prepared import PreparedSet
from gcaps.data.synthetic import FAMILIES, make_families, random_molecules
from gcaps.data.writer import GraphSetWriter, write_graphs

__all__ = [
    "CATALOG",
    "FAMILIES",
    "DataSet",
    "Duplicates",
    "Facts",
    "Graph",
    "GraphSet",
    "GraphSetWriter",
    "PreparedSet",
    "SelfLoops",
    "Skipped",
    "convert",
    "facts",
    "from_graphs",
    "from_networkx",
    "from_pyg",
    "load",
    "make_families",
    "random_molecules",
    "read_smiles",
    "read_tu",
    "to_networkx",
    "to_pyg",
    "write_graphs",
]
