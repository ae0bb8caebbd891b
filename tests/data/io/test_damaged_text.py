"""Texts that end in the middle of a character, and molecules that RDKit gives up on."""

import numpy as np
import pytest

import gcaps
from gcaps.errors import DataError, DataWarning


def test_a_table_that_ends_in_half_a_character_is_read_as_latin_1(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"smiles,y,name\nC,0,a\nCC,1,b\xf2")
    with pytest.warns(DataWarning, match="not UTF-8"):
        assert len(gcaps.load(path)) == 2


def test_half_a_utf_16_character_is_one_error(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("smiles,y\nC,0\nCC,1\n".encode("utf-16") + b"\x00")
    with pytest.raises(DataError, match="cannot be read"):
        gcaps.load(path)


def test_an_archive_without_matrices_is_a_data_error(tmp_path):
    np.savez(tmp_path / "none.npz", adjacency=np.ones((0, 0, 0)), y=np.arange(0))
    with pytest.raises(DataError):
        gcaps.load(tmp_path / "none.npz")


def test_a_violated_condition_of_rdkit_is_the_reason_why_a_row_is_left_out(monkeypatch, tmp_path):
    from rdkit import Chem

    def violated(molecule):
        raise RuntimeError("Pre-condition Violation\n\tgetValence called\n")

    monkeypatch.setattr(Chem, "SanitizeMol", violated)
    path = tmp_path / "t.csv"
    path.write_text("smiles,y\nC,0\nC(C)(C)(C)(C)C,1\nCC,1\n")
    found = gcaps.load(path, invalid="skip")
    assert [one.reason.endswith("is not a valid molecule: Pre-condition Violation") for one in found.skipped] == [True]
