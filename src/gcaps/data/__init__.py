"""Where graphs come from: the data model, its readers and writers, the catalog, and what a set is made of."""

from gcaps.data.audit import Duplicates, Facts, facts
from gcaps.data.catalog import CATALOG, DataSet, load
from gcaps.data.convert import convert
from gcaps.data.families import FAMILIES, make_families
from gcaps.data.graphset import Graph, GraphSet, SelfLoops
from gcaps.data.molecules import read_smiles
from gcaps.data.networkx import from_networkx, to_networkx
from gcaps.data.objects import from_graphs
from gcaps.data.prepared import PreparedSet
from gcaps.data.pyg import from_pyg, to_pyg
from gcaps.data.smiles_table import Columns
from gcaps.data.synthetic import random_molecules
from gcaps.data.tu import read_tu
from gcaps.data.writer import GraphSetWriter, write_graphs

__all__ = [
    "CATALOG",
    "FAMILIES",
    "Columns",
    "DataSet",
    "Duplicates",
    "Facts",
    "Graph",
    "GraphSet",
    "GraphSetWriter",
    "PreparedSet",
    "SelfLoops",
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
