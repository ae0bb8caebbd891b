"""Resolve ``auto``: settings and training graphs → settings without any ``auto`` in them.

Every rule is a function here, with the reason it gives; no other module asks how many graphs there are. Rules look at
training graphs only. The thresholds were chosen on inner validation (docs/results/tuning.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np

from gcaps.config import FOLDED, FeatureConfig, FingerprintConfig, Section
from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet
from gcaps.data.targets import Task
from gcaps.estimators.portfolio import names as portfolio_names

SMALL_TRAINING_SET = 750
"""Training sets with fewer graphs count as small."""
FEW_MOLECULES = 2000
"""Below this number of training molecules regression is regularised more."""
DISPERSED_SIZES = 4.5
"""Ratio of the 90th to the 10th percentile of graph sizes above which sizes count as dispersed."""
GRAM_GRAPHS = 10_000
"""Training graphs up to which a kernel joins: its Gram matrices have an entry for every pair."""
MANY_GRAPHS = 10_000
"""Above this number of training graphs networks are hardly regularised."""
EDGE_METHODS = ("gcaps", "capsule-svm", "ecc")
"""Methods with settings of features that use those of edges."""
RARE_LABELS = 3
"""Elements that fewer molecules of a training set have are too rare to learn a column of weights for each."""

S = TypeVar("S", bound=Section)
Value = tuple[Any, str]
"""Resolved value of a setting, and the reason."""


@dataclass(frozen=True)
class TrainingFacts:
    """Facts about the training graphs used by the rules."""

    graphs: int
    """Number of graphs."""
    labelled: bool
    """Whether nodes have labels."""
    spread: float
    """Ratio of the 90th to the 10th percentile of their sizes."""
    attributes: bool = False
    """Whether nodes have attributes."""
    edge_labels: bool = False
    """Whether edges have labels."""
    edge_attributes: bool = False
    """Whether edges have attributes."""
    task: Task = "classification"
    """The task."""
    molecules: bool = False
    """Whether the graphs are molecules."""

    @classmethod
    def of(cls, graphs: GraphSet, indices: Array, task: Task = "classification") -> TrainingFacts:
        """Count and measure the graphs at ``indices``."""
        sizes = np.sort(graphs.sizes[indices])
        small, large = sizes[len(sizes) // 10], sizes[len(sizes) * 9 // 10]
        brought = (graphs.x is not None, graphs.edge_labels is not None, graphs.edge_attr is not None)
        molecules = graphs.preparation is not None
        return cls(len(sizes), graphs.node_labels is not None, float(large / small), *brought, task, molecules)

    @property
    def small(self) -> bool:
        """Whether the training set is small."""
        return self.graphs < SMALL_TRAINING_SET

    @property
    def dispersed(self) -> bool:
        """Whether the training set is not small and its sizes are dispersed."""
        return not self.small and self.spread > DISPERSED_SIZES

    @property
    def many(self) -> bool:
        """Whether the training set is large enough to do almost without regularisation."""
        return self.graphs > MANY_GRAPHS

    @property
    def number(self) -> str:
        """The comparison with :data:`MANY_GRAPHS`, in words."""
        return f"{self.graphs:,} training graphs, more than {MANY_GRAPHS:,}"

    @property
    def pairs(self) -> str:
        """The comparison with :data:`GRAM_GRAPHS`, in words."""
        few = self.graphs <= GRAM_GRAPHS
        return f"{self.graphs:,} training graphs, {'at most' if few else 'more than'} {GRAM_GRAPHS:,}"

    @property
    def size(self) -> str:
        """The comparison with :data:`SMALL_TRAINING_SET`, in words."""
        return f"{self.graphs:,} training graphs, {'fewer than' if self.small else 'at least'} {SMALL_TRAINING_SET}"


@dataclass(frozen=True)
class Resolution:
    """Resolution of a setting."""

    setting: str
    given: Any
    value: Any
    """None where the setting has no effect."""
    reason: str

    def __str__(self) -> str:
        given, value = (
            ",".join(map(str, v)) or "none" if isinstance(v, tuple | list) else v for v in (self.given, self.value)
        )
        if self.given != "auto":
            return f"{self.setting} = {given} has no effect: {self.reason}"
        return f"{self.setting} = {value} (auto: {self.reason})"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


def resolve(
    config: S, graphs: GraphSet, indices: Array | None = None, task: Task = "classification"
) -> tuple[S, list[Resolution]]:
    """Replace every ``auto`` of ``config`` by what its rule gives for the training graphs at ``indices``.

    Returns:
        The settings without ``auto``, and for each setting that was ``auto``, or that has no effect under the others
        although it is not at its default, what became of it and why.
    """
    facts = TrainingFacts.of(graphs, np.arange(len(graphs)) if indices is None else indices, task)
    found: list[Resolution] = []
    for name in type(config).model_fields:
        if getattr(config, name) == "auto":
            value, reason = RULES[name](config, facts)
            found.append(Resolution(name, "auto", value, reason))
    resolved = config.model_copy(update={entry.setting: entry.value for entry in found})
    return resolved, found + _without_effect(resolved)


def epochs(config: Section, facts: TrainingFacts) -> Value:
    """Small sets need many passes, and so do real values of molecules; many graphs of dispersed sizes need fewest."""
    if facts.molecules and facts.task == "regression" and not facts.small:
        return 60, f"regression on molecules, {facts.size}"
    if facts.dispersed:
        return 12, f"{facts.size}, of dispersed sizes (90th percentile {facts.spread:.1f} times the 10th)"
    if facts.many:
        return 20, facts.number
    return (100 if facts.small else 30), facts.size


def layers(config: Section, facts: TrainingFacts) -> Value:
    """Where labelled graphs differ much in size, the counts of their labels carry most of the information."""
    if facts.labelled and facts.dispersed:
        return 1, f"labelled nodes and {facts.graphs:,} training graphs of dispersed sizes"
    return 4, "default depth"


def reduce(config: Section, facts: TrainingFacts) -> Value:
    """How many nodes have a label says more than their share; without labels sums would mostly measure size."""
    return ("sum", "nodes have labels") if facts.labelled else ("mean", "nodes have no labels")


def dropout(config: Section, facts: TrainingFacts) -> Value:
    """On small sets dropout cost accuracy on inner validation; in regression much of it costs everywhere."""
    if facts.task == "regression" and not facts.small:
        return 0.2, f"regression, {facts.size}"
    if facts.molecules and facts.task == "multilabel" and not facts.small:
        return 0.2, f"several targets of molecules, {facts.size}"
    if facts.many:
        return 0.2, facts.number
    return (0.0 if facts.small else 0.5), facts.size


def ensemble_size(config: Section, facts: TrainingFacts) -> Value:
    """On small sets single networks vary most, and several cost little."""
    return (3 if facts.small else 1), facts.size


def with_svm(config: Section, facts: TrainingFacts) -> Value:
    """An SVM on random capsules errs elsewhere than a trained network, so that their mean is better than either.

    In classification that helped on six of the nine benchmark sets of 750 graphs and more, by 0.5 to 1.9 points, and on
    inner folds of BACE and BBBP (docs/results/tuning.md); to real values of molecules it added nothing.
    """
    if getattr(config, "selection", "last") != "last":
        return False, "an epoch is picked on validation"
    if facts.task == "classification":
        return facts.graphs <= GRAM_GRAPHS, f"classes, {facts.pairs}"
    if facts.molecules and facts.task == "regression":
        return False, "regression on molecules"
    return facts.small, facts.size


def weight_decay(config: Section, facts: TrainingFacts) -> Value:
    """In regression on few molecules more regularisation paid; many graphs need almost none.

    On an inner fold of HIV (26,000 molecules, 3.5 % active) the ROC AUC rose from about 0.77 to 0.81.
    """
    if facts.many:
        return 1e-5, facts.number
    if facts.molecules and facts.task == "regression" and facts.graphs < FEW_MOLECULES:
        return (0.03 if facts.small else 0.01), f"regression on {facts.graphs:,} molecules, fewer than {FEW_MOLECULES}"
    return 1e-3, "default"


def features(config: Section, facts: TrainingFacts) -> Value:
    """All that nodes bring; where they bring nothing, degrees alone did better than degrees with FGSD."""
    found = _names(facts.labelled, facts.attributes)
    return (
        (found, f"nodes have {' and '.join(found)}") if found else (("degree",), "nodes have no labels or attributes")
    )


def edge_features(config: Section, facts: TrainingFacts) -> Value:
    """All that edges bring, for methods that use it; gates would break the spectra of Chebyshev and Cayley filters."""
    if config.method not in EDGE_METHODS:
        return (), f"{config.method} does not use edge features"
    ranged = getattr(config, "filter", "") in ("chebyshev", "cayley")
    found = _names(facts.edge_labels, facts.edge_attributes and not ranged)
    if facts.edge_attributes and ranged:
        return found, f"filter = {getattr(config, 'filter', '')} does not take edge attributes"
    return found, f"edges have {' and '.join(found) or 'no labels or attributes'}"


def rare_labels(config: Section, facts: TrainingFacts) -> Value:
    """A new molecule may have an element that the training set lacks; rare ones show what to expect of those."""
    features = getattr(config, "features", "auto")
    if not (facts.labelled if features == "auto" else "labels" in features):
        return 0, "node labels are not among the features"
    return (RARE_LABELS, "graphs are molecules") if facts.molecules else (0, "graphs are not molecules")


def _names(labels: bool, attributes: bool) -> tuple[str, ...]:
    return tuple(name for name, there in (("labels", labels), ("attributes", attributes)) if there)


def edge_labels(config: Section, facts: TrainingFacts) -> Value:
    """A kernel that can compare edge labels does; where they carry nothing, they cost little accuracy."""
    return facts.edge_labels, f"edges have {'' if facts.edge_labels else 'no '}labels"


def device(config: Section, facts: TrainingFacts) -> Value:
    """A GPU where torch finds one."""
    found = usable_device("cuda")
    return found, "torch finds a CUDA device" if found == "cuda" else "torch finds no CUDA device"


def methods(config: Section, facts: TrainingFacts) -> Value:
    """Everything that suits the number of graphs, cheapest and strongest first; for molecules what RDKit adds.

    Members of molecules were chosen on inner folds: in regression fingerprints made the mean worse, and on ESOL,
    FreeSolv and Lipophilicity the network with descriptors, the one without and trees on descriptors were better
    together than any two of them.
    """
    if facts.molecules and facts.task == "regression":
        return ("gcaps", "gcaps+descriptors", "descriptors"), "regression on molecules"
    if facts.molecules:
        kernel = ("tanimoto",) if facts.graphs <= GRAM_GRAPHS else ()
        return ("gcaps", "gcaps+descriptors", "ecfp", "descriptors", *kernel), f"molecules, {facts.pairs}"
    if getattr(config, "weights", "best") == "mean":
        return ("gcaps", "capsule-svm", "wloa"), "default members of a plain mean"
    return portfolio_names(facts.graphs), f"{facts.graphs:,} training graphs"


RULES: dict[str, Callable[[Section, TrainingFacts], Value]] = {
    rule.__name__: rule
    for rule in (
        epochs,
        layers,
        reduce,
        dropout,
        ensemble_size,
        with_svm,
        weight_decay,
        features,
        edge_features,
        rare_labels,
        edge_labels,
        device,
        methods,
    )
}
"""The rule of each setting that may be ``auto``."""


def usable_device(name: str) -> str:
    """Return the device ``name`` if torch has it here, else ``"cpu"``."""
    import torch

    found = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return name if found.get(name) else "cpu"


def _without_effect(config: Section) -> list[Resolution]:
    """Settings that were changed from their default but have no effect under the others."""
    other = getattr(config, "readout", "covariance")
    conditions = {
        "rank": (other == "covariance", f"readout = {other}"),
        "root": (other == "covariance", f"readout = {other}"),
        "bound": (getattr(config, "capsule", "") in ("", "moments", "routing"), "capsule functions other than moments"),
    }
    if isinstance(config, FeatureConfig):
        used = not config.edge_features or config.method in EDGE_METHODS
        conditions["edge_features"] = (used, f"{config.method} does not use edge features")
        conditions["fgsd_bins"] = ("fgsd" in config.features, "fgsd is not among the features")
        shared = config.rare_labels == 0 or "labels" in config.features
        conditions["rare_labels"] = (shared, "node labels are not among the features")
    model = getattr(config, "model", None)
    for name in ("C", "inner_folds"):
        conditions[name] = (model != "gp", "model = gp")
    conditions["learning_rate"] = (model == "boosting", f"model = {model}")
    if isinstance(config, FingerprintConfig):
        names = config.fingerprints
        conditions["radius"] = (any(n.startswith("morgan") for n in names), "no Morgan fingerprint is used")
        conditions["bits"] = (any(n in FOLDED for n in names), "none of the fingerprints is folded")
    fields = type(config).model_fields
    return [
        Resolution(name, getattr(config, name), None, reason)
        for name, (effective, reason) in conditions.items()
        if name in fields and not effective and getattr(config, name) != fields[name].default
    ]
