import difflib
import importlib.util
import inspect
import math
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def drop_in():
    return example("pyg_drop_in")


def test_pyg_drop_in_trains_both_models(drop_in, capsys):
    found = drop_in.main(epochs=1)
    assert set(found) == {"GIN", "Capsules"}
    for loss, accuracy in found.values():
        assert math.isfinite(loss)
        assert 0 <= accuracy <= 1
    assert "Capsules  epoch   1" in capsys.readouterr().out


def test_nodes_and_links_finds_communities_and_links(capsys):
    found = example("nodes_and_links").main(epochs=60)
    assert found["accuracy"] > 0.8
    assert found["auc"] > 0.6
    assert "adamic-adar" in capsys.readouterr().out


def test_sequences_and_generation_forecasts_waves_and_makes_graphs(capsys):
    found = example("sequences_and_generation").main(epochs=20, updates=2)
    assert found["capsule"] > 0.3
    assert 0 <= found["generated"] <= 2
    assert "of the generated graphs are different" in capsys.readouterr().out


def test_pyg_drop_in_changes_four_lines_and_its_docstring_shows_them(drop_in):
    before, after = (inspect.getsource(kind.__init__).splitlines() for kind in (drop_in.GIN, drop_in.Capsules))
    changed = [line for line in difflib.ndiff(before, after) if line[0] in "+-"]
    for sign in "-+":
        lines = [sign + line[2:] for line in changed if line[0] == sign]
        assert len(lines) == 4
        assert all(line in drop_in.__doc__ for line in lines)
    assert inspect.getsource(drop_in.GIN.forward) == inspect.getsource(drop_in.Capsules.forward)
