"""What the server answers is what the model predicts, alone and together, and has the shape that it promises."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import gcaps
from gcaps.serve import schema
from gcaps.serve.facts import example_graphs, facts_of, node_link
from gcaps.serve.handler import Handler, Job, as_json
from gcaps.serve.limits import Limits, ServerSettings


def test_predictions_are_those_of_the_model(client, molecules):
    model, texts = gcaps.load_model(molecules), ["CCCO", "CCCC", "C1CCCCC1N"]
    answer = client.post("/predict", json={"smiles": texts, "coverage": 0.8, "neighbors": 2}).json()
    schema.PredictResponse.model_validate(answer)
    rows = answer["predictions"]
    expected, calibrated = model.predict_proba(texts), model.predict_calibrated(texts)
    sets, novelty = model.predict_set(texts, 0.8), model.novelty(texts)
    assert [row["targets"][0]["value"] for row in rows] == model.predict(texts).tolist()
    for i, row in enumerate(rows):
        (target,) = row["targets"]
        assert list(target["probabilities"].values()) == pytest.approx(expected[i], abs=1e-6)
        assert list(target["calibrated"].values()) == pytest.approx(calibrated[i], abs=1e-6)
        assert target["set"] == model.classes_[sets[i]].tolist()
        assert (row["similarity"], row["nearest"]) == (
            pytest.approx(novelty.similarity[i], abs=1e-6),
            novelty.nearest[i],
        )
        assert row["novel"] == novelty.novel[i]
        assert row["neighbors"][0]["similarity"] == row["similarity"]
        assert len(row["neighbors"]) == 2
    assert answer["coverage"] == 0.8


def test_values_have_intervals(client_of):
    texts = [f"{'C' * n}" for n in range(1, 31)]
    model = gcaps.estimators.make_estimator("ecfp", {"n_estimators": 5}, task="regression")
    model.fit_calibrated(texts, np.arange(30.0), how="split")
    answer = client_of(model).post("/predict", json={"smiles": "CCC", "coverage": 0.5}).json()
    schema.PredictResponse.model_validate(answer)
    (target,) = answer["predictions"][0]["targets"]
    low, high = target["interval"]
    assert low <= target["value"] <= high
    assert target["value"] == pytest.approx(float(np.ravel(model.predict(["CCC"]))[0]), rel=1e-5)
    unbounded = client_of(model).post("/predict", json={"smiles": "CCC", "coverage": 0.99}).json()
    assert unbounded["predictions"][0]["targets"][0]["interval"] == [None, None]


def test_rows_that_are_no_molecules_are_errors_of_their_own(client):
    answer = client.post("/predict", json={"smiles": ["CCO", "nonsense!", "", "CC"], "ids": ["a", "b", "c", "d"]})
    assert answer.status_code == 200
    rows = answer.json()["predictions"]
    assert [(row["id"], "error" in row) for row in rows] == [("a", False), ("b", True), ("c", True), ("d", False)]
    assert "not a SMILES" in rows[1]["error"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"smiles,name\nCCO,x\nCCC,y\nbad!,z\n"),
        ("a.tsv", b"smiles\tname\nCCO\tx\nCCC\ty\nbad!\tz\n"),
        ("a.smi", b"CCO x\nCCC y\nbad! z\n"),
    ],
)
def test_a_file_of_molecules_is_predicted_as_its_smiles_are(client, name, content):
    rows = client.post("/predict/file", params={"name": name}, content=content).json()["predictions"]
    single = client.post("/predict", json={"smiles": ["CCO", "CCC"]}).json()["predictions"]
    assert [row["targets"] for row in rows[:2]] == [row["targets"] for row in single]
    assert [row.get("smiles") for row in rows] == ["CCO", "CCC", None]
    assert "not a SMILES" in rows[2]["error"]


def test_graphs_as_json_graphml_and_tu_zip_are_predicted_alike(client_of, mutag, tmp_path):
    graphs, client = gcaps.load("MUTAG")[60:64], client_of(mutag)
    expected = gcaps.load_model(mutag).predict_proba(graphs)

    def shares(answer):
        assert answer.status_code == 200, answer.text
        schema.PredictResponse.model_validate(answer.json())
        return [list(row["targets"][0]["probabilities"].values()) for row in answer.json()["predictions"]]

    entries = [node_link(graph, i) for i, graph in enumerate(graphs.to_networkx())]
    np.testing.assert_allclose(shares(client.post("/predict", json={"graphs": entries})), expected, atol=1e-5)
    for name in ("g.graphml", "g.json", "g.zip"):
        from gcaps.data.io.export import export

        path = tmp_path / ("tu" if name == "g.zip" else name)
        if name == "g.zip":
            import shutil

            from gcaps.data.catalog import find

            found = find("MUTAG")
            shutil.make_archive(str(tmp_path / "g"), "zip", found)
            answer = client.post("/predict/file", params={"name": name}, content=(tmp_path / name).read_bytes())
            np.testing.assert_allclose(shares(answer)[60:64], expected, atol=1e-5)
            continue
        export(graphs, path)
        answer = client.post("/predict/file", params={"name": name}, content=path.read_bytes())
        np.testing.assert_allclose(shares(answer), expected, atol=1e-5)


def test_requests_that_arrive_together_are_predicted_together_and_as_if_alone(client_of, mutag):
    graphs = [node_link(graph, i) for i, graph in enumerate(gcaps.load("MUTAG")[60:84].to_networkx())]
    bare = [{**one, "nodes": [{"id": node["id"]} for node in one["nodes"]]} for one in graphs[:2]]
    client = client_of(mutag, {"window": 0.2})
    alone = [client.post("/predict", json={"graphs": [one]}).json() for one in [*graphs, *bare]]
    with ThreadPoolExecutor(26) as pool:
        together = list(pool.map(lambda one: client.post("/predict", json={"graphs": [one]}).json(), [*graphs, *bare]))
    text = client.get("/metrics").text
    batches = int(text.split("gcaps_batch_requests_count ")[1].split()[0])
    assert batches < 26 + 10, "the second round came in few batches"
    for one, other in zip(alone, together, strict=True):
        if "error" in one:
            assert one == other, "a request that fails does not spoil the others"
            continue
        (a,), (b,) = one["predictions"], other["predictions"]
        assert a["targets"][0]["value"] == b["targets"][0]["value"]
        np.testing.assert_allclose(
            list(a["targets"][0]["probabilities"].values()), list(b["targets"][0]["probabilities"].values()), atol=1e-5
        )


def test_a_batch_answers_each_request_with_its_own_wishes(molecules):
    handler = Handler(gcaps.load_model(molecules), "m", Limits())
    bodies = [{"smiles": "CCO"}, {"smiles": ["CC", "bad!"], "coverage": 0.5}, {"smiles": "bad!"}, {"smiles": 3}]
    jobs = [Job("predict", {}, as_json(body)) for body in bodies] + [Job("predict", {}, b"{")]
    together, alone = handler.handle(jobs), [handler.handle([job])[0] for job in jobs]
    assert [reply.status for reply in together] == [200, 200, 422, 422, 400]
    assert together == alone


def test_an_explanation_names_every_atom_and_is_drawn_without_styles(client):
    answer = client.post("/explain", json={"smiles": "CCCO"})
    found = schema.ExplainResponse.model_validate(answer.json())
    assert sorted(one.name for one in found.nodes) == ["C", "C", "C", "O"]
    sizes = [abs(one.contribution) for one in found.nodes]
    assert sizes == sorted(sizes, reverse=True)
    assert found.svg is not None
    assert found.svg.startswith("<svg")
    assert "style=" not in found.svg
    file = client.post("/explain/file", params={"name": "a.smi", "row": 1}, content=b"CC\nCCCO\n").json()
    assert file["nodes"] == answer.json()["nodes"]


def test_the_explanation_of_a_graph_that_is_no_molecule(client_of, mutag):
    graph = node_link(gcaps.load("MUTAG")[60:61].to_networkx()[0], 0)
    answer = client_of(mutag).post("/explain", json={"graph": graph})
    found = schema.ExplainResponse.model_validate(answer.json())
    assert len(found.nodes) == len(graph["nodes"])
    assert found.svg is not None
    assert "style=" not in found.svg


def test_the_model_says_what_it_is_and_takes_its_own_example(client_of, molecules, mutag):
    for path, calibrated in ((molecules, True), (mutag, False)):
        client = client_of(path)
        facts = client.get("/model").json()
        schema.ModelResponse.model_validate(facts)
        assert facts["explains"]
        assert facts["calibrated"] is calibrated
        assert facts["molecules"] is calibrated
        assert client.post("/predict", json=facts["example"]).status_code == 200


@pytest.mark.parametrize("method", ["wl", "sp"])
def test_an_example_is_found_for_methods_that_do_not_list_their_features(method):
    pytest.importorskip("grakel")
    model = gcaps.estimators.make_estimator(method).fit(gcaps.load("MUTAG")[:30])
    assert example_graphs(model) is not None
    facts = facts_of(Handler(model, "m", Limits()), ServerSettings())
    assert facts["example"]["graphs"]
    assert facts["explains"]


def test_an_example_has_the_attributes_that_a_calibrated_model_compares(client_of):
    pytest.importorskip("grakel")
    graphs = gcaps.load("MUTAG")[:40]
    graphs = replace(graphs, x=np.random.default_rng(0).normal(size=(graphs.num_nodes, 3)))
    model = gcaps.estimators.make_estimator("wl").fit_calibrated(graphs, graphs.y, how="split")
    client = client_of(model)
    facts = client.get("/model").json()
    answer = client.post("/predict", json=facts["example"])
    assert answer.status_code == 200, answer.text
    assert "similarity" in answer.json()["predictions"][0]
    assert facts["explains"]
