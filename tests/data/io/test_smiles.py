import builtins
import gzip

import numpy as np
import pytest

import gcaps
from gcaps.cli.app import main
from gcaps.data import GraphSet, read_smiles, write_graphs
from gcaps.data.io.smiles import molecule_chunks, molecule_table
from gcaps.data.reading import Reading
from gcaps.errors import DataError

TABLE = """name,SMILES,Class
ethanol,CCO,1
phenol,c1ccccc1O,0
nitrogen,N#N,1
"table salt, solid",[Na+].[Cl-],0
heavy water,[2H]O[2H],1
methane,C,0
ethylene,C=C,1
"""
needs_rdkit = pytest.mark.skipif(
    __import__("importlib.util").util.find_spec("rdkit") is None, reason="needs RDKit: pip install 'gcaps[chem]'"
)


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def table(tmp_path):
    return written(tmp_path / "drugs.csv", TABLE)


@needs_rdkit
def test_atoms_and_bonds_become_labelled_nodes_and_edges(table):
    graphs = gcaps.load(table)
    assert (graphs.name, len(graphs), graphs.num_classes) == ("drugs", 7, 2)
    assert graphs.y.tolist() == [1, 0, 1, 0, 1, 0, 1]
    ethanol, phenol, nitrogen, salt, water, methane, ethylene = graphs
    assert ethanol.node_labels[:, 0].tolist() == [6, 6, 8]
    assert ethanol.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert ethanol.edge_labels[:, 0].tolist() == [1, 1, 1, 1]
    assert sorted(phenol.edge_labels[:, 0].tolist()) == [1, 1] + [4] * 12
    assert nitrogen.edge_labels[:, 0].tolist() == [3, 3]
    assert (salt.node_labels[:, 0].tolist(), salt.edge_index.size) == ([11, 17], 0)
    assert water.node_labels[:, 0].tolist() == [1, 8, 1]
    assert (methane.num_nodes, methane.edge_labels.shape) == (1, (0, 4))
    assert ethylene.edge_labels[:, 0].tolist() == [2, 2]
    assert graphs.notes["one_way_arcs"] == graphs.notes["duplicate_arcs"] == 0


@needs_rdkit
@pytest.mark.parametrize("molecules", [1, 3, 4096])
def test_chunks_of_any_size_give_the_set_that_is_loaded(table, tmp_path, molecules):
    told = []
    report = lambda done, total: told.append(done <= total)  # noqa: E731
    chunks = molecule_chunks(molecule_table(table), Reading(), molecules=molecules, progress=report)
    opened = write_graphs(chunks, tmp_path / "drugs.gset")
    assert opened.fingerprint() == gcaps.load(table).fingerprint()
    assert (opened.name, opened.notes) == ("drugs", gcaps.load(table).notes)
    assert opened.ids.tolist() == gcaps.load(table).ids.tolist()
    assert opened.columns["smiles"].tolist() == gcaps.load(table).columns["smiles"].tolist()
    assert opened.target_names == ("Class",)
    assert told == [True] * -(-7 // molecules)


@needs_rdkit
@pytest.mark.parametrize(
    ("name", "rewrite"),
    [
        ("a.tsv", lambda text: text.replace('"', "").replace("salt, solid", "salt").replace(",", "\t").encode()),
        ("a.csv", lambda text: text.replace('"', "").replace("salt, solid", "salt").replace(",", ";").encode()),
        ("a.csv", lambda text: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()),
        ("a.csv", lambda text: text.replace("\nphenol", "\n\nphenol").encode()),
        ("a.csv", lambda text: text.replace(",1\n", ",1.0\n").replace(",0\n", ", 0\n").encode()),
        ("A.CSV.GZ", lambda text: gzip.compress(text.encode())),
    ],
    ids=["tabs", "semicolons", "from a spreadsheet", "blank line", "labels as floats", "gzipped"],
)
def test_ways_of_writing_a_table_do_not_matter(table, tmp_path, name, rewrite):
    other = tmp_path / "other" / name
    other.parent.mkdir()
    other.write_bytes(rewrite(TABLE))
    assert gcaps.load(other).fingerprint() == gcaps.load(table).fingerprint()


@needs_rdkit
@pytest.mark.parametrize(
    ("header", "options"),
    [
        ("smiles,y", {}),
        ("mol,Target", {}),
        ("Canonical_SMILES,toxic", {}),
        ("smiles,toxic", {"target": "toxic"}),
        ("drug,toxic", {"smiles": "drug"}),
        ("drug,toxic", {}),
        ("结构,毒性", {}),
        ("Struktur (SMILES),Löslichkeit", {}),
    ],
)
def test_columns_are_found_by_name_or_content_or_given(tmp_path, header, options):
    path = written(tmp_path / "t.csv", f"{header}\nCC=O,3\nCCCO,4\n")
    graphs = read_smiles(path, **options)
    assert graphs.y.tolist() == [3, 4]
    assert graphs.target_names == (header.split(",")[1],)
    assert graphs.columns["smiles"].tolist() == ["CC=O", "CCCO"]


@needs_rdkit
def test_one_of_several_columns_can_be_named(tmp_path):
    path = written(tmp_path / "t.csv", "id,smiles,p_np,activity\n1,CC,0,1\n2,CCC,1,1\n")
    assert read_smiles(path, target="p_np").y.tolist() == [0, 1]
    assert read_smiles(path, target="p_np").ids.tolist() == ["1", "2"]


@needs_rdkit
@pytest.mark.parametrize(
    ("labels", "expected", "dtype"),
    [
        (["toxic", " fine", "toxic"], ["toxic", "fine", "toxic"], "<U5"),
        (["0.5", "-1", "2e-3"], [0.5, -1.0, 0.002], "<f8"),
        (["1.0", "-1", "3"], [1, -1, 3], "<i8"),
        (["1", "0", "0.5"], [1.0, 0.0, 0.5], "<f8"),
        (["1", "", "0"], [1.0, None, 0.0], "<f8"),
        (["a", "NA", "b"], ["a", "", "b"], "<U1"),
        (["True", "FALSE", "true"], [True, False, True], "|b1"),
    ],
    ids=["strings", "numbers", "integers", "number after integers", "missing number", "missing string", "booleans"],
)
@pytest.mark.parametrize("molecules", [1, None])
def test_targets_have_the_type_of_the_whole_column(tmp_path, labels, expected, dtype, molecules):
    rows = "".join(f"{'C' * (n + 1)},{label}\n" for n, label in enumerate(labels))
    table = molecule_table(written(tmp_path / "t.csv", "smiles,y\n" + rows))
    graphs = write_graphs(molecule_chunks(table, Reading(), molecules=molecules), tmp_path / "t.gset")
    assert graphs.y.dtype.str == dtype
    assert [None if value != value else value for value in graphs.y.tolist()] == expected


FAULTS = {
    "not a SMILES": (TABLE + "x,C1CC,1\n", 9, "'C1CC' is not a SMILES"),
    "impossible valence": (TABLE + "x,CC(C)(C)(C)C,1\n", 9, "Explicit valence for atom # 1 C, 5, is greater"),
    "no SMILES": (TABLE + "x,,1\n", 9, "has no SMILES"),
    "words among numbers": (TABLE + "x,CC,toxic\n", 9, "'toxic' in column 'Class' is not a number"),
    "numbers and words": ("smiles,y\nC,0.5\nCC,toxic\nN,1\nO,bad\n", 3, "mixes 2 numbers and 2 words"),
    "not finite": ("smiles,y\nC,0\nCC,1\nCCC,inf\n", 4, "'inf' in column 'y' is not finite"),
    "no value at all": ("smiles,y\nC,\nCC,\n", None, "has no value in column 'y'"),
    "short row": (TABLE + "x,CC\n", 9, "has 2 columns, expected 3"),
    "after a value of two lines": (TABLE + '"x\ny",CC,1\nz,?,0\n', 11, "'?' is not a SMILES"),
    "no such columns": ("a,b,c\n1,2,3\n", 1, "has no column of SMILES; name one (--smiles NAME) of a, b, c"),
    "no label column": ("smiles,b,c\nC,2,3\n", 1, "choose with --target NAME among b, c"),
    "no other column": ("smiles\nC\n", 1, "has no column to predict beside smiles"),
    "two columns of SMILES": ("a,b,y\nCCO,CCN,1\nCCC,CCCC,0\n", 1, "several columns of SMILES: a, b"),
    "no header": ("CCO,1\nCCC=O,0\n", 1, "has no header: its first line is a molecule"),
    "a column twice": ("smiles,y,y\nC,1,1\n", 1, "has two columns called 'y'"),
    "only a header": ("smiles,y\n", None, "holds no molecule"),
    "empty": ("", None, "is empty"),
    "open quote": ('smiles,y\n"CC,1\n', 2, "is not a table"),
}


@needs_rdkit
@pytest.mark.parametrize(("text", "line", "message"), FAULTS.values(), ids=FAULTS)
def test_fault_is_one_line_that_names_file_and_line(tmp_path, capfd, text, line, message):
    path = written(tmp_path / "t.csv", text)
    with pytest.raises(SystemExit) as left:
        main(["data", "convert", str(path), str(tmp_path / "t.gset"), "--strict"])
    assert left.value.code == DataError.exit_code
    err = capfd.readouterr().err
    assert err.startswith(f"error: {path}:" + ("" if line is None else f"{line}:"))
    assert message in err
    assert err.count("\n") == 1, "RDKit's own words do not reach the terminal"
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


def test_one_class_is_refused(tmp_path):
    with pytest.raises(DataError, match="one class only: all have the target 1"):
        gcaps.load(written(tmp_path / "t.csv", "smiles,y\nC,1\nCC,1\n"))


@needs_rdkit
@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("t.csv.gz", b"\x1f\x8b broken", "cannot be read"),
        ("t.csv", b"PK\x03\x04rest", "is a zip or Excel file"),
        ("t.csv", b"smiles,y\nC\0,1\n", "NUL bytes"),
    ],
)
def test_files_that_are_not_text_are_data_errors(tmp_path, name, raw, message):
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(DataError, match=message):
        gcaps.load(tmp_path / name)


@needs_rdkit
def test_rows_that_cannot_be_read_are_listed_with_their_row_and_id(tmp_path, capsys):
    text = TABLE.replace("N#N", "N#") + "x,CC,\ny,CC,1,1\nz,???,0\n"
    path = written(tmp_path / "t.csv", text)
    graphs = read_smiles(path, invalid="skip")
    assert len(graphs) == 7
    assert [(one.row, one.id) for one in graphs.skipped] == [(2, "nitrogen"), (8, "8"), (9, "z")]
    assert [one.reason for one in graphs.skipped] == [
        "'N#' is not a SMILES",
        "has 4 columns, expected 3",
        "'???' is not a SMILES",
    ]
    assert np.isnan(graphs.y[-1]), "a row without a target is kept"
    one_by_one = list(molecule_chunks(molecule_table(path), Reading(invalid="skip"), molecules=1))
    assert [len(one.skipped) for one in one_by_one] == [0, 1, 0, 0, 0, 0, 2]
    main_ok(["data", "convert", str(path), str(tmp_path / "t.gset")])
    assert capsys.readouterr().out.endswith("3 rows left out\n")
    opened = GraphSet.open(tmp_path / "t.gset")
    assert opened.fingerprint() == graphs.fingerprint()
    assert opened.skipped == graphs.skipped
    assert opened.ids.tolist() == graphs.ids.tolist()


@needs_rdkit
def test_without_an_id_column_graphs_are_called_by_their_rows(tmp_path):
    path = written(tmp_path / "t.csv", "smiles,y\nC,1\nbad,0\nCC,0\n")
    assert gcaps.load(path, invalid="skip").ids.tolist() == [0, 2]
    opened = gcaps.data.convert(path, tmp_path / "t.gset", invalid="skip")
    assert opened.ids.tolist() == [0, 2]


@needs_rdkit
def test_first_and_last_row_may_be_invalid(tmp_path):
    path = written(tmp_path / "t.csv", "smiles,y\nbad,1\nC,1\nCC,0\n(,1\n")
    graphs = gcaps.load(path, invalid="skip")
    assert [one.row for one in graphs.skipped] == [0, 3]
    with pytest.raises(DataError, match=r"t.csv:2: 'bad' is not a SMILES"):
        gcaps.load(path)


def main_ok(arguments):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 0


@needs_rdkit
def test_tables_for_prediction_need_no_labels(tmp_path):
    assert gcaps.load(written(tmp_path / "a.csv", "smiles\nC\nCC\n"), labelled=False).y is None
    assert gcaps.load(written(tmp_path / "b.csv", "smiles,y\nC,\nCC,?\n"), labelled=False).y is None
    assert gcaps.load(written(tmp_path / "e.csv", "smiles,a,b\nC,1,2\nCC,2,1\n"), labelled=False).y is None
    assert gcaps.load(tmp_path / "e.csv", labelled=False, target="gone").y is None
    assert gcaps.load(written(tmp_path / "f.csv", "smiles,y\nC,1\nCC,x\nN,y\nO,2\n"), labelled=False).y is None
    assert gcaps.load(written(tmp_path / "c.csv", "smiles,y\nC,1\nCC,1\n"), labelled=False).y.tolist() == [1, 1]
    assert gcaps.load(written(tmp_path / "d.csv", "smiles,id\nC,1\nCC,2\n"), labelled=False).y is None


def test_without_rdkit_the_error_says_what_to_install(table, monkeypatch):
    imported = builtins.__import__

    def without_rdkit(name, *rest):
        if name.startswith("rdkit"):
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_rdkit)
    with pytest.raises(DataError, match=r"pip install 'gcaps\[chem\]'"):
        gcaps.load(table)


def test_a_table_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        gcaps.load(tmp_path / "none.csv")


@needs_rdkit
def test_dtypes_are_those_of_every_other_reader(table):
    graphs = gcaps.load(table)
    assert (graphs.col.dtype, graphs.node_labels.dtype) == (np.int32, np.int64)


@needs_rdkit
def test_several_targets_are_columns_of_y_with_missing_values(tmp_path):
    path = written(tmp_path / "t.csv", "a-1,a-2,b,smiles\n1,0,7,C\n,1,8,CC\n0,,9,CCC\n")
    for target in ("a-*", "a-1,a-2", ["a-1", "a-2"], ["a-*"]):
        graphs = gcaps.load(path, target=target)
        assert graphs.target_names == ("a-1", "a-2")
        assert np.array_equal(graphs.y, [[1, 0], [np.nan, 1], [0, np.nan]], equal_nan=True)
    kept = gcaps.load(path, target="b", columns=["a-1"])
    assert kept.columns["a-1"].tolist()[0] == 1
    kept.save(tmp_path / "t.gset")
    assert gcaps.load(tmp_path / "t.gset", target="a-1").target_names == ("a-1",)
    with pytest.raises(DataError, match="has no target or column 'c'; it has b, a-1, smiles"):
        gcaps.load(tmp_path / "t.gset", target="c")


@needs_rdkit
def test_a_column_whose_name_has_a_comma_is_one_target(tmp_path):
    path = written(tmp_path / "t.csv", 'smiles,"a,b",c\nC,1,2\nCC,2,1\n')
    assert gcaps.load(path, target="a,b").target_names == ("a,b",)


@needs_rdkit
@pytest.mark.parametrize(
    ("file", "target", "graphs", "skipped", "dtype"),
    [
        ("Lipophilicity.csv", None, 4200, 0, "f"),
        ("BBBP.csv", None, 2039, 11, "i"),
        ("FreeSolv.csv", "expt", 642, 0, "f"),
        ("BACE.csv", "Class", 1513, 0, "i"),
        ("ESOL.csv", "measured*", 1128, 0, "f"),
        ("Tox21.csv", "NR-*,SR-*", 7823, 8, "f"),
    ],
)
def test_molecule_tables_as_people_have_them(data_folder, file, target, graphs, skipped, dtype):
    found = gcaps.load(data_folder / "molecules" / file, target=target, invalid="skip")
    assert (len(found), len(found.skipped), found.y.dtype.kind) == (graphs, skipped, dtype)


@pytest.mark.parametrize(
    ("file", "listed"),
    [
        ("ESOL.csv", "ESOL predicted log solubility"),
        ("BACE.csv", "Class, Model, pIC50"),
        ("HIV.csv.gz", "activity, HIV_active"),
        ("FreeSolv.csv", "expt, calc"),
    ],
)
def test_a_target_is_never_guessed_among_several(data_folder, file, listed):
    with pytest.raises(DataError, match=f"choose with --target NAME among {listed}"):
        gcaps.load(data_folder / "molecules" / file)
