"""Bemis–Murcko scaffolds of molecules, for folds that test on other scaffolds than they train on."""

from __future__ import annotations

import numpy as np

from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet
from gcaps.errors import DataError


def scaffolds_of(graphs: GraphSet) -> Array:
    """[G] the scaffold of each molecule as canonical SMILES without stereochemistry; empty for acyclic ones.

    The scaffold is what is left of a molecule when all side chains are removed: its rings and the chains that connect
    them (Bemis and Murcko, 1996). All acyclic molecules have the same, empty one.

    Raises:
        DataError: the set has no SMILES, or RDKit is not installed.
    """
    if "smiles" not in graphs.columns:
        raise DataError("scaffolds need SMILES, which only tables of molecules have", graphs.name)
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem.Scaffolds.MurckoScaffold import GetScaffoldForMol
    except ImportError as error:
        raise DataError('scaffolds need RDKit: pip install "gcaps[chem]"', graphs.name) from error
    found = []
    with rdBase.BlockLogs():
        for i, smiles in enumerate(graphs.columns["smiles"].tolist()):
            molecule = Chem.MolFromSmiles(smiles)
            if molecule is None:
                raise DataError(f"graph {i}: {smiles!r} cannot be read as SMILES", graphs.name)
            scaffold = GetScaffoldForMol(molecule)  # type: ignore[no-untyped-call]
            found.append(Chem.MolToSmiles(scaffold, isomericSmiles=False))
    return np.array(found, dtype=np.str_)
