"""``gcaps data check`` and ``gcaps data convert``, and the options of reading that all verbs share."""

import subprocess
import sys

import pytest

import gcaps
from gcaps.cli.app import main
from gcaps.cli.arguments import reading_options
from gcaps.errors import ConfigError, DataError

pytest.importorskip("rdkit", reason="needs RDKit: pip install 'gcaps[chem]'")

TABLE = "mol_id,smiles,p_np,extra\nm1,CCO,1,0.5\nm2,bad,0,0.25\nm3,CN,0,\nm4,OCC,0,1\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "drugs.csv"
    path.write_text(TABLE)
    return path


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return left.value.code, *capsys.readouterr()


def test_check_says_task_missing_values_duplicates_and_rows_left_out(table, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = run(capsys, "data", "check", table, "--target", "p_np")
    assert code == 0
    assert "classification (2 different integers)" in out
    assert "2 of 3 graphs, in 1 groups; 2 of them in groups with different targets" in out
    assert "1 rows: row 2 (m2): 'bad' is not a SMILES" in out
    assert "--strict stops at the first" in out
    assert f"next: gcaps evaluate {table} --target p_np" in out
    _, out, _ = run(capsys, "data", "check", table, "--target", "p_np,extra")
    assert "1 of 6" in out, "missing values"
    assert "0.5 to 1, median 0.75" in out


def test_every_option_that_check_advises_exists(table, capsys):
    from gcaps.cli.app import _typer_command

    _, out, _ = run(capsys, "data", "check", table, "--target", "p_np")
    _, _, err = run(capsys, "data", "check", table)
    assert "--target NAME" in err
    for verb in ("train", "evaluate", "predict"):
        known = {flag for parameter in _typer_command(verb, []).params for flag in parameter.opts}
        assert {"--target", "--strict", "--smiles", "--id", "--empty", "--directed"} <= known, verb
        advised = {word for word in (out + err).split() if word.startswith("--")}
        assert advised <= known


def test_strict_stops_at_the_first_bad_row(table, capsys):
    code, _, err = run(capsys, "data", "check", table, "--target", "p_np", "--strict")
    assert code == DataError.exit_code
    assert err == f"error: {table}:3: 'bad' is not a SMILES\n"


def test_convert_says_what_was_left_out_and_keeps_it(table, tmp_path, capsys):
    code, out, err = run(capsys, "data", "convert", table, tmp_path / "d.gset", "--target", "extra")
    assert code == 0
    assert "3 graphs" in out
    assert out.endswith("1 rows left out\n")
    assert "row 2 (m2): 'bad' is not a SMILES" in err
    opened = gcaps.GraphSet.open(tmp_path / "d.gset")
    assert (opened.ids.tolist(), opened.target_names) == (["m1", "m3", "m4"], ("extra",))
    assert [(one.row, one.id) for one in opened.skipped] == [(1, "m2")]


def test_convert_gives_all_rows_real_numbers(data_folder, tmp_path, capsys):
    path = data_folder / "molecules" / "Lipophilicity.csv"
    code, out, _ = run(capsys, "data", "convert", path, tmp_path / "lipo.gset", "--target", "exp")
    assert code == 0
    assert "4,200 graphs" in out
    assert gcaps.GraphSet.open(tmp_path / "lipo.gset").y.dtype.kind == "f"


@pytest.mark.parametrize("ending", ["zip", "json", "graphml", "edges", "csv"])
def test_convert_writes_the_format_that_the_name_says(table, tmp_path, capsys, ending):
    code, out, _ = run(capsys, "data", "convert", table, tmp_path / f"t.{ending}", "--target", "p_np")
    assert code == 0
    assert "3 graphs" in out
    again = gcaps.load(tmp_path / f"t.{ending}")
    assert again.y.tolist() == [1, 0, 0]


@pytest.mark.filterwarnings("always::gcaps.errors.DataWarning")
def test_notes_of_readers_are_lines_and_not_warnings(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_bytes("Molekül,y\nCCO,1\nCCN,0\n".encode("latin-1"))
    code, _, err = run(capsys, "data", "check", path)
    assert code == 0
    assert err == f"note: {path}: is not UTF-8 text; read as Latin-1\n"


def test_molecules_count_as_equal_by_structure_and_stereo(data_folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    _, out, _ = run(capsys, "data", "check", data_folder / "molecules" / "BACE.csv", "--target", "Class")
    rows = {line[:16].strip(): line[16:] for line in out.splitlines()}
    assert "none" in rows["stored twice"]
    assert "58 of 1,513" in rows["without stereo"]


@pytest.mark.parametrize("verb", [["train", "-o", "model"], ["evaluate"], ["data", "check"]], ids=lambda verb: verb[0])
def test_a_wrong_column_is_found_before_anything_heavy_is_imported(table, verb):
    arguments = [*verb, str(table), "--target", "gone"]
    code = (
        "import sys\nfrom gcaps.cli.app import main\ntry:\n    main(sys.argv[1:])\n"
        "except SystemExit as left:\n    print(left.code, *(m in sys.modules for m in ('torch', 'sklearn', 'numba')))"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert "has no column 'gone' for --target; it has mol_id, smiles, p_np, extra" in done.stderr
    assert done.stdout.split() == ["3", "False", "False", "False"]


def test_options_of_the_command_line_are_those_of_load(table):
    assert reading_options(target="p_np", strict=True, empty="drop") == {
        "target": "p_np",
        "smiles": None,
        "id": None,
        "columns": (),
        "invalid": "error",
        "empty": "drop",
        "directed": "error",
        "labelled": True,
    }
    predicting = reading_options(predicting=True)
    assert (predicting["labelled"], predicting["empty"], predicting["invalid"]) == (False, "drop", "skip")
    with pytest.raises(ConfigError, match="empty is 'keep'; it should be 'error' or 'drop'"):
        reading_options(empty="keep")
    with pytest.raises(DataError, match="has no column 'gone'"):
        reading_options([str(table)], target="gone")
