import json

import numpy as np
import pytest

from gcaps import persistence
from gcaps.config import Config
from gcaps.errors import ModelError
from gcaps.testing import hostile_graphs
from gcaps.training import fit


@pytest.fixture(scope="module")
def graphs():
    return hostile_graphs(32, seed=7, largest=10)


@pytest.fixture(scope="module")
def model(graphs):
    config = Config(epochs=2, layers=2, hidden=4, rank=4, fc=8, features=("labels", "fgsd"))
    return fit(graphs, np.arange(32), config, 0)[0]


def test_a_saved_model_predicts_the_same_bits(model, graphs, tmp_path):
    persistence.save(model, tmp_path / "m")
    again = persistence.load(tmp_path / "m")
    assert np.array_equal(again.predict_proba(graphs), model.predict_proba(graphs))
    assert again.config == model.config
    assert again.data == model.data
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m"]


def test_saving_again_replaces_the_whole_model(model, tmp_path):
    persistence.save(model, tmp_path / "m")
    (tmp_path / "m" / "stray.txt").write_text("x")
    persistence.save(model, tmp_path / "m")
    assert sorted(p.name for p in (tmp_path / "m").iterdir()) == ["model.json", "model.safetensors"]


def test_a_folder_that_is_no_model_is_never_overwritten(model, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.tex").write_text("x")
    with pytest.raises(ModelError, match="choose another name"):
        persistence.save(model, tmp_path / "precious")
    assert (tmp_path / "precious" / "thesis.tex").read_text() == "x"


def test_a_failed_save_leaves_the_old_model(model, tmp_path, monkeypatch):
    persistence.save(model, tmp_path / "m")
    before = (tmp_path / "m" / "model.json").read_bytes()
    monkeypatch.setattr(persistence, "write_json", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        persistence.save(model, tmp_path / "m")
    assert (tmp_path / "m" / "model.json").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def damage_page(change):
    def damage(folder):
        page = json.loads((folder / "model.json").read_text())
        change(page)
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
        (damage_page(lambda page: page["config"].update(layers=3)), "damaged"),
        (damage_page(lambda page: page["config"].update(unknown=3)), "no such setting"),
        (damage_page(lambda page: page["features"].update(magic={})), "damaged"),
        (damage_page(lambda page: page.pop("classes")), "damaged"),
    ],
)
def test_a_damaged_model_is_one_clear_error(model, tmp_path, damage, words):
    persistence.save(model, tmp_path / "m")
    damage(tmp_path / "m")
    with pytest.raises(ModelError, match=words):
        persistence.load(tmp_path / "m")


def test_what_is_no_model_is_an_error(tmp_path):
    with pytest.raises(ModelError, match="not a saved model"):
        persistence.load(tmp_path / "nothing")
