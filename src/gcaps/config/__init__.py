"""Settings: one frozen, validated model for each method.

A setting, its default and its meaning are written here and nowhere else: constructors of estimators, command-line
options, TOML files, saved models and reports follow these fields. Settings that may be ``auto`` are resolved by
:mod:`gcaps.estimators.auto` from the training graphs.
"""

from __future__ import annotations

from gcaps.config.ensemble import EnsembleConfig
from gcaps.config.kernels import (
    DGKConfig,
    EdgeKernelConfig,
    GKConfig,
    KernelConfig,
    MLGConfig,
    PenaltyConfig,
    RetGKConfig,
    RWConfig,
    SPConfig,
    TanimotoConfig,
    WLConfig,
    WLOAConfig,
    WWLConfig,
)
from gcaps.config.networks import (
    BaselineConfig,
    CapsuleConfig,
    Config,
    DCNNConfig,
    DeepSetsConfig,
    DGCNNConfig,
    ECCConfig,
    FeatureConfig,
    GINConfig,
    GraphFeatureConfig,
    PSCNConfig,
    RandomCapsuleConfig,
    TrainingConfig,
)
from gcaps.config.section import (
    FOLDED,
    Auto,
    CapsuleName,
    ClassConfig,
    ClassWeight,
    CountName,
    DeviceName,
    EdgeFeatureName,
    FeatureName,
    FilterName,
    FingerprintName,
    Section,
    check_parameters,
    with_default,
)
from gcaps.config.trees import DescriptorConfig, ECFPConfig, FingerprintConfig, ForestConfig, LTPConfig

CONFIGS: dict[str, type[Section]] = {
    config.method: config
    for config in (
        *(Config, RandomCapsuleConfig),
        *(DCNNConfig, PSCNConfig, ECCConfig, DGCNNConfig, GINConfig, DeepSetsConfig),
        *(
            RWConfig,
            SPConfig,
            GKConfig,
            WLConfig,
            WLOAConfig,
            WWLConfig,
            RetGKConfig,
            DGKConfig,
            MLGConfig,
            TanimotoConfig,
        ),
        *(ForestConfig, LTPConfig, ECFPConfig, DescriptorConfig, EnsembleConfig),
    )
}
"""The settings of every method, by the method's name."""

__all__ = [
    "CONFIGS",
    "FOLDED",
    "Auto",
    "BaselineConfig",
    "CapsuleConfig",
    "CapsuleName",
    "ClassConfig",
    "ClassWeight",
    "Config",
    "CountName",
    "DCNNConfig",
    "DGCNNConfig",
    "DGKConfig",
    "DeepSetsConfig",
    "DescriptorConfig",
    "DeviceName",
    "ECCConfig",
    "ECFPConfig",
    "EdgeFeatureName",
    "EdgeKernelConfig",
    "EnsembleConfig",
    "FeatureConfig",
    "FeatureName",
    "FilterName",
    "FingerprintConfig",
    "FingerprintName",
    "ForestConfig",
    "GINConfig",
    "GKConfig",
    "GraphFeatureConfig",
    "KernelConfig",
    "LTPConfig",
    "MLGConfig",
    "PSCNConfig",
    "PenaltyConfig",
    "RWConfig",
    "RandomCapsuleConfig",
    "RetGKConfig",
    "SPConfig",
    "Section",
    "TanimotoConfig",
    "TrainingConfig",
    "WLConfig",
    "WLOAConfig",
    "WWLConfig",
    "check_parameters",
    "with_default",
]
