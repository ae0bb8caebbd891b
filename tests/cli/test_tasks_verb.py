import csv

import networkx as nx
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


def small_graphs():
    graphs = [nx.path_graph(n) for n in range(3, 9)] + [nx.cycle_graph(n) for n in range(3, 9)]
    return gcaps.GraphSet.from_networkx(graphs, y=[0] * 6 + [1] * 6, name="g")


def predicted(capsys, *arguments):
    capsys.readouterr()
    assert run("tasks", "predict", *arguments) == 0
    return list(csv.reader(capsys.readouterr().out.splitlines()))


def test_predict_writes_the_table_of_the_training(folder, capsys):
    run("tasks", "nodes", "g.npz", "-o", "m", "--epochs", "2", "--predictions", "p.csv")
    with (folder / "p.csv").open() as file:
        assert predicted(capsys, "m", "g.npz") == list(csv.reader(file))


def test_predict_reads_pairs_of_nodes(folder, capsys):
    run("tasks", "links", "g.npz", "-o", "m", "--epochs", "2")
    (folder / "pairs.csv").write_text("from;to\n0; 7\n\n3;4\n")
    expected = gcaps.load_model("m").predict_proba([[0, 7], [3, 4]])
    rows = predicted(capsys, "m", "pairs.csv")
    assert rows == [["source", "target", "p(link)"], ["0", "7", f"{expected[0]:.6f}"], ["3", "4", f"{expected[1]:.6f}"]]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0,7\n3,x\n", "pairs.csv:2: is not a pair of node numbers, such as 0,7"),
        ("from,to\n", "pairs.csv: has no pairs of node numbers"),
        ("0,7,1\n", "pairs.csv: has no pairs of node numbers"),
        ("0,100\n", "pairs name nodes from 0 to 100; there are 0 to 99"),
        ("0,99999999999999999999\n", "pairs.csv: has no pairs of node numbers"),
    ],
)
def test_predict_refuses_what_are_no_pairs(folder, capsys, text, says):
    run("tasks", "links", "g.npz", "-o", "m", "--epochs", "1")
    (folder / "pairs.csv").write_text(text)
    capsys.readouterr()
    assert run("tasks", "predict", "m", "pairs.csv") == 3
    assert says in capsys.readouterr().err


def test_predict_generates_further_graphs(folder, capsys):
    small_graphs().save("g.gset")
    run(
        "tasks",
        "generate",
        "g.gset",
        "-o",
        "m",
        "--epochs",
        "1",
        "--updates",
        "1",
        "--count",
        "2",
        "--graphs",
        "a.gset",
    )
    assert run("tasks", "predict", "m", "--count", "2", "-o", "b.json") == 0
    made, again = gcaps.GraphSet.open("a.gset"), gcaps.load("b.json", labelled=False)
    assert made.ptr.tolist() == again.ptr.tolist()
    assert made.col.tolist() == again.col.tolist()
    capsys.readouterr()
    assert run("tasks", "predict", "m") == 4
    assert "needs -o FILE" in capsys.readouterr().err


def test_predict_names_the_verb_for_the_other_kind_of_model(folder, capsys):
    small_graphs().save("g.gset")
    gcaps.estimators.make_estimator("wl").fit(small_graphs()).save("of-graphs")
    run("tasks", "nodes", "g.npz", "-o", "of-nodes", "--epochs", "1")
    capsys.readouterr()
    assert run("tasks", "predict", "of-graphs", "g.npz") == 4
    assert "gcaps predict uses it" in capsys.readouterr().err
    assert run("predict", "of-nodes", "g.gset") == 6
    assert "gcaps tasks predict uses it" in capsys.readouterr().err
    assert run("tasks", "predict", "of-nodes") == 4
    assert "needs DATA: a graph (.npz)" in capsys.readouterr().err
