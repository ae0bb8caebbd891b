"""Methods that need molecules in comparisons."""

from dataclasses import replace

import numpy as np
import pytest

from gcaps.data import make_families
from gcaps.errors import DataError
from gcaps.estimators.registry import METHODS
from gcaps.evaluation import compare, evaluate
from gcaps.evaluation.experiments import Evaluation, Experiment, named_methods, rows_of
from gcaps.evaluation.plan import Limits
from gcaps.evaluation.planning import make_plan
from gcaps.testing import example_molecules

NEEDING = [name for name, method in METHODS.items() if method.needs_molecules]


@pytest.fixture(scope="module")
def molecules():
    return replace(example_molecules(24)[0], name="chains")


@pytest.fixture(scope="module")
def families():
    return make_families(24, seed=1)


def planned(data, methods, *, optional):
    plan, _ = make_plan(rows_of(data, named_methods(methods), Evaluation(2), optional=optional), Limits())
    return {(entry.data, entry.method) for entry in plan.entries}


def test_all_methods_are_those_that_take_the_graphs(molecules, families):
    found = planned([molecules, families], "all", optional=True)
    assert {method for data, method in found if data == "chains"} == set(METHODS)
    assert {method for data, method in found if data == families.name} == set(METHODS) - set(NEEDING)


def test_an_experiment_with_all_methods_may_leave_some_out():
    rows = Experiment(data=("MUTAG",), methods="all").rows()
    assert all(row.optional for row in rows)
    assert not any(row.optional for row in Experiment(data=("MUTAG",), methods=("wl", "ecfp")).rows())


@pytest.mark.parametrize("method", NEEDING)
def test_a_method_that_is_named_refuses_other_graphs_before_anything_runs(method, families):
    with pytest.raises(DataError, match=f"{families.name}: {method} needs molecules: a table with a column of SMILES"):
        compare(families, ["wl", method], folds=2, jobs=1)


@pytest.mark.parametrize("method", NEEDING)
def test_molecules_are_cross_validated(method, molecules):
    quick = {"tanimoto": {"radius": (1,), "C": (1.0,), "inner_folds": 2}}
    config = quick.get(method, {"n_estimators": 3, "fingerprints": "maccs"})
    result = evaluate(molecules, method, folds=2, config=config, jobs=1)
    assert result.accuracy > 0.5
    assert sorted(np.concatenate([fold.test for fold in result.folds])) == list(range(24))
