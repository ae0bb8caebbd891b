"""``check_graph_estimator`` knows every check of scikit-learn and finds estimators that break a convention."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.exceptions import EstimatorCheckFailedWarning
from sklearn.utils import estimator_checks

from gcaps.data.catalog import load
from gcaps.kernels import WeisfeilerLehman
from gcaps.testing import CHECKS, NOT_APPLICABLE, check_graph_estimator, example_graphs

OWN = {
    "check_graph_tags",
    "check_graphs_with_their_own_targets",
    "check_html_repr",
    "check_metadata_routing",
    "check_sample_weight_repetition",
}
"""Checks that scikit-learn has not, or has as part of another one."""


def theirs():
    """Names of the checks of the installed scikit-learn."""
    found = {name for name, value in vars(estimator_checks).items() if name.startswith("check_") and callable(value)}
    return {n for n in found if getattr(estimator_checks, n).__module__ == estimator_checks.__name__} - {
        "check_estimator"  # runs the others
    }


def test_every_check_of_scikit_learn_runs_or_is_said_not_to_apply():
    assert not CHECKS.keys() & NOT_APPLICABLE.keys()
    assert theirs() - CHECKS.keys() - NOT_APPLICABLE.keys() == set(), "checks that are in neither list"
    assert (CHECKS.keys() | NOT_APPLICABLE.keys()) - theirs() == OWN, "checks that scikit-learn does not have"


def test_every_check_says_what_it_checks():
    assert all(check.about.endswith(".") and check.name == name for name, check in CHECKS.items())
    assert all(reason and not reason.endswith(".") for reason in NOT_APPLICABLE.values())


def test_examples_differ_in_structure_labels_and_attributes_by_class():
    graphs, share = example_graphs(60, classes=3)
    density = graphs.arc_counts / (graphs.sizes * (graphs.sizes - 1))
    ones = np.add.reduceat(graphs.node_labels[:, 0], graphs.ptr[:-1]) / graphs.sizes
    for value in (density, ones, share):
        means = [value[graphs.y == c].mean() for c in range(3)]
        assert means == sorted(means)
    again, _ = example_graphs(60, classes=3)
    assert again.fingerprint() == graphs.fingerprint()


class Majority(ClassifierMixin, BaseEstimator):
    """Predicts the most frequent class; breaks a convention if asked to."""

    def __init__(self, mistake=""):
        self.mistake = mistake

    def fit(self, X, y):
        graphs = load(X, labelled=False)
        if len(y) != len(graphs):
            raise ValueError("y has another length")
        if self.mistake == "public":
            self.count = len(graphs)
        if self.mistake == "parameter":
            self.mistake = "parameter "
        self.classes_, counts = np.unique(y, return_counts=True)
        self.best_ = counts.argmax()
        return None if self.mistake == "self" else self

    def predict(self, X):
        if self.mistake == "state":
            self.best_ = 1 - self.best_
        found = np.full(len(load(X, labelled=False)), self.best_)
        if self.mistake == "order":
            found[0] = 1 - found[0]
        return self.classes_[found]


@pytest.mark.parametrize(
    ("mistake", "check"),
    [
        ("public", "check_dont_overwrite_parameters"),
        ("parameter", "check_estimators_overwrite_params"),
        ("self", "check_estimators_fit_returns_self"),
        ("state", "check_dict_unchanged"),
        ("order", "check_methods_subset_invariance"),
    ],
)
def test_a_broken_convention_is_found(mistake, check):
    assert check_graph_estimator(Majority(), checks=[check])[0].status == "passed"
    (found,) = check_graph_estimator(Majority(mistake), checks=[check], on_fail=None)
    assert (found.name, found.status) == (check, "failed")
    with pytest.raises((AssertionError, AttributeError)):
        check_graph_estimator(Majority(mistake), checks=[check])


def test_expected_failures_and_warnings():
    name = "check_graph_tags"
    (found,) = check_graph_estimator(Majority(), checks=[name], expected_failed_checks={name: "known"})
    assert (found.status, found.reason) == ("xfail", "known")
    with pytest.warns(EstimatorCheckFailedWarning, match=name):
        check_graph_estimator(Majority(), checks=[name], on_fail="warn")
    with pytest.raises(AssertionError, match="two_d_array") as raised:
        check_graph_estimator(Majority(), checks=[name])
    assert raised.value.__notes__[0].startswith(name)
    with pytest.raises(ValueError, match="there is no check check_nothing"):
        check_graph_estimator(Majority(), checks=["check_nothing"])
    with pytest.raises(TypeError, match="give an instance"):
        check_graph_estimator(WeisfeilerLehman)


class Sizes(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        load(X, labelled=False)
        return self

    def transform(self, X):
        return load(X, labelled=False).sizes[:, None]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.two_d_array = False
        return tags


def test_a_transformer_of_the_users_own_passes():
    results = check_graph_estimator(Sizes())
    assert {result.status for result in results} == {"passed"}
