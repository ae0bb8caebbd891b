"""Methods by name: what ``--method`` takes, and the estimator behind each name."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from gcaps.config import CONFIGS, Section
from gcaps.data.targets import Task
from gcaps.errors import ConfigError

if TYPE_CHECKING:
    from gcaps.estimators.base import GraphEstimator


class Method(NamedTuple):
    """A method that can be trained, evaluated, compared and saved."""

    name: str
    title: str
    """As readers know it."""
    about: str
    """In a few words."""
    family: str
    """ours, network, kernel, features or baseline."""
    estimator: str
    """Name of the classifier in ``gcaps.estimators``."""
    regressor: str
    """Name of the regressor in ``gcaps.estimators``."""
    needs_molecules: bool = False
    """Whether it takes molecules only."""


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "gcaps",
            "GCAPS-CNN",
            "graph capsules",
            "ours",
            "GraphCapsuleClassifier",
            "GraphCapsuleRegressor",
        ),
        Method(
            "capsule-svm",
            "Capsule SVM",
            "SVM on random capsules",
            "ours",
            "RandomCapsuleSVC",
            "RandomCapsuleSVR",
        ),
        Method("dcnn", "DCNN", "diffusion network", "network", "DCNNClassifier", "DCNNRegressor"),
        Method("pscn", "PSCN", "receptive fields", "network", "PSCNClassifier", "PSCNRegressor"),
        Method("ecc", "ECC", "edge-conditioned filters", "network", "ECCClassifier", "ECCRegressor"),
        Method("dgcnn", "DGCNN", "sort pooling", "network", "DGCNNClassifier", "DGCNNRegressor"),
        Method("gin", "GIN", "isomorphism network", "network", "GINClassifier", "GINRegressor"),
        Method(
            "deepsets",
            "DeepSets",
            "structure-blind",
            "baseline",
            "DeepSetsClassifier",
            "DeepSetsRegressor",
        ),
        Method("rw", "RW", "random walks", "kernel", "RandomWalkSVC", "RandomWalkSVR"),
        Method("sp", "SP", "shortest paths", "kernel", "ShortestPathSVC", "ShortestPathSVR"),
        Method("gk", "GK", "graphlets", "kernel", "GraphletSVC", "GraphletSVR"),
        Method("wl", "WL", "Weisfeiler–Lehman", "kernel", "WeisfeilerLehmanSVC", "WeisfeilerLehmanSVR"),
        Method(
            "wloa",
            "WL-OA",
            "WL optimal assignment",
            "kernel",
            "OptimalAssignmentSVC",
            "OptimalAssignmentSVR",
        ),
        Method("wwl", "WWL", "Wasserstein distances of WL colors", "kernel", "WassersteinSVC", "WassersteinSVR"),
        Method("retgk", "RetGK", "return probabilities", "kernel", "ReturnProbabilitySVC", "ReturnProbabilitySVR"),
        Method("dgk", "DGK", "deep graph kernel", "kernel", "DeepGraphKernelSVC", "DeepGraphKernelSVR"),
        Method(
            "mlg",
            "MLG",
            "multiscale Laplacian",
            "kernel",
            "MultiscaleLaplacianSVC",
            "MultiscaleLaplacianSVR",
        ),
        Method(
            "tanimoto",
            "Tanimoto",
            "fingerprint similarity",
            "kernel",
            "TanimotoSVC",
            "TanimotoSVR",
            needs_molecules=True,
        ),
        Method(
            "fgsd",
            "FGSD",
            "harmonic distances and a forest",
            "features",
            "FGSDForestClassifier",
            "FGSDForestRegressor",
        ),
        Method(
            "ltp",
            "LTP",
            "local topological profile and a forest",
            "features",
            "LTPForestClassifier",
            "LTPForestRegressor",
        ),
        Method(
            "ecfp",
            "ECFP",
            "circular fingerprints and a forest",
            "features",
            "ECFPClassifier",
            "ECFPRegressor",
            needs_molecules=True,
        ),
        Method(
            "descriptors",
            "Descriptors",
            "descriptors and boosting",
            "features",
            "DescriptorClassifier",
            "DescriptorRegressor",
            needs_molecules=True,
        ),
        Method(
            "ensemble",
            "Ensemble",
            "several methods, weighted on inner folds",
            "ours",
            "GraphEnsemble",
            "GraphEnsembleRegressor",
        ),
    )
}
"""Every method, by name."""


def method_of(name: str) -> Method:
    """Return the method of that name.

    Raises:
        ConfigError: there is none; it names a similar one, and lists those there are.
    """
    if name not in METHODS:
        near = difflib.get_close_matches(name.lower(), METHODS, 1)
        hint = f"did you mean {near[0]}? There" if near else "there"
        raise ConfigError(f"there is no method {name!r}; {hint} are {', '.join(METHODS)}")
    return METHODS[name]


def config_class(name: str) -> type[Section]:
    """Return the class of a method's settings."""
    return CONFIGS[method_of(name).name]


def estimator_class(name: str, task: Task = "classification") -> type[GraphEstimator]:
    """Return the estimator class of a method for a task."""
    method = method_of(name)
    return estimator_named(method.regressor if task == "regression" else method.estimator)


def make_estimator(
    name: str,
    settings: Mapping[str, Any] | Section | None = None,
    random_state: int = 0,
    task: Task = "classification",
) -> GraphEstimator:
    """Build the estimator of a method.

    Args:
        name: a name in :data:`METHODS`.
        settings: its settings, those that differ from the default are enough.
        random_state: decides everything that is random.
        task: a regressor for regression; classifiers take several binary targets too.

    Raises:
        ConfigError: a setting about classes is given for regression.
    """
    given = dict(settings) if isinstance(settings, Mapping) else settings
    config = config_class(name).of(given)
    make: Any = estimator_class(name, task)
    fields = type(config).model_fields
    values = {field: getattr(config, field) for field in fields}
    if task == "regression":
        for field in set(fields) - set(make._get_param_names()):
            if values.pop(field) != fields[field].default:
                raise ConfigError(f"{field} is about classes; it has no effect in regression")
    estimator: GraphEstimator = make(**values, random_state=random_state)
    return estimator


def estimator_named(class_name: str) -> type[GraphEstimator]:
    """Return an estimator by the name of its class, as saved models have it."""
    estimators = importlib.import_module("gcaps.estimators")
    known = {name for method in METHODS.values() for name in (method.estimator, method.regressor)}
    if class_name not in known | {"KernelSVC", "KernelSVR"}:
        raise ConfigError(f"there is no estimator {class_name!r}")
    found: type[GraphEstimator] = getattr(estimators, class_name)
    return found
