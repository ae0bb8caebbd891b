"""Molecules: what RDKit says, read in bulk."""

import numpy as np
import pytest

import gcaps
from gcaps.errors import DataError

Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit: pip install 'gcaps[chem]'")

from gcaps.data.molecules.parsing import Parser  # noqa: E402

SMILES = [
    "CCO",
    "c1ccccc1C#N",
    "[Na+].[Cl-]",
    "*C(=O)*",
    "N->[Cu]",
    "C",
    "[H][H]",
    "C$C",
    "C[C@H](N)C(=O)O",
    "[O-][n+]1ccccc1",
    "N" + "CC(=O)N" * 200,
]


def test_rdkit_does_not_write_to_the_terminal(capfd):
    Parser("t").parse(["C1CC", "C(C)(C)(C)(C)C"])
    assert capfd.readouterr() == ("", "")


def test_rdkit_molecules_have_the_graphs_of_their_smiles():
    molecules = [Chem.MolFromSmiles(text) for text in SMILES]
    by_object = gcaps.load(molecules, labelled=False)
    by_text = gcaps.load(SMILES, labelled=False)
    assert by_object.fingerprint() == by_text.fingerprint()
    assert gcaps.load(np.array(molecules, dtype=object), labelled=False).fingerprint() == by_text.fingerprint()
    assert by_object.columns["smiles"][0] == "CCO"


def test_properties_of_molecules_are_targets():
    molecules = [Chem.MolFromSmiles(text) for text in ("CCO", "CC")]
    for molecule, value in zip(molecules, ("0.5", "1.5"), strict=True):
        molecule.SetProp("logP", value)
    assert gcaps.load(molecules, target="logP").y.tolist() == [0.5, 1.5]


def test_molecules_that_are_none_are_skipped_when_asked_for():
    found = gcaps.load([Chem.MolFromSmiles("C"), None], labelled=False, invalid="skip")
    assert [(one.row, one.id) for one in found.skipped] == [(1, "1")]
    with pytest.raises(DataError, match=r"graphs\[1\]: is None"):
        gcaps.load([Chem.MolFromSmiles("C"), None], labelled=False)


def test_frames_of_smiles_or_molecules_are_taken():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"structure": ["CCO", "CN", "C"], "active": [True, False, True], "mass": [46.0, 31.0, 16.0]}
    )
    with pytest.raises(DataError, match="choose with target= NAME among active, mass"):
        gcaps.load(frame)
    graphs = gcaps.load(frame, target="active")
    assert graphs.y.dtype == np.bool_
    assert (
        gcaps.load(frame["structure"], labelled=False).fingerprint() == gcaps.load(frame, labelled=False).fingerprint()
    )
    strings = frame.assign(active=["1", "0", "1"])
    assert gcaps.load(strings, target="active").y.tolist() == ["1", "0", "1"], "strings stay strings"
    objects = frame.assign(structure=[Chem.MolFromSmiles(text) for text in frame["structure"]])
    assert gcaps.load(objects, target="mass").y.tolist() == [46.0, 31.0, 16.0]
