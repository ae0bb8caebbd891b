"""Whether graphs are molecules, for what works on nothing else."""

from __future__ import annotations

from gcaps.data.graphset import GraphSet
from gcaps.errors import DataError


def is_molecules(graphs: GraphSet) -> bool:
    """Whether the graphs have SMILES, of which fingerprints can be computed."""
    return "smiles" in graphs.columns


def require_molecules(graphs: GraphSet, what: str) -> None:
    """Raise a DataError that ``what`` needs molecules, unless the graphs are."""
    if not is_molecules(graphs):
        raise DataError(f"{what} needs molecules: a table with a column of SMILES, or an SDF", graphs.name)
