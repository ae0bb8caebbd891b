"""RDKit molecules: read with one clear reason for what cannot be read, prepared, and those of a GraphSet again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet
from gcaps.data.molecules.preparation import MoleculePreparation
from gcaps.errors import DataError


def require_rdkit(place: str, what: str = "reading molecules") -> None:
    """Raise a DataError that says how to install RDKit where it is missing."""
    try:
        import rdkit  # noqa: F401
    except ImportError as error:
        raise DataError(f"{what} needs RDKit: pip install 'gcaps[chem]'", place) from error


def prepare_function(preparation: MoleculePreparation) -> Callable[[Any], Any]:
    """Return a function that strips salts and neutralises charges of an RDKit molecule, as configured."""
    from rdkit.Chem.MolStandardize import rdMolStandardize

    steps: list[Callable[[Any], Any]] = []
    if preparation.salts == "strip":
        steps.append(rdMolStandardize.LargestFragmentChooser(preferOrganic=True).choose)
    if preparation.charges == "neutralize":
        steps.append(rdMolStandardize.Uncharger().uncharge)

    def prepare(molecule: Any) -> Any:
        for step in steps:
            molecule = step(molecule)
        return molecule

    return prepare


def molecules_of(graphs: GraphSet, indices: Sequence[int] | Array | None = None) -> list[Any]:
    """Return the RDKit molecules of a set, or of its graphs at ``indices``, prepared as its graphs were.

    Hydrogens are implicit, whatever the graphs have: fingerprints, descriptors and drawings are those of heavy atoms.

    Raises:
        DataError: the graphs are not molecules, or RDKit is missing.
    """
    if "smiles" not in graphs.columns:
        raise DataError("needs molecules: a table with a column of SMILES, or an SDF", graphs.name)
    require_rdkit(graphs.name)
    from rdkit import Chem, rdBase

    smiles = graphs.columns["smiles"]
    texts = (smiles if indices is None else smiles[indices]).tolist()
    prepare = prepare_function(graphs.preparation or MoleculePreparation())
    found = []
    with rdBase.BlockLogs():
        for i, text in enumerate(texts):
            molecule = Chem.MolFromSmiles(text)
            if molecule is None:
                raise DataError(f"graph {i}: {text[:80]!r} cannot be read as SMILES", graphs.name)
            found.append(prepare(molecule))
    return found
