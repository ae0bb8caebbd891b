"""Settings of graph kernels and of the Tanimoto kernel, with an SVM."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import (
    Field,
    field_validator,
)

from gcaps.config.section import (
    MOST,
    Auto,
    ClassConfig,
    CountName,
    as_names,
    as_positive,
    as_small,
    with_default,
)


class PenaltyConfig(ClassConfig):
    """An SVM whose kernel and penalty C are chosen by inner cross-validation."""

    selection: ClassVar[str] = "inner"

    C: tuple[float, ...] = Field(
        (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3), min_length=1, description="SVM penalties to choose from"
    )
    inner_folds: int = Field(5, ge=2, le=MOST, description="folds of the training graphs that choose kernel and C")

    _positive = field_validator("C")(as_positive)


class KernelConfig(PenaltyConfig):
    """A graph kernel with an SVM; the kernel's parameters and C are chosen by inner cross-validation."""

    normalize: bool = Field(True, description="Gram matrices with ones on the diagonal")


class EdgeKernelConfig(KernelConfig):
    """A graph kernel whose definition has edge labels."""

    edge_labels: bool | Auto = Field("auto", description="compare edge labels; auto: where the set has them")


class RWConfig(EdgeKernelConfig):
    """Random walks. A decay too large for a graph is lowered for that graph alone."""

    method: ClassVar[str] = "rw"

    decays: tuple[float, ...] = Field(
        (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1), min_length=1, description="decays λ to choose from"
    )
    labels: bool = Field(True, description="match node labels where the set has them")
    tol: float = Field(1e-6, gt=0, lt=1, description="relative size of the terms that a series leaves out")

    _positive_decays = field_validator("decays")(as_positive)


class SPConfig(KernelConfig):
    """Shortest paths."""

    method: ClassVar[str] = "sp"


class GKConfig(KernelConfig):
    """Graphlets."""

    method: ClassVar[str] = "gk"

    sizes: tuple[int, ...] = Field((3, 4, 5, 7), min_length=1, description="graphlet sizes to choose from")
    samples: int = Field(2000, ge=1, le=10_000_000, description="graphlets drawn from each graph for sizes 5 and more")

    _small = field_validator("sizes")(as_small)


class WLConfig(EdgeKernelConfig):
    """Weisfeiler-Lehman subtrees."""

    method: ClassVar[str] = "wl"

    n_iter: tuple[int, ...] = Field(
        (0, 1, 2, 3, 4, 5, 6, 7, 8, 9), min_length=1, description="refinements h to choose from"
    )

    _small = field_validator("n_iter")(as_small)


class WLOAConfig(WLConfig):
    """Weisfeiler-Lehman optimal assignment."""

    method: ClassVar[str] = "wloa"


class WWLConfig(PenaltyConfig):
    """Wasserstein distances of Weisfeiler-Lehman colors or of propagated attributes."""

    method: ClassVar[str] = "wwl"

    n_iter: tuple[int, ...] = Field((0, 1, 2, 3, 4, 5, 6, 7), min_length=1, description="refinements h to choose from")
    rates: tuple[float, ...] = Field((0.1, 1.0, 10.0), min_length=1, description="λ of exp(−λ D) to choose from")
    attributes: bool = Field(
        False, description="compare propagated node attributes instead of labels, by exact optimal transport; slow"
    )


class RetGKConfig(PenaltyConfig):
    """Return probabilities of random walks (RetGK)."""

    method: ClassVar[str] = "retgk"

    C: tuple[float, ...] = with_default(PenaltyConfig, "C", (1.0, 1e1, 1e2, 1e3))
    gamma: tuple[float, ...] = Field(
        (1.0, 10.0, 100.0), min_length=1, description="widths γ of the kernel of return probabilities to choose from"
    )
    steps: int = Field(50, ge=1, le=10_000, description="steps of the walks")
    labels: bool = Field(True, description="compare node labels where the set has them")
    attributes: bool = Field(False, description="compare node attributes, standardised over the training graphs")
    attribute_gamma: tuple[float, ...] = Field(
        (0.1, 0.3, 1.0), min_length=1, description="widths γ of the kernel of attributes to choose from"
    )
    base: Literal["gaussian", "laplacian"] = Field("laplacian", description="kernel of two nodes")
    exact: bool = Field(False, description="compare all pairs of nodes instead of random features")
    n_features: int = Field(200, ge=1, description="random features")


class DGKConfig(EdgeKernelConfig):
    """Deep graph kernels: the best of deep graphlets, deep shortest paths and deep Weisfeiler-Lehman."""

    method: ClassVar[str] = "dgk"

    n_iter: tuple[int, ...] = Field((2, 3, 4), description="refinements of deep Weisfeiler-Lehman")
    sizes: tuple[int, ...] = Field((5,), description="sizes of deep graphlets")
    dimension: int = Field(64, ge=1, le=65536, description="length of a substructure's vector")
    share: float = Field(0.1, ge=0, le=1, description="weight of the vectors' similarity against identity")

    _small = field_validator("n_iter", "sizes")(as_small)


class MLGConfig(KernelConfig):
    """Multiscale Laplacians."""

    method: ClassVar[str] = "mlg"

    levels: tuple[int, ...] = Field((1, 2, 3), min_length=1, description="levels to choose from")
    radius: tuple[int, ...] = Field((1,), min_length=1, description="growths of the neighborhoods to choose from")
    eta: tuple[float, ...] = Field((0.1, 1.0), min_length=1, description="η to choose from")
    gamma: tuple[float, ...] = Field((0.01, 0.1), min_length=1, description="γ to choose from")
    rank: int = Field(10, ge=1, le=4096, description="dimension P of the shared basis")
    samples: int = Field(100, ge=1, le=1_000_000, description="reference nodes of the shared basis")

    _positive_numbers = field_validator("eta", "gamma")(as_positive)
    _small = field_validator("levels", "radius")(as_small)


class TanimotoConfig(PenaltyConfig):
    """The Tanimoto kernel of molecules' fingerprints, with an SVM or, in regression, a Gaussian process."""

    method: ClassVar[str] = "tanimoto"

    fingerprints: tuple[CountName, ...] = Field(("morgan",), min_length=1, description="fingerprints to choose from")
    radius: tuple[int, ...] = Field(
        (1, 2, 3), min_length=1, description="radii of Morgan fingerprints to choose from; 2 is ECFP4"
    )
    model: Literal["svm", "gp"] = Field(
        "svm",
        description="svm; or gp (regression only): Gaussian process, which chooses kernel, noise and scale by marginal "
        "likelihood instead of C",
    )

    @field_validator("fingerprints", mode="before")
    @classmethod
    def _names(cls, given: Any) -> Any:
        return as_names(given)
