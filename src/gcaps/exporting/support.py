"""Requirements of exports; each refusal is one line with a remedy."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Literal

from gcaps.errors import ConfigError
from gcaps.estimators.base import GraphEstimator
from gcaps.estimators.network import NetworkEstimator
from gcaps.estimators.registry import METHODS
from gcaps.models.network import Network
from gcaps.models.registry import NETWORKS, network_class
from gcaps.training import FittedNetwork

Format = Literal["onnx", "pt2"]
PACKAGES = ("onnx", "onnxscript", "onnxruntime")
_WHY = {
    "kernel": "it compares graphs with its training graphs by code that is not a sequence of array operations",
    "features": "its features of graphs are computed by code that is not a sequence of array operations",
    "ours": "its members are methods of different kinds; export one that is a network",
    "network": "it works on {} of each graph, which are computed by code that is not a sequence of array operations",
}
_FOUND = {"ecc": "coarsened copies", "pscn": "receptive fields"}


def format_of(path: Path) -> Format:
    """Return the format that a file's name asks for.

    Raises:
        ConfigError: it asks for none, or packages for it are missing.
    """
    if path.suffix == ".pt2":
        return "pt2"
    if path.suffix != ".onnx":
        raise ConfigError(f"{path}: the name of an exported model ends with .onnx or .pt2")
    for package in PACKAGES:
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise ConfigError(f"ONNX needs the package {package}: pip install 'gcaps[onnx]'") from error
    return "onnx"


def fitted_network(estimator: GraphEstimator) -> FittedNetwork:
    """Return what is exported of an estimator.

    Raises:
        ConfigError: it cannot be exported.
    """
    method = METHODS.get(estimator.method)
    family, title = ("kernel", type(estimator).__name__) if method is None else (method.family, method.title)
    if not isinstance(estimator, NetworkEstimator):
        raise _refusal(title, _WHY[family])
    fitted = estimator.fitted_
    if network_class(fitted.config).prepare is not Network.prepare:
        raise _refusal(title, _WHY["network"].format(_FOUND[fitted.config.method]))
    if getattr(fitted.config, "capsule", "") == "polynomial":
        why = "the steps of its symmetric polynomials depend on degrees; train with another --capsule"
        raise _refusal(f"{title} with capsule = polynomial", why)
    return fitted


def _refusal(what: str, why: str) -> ConfigError:
    able = [name for name in NETWORKS if name not in _FOUND]
    return ConfigError(f"{what} cannot be exported: {why}. These methods can be: {', '.join(able)}")
