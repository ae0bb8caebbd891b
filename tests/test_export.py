"""Exported files compute what the model computes, for any number of nodes, edges and graphs, without gcaps."""

import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import gcaps
from gcaps.data.assemble import EdgeRows, assemble
from gcaps.errors import ConfigError, DataError, ModelError
from gcaps.estimators import make_estimator
from gcaps.exporting import arrays_of, check, files, inputs_of
from gcaps.exporting.program import Program
from gcaps.testing import example_graphs
from tests.cli.test_verbs import run as run_verb

ROOT = Path(__file__).parents[1]
SMALL = {"epochs": 1, "hidden": 4, "layers": 2}
CAPSULES = {**SMALL, "rank": 3, "fc": 4, "ensemble_size": 1, "with_svm": False}
ONNX = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("onnx", "onnxscript", "onnxruntime")),
    reason="needs the extra onnx",
)


def featured_graphs():
    """Graphs with everything: labels and attributes of nodes and edges, weights."""
    graphs, _ = example_graphs(24)
    rng = np.random.default_rng(0)
    first = np.repeat(graphs.ptr[:-1], graphs.arc_counts)
    source = np.repeat(np.arange(graphs.num_nodes), np.diff(graphs.rowptr))
    target = graphs.col + first
    one = source < target
    rows = EdgeRows(
        source[one],
        target[one],
        rng.integers(0, 3, (one.sum(), 2)),
        rng.standard_normal((one.sum(), 2)).astype(np.float32) * 3 + 1,
        rng.uniform(0.5, 2, one.sum()),
    )
    return assemble("featured", graphs.ptr, rows, y=graphs.y, node_labels=graphs.node_labels, x=graphs.x)


def fitted(method, settings, graphs=None, task="classification"):
    graphs = example_graphs(24)[0] if graphs is None else graphs
    return make_estimator(method, settings, 0, task).fit_all(graphs)


def as_task(graphs, task):
    """The graphs with other targets, made of the numbers of their nodes."""
    if task == "regression":
        return replace(graphs, y=1000.0 + 70.0 * graphs.sizes)
    return replace(graphs, y=np.stack([graphs.y, graphs.sizes > 6], axis=1).astype(np.int64))


def session_of(path):
    import onnxruntime

    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A network on all kinds of features, its graphs and its ONNX file."""
    pytest.importorskip("onnxruntime")
    graphs = featured_graphs()
    model = fitted("gcaps", {**CAPSULES, "features": "labels,attributes,degree", "degree": 2}, graphs)
    path = tmp_path_factory.mktemp("export") / "model.onnx"
    return model, graphs, gcaps.export(model, path, graphs), session_of(path)


def test_the_file_takes_every_kind_of_feature_and_agrees(exported):
    _, graphs, found, session = exported
    names = [one.name for one in found.inputs]
    assert names == ["edge_index", "batch", "node_labels", "x", "edge_weight", "edge_labels", "edge_attr"]
    assert names == [one.name for one in session.get_inputs()]
    assert found.graphs == len(graphs)
    assert 0 <= found.difference <= check.TOLERANCE
    assert session.get_inputs()[0].shape == [2, "edges"]
    assert session.get_inputs()[2].shape == ["nodes", 1]
    assert session.get_outputs()[0].shape == ["graphs", 2]
    assert session.get_outputs()[0].name == found.output == "probabilities"


@pytest.mark.parametrize("kind", ["one node", "no edges", "one graph", "unknown labels"])
def test_small_and_strange_batches(exported, kind):
    model, graphs, found, session = exported
    if kind == "one graph":
        some = graphs[3:4]
    elif kind == "unknown labels":
        some = replace(graphs, node_labels=graphs.node_labels + 1, edge_labels=graphs.edge_labels + 1)
    else:
        sizes = [1] if kind == "one node" else [3, 1, 2]
        n = sum(sizes)
        rows = EdgeRows(np.zeros(0, np.int64), np.zeros(0, np.int64))
        some = assemble("bare", np.cumsum([0, *sizes]), rows, node_labels=graphs.node_labels[:n], x=graphs.x[:n])
        none = {"edge_labels": np.zeros((0, 2), np.int64), "edge_attr": np.zeros((0, 2), np.float32)}
        some = replace(some, **none)
    given = arrays_of(some, model.fitted_.features, found.inputs)
    np.testing.assert_allclose(session.run(None, given)[0], model.scores(some), atol=1e-6)


def test_the_order_of_edges_and_self_loops_do_not_matter(exported):
    model, graphs, found, session = exported
    given = arrays_of(graphs, model.fitted_.features, found.inputs)
    expected = session.run(None, given)[0]
    order = np.random.default_rng(0).permutation(given["edge_index"].shape[1])
    moved = {name: a[order] if name.startswith("edge_") and a.shape[0] != 2 else a for name, a in given.items()}
    moved["edge_index"] = given["edge_index"][:, order]
    np.testing.assert_allclose(session.run(None, moved)[0], expected, atol=1e-6)
    loops = {
        name: np.concatenate([a, a[:2]]) if name.startswith("edge_") and name != "edge_index" else a
        for name, a in given.items()
    }
    loops["edge_index"] = np.concatenate([given["edge_index"], [[0, 4], [0, 4]]], axis=1)
    np.testing.assert_allclose(session.run(None, loops)[0], expected, atol=1e-6)


def test_the_file_says_what_it_is_and_nothing_of_this_machine(exported, tmp_path):
    model, graphs, found, session = exported
    about = {name: json.loads(text) for name, text in session.get_modelmeta().custom_metadata_map.items()}
    assert about == json.loads(json.dumps(found.metadata))
    assert about["gcaps"] == gcaps.__version__
    assert about["classes"] == model.classes_.tolist()
    assert about["node_labels"] == [{"columns": [0, 1], "rare": []}]
    assert [one["name"] for one in about["inputs"]] == [one.name for one in found.inputs]
    assert sorted(map(tuple, about["edge_labels"])) == sorted(set(map(tuple, graphs.edge_labels.tolist())))
    model.save(tmp_path / "model")
    page = json.loads((tmp_path / "model" / "model.json").read_text())
    assert about["arrays_sha256"] == page["arrays"]
    assert str(ROOT).encode() not in found.path.read_bytes()
    assert b"site-packages" not in found.path.read_bytes()


CASES = {
    "ensemble with SVM": ("gcaps", {**CAPSULES, "ensemble_size": 2, "with_svm": True}, "classification"),
    "two targets with SVM": ("gcaps", {**CAPSULES, "with_svm": True}, "multilabel"),
    "values": ("gcaps", CAPSULES, "regression"),
    "gin": ("gin", SMALL, "classification"),
}


@ONNX
@pytest.mark.parametrize("case", CASES)
def test_other_networks_and_tasks(case, tmp_path):
    method, settings, task = CASES[case]
    graphs = example_graphs(24)[0]
    model = fitted(method, settings, graphs if task == "classification" else as_task(graphs, task), task)
    found = gcaps.export(model, tmp_path / "model.onnx")
    assert found.graphs == check.GRAPHS
    given = arrays_of(graphs, model.fitted_.features, found.inputs)
    values = session_of(found.path).run(None, given)[0]
    assert check.difference(values, model.scores(graphs), model.target_) <= check.TOLERANCE
    if task == "regression":
        assert found.output == "values"
        assert values.dtype == np.float64
        assert abs(values.mean() - 1500) < 1000  # in units


def test_a_program_of_torch(tmp_path):
    model = fitted("gcaps", {**CAPSULES, "filter": "chebyshev", "degree": 2, "capsule": "central"})
    model.save(tmp_path / "model")
    found = gcaps.export(tmp_path / "model", tmp_path / "model.pt2", example_graphs(8)[0])
    assert found.graphs == 8
    extra = {"gcaps.json": ""}
    program = torch.export.load(found.path, extra_files=extra).module()
    assert json.loads(extra["gcaps.json"])["output"]["name"] == "probabilities"
    for graphs in (example_graphs(5)[0], example_graphs(1)[0]):
        given = arrays_of(graphs, model.fitted_.features, found.inputs)
        with torch.no_grad():
            values = program(**{name: torch.from_numpy(array) for name, array in given.items()}).numpy()
        np.testing.assert_allclose(values, model.scores(graphs), atol=1e-5)


EAGER = {
    **{f"filter {name}": ("gcaps", {**CAPSULES, "filter": name}) for name in ("laplacian", "kipf", "cayley", "mean")},
    **{f"capsule {name}": ("gcaps", {**CAPSULES, "capsule": name}) for name in ("density", "routing")},
    **{f"readout {name}": ("gcaps", {**CAPSULES, "readout": name}) for name in ("sum", "max_sort")},
    "computed outside": ("gcaps", {**CAPSULES, "features": "fgsd,return_probabilities,constant", "inputs": True}),
    "capsule-svm": ("capsule-svm", {"hidden": 4, "rank": 3}),
    "deepsets": ("deepsets", {"epochs": 1, "hidden": 4}),
    "dcnn": ("dcnn", {"epochs": 1}),
    "dgcnn": ("dgcnn", {**SMALL, "channels": 2, "dense": 4}),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["pt2", pytest.param("onnx", marks=ONNX)])
@pytest.mark.parametrize("case", EAGER)
def test_every_layer_can_be_exported(case, form, tmp_path):
    found = gcaps.export(fitted(*EAGER[case]), tmp_path / f"model.{form}")
    assert found.difference <= check.TOLERANCE


@pytest.mark.parametrize("case", EAGER)
def test_the_program_before_it_is_recorded(case):
    """The same arrays through the same tables and the network, on the compiled path: the features alone."""
    model, graphs = fitted(*EAGER[case]), example_graphs(6)[0]
    features = model.fitted_.features
    inputs = inputs_of(features)
    given = {name: torch.from_numpy(a) for name, a in arrays_of(graphs, features, inputs).items()}
    batch = Program(features, model.fitted_.network, model.target_).encoded(given)
    np.testing.assert_allclose(batch.dense.numpy(), features.transform(graphs), atol=1e-6)
    assert batch.ptr.tolist() == graphs.ptr.tolist()
    assert batch.rowptr.tolist() == graphs.rowptr.tolist()


def test_rare_and_unknown_labels_share_a_column():
    graphs = example_graphs(24)[0]
    labels = graphs.node_labels.copy()
    labels[0] = 7
    model = fitted("gcaps", {**CAPSULES, "rare_labels": 3}, replace(graphs, node_labels=labels))
    features = model.fitted_.features
    some = replace(graphs, node_labels=np.where(np.arange(len(labels))[:, None] % 3 == 0, 99, labels))
    given = {name: torch.from_numpy(a) for name, a in arrays_of(some, features, inputs_of(features)).items()}
    batch = Program(features, model.fitted_.network, model.target_).encoded(given)
    np.testing.assert_allclose(batch.dense.numpy(), features.transform(some), atol=1e-6)
    assert batch.dense[0].tolist()[:3] == [0, 0, 1]


def test_fingerprints_are_raw_columns_that_the_file_scales():
    pytest.importorskip("rdkit")
    smiles = ["CCO", "CCN", "CC(=O)O", "c1ccccc1", "CCCC", "c1ccncc1", "CCS", "CC(C)O"]
    settings = {**CAPSULES, "extra_features": "descriptors,atom_pairs"}
    graphs = replace(gcaps.load(smiles, labelled=False), y=np.arange(8) % 2)
    model = fitted("gcaps", settings, graphs)
    features = model.fitted_.features
    made_up = check.synthetic_graphs(model, features, 20)
    assert len(made_up) == 20
    given = {name: torch.from_numpy(a) for name, a in arrays_of(made_up, features, inputs_of(features)).items()}
    batch = Program(features, model.fitted_.network, model.target_).encoded(given)
    np.testing.assert_allclose(batch.graph_attr.numpy(), features.encode(made_up).graphs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("method", "settings", "words"),
    [
        ("wl", {"n_iter": (1,), "C": (1.0,)}, "WL cannot be exported: it compares graphs"),
        ("fgsd", {}, "FGSD cannot be exported: its features of graphs"),
        ("pscn", {"epochs": 1}, "PSCN cannot be exported: it works on receptive fields"),
        ("ecc", {"epochs": 1}, "ECC cannot be exported: it works on coarsened copies"),
        ("gcaps", {**CAPSULES, "capsule": "polynomial"}, "capsule = polynomial cannot be exported"),
    ],
)
def test_what_cannot_be_exported_says_so(method, settings, words, tmp_path):
    with pytest.raises(ConfigError, match=words) as refused:
        gcaps.export(fitted(method, settings), tmp_path / "model.pt2")
    assert "\n" not in str(refused.value)
    assert "gin" in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_a_name_without_a_format_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"ends with \.onnx or \.pt2"):
        gcaps.export(fitted("deepsets", {"epochs": 1}), tmp_path / "model.bin")


def test_a_file_that_differs_is_not_written(tmp_path, monkeypatch):
    path = tmp_path / "model.pt2"
    path.write_text("before")
    monkeypatch.setattr(files, "largest_difference", lambda *_: 1e-3)
    with pytest.raises(ModelError, match=r"differs from the model by 1\.0e-03"):
        gcaps.export(fitted("deepsets", {"epochs": 1, "hidden": 4}), path)
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["model.pt2"]


def test_differences_are_relative_to_units():
    target = fitted("gcaps", CAPSULES, as_task(example_graphs(24)[0], "regression"), "regression").target_
    assert check.difference(np.array([[1000.0]]), np.array([[1010.0]]), target) == pytest.approx(10 / 1010)
    assert check.difference(np.array([[np.nan]]), np.array([[1.0]]), target) == float("inf")
    assert check.difference(np.zeros((2, 1)), np.zeros((1, 1)), target) == float("inf")


def test_graphs_without_what_the_model_uses_are_refused(exported):
    model, graphs, found, _ = exported
    with pytest.raises(DataError, match="has no node labels, which the model uses"):
        arrays_of(replace(graphs, node_labels=None), model.fitted_.features, found.inputs)
    with pytest.raises(DataError, match="has 1 columns of edge_labels, the model takes 2"):
        arrays_of(replace(graphs, edge_labels=graphs.edge_labels[:, :1]), model.fitted_.features, found.inputs)


WITHOUT_GCAPS = """
import runpy, sys
class Forbidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("gcaps", "torch"):
            raise ImportError(f"{name} must not be needed")
sys.meta_path.insert(0, Forbidden())
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_the_example_runs_without_gcaps(exported, tmp_path):
    model, _graphs, found, _session = exported
    command = [sys.executable, "-c", WITHOUT_GCAPS, str(ROOT / "examples" / "run_onnx.py"), str(found.path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    header, *rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert header == [str(value) for value in model.classes_.tolist()]
    assert len(rows) == 2
    assert all(sum(map(float, row)) == pytest.approx(1, abs=1e-5) for row in rows)


def test_the_guide_shows_the_example():
    script = (ROOT / "examples" / "run_onnx.py").read_text().split('"""\n\n', 1)[1]
    assert f"```python\n{script}```" in (ROOT / "docs" / "guides" / "export.md").read_text()


@ONNX
def test_the_command(tmp_path):
    fitted("deepsets", {"epochs": 1, "hidden": 4}).save(tmp_path / "model")
    done = run_verb("export", "model", "-o", "model.onnx", cwd=tmp_path)
    assert "takes edge_index 2 × edges, batch nodes, node_labels nodes × 1" in done.stderr
    assert "largest difference from the model on 1,000 graphs" in done.stderr
    wrong = run_verb("export", "model", "-o", "model.txt", cwd=tmp_path, check=False)
    assert wrong.returncode == ConfigError.exit_code
    assert wrong.stderr.startswith("error: model.txt: the name of an exported model ends with .onnx or .pt2")
