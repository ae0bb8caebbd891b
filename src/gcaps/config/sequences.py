"""Settings of forecasts on graph sequences."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gcaps.config.section import MOST
from gcaps.config.tasks import StepsConfig


class SequenceConfig(StepsConfig):
    """Forecast of the values of nodes: a base, and a recurrent cell on the graph that corrects it."""

    epochs: int = Field(150, ge=1, le=MOST, description="epochs at most")
    patience: int | None = Field(20, ge=1, le=MOST, description="stop after so many epochs without a better one")
    lr: float = Field(0.005, gt=0, description="Adam's initial learning rate")
    weight_decay: float = Field(0.001, ge=0, description="L2 regularisation of all weights")
    convolution: Literal["capsule", "gcn"] = Field(
        "capsule", description="convolution of the gates; gcn (Kipf and Welling) is there for comparison"
    )
    cell: Literal["gru", "lstm"] = Field("gru", description="form of the recurrent cell")
    hidden: int = Field(8, ge=1, le=4096, description="width h of the state")
    capsule_size: int = Field(2, ge=1, le=64, description="instantiation parameters P of a capsule of the state")
    degree: int = Field(2, ge=0, le=16, description="highest power K of the filter")
    filter: Literal["laplacian", "symmetric", "random_walk", "adjacency", "kipf", "mean"] = Field(
        "mean", description="filter matrix of capsule gates"
    )
    window: int = Field(8, ge=1, le=4096, description="steps that the cell sees")
    horizons: int = Field(4, ge=1, le=1024, description="steps ahead that are forecast")
    embedding: int = Field(2, ge=0, le=1024, description="columns of the learned vector of each node")
    context: bool = Field(False, description="add the mean over all nodes to the input of each step")
    base: Literal["autoregression", "last", "mean"] = Field(
        "autoregression", description="what the network corrects: an autoregression, the last value or the mean"
    )
    dropout: float = Field(0.2, ge=0, lt=1, description="dropout of the state before the last map")
    refit: bool = Field(True, description="fit again on all steps once lags, penalty and epoch are chosen")
