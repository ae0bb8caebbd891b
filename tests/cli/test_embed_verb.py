"""``gcaps embed`` as a user types it, in this process."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gcaps
from gcaps.cli.app import main
from gcaps.estimators.registry import make_estimator
from gcaps.report.embedding import EmbeddedPart, embedding_page, project
from gcaps.testing import example_graphs


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        main([*arguments])
    assert ended.value.code in (0, None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("embed")
    graphs, _ = example_graphs(24)
    graphs = replace(graphs, y=np.where(graphs.y == 0, "<b>no", "=yes"), name="example")
    graphs.save(place / "g.gset")
    make_estimator("fgsd", {"n_estimators": 5, "bins": 12}).fit(graphs).save(place / "model")
    return place


def test_every_kind_of_file_holds_the_same_vectors_ids_and_predictions(folder, monkeypatch):
    monkeypatch.chdir(folder)
    run("embed", "model", "g.gset", "-o", "v.npz", "-o", "v.csv", "-o", "v.parquet")
    model, graphs = gcaps.load_model("model"), gcaps.load("g.gset")
    with np.load("v.npz") as found:
        np.testing.assert_array_equal(found["vectors"], model.transform(graphs))
        assert found["ids"].tolist() == [str(name) for name in graphs.ids]
        assert found["predictions"].tolist() == model.predict(graphs).tolist()
        np.testing.assert_array_equal(found["scores"], model.predict_proba(graphs))
        vectors = found["vectors"]
    with Path("v.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0][:4] == ["graph", "class", "p(<b>no)", "p(=yes)"]
    np.testing.assert_allclose([[float(cell) for cell in row[4:]] for row in rows[1:]], vectors, rtol=1e-6)
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table("v.parquet")
    assert table.column_names[:5] == ["graph", "class", "p(<b>no)", "p(=yes)", "v0"]
    np.testing.assert_array_equal(np.stack([table[f"v{i}"].to_numpy() for i in range(vectors.shape[1])], 1), vectors)
    assert table["class"].to_pylist() == model.predict(graphs).tolist()


def test_a_stream_of_pieces_gives_what_one_piece_gives(folder, monkeypatch):
    monkeypatch.chdir(folder)
    run("embed", "model", "g.gset", "-o", "one.npz")
    from gcaps.cli import embed

    def in_pieces(data, options):
        graphs = gcaps.load(data, labelled=False)
        for first in range(0, len(graphs), 7):
            yield graphs[first : first + 7]

    monkeypatch.setattr(embed, "streamed", in_pieces)
    run("embed", "model", "g.gset", "-o", "many.npz", "-o", "many.html")
    with np.load("one.npz") as one, np.load("many.npz") as many:
        for name in one:
            np.testing.assert_array_equal(one[name], many[name])


def test_neighbors_are_written_with_their_distances_and_targets(folder, monkeypatch):
    monkeypatch.chdir(folder)
    run("embed", "model", "g.gset", "-o", "v.npz", "--neighbors", "2")
    with Path("v.neighbors.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 48
    assert all(row["graph"] != row["neighbor"] for row in rows)
    run(
        "embed",
        "model",
        "g.gset",
        "-o",
        "v.npz",
        "--neighbors",
        "1",
        "--among",
        "g.gset",
        "--neighbors-output",
        "n.csv",
    )
    with Path("n.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {float(row["distance"]) for row in rows} == {0.0}, "each graph is among them"
    assert {row["target"] for row in rows} == {"<b>no", "'=yes"}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["-o", "v.txt"], "the name ends in .npz, .csv, .parquet, or .html for a map"),
        (["-o", "v.npz", "--among", "g.gset"], "--neighbors; give it"),
        (["-o", "v.npz", "--projection", "umap"], "pca or tsne"),
    ],
)
def test_what_cannot_be_is_one_line(folder, monkeypatch, capsys, options, problem):
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit):
        main(["embed", "model", "g.gset", *options])
    assert problem in capsys.readouterr().err


def test_a_killed_writer_leaves_the_old_file(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "old.npz").write_bytes(b"old")
    from gcaps.cli import embed

    def broken(data, options):
        yield gcaps.load(data, labelled=False)
        raise KeyboardInterrupt

    monkeypatch.setattr(embed, "streamed", broken)
    with pytest.raises(SystemExit):
        main(["embed", "model", "g.gset", "-o", "old.npz"])
    assert (folder / "old.npz").read_bytes() == b"old"


def test_the_map_escapes_names_and_loads_nothing(folder):
    model, graphs = gcaps.load_model(folder / "model"), gcaps.load(folder / "g.gset")
    part = EmbeddedPart(graphs, model.transform(graphs), model.scores(graphs))
    page = embedding_page([part], model.target_, projection="tsne", command="gcaps </script>")
    assert "<b>no" not in page
    assert "</script>" not in page.split("How to reproduce this")[1].split("</pre>")[0]
    assert page.count("<template") == len(graphs)
    assert "http" not in page.replace("http-equiv", "")
    assert "24 graphs" in page


def test_pca_keeps_the_distances_of_points_in_a_plane():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(20, 2))
    turned = np.linalg.qr(rng.normal(size=(6, 6)))[0][:2]
    found, words = project(flat @ turned, "pca")
    gaps = [np.linalg.norm(x[:, None] - x[None], axis=2) for x in (flat, found)]
    np.testing.assert_allclose(gaps[1] / gaps[1].max(), gaps[0] / gaps[0].max(), atol=1e-9)
    assert "100 % of the variance" in words


def test_a_map_of_a_single_direction_or_of_equal_graphs_is_flat():
    for vectors in (np.arange(5.0)[:, None], np.ones((5, 3))):
        found, _ = project(vectors, "pca")
        assert found.shape == (5, 2)
        assert np.isfinite(found).all()


def test_no_graph_is_marked_on_the_map_before_one_is_chosen(folder, monkeypatch):
    """The mark stood beside the map, as charts draw what is outside their box."""
    monkeypatch.chdir(folder)
    run("embed", "model", "g.gset", "-o", "map.html")
    mark = Path("map.html").read_text(encoding="utf-8").partition('id="chosen"')[2].partition(">")[0]
    assert 'visibility="hidden"' in mark


def test_no_more_neighbors_are_announced_than_there_are(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    run("embed", "model", "g.gset", "-o", "v.npz", "--neighbors", "100")
    assert "23 nearest of g.gset for 24 graphs" in capsys.readouterr().err
