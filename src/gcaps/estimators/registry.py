"""Methods by name: what ``--method`` takes, and the estimator behind each name."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from gcaps.config import CONFIGS, Section
from gcaps.errors import ConfigError

if TYPE_CHECKING:
    from gcaps.estimators.base import GraphClassifier


class Method(NamedTuple):
    """A method that can be trained, evaluated, compared and saved."""

    name: str
    title: str
    """As readers know it."""
    about: str
    """In a few words."""
    family: str
    """ours, network, kernel, features or baseline."""
    module: str
    estimator: str
    """Class name in ``gcaps.estimators.<module>``."""


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("gcaps", "GCAPS-CNN", "graph capsules", "ours", "capsules", "GraphCapsuleClassifier"),
        Method("capsule-svm", "Capsule SVM", "SVM on random capsules", "ours", "capsules", "RandomCapsuleSVC"),
        Method("dcnn", "DCNN", "diffusion network", "network", "baselines", "DCNNClassifier"),
        Method("pscn", "PSCN", "receptive fields", "network", "baselines", "PSCNClassifier"),
        Method("ecc", "ECC", "edge-conditioned filters", "network", "baselines", "ECCClassifier"),
        Method("dgcnn", "DGCNN", "sort pooling", "network", "baselines", "DGCNNClassifier"),
        Method("gin", "GIN", "isomorphism network", "network", "baselines", "GINClassifier"),
        Method("deepsets", "DeepSets", "structure-blind", "baseline", "baselines", "DeepSetsClassifier"),
        Method("rw", "RW", "random walks", "kernel", "kernel_methods", "RandomWalkSVC"),
        Method("sp", "SP", "shortest paths", "kernel", "kernel_methods", "ShortestPathSVC"),
        Method("gk", "GK", "graphlets", "kernel", "kernel_methods", "GraphletSVC"),
        Method("wl", "WL", "Weisfeiler–Lehman", "kernel", "kernel_methods", "WeisfeilerLehmanSVC"),
        Method("wloa", "WL-OA", "WL optimal assignment", "kernel", "kernel_methods", "OptimalAssignmentSVC"),
        Method("dgk", "DGK", "deep graph kernel", "kernel", "kernel_methods", "DeepGraphKernelSVC"),
        Method("mlg", "MLG", "multiscale Laplacian", "kernel", "kernel_methods", "MultiscaleLaplacianSVC"),
        Method("fgsd", "FGSD", "harmonic distances and a forest", "features", "forest", "FGSDForestClassifier"),
        Method("ensemble", "Ensemble", "mean of several methods", "ours", "ensemble", "GraphEnsemble"),
    )
}
"""Every method, by name."""


def method_of(name: str) -> Method:
    """Return the method of that name.

    Raises:
        ConfigError: there is none; it lists those there are.
    """
    if name not in METHODS:
        raise ConfigError(f"there is no method {name!r}; there are {', '.join(METHODS)}")
    return METHODS[name]


def config_class(name: str) -> type[Section]:
    """Return the class of a method's settings."""
    return CONFIGS[method_of(name).name]


def estimator_class(name: str) -> type[GraphClassifier]:
    """Return the estimator class of a method."""
    method = method_of(name)
    found: type[GraphClassifier] = getattr(
        importlib.import_module(f"gcaps.estimators.{method.module}"), method.estimator
    )
    return found


def make_estimator(
    name: str, settings: Mapping[str, Any] | Section | None = None, random_state: int = 0
) -> GraphClassifier:
    """Build the estimator of a method.

    Args:
        name: a name in :data:`METHODS`.
        settings: its settings, those that differ from the default are enough.
        random_state: decides everything that is random.
    """
    given = dict(settings) if isinstance(settings, Mapping) else settings
    config = config_class(name).of(given)
    make: Any = estimator_class(name)
    estimator: GraphClassifier = make(
        **{field: getattr(config, field) for field in type(config).model_fields}, random_state=random_state
    )
    return estimator


def estimator_named(class_name: str) -> type[GraphClassifier]:
    """Return an estimator by the name of its class, as saved models have it."""
    modules = {method.estimator: method.module for method in METHODS.values()} | {"KernelSVC": "kernel_svm"}
    if class_name not in modules:
        raise ConfigError(f"there is no estimator {class_name!r}")
    found: type[GraphClassifier] = getattr(
        importlib.import_module(f"gcaps.estimators.{modules[class_name]}"), class_name
    )
    return found
