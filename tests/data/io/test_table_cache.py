"""Large tables are kept by content: read once, opened afterwards, never wrong."""

import pytest

import gcaps
from gcaps.data.io import table_cache
from gcaps.data.io.smiles import molecule_chunks, molecule_table
from gcaps.data.molecules import parsing
from gcaps.data.reading import Reading

pytest.importorskip("rdkit", reason="needs RDKit: pip install 'gcaps[chem]'")


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table that counts as slow to read."""
    monkeypatch.setenv("GCAPS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(table_cache, "SLOW", -1.0)
    path = tmp_path / "drugs.csv"
    path.write_text("smiles,y\n" + "".join(f"{'C' * (i % 7 + 1)}O,{i}\n" for i in range(40)) + "C(,1\n")
    return path


def kept(tmp_path):
    return sorted((tmp_path / "cache" / "tables").glob("*.gset"))


def test_the_second_reading_opens_what_the_first_kept(table, tmp_path, monkeypatch):
    first = gcaps.load(table, invalid="skip")
    assert len(kept(tmp_path)) == 1
    monkeypatch.setattr(table_cache, "read_molecules", lambda *a: pytest.fail("read again"))
    second = gcaps.load(table, invalid="skip")
    assert second.fingerprint() == first.fingerprint()
    assert second.skipped == first.skipped
    assert second.name == first.name
    assert second.preparation == first.preparation
    assert not second.mapped
    assert second.columns["smiles"].tolist() == first.columns["smiles"].tolist()


def test_other_content_or_other_options_are_read_anew(table, tmp_path):
    gcaps.load(table, invalid="skip")
    explicit = gcaps.load(table, invalid="skip", hydrogens="explicit")
    assert explicit.num_nodes > 200
    table.write_text(table.read_text().replace("CO,0", "CN,0"))
    assert gcaps.load(table, invalid="skip").node_labels[1, 0] == 7
    assert len(kept(tmp_path)) == 3


def test_a_damaged_entry_is_read_anew(table, tmp_path):
    first = gcaps.load(table, invalid="skip")
    (kept(tmp_path)[0] / "col.npy").write_bytes(b"nonsense")
    assert gcaps.load(table, invalid="skip").fingerprint() == first.fingerprint()


def test_the_longest_unused_are_removed(table, tmp_path, monkeypatch):
    monkeypatch.setattr(table_cache, "KEPT", 2)
    for count in range(3, 7):
        table.write_text("smiles,y\n" + "".join(f"CO,{i}\n" for i in range(count)))
        gcaps.load(table)
    assert len(kept(tmp_path)) == 2
    assert len(gcaps.load(table)) == 6


def test_quick_tables_are_not_kept(table, tmp_path, monkeypatch):
    monkeypatch.setattr(table_cache, "SLOW", 1e9)
    gcaps.load(table, invalid="skip")
    assert kept(tmp_path) == []


def test_several_processes_read_the_same_set_in_the_same_order(table, monkeypatch):
    expected = gcaps.load(table, invalid="skip")
    monkeypatch.setattr("gcaps.data.io.smiles.PARALLEL", 1)
    seen = []
    chunks = list(
        molecule_chunks(
            molecule_table(table),
            Reading(invalid="skip", n_jobs=2),
            molecules=7,
            progress=lambda done, total: seen.append((done, total)),
        )
    )
    assert [len(chunk) for chunk in chunks] == [7, 7, 7, 7, 7, 5]
    assert [v for chunk in chunks for v in chunk.col.tolist()] == expected.col.tolist()
    assert chunks[-1].skipped == expected.skipped
    assert seen
    assert parsing.default_jobs() >= 1
