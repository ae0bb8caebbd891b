import csv

import numpy as np
import pytest

import gcaps
from gcaps.cli.app import main
from tests.tasks.graphs import community_graph


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graph = community_graph(nodes=100)
    parts = {"train": graph.train, "val": graph.validation, "test": graph.test}
    np.savez("g.npz", x=graph.x, edges=graph.edges, y=graph.y, **parts)
    return tmp_path


def test_nodes_writes_a_model_and_predictions(folder, capsys):
    run("tasks", "nodes", "g.npz", "-o", "m", "--epochs", "5", "--degrees", "2,0", "--predictions", "p.csv")
    printed = capsys.readouterr().out
    assert "m: 100 nodes, 3 classes" in printed
    assert "test accuracy" in printed
    model = gcaps.load_model("m")
    with (folder / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["class"] for row in rows] == model.predict("g.npz").tolist()
    assert sorted(path.name for path in folder.iterdir()) == ["g.npz", "m", "p.csv"]


def test_links_prints_scores_beside_those_of_common_neighbors(folder, capsys):
    run("tasks", "links", "g.npz", "-o", "m", "--epochs", "5", "--variational")
    printed = capsys.readouterr().out
    for row in ("capsule autoencoder", "common-neighbors", "adamic-adar", "resource-allocation"):
        assert row in printed
    assert gcaps.load_model("m").vectors_.shape == (100, 64)
    assert sorted(path.name for path in folder.iterdir()) == ["g.npz", "m"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["nodes", "missing.npz", "-o", "m"], 3, "missing.npz: does not exist"),
        (["nodes", "g.npz", "-o", "m", "--degrees", "-1"], 4, "degrees"),
        (["links", "g.npz", "-o", "m", "--hidden", "0"], 4, "hidden"),
        (["links", "g.npz", "-o", "g.npz"], 6, "is not a saved model"),
    ],
)
def test_errors_are_one_line(folder, capsys, arguments, code, says):
    assert run("tasks", *arguments) == code
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert says in lines[0]


def test_a_model_of_nodes_is_refused_where_graphs_are_predicted(folder, capsys):
    assert run("tasks", "nodes", "g.npz", "-o", "m", "--epochs", "2") == 0
    capsys.readouterr()
    assert run("explain", "m", "g.npz", "-o", "e.html") == 6
    assert "is a model of gcaps.tasks" in capsys.readouterr().err
