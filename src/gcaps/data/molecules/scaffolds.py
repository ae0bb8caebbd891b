"""Bemis–Murcko scaffolds of molecules, for folds that test on other scaffolds than they train on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet
from gcaps.data.molecules.structures import molecules_of, require_rdkit
from gcaps.data.prepared import PreparedSet
from gcaps.errors import DataError

AT_ONCE = 2_000
"""Molecules that are in memory at the same time."""


def scaffolds_of(graphs: GraphSet | PreparedSet) -> Array:
    """[G] the scaffold of each molecule as canonical SMILES without stereochemistry; empty for acyclic ones.

    The scaffold is what is left of a molecule when all side chains are removed: its rings and the chains that connect
    them (Bemis and Murcko, 1996). All acyclic molecules have the same, empty one.

    Args:
        graphs: molecules; a PreparedSet computes their scaffolds once.

    Raises:
        DataError: the set has no SMILES, or RDKit is not installed.
    """
    if isinstance(graphs, PreparedSet):
        prepared = graphs
        return prepared.get("scaffolds", lambda: scaffolds_of(prepared.graphs))
    if "smiles" not in graphs.columns:
        raise DataError("scaffolds need SMILES, which only tables of molecules have", graphs.name)
    require_rdkit(graphs.name, "finding scaffolds")
    parts = [np.arange(first, min(first + AT_ONCE, len(graphs))) for first in range(0, len(graphs), AT_ONCE)]
    return np.concatenate([np.zeros(0, np.str_), *(murcko_scaffolds(molecules_of(graphs, part)) for part in parts)])


def murcko_scaffolds(molecules: Sequence[Any]) -> Array:
    """[n] the scaffolds of RDKit molecules, as :func:`scaffolds_of` returns them."""
    from rdkit import Chem
    from rdkit.Chem.Scaffolds.MurckoScaffold import GetScaffoldForMol

    found = [
        Chem.MolToSmiles(GetScaffoldForMol(molecule), isomericSmiles=False)  # type: ignore[no-untyped-call]
        if molecule.GetRingInfo().NumRings()
        else ""
        for molecule in molecules
    ]
    return np.array(found, dtype=np.str_)
