import csv
import json

import numpy as np
import pytest

from gcaps.cli.app import main
from gcaps.data.graphset import GraphSet
from gcaps.tasks.random_graphs import communities


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    assert left.value.code in (0, None)
    return capsys.readouterr().out


@pytest.fixture
def sequence_file(tmp_path):
    rng = np.random.default_rng(0)
    content = {"edges": [[0, 1], [1, 2], [2, 0]], "X": rng.standard_normal((40, 3)).tolist()}
    path = tmp_path / "some.json"
    path.write_text(json.dumps(content))
    return path


def test_sequences_verb_trains_scores_and_writes_forecasts(sequence_file, tmp_path, capsys):
    model, table = tmp_path / "model", tmp_path / "next.csv"
    given = ["-o", str(model), "--test", "6", "--forecasts", str(table), "--horizons", "2", "--epochs", "2"]
    assert "R² of the last 6 steps" in run(capsys, "tasks", "sequences", sequence_file, *given)
    rows = list(csv.reader(table.read_text().splitlines()))
    assert rows[0] == ["node", "+1", "+2"]
    assert len(rows) == 4
    assert not (tmp_path / "model.checkpoint").exists()


def test_generate_verb_writes_a_set_of_graphs(tmp_path, capsys):
    communities(16).save(tmp_path / "some.gset")
    small = ["--hidden", "3", "--layers", "1", "--chains", "8", "--batch-size", "4", "--epochs", "1", "--updates", "1"]
    given = ["-o", str(tmp_path / "model"), "--count", "5", "--graphs", str(tmp_path / "new.gset"), *small]
    assert "5 graphs" in run(capsys, "tasks", "generate", tmp_path / "some.gset", *given, "--sampling-steps", 5)
    assert len(GraphSet.open(tmp_path / "new.gset")) == 5
