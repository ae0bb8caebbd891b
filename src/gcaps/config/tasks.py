"""Settings of the models of :mod:`gcaps.tasks`: training by steps of a loss, capsule layers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gcaps.config.section import MOST, DeviceName, Section


class StepsConfig(Section):
    """Training with Adam on the losses of steps, with the best epoch on validation data."""

    epochs: int = Field(500, ge=1, le=MOST, description="epochs at most")
    patience: int | None = Field(100, ge=1, le=MOST, description="stop after so many epochs without a better one")
    lr: float = Field(0.01, gt=0, description="Adam's initial learning rate")
    schedule: Literal["step", "cosine"] = Field(
        "step", description="learning rate: times decay every decay_every epochs, or half a cosine that ends at 0"
    )
    decay: float = Field(1.0, gt=0, le=1, description="factor on the learning rate at each step of schedule = step")
    decay_every: int = Field(100, ge=1, le=MOST, description="epochs between two such steps")
    weight_decay: float = Field(0.0, ge=0, description="L2 regularisation of all weights")
    threads: int = Field(1, ge=1, le=1024, description="CPU threads of one training; results belong to this number")
    device: DeviceName = Field("auto", description="where tensors live; auto: cuda where torch finds it, else cpu")
