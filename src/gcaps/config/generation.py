"""Settings of the generation of graphs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gcaps.config.section import MOST
from gcaps.config.tasks import StepsConfig


class GenerationConfig(StepsConfig):
    """Generation of small graphs by chains of edits against a capsule critic."""

    epochs: int = Field(20, ge=1, le=MOST, description="rounds of updates of the critic")
    lr: float = Field(0.0005, gt=0, description="Adam's initial learning rate")
    schedule: Literal["step", "cosine"] = Field(
        "cosine", description="learning rate: times decay every decay_every epochs, or half a cosine that ends at 0"
    )
    updates: int = Field(50, ge=1, le=MOST, description="updates of the critic in each epoch")
    hidden: int = Field(16, ge=1, le=1024, description="width h of the capsule layers")
    capsule_size: int = Field(2, ge=1, le=16, description="instantiation parameters P of a capsule")
    layers: int = Field(3, ge=1, le=16, description="capsule layers")
    walks: int = Field(6, ge=2, le=32, description="longest closed walk counted at each node")
    rank: int = Field(16, ge=1, le=1024, description="columns that the covariance is taken of")
    chains: int = Field(256, ge=1, le=1 << 20, description="chains that are kept from update to update")
    batch_size: int = Field(64, ge=1, le=1 << 20, description="training graphs, and chains, of an update")
    steps: int = Field(20, ge=1, le=MOST, description="steps of each chain before an update")
    restart: float = Field(0.05, ge=0, le=1, description="share of the chains that begin anew at each update")
    penalty: float = Field(0.05, ge=0, description="factor of the mean squared score, which keeps scores near 0")
    sampling_steps: int = Field(1000, ge=1, le=MOST, description="steps of the chain of a generated graph")
