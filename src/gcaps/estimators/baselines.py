"""The networks that GCAPS-CNN is compared with, as classifiers; their defaults are those of their own papers."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from gcaps.config import ClassWeight, DeviceName, EdgeFeatureName, FeatureName
from gcaps.estimators.base import GraphClassifier
from gcaps.estimators.network import NetworkEstimator


class DCNNClassifier(GraphClassifier, NetworkEstimator):
    """Diffusion-convolutional neural network (Atwood and Towsley, 2016).

    Other settings are those of every network, see :class:`gcaps.config.DCNNConfig` for what differs from the paper.

    Args:
        hops: highest power of the transition matrix.
        random_state: the same number gives the same classifier.
        verbose: show a progress bar while fitting.
    """

    method: ClassVar[str] = "dcnn"

    def __init__(
        self,
        *,
        hops: int = 5,
        features: tuple[FeatureName, ...] | str = "auto",
        edge_features: tuple[EdgeFeatureName, ...] | str = "auto",
        fgsd_bins: int = 32,
        rare_labels: int | Literal["auto"] = "auto",
        epochs: int | Literal["auto"] = 100,
        batch_size: int = 32,
        sampling: Literal["shuffle", "balanced"] = "shuffle",
        lr: float = 0.05,
        schedule: Literal["step", "cosine"] = "step",
        decay: float = 1.0,
        decay_every: int = 40,
        weight_decay: float = 0.0,
        selection: Literal["last", "validation"] = "last",
        validation: float = 0.1,
        patience: int | None = None,
        refit: bool = False,
        ensemble_size: int | Literal["auto"] = 1,
        threads: int = 1,
        device: DeviceName = "auto",
        class_weight: ClassWeight = None,
        dropout: float = 0.0,
        random_state: int | np.random.RandomState | None = 0,
        verbose: bool = False,
    ) -> None:
        self._store(locals())


class PSCNClassifier(GraphClassifier, NetworkEstimator):
    """PATCHY-SAN: convolution over canonically ordered receptive fields (Niepert, Ahmed and Kutzkov, 2016).

    Other settings are those of every network, see :class:`gcaps.config.PSCNConfig` for what differs from the paper.

    Args:
        field: nodes k of a receptive field.
        width: receptive fields w of a graph; None: the average nodes of the training graphs.
        channels: channels of the first convolution; the second has half as many.
        hidden: dense units.
        random_state: the same number gives the same classifier.
        verbose: show a progress bar while fitting.
    """

    method: ClassVar[str] = "pscn"

    def __init__(
        self,
        *,
        field: int = 10,
        width: int | None = None,
        channels: int = 16,
        hidden: int = 128,
        features: tuple[FeatureName, ...] | str = "auto",
        edge_features: tuple[EdgeFeatureName, ...] | str = "auto",
        fgsd_bins: int = 32,
        rare_labels: int | Literal["auto"] = "auto",
        epochs: int | Literal["auto"] = 50,
        batch_size: int = 32,
        sampling: Literal["shuffle", "balanced"] = "shuffle",
        lr: float = 0.001,
        schedule: Literal["step", "cosine"] = "step",
        decay: float = 1.0,
        decay_every: int = 40,
        weight_decay: float = 0.0,
        selection: Literal["last", "validation"] = "validation",
        validation: float = 0.1,
        patience: int | None = None,
        refit: bool = False,
        ensemble_size: int | Literal["auto"] = 1,
        threads: int = 1,
        device: DeviceName = "auto",
        class_weight: ClassWeight = None,
        dropout: float = 0.5,
        random_state: int | np.random.RandomState | None = 0,
        verbose: bool = False,
    ) -> None:
        self._store(locals())


class ECCClassifier(GraphClassifier, NetworkEstimator):
    """Edge-conditioned convolution with graph coarsening (Simonovsky and Komodakis, 2017).

    Other settings are those of every network, see :class:`gcaps.config.ECCConfig` for what differs from the paper.

    Args:
        hidden: width of the convolutions.
        top: width of the last two convolutions and of the dense layer.
        filter_hidden: hidden units of the network that makes filters.
        random_state: the same number gives the same classifier.
        verbose: show a progress bar while fitting.
    """

    method: ClassVar[str] = "ecc"

    def __init__(
        self,
        *,
        hidden: int = 48,
        top: int = 64,
        filter_hidden: int = 16,
        features: tuple[FeatureName, ...] | str = "auto",
        edge_features: tuple[EdgeFeatureName, ...] | str = "auto",
        fgsd_bins: int = 32,
        rare_labels: int | Literal["auto"] = "auto",
        epochs: int | Literal["auto"] = 50,
        batch_size: int = 64,
        sampling: Literal["shuffle", "balanced"] = "shuffle",
        lr: float = 0.005,
        schedule: Literal["step", "cosine"] = "step",
        decay: float = 0.1,
        decay_every: int = 20,
        weight_decay: float = 0.0,
        selection: Literal["last", "validation"] = "last",
        validation: float = 0.1,
        patience: int | None = None,
        refit: bool = False,
        ensemble_size: int | Literal["auto"] = 1,
        threads: int = 1,
        device: DeviceName = "auto",
        class_weight: ClassWeight = None,
        dropout: float = 0.1,
        random_state: int | np.random.RandomState | None = 0,
        verbose: bool = False,
    ) -> None:
        self._store(locals())


class DGCNNClassifier(GraphClassifier, NetworkEstimator):
    """Deep graph convolution with sort pooling (Zhang, Cui, Neumann and Chen, 2018).

    Other settings are those of every network, see :class:`gcaps.config.DGCNNConfig` for what differs from the paper.

    Args:
        layers: graph convolutions before the one with a single channel.
        hidden: width of the graph convolutions.
        share: share of the training graphs with more nodes than are kept.
        channels: channels of the first 1-D convolution; the second has twice as many.
        dense: dense units.
        random_state: the same number gives the same classifier.
        verbose: show a progress bar while fitting.
    """

    method: ClassVar[str] = "dgcnn"

    def __init__(
        self,
        *,
        layers: int = 3,
        hidden: int = 32,
        share: float = 0.6,
        channels: int = 16,
        dense: int = 128,
        features: tuple[FeatureName, ...] | str = "auto",
        edge_features: tuple[EdgeFeatureName, ...] | str = "auto",
        fgsd_bins: int = 32,
        rare_labels: int | Literal["auto"] = "auto",
        epochs: int | Literal["auto"] = 100,
        batch_size: int = 50,
        sampling: Literal["shuffle", "balanced"] = "shuffle",
        lr: float = 0.001,
        schedule: Literal["step", "cosine"] = "step",
        decay: float = 1.0,
        decay_every: int = 40,
        weight_decay: float = 0.0,
        selection: Literal["last", "validation"] = "last",
        validation: float = 0.1,
        patience: int | None = None,
        refit: bool = False,
        ensemble_size: int | Literal["auto"] = 1,
        threads: int = 1,
        device: DeviceName = "auto",
        class_weight: ClassWeight = None,
        dropout: float = 0.5,
        random_state: int | np.random.RandomState | None = 0,
        verbose: bool = False,
    ) -> None:
        self._store(locals())


class GINClassifier(GraphClassifier, NetworkEstimator):
    """Graph isomorphism network, GIN-0 (Xu, Hu, Leskovec and Jegelka, 2019).

    Other settings are those of every network, see :class:`gcaps.config.GINConfig` for what differs from the paper.

    Args:
        layers: layers, the input counted as one.
        hidden: width of the layers.
        readout: how the nodes of a layer become a graph vector.
        random_state: the same number gives the same classifier.
        verbose: show a progress bar while fitting.
    """

    method: ClassVar[str] = "gin"

    def __init__(
        self,
        *,
        layers: int = 5,
        hidden: int = 32,
        readout: Literal["sum", "mean"] = "sum",
        features: tuple[FeatureName, ...] | str = "auto",
        edge_features: tuple[EdgeFeatureName, ...] | str = "auto",
        fgsd_bins: int = 32,
        rare_labels: int | Literal["auto"] = "auto",
        epochs: int | Literal["auto"] = 100,
        batch_size: int = 32,
        sampling: Literal["shuffle", "balanced"] = "shuffle",
        lr: float = 0.01,
        schedule: Literal["step", "cosine"] = "step",
        decay: float = 0.5,
        decay_every: int = 15,
        weight_decay: float = 0.0,
        selection: Literal["last", "validation"] = "last",
        validation: float = 0.1,
        patience: int | None = None,
        refit: bool = False,
        ensemble_size: int | Literal["auto"] = 1,
        threads: int = 1,
        device: DeviceName = "auto",
        class_weight: ClassWeight = None,
        dropout: float = 0.5,
        random_state: int | np.random.RandomState | None = 0,
        verbose: bool = False,
    ) -> None:
        self._store(locals())


class DeepSetsClassifier(GraphClassifier, NetworkEstimator):
    """Structure-blind network: a DeepSets model on node features that ignores edges (Errica et al., 2020).

    Other settings are those of every network, see :class:`gcaps.config.DeepSetsConfig` for what differs from the paper.

    Args:
        hidden: width of all layers.
        random_state: the same number gives the same classifier.
        verbose: show a progress bar while fitting.
    """

    method: ClassVar[str] = "deepsets"

    def __init__(
        self,
        *,
        hidden: int = 64,
        features: tuple[FeatureName, ...] | str = "auto",
        edge_features: tuple[EdgeFeatureName, ...] | str = "auto",
        fgsd_bins: int = 32,
        rare_labels: int | Literal["auto"] = "auto",
        epochs: int | Literal["auto"] = 100,
        batch_size: int = 32,
        sampling: Literal["shuffle", "balanced"] = "shuffle",
        lr: float = 0.005,
        schedule: Literal["step", "cosine"] = "step",
        decay: float = 0.5,
        decay_every: int = 20,
        weight_decay: float = 0.0,
        selection: Literal["last", "validation"] = "last",
        validation: float = 0.1,
        patience: int | None = None,
        refit: bool = False,
        ensemble_size: int | Literal["auto"] = 1,
        threads: int = 1,
        device: DeviceName = "auto",
        class_weight: ClassWeight = None,
        dropout: float = 0.5,
        random_state: int | np.random.RandomState | None = 0,
        verbose: bool = False,
    ) -> None:
        self._store(locals())
