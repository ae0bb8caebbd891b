"""Molecules as graphs: reading, preparation, atoms and bonds. Needs RDKit (extra ``chem``)."""

from gcaps.data.molecules.preparation import MoleculePreparation
from gcaps.data.molecules.structures import molecules_of

__all__ = ["MoleculePreparation", "molecules_of"]
