"""Keys that compare molecules of a set: canonical SMILES, scaffolds and fingerprints, computed in one bounded pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet
from gcaps.data.molecules.scaffolds import AT_ONCE, murcko_scaffolds
from gcaps.data.molecules.similarity import BITS, PackedBits
from gcaps.data.molecules.structures import molecules_of
from gcaps.data.prepared import PreparedSet


class MoleculeKeys(NamedTuple):
    """Of every molecule of a set."""

    smiles: Array
    """[G] canonical SMILES including stereochemistry; equal for equal molecules."""
    flat: Array
    """[G] canonical SMILES without stereochemistry."""
    scaffolds: Array
    """[G] as :func:`~gcaps.data.molecules.scaffolds.scaffolds_of` returns them."""
    bits: PackedBits
    """Morgan fingerprints."""


def molecule_keys(graphs: GraphSet | PreparedSet) -> MoleculeKeys:
    """Compare the molecules of a set, prepared as its graphs were.

    Args:
        graphs: molecules; a PreparedSet reads them once.

    Raises:
        DataError: the graphs are not molecules, or RDKit is missing.
    """
    if isinstance(graphs, PreparedSet):
        prepared = graphs
        return prepared.get("molecule keys", lambda: molecule_keys(prepared.graphs))
    smiles: list[str] = []
    flat: list[str] = []
    scaffolds = [np.zeros(0, dtype=np.str_)]
    words = [np.zeros((0, BITS // 64), dtype=np.uint64)]
    for first in range(0, len(graphs), AT_ONCE):
        molecules = molecules_of(graphs, np.arange(first, min(first + AT_ONCE, len(graphs))))
        from rdkit import Chem

        smiles += [Chem.MolToSmiles(molecule) for molecule in molecules]
        flat += [Chem.MolToSmiles(molecule, isomericSmiles=False) for molecule in molecules]
        scaffolds.append(murcko_scaffolds(molecules))
        words.append(PackedBits.of_molecules(molecules).words)
    bits = PackedBits.of_words(np.concatenate(words))
    return MoleculeKeys(np.array(smiles, np.str_), np.array(flat, np.str_), np.concatenate(scaffolds), bits)
