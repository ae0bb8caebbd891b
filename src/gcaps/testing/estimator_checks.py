"""``check_graph_estimator``: scikit-learn's estimator checks, for estimators on graphs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, NamedTuple
from unittest import SkipTest

from sklearn.base import clone
from sklearn.exceptions import EstimatorCheckFailedWarning
from sklearn.utils import estimator_checks

import gcaps.testing.target_checks
import gcaps.testing.transformer_checks  # noqa: F401  # these modules register their checks
from gcaps.testing.checks import CHECKS, Check

__all__ = ["CHECKS", "NOT_APPLICABLE", "CheckResult", "check_graph_estimator"]


def _unchanged(name: str) -> Callable[[Any], None]:
    def run(estimator: Any) -> None:
        getattr(estimator_checks, name)(type(estimator).__name__, estimator)

    return run


_UNCHANGED = {
    "check_estimator_cloneable": "``clone`` gives an estimator of the same class with the same parameters.",
    "check_estimator_tags_renamed": "Tags are given in ``__sklearn_tags__``, not in methods of older versions.",
    "check_valid_tag_types": "Tags have the right types.",
    "check_estimator_repr": "``repr`` works.",
    "check_no_attributes_set_in_init": "The constructor stores its parameters and nothing else.",
    "check_do_not_raise_errors_in_init_or_set_params": "Parameters are checked in ``fit`` and not before.",
    "check_mixin_order": "Mixins come before BaseEstimator.",
    "check_parameters_default_constructible": "Defaults are immutable and stored as they are.",
    "check_get_params_invariance": "``get_params(deep=False)`` is part of ``get_params(deep=True)``.",
    "check_set_params": "``set_params`` sets what ``get_params`` returns.",
    "check_get_feature_names_out_error": "``get_feature_names_out`` raises a NotFittedError before ``fit``.",
}
"""scikit-learn's checks that need no X and run as they are."""

for _name, _about in _UNCHANGED.items():
    CHECKS[_name] = Check(_name, _about, _unchanged(_name), lambda estimator: True, adapted=False)
CHECKS["check_get_feature_names_out_error"] = CHECKS["check_get_feature_names_out_error"]._replace(
    applies=lambda estimator: hasattr(estimator, "get_feature_names_out")
)

_ARRAYS = "graphs are not arrays of the array API"
_COLUMNS = "graphs have no columns"
_SPARSE = "graphs are not a sparse matrix; adjacency is sparse in a GraphSet"
_OUTLIERS = "there are no outlier detectors on graphs"
_CLUSTERS = "there are no clusterers on graphs"
_N_ITER = "it concerns estimators with a parameter max_iter"

NOT_APPLICABLE: dict[str, str] = {
    **dict.fromkeys(
        (
            "check_array_api_input",
            "check_array_api_input_and_values",
            "check_array_api_mixed_inputs",
            "check_array_api_same_namespace",
        ),
        _ARRAYS,
    ),
    **dict.fromkeys(
        (
            "check_dataframe_column_names_consistency",
            "check_n_features_in",
            "check_n_features_in_after_fitting",
            "check_transformer_get_feature_names_out_pandas",
        ),
        _COLUMNS,
    ),
    "check_estimators_partial_fit_n_features": "there is no partial_fit, and graphs have no columns",
    **dict.fromkeys(
        (
            "check_estimator_sparse_array",
            "check_estimator_sparse_matrix",
            "check_estimator_sparse_tag",
            "check_sample_weight_equivalence_on_sparse_data",
        ),
        _SPARSE,
    ),
    **dict.fromkeys(
        (
            "check_outlier_contamination",
            "check_outlier_corruption",
            "check_outliers_fit_predict",
            "check_outliers_train",
        ),
        _OUTLIERS,
    ),
    **dict.fromkeys(("check_clusterer_compute_labels_predict", "check_clustering"), _CLUSTERS),
    **dict.fromkeys(("check_non_transformer_estimators_n_iter", "check_transformer_n_iter"), _N_ITER),
    **dict.fromkeys(
        ("check_class_weight_balanced_linear_classifier", "check_sparsify_coefficients"),
        "it concerns linear models with coefficients of columns",
    ),
    "check_complex_data": "it concerns a 2-D X of complex numbers",
    "check_f_contiguous_array_estimator": "it concerns the memory order of a 2-D X",
    "check_inplace_ensure_writeable": "it concerns estimators that change a 2-D X in place",
    **dict.fromkeys(
        ("check_fit_non_negative", "check_positive_only_tag_during_fit"),
        "it concerns estimators of a 2-D X without negative entries",
    ),
    "check_nonsquare_error": "it concerns estimators that take a Gram matrix as X",
    "check_transformer_preserve_dtypes": "the type of the output does not follow from the type of X",
}
"""scikit-learn's checks that mean nothing for graphs, with the reason."""


class CheckResult(NamedTuple):
    """Result of a check."""

    name: str
    status: Literal["passed", "failed", "xfail", "skipped"]
    """``xfail``: it failed, as expected."""
    reason: str = ""
    """Reason why it failed, was skipped or was expected to fail."""


def check_graph_estimator(
    estimator: Any,
    *,
    checks: Collection[str] | None = None,
    expected_failed_checks: Mapping[str, str] | None = None,
    on_fail: Literal["raise", "warn"] | None = "raise",
) -> list[CheckResult]:
    """Check that an estimator on graphs keeps to scikit-learn's conventions.

    As ``sklearn.utils.estimator_checks.check_estimator``, for classifiers, regressors and transformers whose X is a
    :class:`gcaps.GraphSet` or a list or array of graphs. Checks that need no X run as scikit-learn has them; those that
    take a 2-D X are adapted to graphs; :data:`NOT_APPLICABLE` names the others. Graphs are small, so that a check costs
    a few fits; settings that make fits short are recommended. An estimator with a true attribute ``needs_molecules`` is
    checked on molecules.

    Args:
        estimator: an instance.
        checks: names of the checks to run, by default all; see :data:`CHECKS`.
        expected_failed_checks: names of checks that the estimator fails, each with the reason.
        on_fail: raise the first unexpected failure, warn of each, or only return it.

    Returns:
        The result of every check that applies to the estimator.

    Example:
        >>> from gcaps.testing import check_graph_estimator
        >>> results = check_graph_estimator(gcaps.estimators.WeisfeilerLehmanSVC(C=(1.0,)))
    """
    if isinstance(estimator, type):
        raise TypeError(f"give an instance, {estimator.__name__}(), not the class")
    expected = dict(expected_failed_checks or {})
    chosen = CHECKS.keys() if checks is None else set(checks)
    if unknown := (expected.keys() | chosen) - CHECKS.keys():
        raise ValueError(f"there is no check {', '.join(sorted(unknown))}")
    subject = clone(estimator)
    return [
        _result(subject, check, expected, on_fail)
        for name, check in CHECKS.items()
        if name in chosen and check.applies(subject)
    ]


def _result(estimator: Any, check: Check, expected: Mapping[str, str], on_fail: str | None) -> CheckResult:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            check.run(estimator)
    except SkipTest as error:
        return CheckResult(check.name, "skipped", str(error))
    except Exception as error:
        if check.name in expected:
            return CheckResult(check.name, "xfail", expected[check.name])
        if on_fail == "raise":
            error.add_note(f"{check.name}: {check.about}")
            raise
        if on_fail == "warn":
            warnings.warn(
                EstimatorCheckFailedWarning(
                    estimator=estimator,
                    check_name=check.name,
                    exception=error,
                    status="failed",
                    expected_to_fail=False,
                    expected_to_fail_reason="",
                ),
                stacklevel=3,
            )
        return CheckResult(check.name, "failed", f"{type(error).__name__}: {error}")
    return CheckResult(check.name, "passed")
