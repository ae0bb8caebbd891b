"""What a command imports: modules that a quick command must do without, as imports are most of its time."""

import json
import subprocess
import sys

import pytest

from gcaps.compile import require
from gcaps.estimators.registry import make_estimator
from gcaps.testing import example_graphs

HEAVY = ("torch", "numba", "sklearn", "scipy", "pandas", "networkx", "torch_geometric", "rdkit", "matplotlib", "jinja2")
REPORT = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
"""


def imported(code: str, *arguments: str) -> set[str]:
    """Names of the modules that a process has imported at its end."""
    found = subprocess.run(
        [sys.executable, "-c", REPORT + code, *arguments], check=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    return set(json.loads(found.stderr.decode().splitlines()[-1]))


@pytest.mark.parametrize("code", ["import gcaps", "from gcaps.cli.app import main; main(['--help'])"])
def test_the_package_and_its_help_import_nothing_heavy(code):
    assert imported(code).isdisjoint(HEAVY)


def test_predicting_imports_nothing_of_fitting_evaluating_and_reporting(tmp_path):
    graphs, _ = example_graphs(20)
    make_estimator("gcaps", {"epochs": 1}).fit(graphs).save(tmp_path / "model")
    from dataclasses import replace

    replace(graphs, y=None).save(tmp_path / "graphs")
    require(["prediction"])
    output = tmp_path / "predictions.csv"
    found = imported(
        "from gcaps.cli.app import main; main(['predict', *sys.argv[1:]])",
        *map(str, (tmp_path / "model", tmp_path / "graphs", "-o", output)),
    )
    assert len(output.read_text().splitlines()) == 21
    absent = ("sklearn", "scipy.stats", "scipy.optimize", "pandas", "networkx", "torch_geometric", "rdkit", "jinja2")
    assert found.isdisjoint(absent)
    ours = ("training.fit", "training.random_capsules", "evaluation", "report", "explain", "exporting", "kernels")
    assert found.isdisjoint(f"gcaps.{name}" for name in ours)
