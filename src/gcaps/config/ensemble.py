"""Settings of the ensemble of methods."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from gcaps.config.limits import mib_of, seconds_of
from gcaps.config.section import Auto, ClassConfig, as_names


class EnsembleConfig(ClassConfig):
    """Several methods, weighted by their predictions of training graphs that they were not fitted on."""

    method: ClassVar[str] = "ensemble"
    selection: ClassVar[str] = "weighted"

    methods: tuple[str, ...] | Auto = Field(
        "auto",
        description="members, cheapest and strongest first, with extra features after a plus sign; auto: networks, "
        "kernels and forests that suit the task and the number of graphs",
    )
    weights: Literal["best", "equal", "stacked", "greedy", "mean"] = Field(
        "best",
        description="of calibrated members: equal, stacked or greedy, or the best of these on inner folds; mean: the "
        "plain mean of members with their default settings, without inner folds",
    )
    inner_folds: int = Field(
        5, ge=2, description="folds of the training graphs on whose predictions members are weighed"
    )
    time_limit: str | None = Field(
        None, description="time of the fit, such as 90s, 10m or 2h; members that do not fit are left out"
    )
    memory_limit: str | None = Field(
        None, description="memory of Gram matrices, such as 800M or 8G; none: 80 % of what is installed"
    )
    n_jobs: int = Field(1, ge=1, description="processes that fit inner folds; the result does not depend on it")

    @field_validator("methods", mode="before")
    @classmethod
    def _names(cls, given: Any) -> Any:
        return as_names(given)

    @field_validator("time_limit", "memory_limit", mode="before")
    @classmethod
    def _as_text(cls, given: Any) -> Any:
        return f"{given:g}" if isinstance(given, int | float) and not isinstance(given, bool) else given

    @field_validator("time_limit")
    @classmethod
    def _is_time(cls, given: str | None) -> str | None:
        seconds_of(given)
        return given

    @field_validator("memory_limit")
    @classmethod
    def _is_memory(cls, given: str | None) -> str | None:
        mib_of(given)
        return given
