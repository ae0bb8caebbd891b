"""Settings of trees on fingerprints, descriptors and harmonic distances."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import (
    Field,
    field_validator,
)

from gcaps.config.section import (
    ClassConfig,
    FingerprintName,
    as_names,
    with_default,
)


class FingerprintConfig(ClassConfig):
    """Trees on fingerprints of molecules."""

    selection: ClassVar[str] = "fixed"

    fingerprints: tuple[FingerprintName, ...] = Field(
        ("morgan",), min_length=1, description="fingerprints side by side, joined with commas"
    )
    radius: int = Field(2, ge=0, le=16, description="radius of Morgan fingerprints; 2 is ECFP4")
    bits: int = Field(2048, ge=8, le=1 << 20, description="length of folded fingerprints (morgan and atom_pairs)")
    model: Literal["forest", "boosting"] = Field(
        "forest", description="random forest, or gradient boosting on histograms of the columns"
    )
    n_estimators: int = Field(500, ge=1, le=1_000_000, description="trees of the forest, or steps of boosting")
    learning_rate: float = Field(0.05, gt=0, le=1, description="factor on each step of boosting")
    threads: int = Field(1, ge=1, le=1024, description="CPU threads of the fit")

    @field_validator("fingerprints", mode="before")
    @classmethod
    def _names(cls, given: Any) -> Any:
        return as_names(given)


class ECFPConfig(FingerprintConfig):
    """A random forest on counts of circular substructures (ECFP; Rogers and Hahn, 2010)."""

    method: ClassVar[str] = "ecfp"


class DescriptorConfig(FingerprintConfig):
    """Gradient boosting on RDKit's two-dimensional descriptors of molecules."""

    method: ClassVar[str] = "descriptors"

    fingerprints: tuple[FingerprintName, ...] = with_default(FingerprintConfig, "fingerprints", ("descriptors",))
    model: Literal["forest", "boosting"] = with_default(FingerprintConfig, "model", "boosting")


class ForestConfig(ClassConfig):
    """A random forest on histograms of harmonic distances (FGSD; Verma and Zhang, 2017)."""

    method: ClassVar[str] = "fgsd"
    selection: ClassVar[str] = "fixed"

    bins: int = Field(200, ge=1, le=65536, description="bins of the histogram of harmonic distances")
    spacing: Literal["uniform", "quantile"] = Field("uniform", description="spacing of bins over training graphs")
    n_estimators: int = Field(500, ge=1, le=1_000_000, description="trees of the forest")


class LTPConfig(ClassConfig):
    """A random forest on local topological profiles (LTP; Adamczyk and Czech, 2023)."""

    method: ClassVar[str] = "ltp"
    selection: ClassVar[str] = "fixed"

    bins: int = Field(50, ge=1, le=65536, description="bins of each of the eight histograms")
    ranges: Literal["training", "graph"] = Field(
        "training", description="bins between the extremes of the training graphs, or of each graph"
    )
    share: bool = Field(False, description="divide each histogram by its sum")
    n_estimators: int = Field(500, ge=1, le=1_000_000, description="trees of the forest")
