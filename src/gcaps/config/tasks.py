"""Settings of the models of :mod:`gcaps.tasks`: training by steps of a loss, capsule layers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from gcaps.config.section import MOST, DeviceName, FilterName, Section, with_default


class StepsConfig(Section):
    """Training with Adam on the losses of steps."""

    epochs: int = Field(500, ge=1, le=MOST, description="epochs at most")
    lr: float = Field(0.01, gt=0, description="Adam's initial learning rate")
    schedule: Literal["step", "cosine"] = Field(
        "step", description="learning rate: times decay every decay_every epochs, or half a cosine that ends at 0"
    )
    decay: float = Field(1.0, gt=0, le=1, description="factor on the learning rate at each step of schedule = step")
    decay_every: int = Field(100, ge=1, le=MOST, description="epochs between two such steps")
    weight_decay: float = Field(0.0, ge=0, description="L2 regularisation of all weights")
    threads: int = Field(1, ge=1, le=1024, description="CPU threads of one training; results belong to this number")


class NodeEncoderConfig(StepsConfig):
    """Capsule layers on the nodes of one graph."""

    patience: int | None = Field(100, ge=1, le=MOST, description="stop after so many epochs without a better one")
    hidden: int = Field(32, ge=1, le=4096, description="width h of the capsule layers")
    capsule_size: int = Field(1, ge=1, le=8, description="instantiation parameters P of a capsule")
    degrees: Annotated[tuple[Annotated[int, Field(ge=0, le=64)], ...], Field(min_length=1, max_length=16)] = Field(
        (1, 1), description="highest power K of the filter in each layer, joined with commas"
    )
    weights: Literal["separate", "shared", "decaying"] = Field(
        "shared",
        description="weights of the powers of the filter in the first layer: separate matrices; one matrix; or one "
        "with factors that decay with the power",
    )
    filter: FilterName = Field("kipf", description="filter matrix M of Eq. 5")
    bound: float | None = Field(
        3.0, gt=0, description="powers are taken of values softly bounded to ±bound; none: Eq. 5 to the letter"
    )
    normalize: bool = Field(True, description="divide the features of each node by their sum")
    input_dropout: float = Field(0.5, ge=0, lt=1, description="dropout of node features")
    dropout: float = Field(0.5, ge=0, lt=1, description="dropout before the layers after the first")
    node_dropout: float = Field(0.0, ge=0, lt=1, description="probability with which a node has no features in a step")
    weight_decay: float = Field(5e-4, ge=0, description="L2 regularisation of the first layer's weights")
    device: DeviceName = Field("auto", description="where tensors live; auto: cuda where torch finds it, else cpu")

    @field_validator("degrees", mode="before")
    @classmethod
    def _several(cls, given: Any) -> Any:
        """Take "8,0", 2 and lists of text for tuples of numbers."""
        if isinstance(given, int):
            return (given,)
        given = given.split(",") if isinstance(given, str) else given
        if isinstance(given, list | tuple) and all(isinstance(one, str) for one in given):
            return tuple(int(one) if one.strip().isdecimal() else one for one in given)
        return given


class NodeConfig(NodeEncoderConfig):
    """Classes of nodes: capsule layers, and the regularisation of predictions under dropout."""

    passes: int = Field(2, ge=1, le=64, description="passes with dropout of their own in each step")
    consistency: float = Field(
        1.0, ge=0, description="weight of the distance of each pass to the sharpened mean of all passes, on all nodes"
    )
    temperature: float = Field(0.5, gt=0, le=1, description="exponent 1/temperature sharpens that mean")
    batch_size: int | None = Field(
        None, ge=1, le=MOST, description="training nodes of a step, with a sampled neighborhood; none: the whole graph"
    )
    neighbors: int = Field(10, ge=1, le=MOST, description="neighbors sampled for each node and hop with batch_size")


class LinkConfig(NodeEncoderConfig):
    """Links: a graph autoencoder whose encoder are capsule layers."""

    variational: bool = Field(False, description="variational autoencoder (VGAE) instead of a plain one (GAE)")
    embedding: int = Field(64, ge=1, le=4096, description="columns of the vectors of nodes")
    length: float | None = Field(
        1.8, gt=0, description="length of the vectors of nodes (of their means where variational); none: as they come"
    )
    validation: float = Field(
        0.05, gt=0, lt=1, description="share of the links that choose the epoch where none are given"
    )
    hidden: int = with_default(NodeEncoderConfig, "hidden", 64)
    degrees: Annotated[tuple[Annotated[int, Field(ge=0, le=64)], ...], Field(min_length=1, max_length=16)] = (
        with_default(NodeEncoderConfig, "degrees", (8,))
    )
    weights: Literal["separate", "shared", "decaying"] = with_default(NodeEncoderConfig, "weights", "decaying")
    input_dropout: float = with_default(NodeEncoderConfig, "input_dropout", 0.0)
    dropout: float = with_default(NodeEncoderConfig, "dropout", 0.0)
    weight_decay: float = with_default(NodeEncoderConfig, "weight_decay", 0.0)
    epochs: int = with_default(NodeEncoderConfig, "epochs", 300)
    patience: int | None = with_default(NodeEncoderConfig, "patience", 50)
