"""Regressors: every method for real targets, with the parameters of its classifier but those about classes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from gcaps.config import ClassConfig
from gcaps.estimators import (
    baselines,
    capsules,
    distance_methods,
    fingerprint_methods,
    forest,
    kernel_methods,
    tanimoto,
    topological,
)
from gcaps.estimators.base import GraphClassifier, GraphRegressor
from gcaps.estimators.forest import FGSDForest
from gcaps.estimators.kernel_svm import KernelEstimator
from gcaps.estimators.network import NetworkEstimator

ABOUT_CLASSES = (*ClassConfig.model_fields, "sampling")
"""Parameters that only classifiers have."""

R = TypeVar("R", bound=type[GraphRegressor])


def like(classifier: type[GraphClassifier]) -> Callable[[R], R]:
    """Give a regressor the method, the kernels and the constructor of a classifier, without what is about classes."""
    full = inspect.signature(classifier.__init__)
    signature = full.replace(parameters=[p for p in full.parameters.values() if p.name not in ABOUT_CLASSES])

    def __init__(self: Any, *args: Any, **given: Any) -> None:  # noqa: N807
        bound = signature.bind(self, *args, **given)
        bound.apply_defaults()
        self._store(bound.arguments)

    __init__.__signature__ = signature  # type: ignore[attr-defined]

    def decorate(regressor: R) -> R:
        regressor.__init__ = __init__  # type: ignore[method-assign]
        regressor.method = classifier.method
        for name in ("kernels", "grams"):
            if hasattr(classifier, name):
                setattr(regressor, name, getattr(classifier, name))
        return regressor

    return decorate


@like(capsules.RandomCapsuleSVC)
class RandomCapsuleSVR(GraphRegressor, capsules.RandomCapsuleMachine):
    """Support vector regression on graph vectors of random capsules; parameters as :class:`RandomCapsuleSVC`."""


@like(baselines.DCNNClassifier)
class DCNNRegressor(GraphRegressor, NetworkEstimator):
    """Diffusion-convolutional neural network; parameters as :class:`DCNNClassifier`."""


@like(baselines.PSCNClassifier)
class PSCNRegressor(GraphRegressor, NetworkEstimator):
    """PATCHY-SAN; parameters as :class:`PSCNClassifier`."""


@like(baselines.ECCClassifier)
class ECCRegressor(GraphRegressor, NetworkEstimator):
    """Edge-conditioned convolution; parameters as :class:`ECCClassifier`."""


@like(baselines.DGCNNClassifier)
class DGCNNRegressor(GraphRegressor, NetworkEstimator):
    """Deep graph convolutional network with sort pooling; parameters as :class:`DGCNNClassifier`."""


@like(baselines.GINClassifier)
class GINRegressor(GraphRegressor, NetworkEstimator):
    """Graph isomorphism network; parameters as :class:`GINClassifier`."""


@like(baselines.DeepSetsClassifier)
class DeepSetsRegressor(GraphRegressor, NetworkEstimator):
    """Structure-blind network; parameters as :class:`DeepSetsClassifier`."""


@like(kernel_methods.RandomWalkSVC)
class RandomWalkSVR(GraphRegressor, KernelEstimator):
    """Support vector regression on the random-walk kernel; parameters as :class:`RandomWalkSVC`."""


@like(kernel_methods.ShortestPathSVC)
class ShortestPathSVR(GraphRegressor, KernelEstimator):
    """Support vector regression on the shortest-path kernel; parameters as :class:`ShortestPathSVC`."""


@like(kernel_methods.GraphletSVC)
class GraphletSVR(GraphRegressor, KernelEstimator):
    """Support vector regression on the graphlet kernel; parameters as :class:`GraphletSVC`."""


@like(kernel_methods.WeisfeilerLehmanSVC)
class WeisfeilerLehmanSVR(GraphRegressor, KernelEstimator):
    """Support vector regression on the Weisfeiler-Lehman kernel; parameters as :class:`WeisfeilerLehmanSVC`."""


@like(kernel_methods.OptimalAssignmentSVC)
class OptimalAssignmentSVR(GraphRegressor, KernelEstimator):
    """Support vector regression on WL optimal assignments; parameters as :class:`OptimalAssignmentSVC`."""


@like(distance_methods.WassersteinSVC)
class WassersteinSVR(GraphRegressor, distance_methods.DistanceEstimator):
    """Support vector regression on the Wasserstein Weisfeiler-Lehman kernel; parameters as :class:`WassersteinSVC`."""


@like(distance_methods.ReturnProbabilitySVC)
class ReturnProbabilitySVR(GraphRegressor, distance_methods.DistanceEstimator):
    """Support vector regression on return probabilities; parameters as :class:`ReturnProbabilitySVC`."""


@like(kernel_methods.DeepGraphKernelSVC)
class DeepGraphKernelSVR(GraphRegressor, KernelEstimator):
    """Support vector regression on deep graph kernels; parameters as :class:`DeepGraphKernelSVC`."""


@like(kernel_methods.MultiscaleLaplacianSVC)
class MultiscaleLaplacianSVR(GraphRegressor, KernelEstimator):
    """Support vector regression on multiscale Laplacians; parameters as :class:`MultiscaleLaplacianSVC`."""


@like(forest.FGSDForestClassifier)
class FGSDForestRegressor(GraphRegressor, FGSDForest):
    """Random forest on histograms of harmonic distances; parameters as :class:`FGSDForestClassifier`."""


@like(topological.LTPForestClassifier)
class LTPForestRegressor(GraphRegressor, topological.LTPForest):
    """Random forest on local topological profiles; parameters as :class:`LTPForestClassifier`."""


@like(tanimoto.TanimotoSVC)
class TanimotoSVR(GraphRegressor, tanimoto.TanimotoEstimator):
    """Support vector or Gaussian-process regression on the Tanimoto kernel of molecules' fingerprints.

    Parameters as :class:`TanimotoSVC`. With ``model="gp"``, exact Gaussian-process regression: fingerprint, radius,
    noise and scale maximise the marginal likelihood of the training graphs, and ``predict`` returns the predictive
    mean.
    """


@like(fingerprint_methods.ECFPClassifier)
class ECFPRegressor(GraphRegressor, fingerprint_methods.FingerprintTrees):
    """Random forest or boosting on fingerprints of molecules; parameters as :class:`ECFPClassifier`."""


@like(fingerprint_methods.DescriptorClassifier)
class DescriptorRegressor(GraphRegressor, fingerprint_methods.FingerprintTrees):
    """Boosting or random forest on descriptors of molecules; parameters as :class:`DescriptorClassifier`."""
