"""Settings of GCAPS-CNN, of random capsules and of the other networks."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from gcaps.config.section import (
    MOST,
    Auto,
    CapsuleName,
    ClassConfig,
    DeviceName,
    EdgeFeatureName,
    FeatureName,
    FilterName,
    FingerprintName,
    Section,
    as_names,
    as_positive,
    with_default,
)


class FeatureConfig(Section):
    """Node features before the first layer (spec section 4), and edge features."""

    features: Annotated[tuple[FeatureName, ...], Field(min_length=1)] | Auto = Field(
        "auto",
        description="node features, joined with commas; auto: labels and attributes where nodes have them, else degree",
    )
    edge_features: tuple[EdgeFeatureName, ...] | Auto = Field(
        "auto",
        description="edge features, joined with commas, or none; auto: labels and attributes where edges have them, "
        "for the methods that use edges",
    )
    fgsd_bins: int = Field(32, ge=1, le=4096, description="bins of the harmonic-distance histogram")
    rare_labels: Annotated[int, Field(ge=0, le=MOST)] | Auto = Field(
        "auto",
        description="node labels that fewer training graphs have share one column, which labels unseen in training get "
        "too; 0: every label has a column, unseen ones are zeros; auto: 3 for molecules, else 0",
    )

    @field_validator("features", "edge_features", mode="before")
    @classmethod
    def _names(cls, given: Any, info: ValidationInfo) -> Any:
        """Take "labels,degree" for ("labels", "degree"), and None, "none" and "" for no edge features."""
        return as_names(given, may_be_none=info.field_name == "edge_features")


class GraphFeatureConfig(Section):
    """Features of whole graphs that stand beside the graph vector of the capsules."""

    extra_features: tuple[FingerprintName, ...] = Field(
        (),
        description="fingerprints or descriptors of molecules that are appended to the graph vector, joined with "
        "commas, or none",
    )

    @field_validator("extra_features", mode="before")
    @classmethod
    def _fingerprints(cls, given: Any) -> Any:
        """Take "morgan,maccs" for ("morgan", "maccs"), and None, "none" and "" for none."""
        return as_names(given, may_be_none=True)


class CapsuleConfig(Section):
    """Capsule layers and readout, GC(h, P) × layers → [M, C] (spec sections 2 and 3)."""

    layers: Annotated[int, Field(ge=1, le=32)] | Auto = Field(
        "auto",
        description="graph capsule layers; auto: 4, or 1 where nodes have labels, training graphs are many and their "
        "sizes dispersed",
    )
    hidden: int = Field(32, ge=1, le=4096, description="width h of the capsule layers")
    capsule: CapsuleName = Field("moments", description="capsule function")
    capsule_size: int = Field(2, ge=1, le=8, description="instantiation parameters P of a capsule")
    filter: FilterName = Field("adjacency", description="filter matrix M of Eq. 5")
    degree: int = Field(1, ge=0, le=16, description="highest power K of the filter")
    bound: float | None = Field(
        3.0, gt=0, description="powers are taken of values softly bounded to ±bound; none: Eq. 5 to the letter"
    )
    readout: Literal["covariance", "mean", "sum", "max_sort"] = Field(
        "covariance", description="graph vector: mean and covariance of the nodes; mean, sum or max-sort for comparison"
    )
    rank: int | None = Field(
        32, ge=1, le=65536, description="columns Z is projected to before its covariance; none: all columns"
    )
    reduce: Literal["auto", "mean", "sum"] = Field(
        "auto", description="covariance readout by means or by sums; auto: sums where nodes have labels"
    )
    root: bool = Field(True, description="signed square root of the covariance")
    count: bool = Field(True, description="log of the node count as an extra entry of the graph vector")
    inputs: bool = Field(
        False, description="append the mean of the node features (their sum where the readout takes sums)"
    )


class TrainingConfig(Section):
    """Training with Adam, and which epoch is kept (spec sections 5 and 8)."""

    epochs: Annotated[int, Field(ge=1, le=MOST)] | Auto = Field(
        100,
        description="passes over the training graphs; auto: 100 below 750 graphs, else 30, 20 above 10,000, 60 "
        "in regression on molecules, or 12 where sizes are dispersed",
    )
    batch_size: int = Field(32, ge=1, le=MOST, description="graphs per step")
    sampling: Literal["shuffle", "balanced"] = Field(
        "shuffle", description="graphs of an epoch: each once, or as many drawn with every class equally likely"
    )
    lr: float = Field(0.005, gt=0, description="Adam's initial learning rate")
    schedule: Literal["step", "cosine"] = Field(
        "step", description="learning rate: times decay every decay_every epochs, or half a cosine that ends at 0"
    )
    decay: float = Field(0.1, gt=0, le=1, description="factor on the learning rate at each step of schedule = step")
    decay_every: int = Field(40, ge=1, le=MOST, description="epochs between two such steps")
    weight_decay: Annotated[float, Field(ge=0)] | Auto = Field(
        1e-4,
        description="L2 regularisation; auto: 0.001; in regression 0.01 below 2,000 molecules and 0.03 below 750; "
        "0.00001 above 10,000 graphs",
    )
    selection: Literal["last", "validation"] = Field(
        "last", description="epoch to keep: the last of a fixed schedule, or the best on an inner validation split"
    )
    validation: float = Field(0.1, gt=0, lt=1, description="share of the training graphs in that inner split")
    patience: int | None = Field(
        None, ge=1, le=MOST, description="with selection = validation: stop after so many epochs without a better one"
    )
    refit: bool = Field(
        False, description="with selection = validation: train anew on all training graphs for the chosen epochs"
    )
    ensemble_size: Annotated[int, Field(ge=1, le=64)] | Auto = Field(
        1,
        description="networks trained side by side whose probabilities are averaged; auto: 3 below 750 graphs, else 1",
    )
    threads: int = Field(1, ge=1, le=1024, description="CPU threads of one training; results belong to this number")
    device: DeviceName = Field("auto", description="where tensors live; auto: cuda where torch finds it, else cpu")

    @model_validator(mode="after")
    def _options_that_go_together(self) -> Self:
        if self.selection == "last" and (self.refit or self.patience is not None):
            raise ValueError("patience and refit go with selection = validation")
        defaults = type(self).model_fields
        for name in ("decay", "decay_every"):
            if self.schedule == "cosine" and getattr(self, name) != defaults[name].default:
                raise ValueError(f"{name} has no effect under schedule = cosine; set schedule to step")
        return self


class Config(ClassConfig, TrainingConfig, CapsuleConfig, GraphFeatureConfig, FeatureConfig):
    """GCAPS-CNN: GC(h, P) × layers → [M, C] → FC → FC → outputs (spec section 5).

    The defaults were chosen on inner validation (docs/results/tuning.md).
    """

    method: ClassVar[str] = "gcaps"

    fc: int = Field(64, ge=1, le=65536, description="width of the two fully connected layers")
    dropout: Annotated[float, Field(ge=0, lt=1)] | Auto = Field(
        "auto",
        description="dropout before each fully connected layer; auto: 0.5, 0.2 in regression, for several targets of "
        "molecules and above 10,000 graphs, or 0 below 750 graphs",
    )
    epochs: Annotated[int, Field(ge=1, le=MOST)] | Auto = with_default(TrainingConfig, "epochs", "auto")
    batch_size: int = with_default(TrainingConfig, "batch_size", 64)
    lr: float = with_default(TrainingConfig, "lr", 0.003)
    schedule: Literal["step", "cosine"] = with_default(TrainingConfig, "schedule", "cosine")
    weight_decay: Annotated[float, Field(ge=0)] | Auto = with_default(TrainingConfig, "weight_decay", "auto")
    ensemble_size: Annotated[int, Field(ge=1, le=64)] | Auto = with_default(TrainingConfig, "ensemble_size", "auto")
    with_svm: bool | Auto = Field(
        "auto",
        description="average the probabilities of the networks with those of an SVM on random capsules twice as wide "
        "(method capsule-svm); auto: on for classes of up to 10,000 graphs, and below 750 graphs for other targets "
        "but real values of molecules, unless an epoch is picked on validation",
    )

    @model_validator(mode="after")
    def _an_svm_has_no_epochs(self) -> Self:
        if self.with_svm is True and self.selection != "last":
            raise ValueError("with_svm goes with selection = last")
        return self


class RandomCapsuleConfig(ClassConfig, CapsuleConfig, GraphFeatureConfig, FeatureConfig):
    """A support vector classifier on graph vectors of random (untrained) capsules."""

    method: ClassVar[str] = "capsule-svm"
    selection: ClassVar[str] = "inner"

    hidden: int = with_default(CapsuleConfig, "hidden", 64)
    rank: int | None = with_default(CapsuleConfig, "rank", 64)
    batch_size: int = Field(
        64, ge=1, le=MOST, description="graphs per batch when normalisation statistics are collected"
    )
    C: tuple[float, ...] = Field((1.0, 10.0, 100.0), min_length=1, description="SVM penalties to choose from")
    gamma: tuple[float, ...] = Field(
        (0.3, 1.0, 3.0), min_length=1, description="kernel widths to choose from, over the mean distance of two graphs"
    )
    inner_folds: int = Field(5, ge=2, le=MOST, description="folds of the training graphs that choose gamma and C")
    threads: int = Field(1, ge=1, le=1024, description="CPU threads; results belong to this number")

    _positive = field_validator("C", "gamma")(as_positive)


class BaselineConfig(ClassConfig, TrainingConfig, FeatureConfig):
    """Settings that the baseline networks share; what a network's own paper sets is its default."""

    weight_decay: Annotated[float, Field(ge=0)] | Auto = with_default(TrainingConfig, "weight_decay", 0.0)
    decay: float = with_default(TrainingConfig, "decay", 1.0)
    dropout: float = Field(0.5, ge=0, lt=1, description="dropout before the last layer")


class DCNNConfig(BaselineConfig):
    """Diffusion-convolutional networks (Atwood and Towsley, 2016): hops from {2, 5}, tanh, no dropout.

    Changed: Adam instead of AdaGrad at the same rate 0.05; batches of 32 graphs.
    """

    method: ClassVar[str] = "dcnn"

    hops: int = Field(5, ge=0, le=64, description="highest power of the transition matrix")
    dropout: float = with_default(BaselineConfig, "dropout", 0.0)
    lr: float = with_default(TrainingConfig, "lr", 0.05)


class PSCNConfig(BaselineConfig):
    """PATCHY-SAN (Niepert, Ahmed and Kutzkov, 2016): k = 10, 16 and 8 channels, 128 dense units, dropout 0.5.

    The paper picks the number of epochs for each set; here an inner validation split does. Changed: Adam instead of
    RMSprop at the same rate 0.001.
    """

    method: ClassVar[str] = "pscn"

    field: int = Field(10, ge=1, le=16, description="nodes k of a receptive field")
    width: int | None = Field(
        None, ge=1, le=MOST, description="receptive fields w of a graph; none: the average nodes of the training graphs"
    )
    channels: int = Field(
        16, ge=1, le=4096, description="channels of the first convolution; the second has half as many"
    )
    hidden: int = Field(128, ge=1, le=65536, description="dense units")
    epochs: Annotated[int, Field(ge=1, le=MOST)] | Auto = with_default(TrainingConfig, "epochs", 50)
    selection: Literal["last", "validation"] = with_default(TrainingConfig, "selection", "validation")
    lr: float = with_default(TrainingConfig, "lr", 0.001)


class ECCConfig(BaselineConfig):
    """Edge-conditioned convolution (Simonovsky and Komodakis, 2017) in its network for the NCI sets.

    C(48) C(48) C(48) MP C(48) C(64) MP C(64) GAP FC(64) dropout 0.1; 50 epochs in batches of 64. Changed: Adam with
    rate 0.005, times 0.1 every 20 epochs, instead of momentum with 0.1, times 0.1 after 25, 35 and 45.
    """

    method: ClassVar[str] = "ecc"

    hidden: int = Field(48, ge=1, le=4096, description="width of the convolutions")
    top: int = Field(64, ge=1, le=4096, description="width of the last two convolutions and of the dense layer")
    filter_hidden: int = Field(16, ge=1, le=1024, description="hidden units of the network that makes filters")
    dropout: float = with_default(BaselineConfig, "dropout", 0.1)
    epochs: Annotated[int, Field(ge=1, le=MOST)] | Auto = with_default(TrainingConfig, "epochs", 50)
    batch_size: int = with_default(TrainingConfig, "batch_size", 64)
    decay: float = with_default(TrainingConfig, "decay", 0.1)
    decay_every: int = with_default(TrainingConfig, "decay_every", 20)


class DGCNNConfig(BaselineConfig):
    """DGCNN (Zhang, Cui, Neumann and Chen, 2018): 32, 32, 32 and 1 channels, sort pooling, dropout 0.5.

    Changed: 100 epochs in batches of 50 at a rate of 0.001, where the paper sets both for each set (100 to 500 epochs
    at 0.0001 or 0.00001).
    """

    method: ClassVar[str] = "dgcnn"

    layers: int = Field(3, ge=1, le=32, description="graph convolutions before the one with a single channel")
    hidden: int = Field(32, ge=1, le=4096, description="width of the graph convolutions")
    share: float = Field(0.6, gt=0, lt=1, description="share of the training graphs with more nodes than are kept")
    channels: int = Field(
        16, ge=1, le=4096, description="channels of the first 1-D convolution; the second has twice as many"
    )
    dense: int = Field(128, ge=1, le=65536, description="dense units")
    batch_size: int = with_default(TrainingConfig, "batch_size", 50)
    lr: float = with_default(TrainingConfig, "lr", 0.001)


class GINConfig(BaselineConfig):
    """GIN-0 (Xu, Hu, Leskovec and Jegelka, 2019): 5 layers with the input, width 32, batches of 32, dropout 0.5.

    Changed: 100 epochs with the rate halved every 15, instead of 350 with the rate halved every 50; degrees on REDDIT
    too, where the paper gives all nodes the same feature.
    """

    method: ClassVar[str] = "gin"

    layers: int = Field(5, ge=2, le=32, description="layers, the input counted as one")
    hidden: int = Field(32, ge=1, le=4096, description="width of the layers")
    readout: Literal["sum", "mean"] = Field("sum", description="how the nodes of a layer become a graph vector")
    lr: float = with_default(TrainingConfig, "lr", 0.01)
    decay: float = with_default(TrainingConfig, "decay", 0.5)
    decay_every: int = with_default(TrainingConfig, "decay_every", 15)


class DeepSetsConfig(BaselineConfig):
    """A structure-blind network on node features, after the baseline of Errica et al. (2020)."""

    method: ClassVar[str] = "deepsets"

    hidden: int = Field(64, ge=1, le=4096, description="width of all layers")
    decay: float = with_default(TrainingConfig, "decay", 0.5)
    decay_every: int = with_default(TrainingConfig, "decay_every", 20)
    lr: float = with_default(TrainingConfig, "lr", 0.005)
