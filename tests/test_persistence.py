import json

import numpy as np
import pytest

from gcaps import GraphCapsuleClassifier, GraphEnsemble, load_model, persistence
from gcaps.errors import ModelError
from gcaps.testing import hostile_graphs


@pytest.fixture(scope="module")
def graphs():
    return hostile_graphs(32, seed=7, largest=10)


@pytest.fixture(scope="module")
def model(graphs):
    settings = {"epochs": 2, "layers": 2, "hidden": 4, "rank": 4, "fc": 8, "ensemble_size": 1}
    return GraphCapsuleClassifier(**settings, features=("labels", "fgsd"), with_svm=False).fit(graphs)


def test_a_saved_model_predicts_the_same_bits(model, graphs, tmp_path):
    model.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert np.array_equal(again.predict_proba(graphs), model.predict_proba(graphs))
    assert again.config == model.config
    assert again.data_ == model.data_
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m"]


def test_the_page_says_what_was_given_what_it_became_and_why(model, tmp_path):
    model.save(tmp_path / "m")
    page = json.loads((tmp_path / "m" / "model.json").read_text())
    assert page["parameters"]["dropout"] == "auto"
    assert page["resolved"]["dropout"] == 0.0
    assert "dropout = 0.0 (auto: 32 training graphs, fewer than 750)" in page["resolution"]


def test_saving_again_replaces_the_whole_model(model, tmp_path):
    model.save(tmp_path / "m")
    (tmp_path / "m" / "stray.txt").write_text("x")
    model.save(tmp_path / "m")
    assert sorted(p.name for p in (tmp_path / "m").iterdir()) == ["model.json", "model.safetensors"]


def test_an_ensemble_has_a_folder_for_each_member(graphs, tmp_path):
    ensemble = GraphEnsemble(["sp", "wl"]).fit(graphs)
    ensemble.save(tmp_path / "m")
    assert sorted(p.name for p in (tmp_path / "m" / "members").iterdir()) == ["0", "1"]
    assert load_model(tmp_path / "m" / "members" / "1").method == "wl"
    (tmp_path / "m" / "members" / "1" / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="is missing"):
        load_model(tmp_path / "m")


def test_a_folder_that_is_no_model_is_never_overwritten(model, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.tex").write_text("x")
    with pytest.raises(ModelError, match="choose another name"):
        model.save(tmp_path / "precious")
    assert (tmp_path / "precious" / "thesis.tex").read_text() == "x"


def test_a_failed_save_leaves_the_old_model(model, tmp_path, monkeypatch):
    model.save(tmp_path / "m")
    before = (tmp_path / "m" / "model.json").read_bytes()
    monkeypatch.setattr(persistence, "write_json", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        model.save(tmp_path / "m")
    assert (tmp_path / "m" / "model.json").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def damage_page(change):
    def damage(folder):
        page = json.loads((folder / "model.json").read_text())
        change(page)
        page["sha256"] = persistence._digest(page)  # as whoever makes a model on purpose would
        (folder / "model.json").write_text(json.dumps(page))

    return damage


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda f: (f / "model.json").unlink(), "is missing"),
        (lambda f: (f / "model.safetensors").unlink(), "is missing"),
        (lambda f: (f / "model.json").write_text("{"), "damaged"),
        (lambda f: (f / "model.json").write_text("[]"), "damaged"),
        (lambda f: (f / "model.safetensors").write_bytes(b"x" * 100), "is not the file"),
        (damage_page(lambda page: page.update(format=99)), "format 99"),
        (damage_page(lambda page: page.update(estimator="os.system")), "no estimator 'os.system'"),
        (damage_page(lambda page: page["resolved"].update(layers=3)), "damaged"),
        (damage_page(lambda page: page["parameters"].update(unknown=3)), "unknown"),
        (damage_page(lambda page: page["state"]["features"].update(magic={})), "damaged"),
        (damage_page(lambda page: page.pop("target")), "damaged"),
    ],
)
def test_a_damaged_model_is_one_clear_error(model, tmp_path, damage, words):
    model.save(tmp_path / "m")
    damage(tmp_path / "m")
    with pytest.raises(ModelError, match=words):
        load_model(tmp_path / "m")


def test_what_is_no_model_is_an_error(tmp_path):
    with pytest.raises(ModelError, match="not a saved model"):
        load_model(tmp_path / "nothing")


def test_a_page_that_was_changed_after_saving_is_refused(model, tmp_path):
    model.save(tmp_path / "m")
    file = tmp_path / "m" / "model.json"
    page = json.loads(file.read_text())
    page["target"]["names"] = ["other"]
    file.write_text(json.dumps(page))
    with pytest.raises(ModelError, match="was changed after the model was saved"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda page: page["state"]["features"]["labels"].update(values=[list(range(-100, 7))]), "columns"),
        (lambda page: page["state"]["features"]["labels"]["values"][0].reverse(), "ascend"),
        (lambda page: page["resolved"].update(layers=100_000), "layers"),
        (lambda page: page["resolved"].update(hidden=4096), "the settings make it"),
        (lambda page: page["resolved"].update(unknown=1), "unknown: there is no such setting"),
        (lambda page: page["state"].update(in_channels=1 << 25), "the network takes"),
        (lambda page: page["target"]["classes"]["names"].reverse(), "ascend"),
        (lambda page: page["state"].update(seed="0"), "seed"),
    ],
)
def test_a_model_that_contradicts_itself_is_refused_before_anything_is_allocated(graphs, tmp_path, change, words):
    from gcaps import GraphCapsuleClassifier

    GraphCapsuleClassifier(epochs=1, features="labels", ensemble_size=1, with_svm=False).fit(graphs).save(
        tmp_path / "m"
    )
    damage_page(change)(tmp_path / "m")
    with pytest.raises(ModelError, match=words):
        load_model(tmp_path / "m")


def test_weights_that_are_not_finite_are_refused(model, tmp_path, monkeypatch):
    arrays, values = model.state()
    name = next(name for name, array in arrays.items() if array.dtype.kind == "f" and array.size)
    arrays[name] = np.full_like(arrays[name], np.nan)
    monkeypatch.setattr(type(model), "state", lambda self: (arrays, values))
    with pytest.raises(ModelError, match="cannot be saved: it holds numbers that are not finite"):
        model.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())
    with monkeypatch.context() as unchecked:
        unchecked.setattr(persistence, "_require_finite", lambda arrays, subject: None)
        model.save(tmp_path / "m")
    with pytest.raises(ModelError, match=r"m/model\.safetensors: holds numbers that are not finite"):
        load_model(tmp_path / "m")
