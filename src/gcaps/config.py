"""Configurations: frozen, validated, and the only place where a setting, its default and its meaning are written.

Command-line options, TOML files, checkpoints and reports are all made from these fields.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from gcaps.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

FeatureName = Literal["labels", "attributes", "degree", "constant", "fgsd"]
CapsuleName = Literal["moments", "central", "polynomial", "density", "routing"]
FilterName = Literal["laplacian", "symmetric", "random_walk", "adjacency", "kipf", "mean", "chebyshev", "cayley"]
MANY, FEW, FEWEST = 100, 30, 12
"""Epochs on few graphs, on many, and on many whose sizes differ much."""
ENOUGH, MUCH = 750, 4.5
"""How many graphs are many, and how many times as large as a small graph (the first decile) a large one (the ninth) is
where sizes differ much."""
DEEP, SHALLOW = 4, 1
"""Layers, and layers where composition and size tell most."""
SEVERAL = 3
"""Networks where graphs are few."""
HEAD = (
    "what decides on graph vectors; layers: the fully connected layers, trained with the capsules; svm: a support "
    "vector machine on untrained capsules twice as wide, no epochs; both: the mean of their probabilities; auto: both "
    f"below {ENOUGH} graphs (layers where an epoch is picked on validation), else layers"
)
MEMBERS = (
    f"networks trained side by side whose probabilities are averaged; auto: {SEVERAL} below {ENOUGH} graphs, else 1"
)
LAYERS = (
    f"graph capsule layers; auto: {DEEP}, or {SHALLOW} where nodes have labels, graphs are many and their sizes differ "
    "much (see epochs)"
)
EPOCHS = (
    f"passes over the training graphs; auto: {MANY}, from {ENOUGH} graphs on {FEW}, or {FEWEST} where the ninth decile "
    f"of their sizes is above {MUCH} times the first"
)
DROPOUT = 0.5
"""Dropout where there are many graphs."""
SCHEDULE = "how the rate falls: by decay, or along half a cosine that would be 0 after the last epoch"


class Section(BaseModel):
    """Settings that belong together; a method's configuration is made of such sections."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    method: ClassVar[str] = ""
    """The method that a whole configuration is for."""
    earlier: ClassVar[dict[str, Any]] = {}
    """What settings that older records lack stood at then, where their default has changed since."""

    @classmethod
    def parse(cls, values: dict[str, Any]) -> Self:
        """A configuration from plain values; what is wrong comes as one line."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"][:1]) or "configuration"
            if first["type"] == "extra_forbidden":
                verb = "train" if cls.method == "gcaps" else f"evaluate --method {cls.method}"
                raise ConfigError(f"{where}: there is no such setting; see gcaps {verb} --help") from error
            message = first["msg"].removeprefix("Value error, ")
            given = f" (given: {values.get(where)!r})" if first["loc"] else ""  # it is not one setting that is wrong
            raise ConfigError(f"{where}: {message}{given}") from error

    @classmethod
    def from_toml(cls, path: str | Path) -> dict[str, Any]:
        """The settings of a TOML file, not yet validated, so that options can override them."""
        try:
            return tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"{path}: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; :meth:`parse` gives the configuration back."""
        return self.model_dump(mode="json")

    @classmethod
    def of(cls, given: Any) -> Self:
        """The configuration that ``given`` stands for: None for the default, a dictionary for its values."""
        if given is None or isinstance(given, dict):
            return cls.parse(given or {})
        if not isinstance(given, cls):
            raise ConfigError(f"{cls.method} takes a {cls.__name__}; settings of another method do not apply to it")
        return given


def are_few(sizes: NDArray[Any]) -> bool:
    """Whether there are few graphs."""
    return len(sizes) < ENOUGH


def differ_much(sizes: NDArray[Any]) -> bool:
    """Whether there are many graphs and their sizes differ much: such graphs are soon known by heart."""
    if are_few(sizes):
        return False
    ordered = sizes.copy()
    ordered.sort()
    small, large = ordered[len(sizes) // 10], ordered[len(sizes) * 9 // 10]
    return bool(large > MUCH * small)


class FeatureConfig(Section):
    """What a node is described by before the first layer (spec section 4)."""

    features: tuple[FeatureName, ...] | Literal["auto"] = Field(
        "auto", description="node features, joined with commas; auto: labels where the set has them, else degree"
    )
    fgsd_bins: int = Field(32, ge=1, le=4096, description="bins of the harmonic-distance histogram")


class NetworkConfig(Section):
    """The network GC(h, P) × layers → [M, C] → FC(h) → FC(h) → softmax (spec sections 2, 3 and 5)."""

    layers: Annotated[int, Field(ge=1, le=32)] | Literal["auto"] = Field("auto", description=LAYERS)
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
    rank: int | None = Field(32, ge=1, description="columns Z is projected to before its covariance; none: all columns")
    reduce: Literal["auto", "mean", "sum"] = Field(
        "auto", description="covariance readout by means or by sums; auto: sums where nodes have labels"
    )
    root: bool = Field(True, description="signed square root of the covariance")
    count: bool = Field(True, description="log of the node count beside the graph vector")
    inputs: bool = Field(
        False, description="mean of the node features (their sum where the readout takes sums) beside the graph vector"
    )
    fc: int = Field(64, ge=1, le=65536, description="width of the two fully connected layers")
    dropout: Annotated[float, Field(ge=0, lt=1)] | Literal["auto"] = Field(
        "auto", description=f"dropout before each fully connected layer; auto: {DROPOUT}, or 0 below {ENOUGH} graphs"
    )


class TrainingConfig(Section):
    """How the network is trained, and which epoch counts (spec sections 5 and 8)."""

    epochs: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(100, description=EPOCHS)
    batch_size: int = Field(32, ge=1, description="graphs a step")
    lr: float = Field(0.005, gt=0, description="Adam's initial learning rate")
    decay: float = Field(0.1, gt=0, le=1, description="factor on the learning rate at each decay step")
    decay_every: int = Field(40, ge=1, description="epochs between two decay steps")
    schedule: Literal["step", "cosine"] = Field("step", description=SCHEDULE)
    weight_decay: float = Field(1e-4, ge=0, description="L2 regularisation")
    averaging: float = Field(
        0.0, ge=0, lt=1, description="the running average of weights predicts, with this share of the old in each step"
    )
    selection: Literal["last", "validation"] = Field(
        "last", description="which epoch counts: the last of a fixed schedule, or the best on an inner validation split"
    )
    validation: float = Field(0.1, gt=0, lt=1, description="share of the training graphs in that inner split")
    patience: int | None = Field(
        None, ge=1, description="with validation: stop after so many epochs without a better one"
    )
    refit: bool = Field(False, description="with validation: train anew on all training graphs for the chosen epochs")
    members: Annotated[int, Field(ge=1, le=64)] | Literal["auto"] = Field(1, description=MEMBERS)
    threads: int = Field(1, ge=1, description="CPU threads of one training; the result belongs to this number")

    @property
    def trains(self) -> bool:
        """Whether there are epochs at all."""
        return True

    def networks(self, sizes: NDArray[Any]) -> int:
        """Networks to train on graphs with so many nodes each."""
        if self.members != "auto":
            return self.members
        return SEVERAL if self.trains and are_few(sizes) else 1

    def passes(self, sizes: NDArray[Any]) -> int:
        """Epochs of a training on graphs with so many nodes each."""
        if self.epochs != "auto":
            return self.epochs
        if differ_much(sizes):
            return FEWEST
        return MANY if are_few(sizes) else FEW

    @model_validator(mode="after")
    def _validation_options_need_validation(self) -> Self:
        if self.selection == "last" and (self.refit or self.patience is not None):
            raise ValueError("patience and refit go with selection = validation")
        return self


class Config(TrainingConfig, NetworkConfig, FeatureConfig):  # fields come in reverse order of the bases
    """Everything that decides what GCAPS-CNN computes, apart from the data and the seed.

    The defaults were chosen on inner validation (docs/accuracy.md).
    """

    method: ClassVar[str] = "gcaps"
    earlier: ClassVar[dict[str, Any]] = {"schedule": "step", "members": 1, "head": "layers"}

    epochs: Annotated[int, Field(ge=1)] | Literal["auto"] = Field("auto", description=EPOCHS)
    batch_size: int = Field(64, ge=1, description="graphs a step")
    lr: float = Field(0.003, gt=0, description="Adam's initial learning rate")
    schedule: Literal["step", "cosine"] = Field("cosine", description=SCHEDULE)
    weight_decay: float = Field(1e-3, ge=0, description="L2 regularisation")
    members: Annotated[int, Field(ge=1, le=64)] | Literal["auto"] = Field("auto", description=MEMBERS)
    head: Literal["auto", "layers", "svm", "both"] = Field("auto", description=HEAD)

    @property
    def trains(self) -> bool:
        """Whether there are epochs at all."""
        return self.head != "svm"

    def machine(self, sizes: NDArray[Any]) -> bool:
        """Whether a support vector machine predicts, alone or beside the network, after such a training."""
        if self.head == "auto":
            return self.selection == "last" and are_few(sizes)
        return self.head != "layers"

    def passes(self, sizes: NDArray[Any]) -> int:
        """Epochs of a training on graphs with so many nodes each; none where nothing is trained."""
        return super().passes(sizes) if self.trains else 0

    @model_validator(mode="after")
    def _machines_have_no_epoch_to_pick(self) -> Self:
        if self.head in ("svm", "both") and self.selection != "last":
            raise ValueError("head = svm and both go with selection = last")
        return self
