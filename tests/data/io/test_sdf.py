"""Structure-data files."""

import gzip

import pytest

import gcaps
from gcaps.data.io.sdf import SDFTable

Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit: pip install 'gcaps[chem]'")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "drugs.sdf"
    with Chem.SDWriter(str(path)) as writer:
        for name, smiles, value in (("ethanol", "CCO", 0.5), ("amine", "CN", 1.5), ("phenol", "c1ccccc1O", 2.0)):
            molecule = Chem.MolFromSmiles(smiles)
            molecule.SetProp("_Name", name)
            molecule.SetProp("logS", str(value))
            if name != "amine":
                molecule.SetProp("source", f"{name}\nsecond line")
            writer.write(molecule)
    return path


def test_properties_are_columns_and_titles_are_ids(file):
    table = SDFTable(file)
    assert table.names == ["structure", "_Name", "logS", "source"]
    assert [cells[1:] for _, cells in table.rows()][1] == ["amine", "1.5", ""]
    graphs = gcaps.load(file, target="logS")
    assert (graphs.ids.tolist(), graphs.y.tolist()) == (["ethanol", "amine", "phenol"], [0.5, 1.5, 2.0])
    expected = gcaps.load(["CCO", "CN", "c1ccccc1O"], labelled=False)
    assert graphs.node_labels.tolist() == expected.node_labels.tolist()
    assert graphs.edge_labels.tolist() == expected.edge_labels.tolist()


def test_gzipped_and_without_a_last_separator(file, tmp_path):
    text = file.read_text().rstrip().removesuffix("$$$$")
    (tmp_path / "drugs.sdf.gz").write_bytes(gzip.compress(text.encode()))
    other = gcaps.load(tmp_path / "drugs.sdf.gz", target="logS")
    assert other.fingerprint() == gcaps.load(file, target="logS").fingerprint()


def test_a_broken_record_is_named_by_its_line(file):
    text = file.read_text()
    file.write_text("broken\n\n\n  1  x\nM  END\n$$$$\n" + text)
    graphs = gcaps.load(file, target="logS", invalid="skip")
    assert [(one.row, one.id) for one in graphs.skipped] == [(0, "broken")]
    with pytest.raises(gcaps.data.catalog.DataError, match=r"drugs.sdf:1: its structure is not an MDL mol block"):
        gcaps.load(file, target="logS")
