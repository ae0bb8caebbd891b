"""The configuration of every network beside GCAPS-CNN: what its own paper sets is its default."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from gcaps.config import Config, FeatureConfig, TrainingConfig


class PeerConfig(TrainingConfig, FeatureConfig):
    """What all of them share: node features, and training with Adam."""

    weight_decay: float = Field(0.0, ge=0, description="L2 regularisation")
    decay: float = Field(1.0, gt=0, le=1, description="factor on the learning rate at each decay step")
    dropout: float = Field(0.5, ge=0, lt=1, description="dropout before the last layer")


class DCNNConfig(PeerConfig):
    """Diffusion-convolutional networks (Atwood and Towsley, 2016): hops from {2, 5}; tanh; no dropout.

    Changed: Adam in the place of AdaGrad at the same rate 0.05; batches of 32 graphs.
    """

    method: ClassVar[str] = "dcnn"

    hops: int = Field(5, ge=0, le=64, description="highest power of the transition matrix")
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout before the last layer")
    lr: float = Field(0.05, gt=0, description="Adam's initial learning rate")


class PSCNConfig(PeerConfig):
    """PATCHY-SAN (Niepert, Ahmed and Kutzkov, 2016): k = 10, 16 and 8 channels, 128 dense units, dropout 0.5.

    Their number of epochs is picked for each set, here on an inner validation split. Changed: Adam in the place of
    RMSprop at the same rate 0.001.
    """

    method: ClassVar[str] = "pscn"

    field: int = Field(10, ge=1, le=16, description="nodes k of a receptive field")
    width: int | None = Field(
        None, ge=1, description="receptive fields w of a graph; none: the average nodes of the training graphs"
    )
    channels: int = Field(16, ge=1, description="channels of the first convolution; the second has half as many")
    hidden: int = Field(128, ge=1, description="dense units")
    epochs: int = Field(50, ge=1, description="passes over the training graphs")
    selection: Literal["last", "validation"] = Field(
        "validation",
        description="which epoch counts: the last of a fixed schedule, or the best on an inner validation split",
    )
    lr: float = Field(0.001, gt=0, description="Adam's initial learning rate")


class ECCConfig(PeerConfig):
    """Edge-conditioned convolution (Simonovsky and Komodakis, 2017) in its network for the NCI sets.

    C(48) C(48) C(48) MP C(48) C(64) MP C(64) GAP FC(64) dropout 0.1; 50 epochs in batches of 64. Changed: Adam with
    rate 0.005, times 0.1 after each 20 epochs, in the place of momentum with 0.1, times 0.1 after 25, 35 and 45.
    """

    method: ClassVar[str] = "ecc"

    hidden: int = Field(48, ge=1, le=4096, description="width of the convolutions")
    top: int = Field(64, ge=1, le=4096, description="width of the last two convolutions and of the dense layer")
    filter_hidden: int = Field(16, ge=1, le=1024, description="hidden units of the network that makes filters")
    dropout: float = Field(0.1, ge=0, lt=1, description="dropout before the last layer")
    epochs: int = Field(50, ge=1, description="passes over the training graphs")
    batch_size: int = Field(64, ge=1, description="graphs a step")
    decay: float = Field(0.1, gt=0, le=1, description="factor on the learning rate at each decay step")
    decay_every: int = Field(20, ge=1, description="epochs between two decay steps")


class DGCNNConfig(PeerConfig):
    """DGCNN (Zhang, Cui, Neumann and Chen, 2018): 32, 32, 32 and 1 channels, sort pooling, dropout 0.5.

    Changed: 100 epochs in batches of 50 at a rate of 0.001, where the paper sets both for each set (100 to 500 epochs
    at 0.0001 or 0.00001).
    """

    method: ClassVar[str] = "dgcnn"

    layers: int = Field(3, ge=1, le=32, description="graph convolutions before that of one channel")
    hidden: int = Field(32, ge=1, le=4096, description="width of the graph convolutions")
    share: float = Field(0.6, gt=0, lt=1, description="share of the training graphs with more nodes than are kept")
    channels: int = Field(16, ge=1, description="channels of the first 1-D convolution; the second has twice as many")
    dense: int = Field(128, ge=1, description="dense units")
    batch_size: int = Field(50, ge=1, description="graphs a step")
    lr: float = Field(0.001, gt=0, description="Adam's initial learning rate")


class GINConfig(PeerConfig):
    """GIN-0 (Xu, Hu, Leskovec and Jegelka, 2019): 5 layers with the input, width 32, batches of 32, dropout 0.5.

    Changed: 100 epochs with the rate halved after each 15, in the place of 350 with each 50; degrees on REDDIT too,
    where the paper gives all nodes the same feature.
    """

    method: ClassVar[str] = "gin"

    layers: int = Field(5, ge=2, le=32, description="layers, the input counted as one")
    hidden: int = Field(32, ge=1, le=4096, description="width of the layers")
    readout: Literal["sum", "mean"] = Field("sum", description="how the nodes of a layer become a graph vector")
    lr: float = Field(0.01, gt=0, description="Adam's initial learning rate")
    decay: float = Field(0.5, gt=0, le=1, description="factor on the learning rate at each decay step")
    decay_every: int = Field(15, ge=1, description="epochs between two decay steps")


class SetConfig(PeerConfig):
    """A network that does not look at edges, after the baseline of Errica et al. (2020)."""

    method: ClassVar[str] = "set"

    hidden: int = Field(64, ge=1, le=4096, description="width of all layers")
    decay: float = Field(0.5, gt=0, le=1, description="factor on the learning rate at each decay step")
    decay_every: int = Field(20, ge=1, description="epochs between two decay steps")
    lr: float = Field(0.005, gt=0, description="Adam's initial learning rate")


AnyConfig = Config | PeerConfig
"""The configuration of any network."""

CONFIGS: dict[str, type[AnyConfig]] = {
    kind.method: kind for kind in (Config, DCNNConfig, PSCNConfig, ECCConfig, DGCNNConfig, GINConfig, SetConfig)
}
"""The configuration of every network, by the method's name."""
