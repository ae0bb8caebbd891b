"""Estimators on graphs with scikit-learn's manners: every method can be fitted, evaluated, compared and saved.

Each name loads what it needs on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcaps.lazy import lazy_names

if TYPE_CHECKING:
    from gcaps.estimators.auto import Resolution as Resolution
    from gcaps.estimators.auto import resolve as resolve
    from gcaps.estimators.base import GraphClassifier as GraphClassifier
    from gcaps.estimators.base import GraphEstimator as GraphEstimator
    from gcaps.estimators.base import GraphRegressor as GraphRegressor
    from gcaps.estimators.baselines import DCNNClassifier as DCNNClassifier
    from gcaps.estimators.baselines import DeepSetsClassifier as DeepSetsClassifier
    from gcaps.estimators.baselines import DGCNNClassifier as DGCNNClassifier
    from gcaps.estimators.baselines import ECCClassifier as ECCClassifier
    from gcaps.estimators.baselines import GINClassifier as GINClassifier
    from gcaps.estimators.baselines import PSCNClassifier as PSCNClassifier
    from gcaps.estimators.capsules import GraphCapsuleClassifier as GraphCapsuleClassifier
    from gcaps.estimators.capsules import GraphCapsuleRegressor as GraphCapsuleRegressor
    from gcaps.estimators.capsules import RandomCapsuleSVC as RandomCapsuleSVC
    from gcaps.estimators.distance_methods import ReturnProbabilitySVC as ReturnProbabilitySVC
    from gcaps.estimators.distance_methods import WassersteinSVC as WassersteinSVC
    from gcaps.estimators.ensemble import GraphEnsemble as GraphEnsemble
    from gcaps.estimators.ensemble import GraphEnsembleRegressor as GraphEnsembleRegressor
    from gcaps.estimators.fingerprint_methods import DescriptorClassifier as DescriptorClassifier
    from gcaps.estimators.fingerprint_methods import ECFPClassifier as ECFPClassifier
    from gcaps.estimators.forest import FGSDForestClassifier as FGSDForestClassifier
    from gcaps.estimators.kernel_methods import DeepGraphKernelSVC as DeepGraphKernelSVC
    from gcaps.estimators.kernel_methods import GraphletSVC as GraphletSVC
    from gcaps.estimators.kernel_methods import MultiscaleLaplacianSVC as MultiscaleLaplacianSVC
    from gcaps.estimators.kernel_methods import OptimalAssignmentSVC as OptimalAssignmentSVC
    from gcaps.estimators.kernel_methods import RandomWalkSVC as RandomWalkSVC
    from gcaps.estimators.kernel_methods import ShortestPathSVC as ShortestPathSVC
    from gcaps.estimators.kernel_methods import WeisfeilerLehmanSVC as WeisfeilerLehmanSVC
    from gcaps.estimators.kernel_svm import KernelSVC as KernelSVC
    from gcaps.estimators.kernel_svm import KernelSVR as KernelSVR
    from gcaps.estimators.registry import METHODS as METHODS
    from gcaps.estimators.registry import make_estimator as make_estimator
    from gcaps.estimators.regressors import DCNNRegressor as DCNNRegressor
    from gcaps.estimators.regressors import DeepGraphKernelSVR as DeepGraphKernelSVR
    from gcaps.estimators.regressors import DeepSetsRegressor as DeepSetsRegressor
    from gcaps.estimators.regressors import DescriptorRegressor as DescriptorRegressor
    from gcaps.estimators.regressors import DGCNNRegressor as DGCNNRegressor
    from gcaps.estimators.regressors import ECCRegressor as ECCRegressor
    from gcaps.estimators.regressors import ECFPRegressor as ECFPRegressor
    from gcaps.estimators.regressors import FGSDForestRegressor as FGSDForestRegressor
    from gcaps.estimators.regressors import GINRegressor as GINRegressor
    from gcaps.estimators.regressors import GraphletSVR as GraphletSVR
    from gcaps.estimators.regressors import LTPForestRegressor as LTPForestRegressor
    from gcaps.estimators.regressors import MultiscaleLaplacianSVR as MultiscaleLaplacianSVR
    from gcaps.estimators.regressors import OptimalAssignmentSVR as OptimalAssignmentSVR
    from gcaps.estimators.regressors import PSCNRegressor as PSCNRegressor
    from gcaps.estimators.regressors import RandomCapsuleSVR as RandomCapsuleSVR
    from gcaps.estimators.regressors import RandomWalkSVR as RandomWalkSVR
    from gcaps.estimators.regressors import ReturnProbabilitySVR as ReturnProbabilitySVR
    from gcaps.estimators.regressors import ShortestPathSVR as ShortestPathSVR
    from gcaps.estimators.regressors import TanimotoSVR as TanimotoSVR
    from gcaps.estimators.regressors import WassersteinSVR as WassersteinSVR
    from gcaps.estimators.regressors import WeisfeilerLehmanSVR as WeisfeilerLehmanSVR
    from gcaps.estimators.tanimoto import TanimotoSVC as TanimotoSVC
    from gcaps.estimators.topological import LTPForestClassifier as LTPForestClassifier

_HOMES = {
    **dict.fromkeys(("Resolution", "resolve"), "auto"),
    **dict.fromkeys(("GraphClassifier", "GraphEstimator", "GraphRegressor"), "base"),
    **dict.fromkeys(
        (
            "DCNNClassifier",
            "DGCNNClassifier",
            "DeepSetsClassifier",
            "ECCClassifier",
            "GINClassifier",
            "PSCNClassifier",
        ),
        "baselines",
    ),
    **dict.fromkeys(("GraphCapsuleClassifier", "GraphCapsuleRegressor", "RandomCapsuleSVC"), "capsules"),
    **dict.fromkeys(("WassersteinSVC", "ReturnProbabilitySVC"), "distance_methods"),
    "LTPForestClassifier": "topological",
    **dict.fromkeys(("GraphEnsemble", "GraphEnsembleRegressor"), "ensemble"),
    **dict.fromkeys(("DescriptorClassifier", "ECFPClassifier"), "fingerprint_methods"),
    "FGSDForestClassifier": "forest",
    **dict.fromkeys(
        (
            "DeepGraphKernelSVC",
            "GraphletSVC",
            "MultiscaleLaplacianSVC",
            "OptimalAssignmentSVC",
            "RandomWalkSVC",
            "ShortestPathSVC",
            "WeisfeilerLehmanSVC",
        ),
        "kernel_methods",
    ),
    **dict.fromkeys(("KernelSVC", "KernelSVR"), "kernel_svm"),
    **dict.fromkeys(("METHODS", "make_estimator"), "registry"),
    **dict.fromkeys(
        (
            "DCNNRegressor",
            "DGCNNRegressor",
            "DeepGraphKernelSVR",
            "DeepSetsRegressor",
            "DescriptorRegressor",
            "ECCRegressor",
            "ECFPRegressor",
            "FGSDForestRegressor",
            "GINRegressor",
            "GraphletSVR",
            "MultiscaleLaplacianSVR",
            "OptimalAssignmentSVR",
            "PSCNRegressor",
            "RandomCapsuleSVR",
            "RandomWalkSVR",
            "ShortestPathSVR",
            "TanimotoSVR",
            "WassersteinSVR",
            "ReturnProbabilitySVR",
            "LTPForestRegressor",
            "WeisfeilerLehmanSVR",
        ),
        "regressors",
    ),
    "TanimotoSVC": "tanimoto",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names("gcaps.estimators", _HOMES)
