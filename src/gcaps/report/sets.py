"""What a report finds out about a data set itself: its facts, and what in it spoils a fair comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gcaps.data.arrays import Array
from gcaps.data.audit import facts
from gcaps.data.audit import describe
from gcaps.data.hashing import stored_hashes, wl_hashes
from gcaps.data.graphset import GraphSet
from gcaps.errors import GcapsError
from gcaps.evaluation.plan import PlannedData


@dataclass(frozen=True)
class Twins:
    """Tested graphs whose like stands among the training graphs of the same fold, all folds of a seed together."""

    tested: int
    stored: int
    """The same to the last number."""
    alike: int
    """Not told apart by Weisfeiler-Lehman refinement: an upper bound on isomorphic ones."""
    misleading: int
    """Of those alike, graphs whose twins in training all have another class."""


@dataclass(frozen=True)
class Looked:
    """A data set as it was found when the report was written."""

    graphs: GraphSet | None
    """None where the data is not at hand."""
    note: str | None
    """Why it is not."""
    facts: dict[str, str] = field(default_factory=dict)
    twins: Twins | None = None


def look_at(planned: PlannedData, tests: Sequence[Sequence[int]]) -> Looked:
    """Load the set, if it is at hand, and audit it.

    Args:
        planned: the set.
        tests: the test graphs of each fold, of one seed.
    """
    try:
        graphs = planned.load()
    except GcapsError as error:
        return Looked(None, str(error))
    return Looked(graphs, None, describe(facts(graphs)), twins(graphs, tests))


def twins(graphs: GraphSet, tests: Sequence[Sequence[int]]) -> Twins:
    """Count tested graphs that the training graphs of their fold, which are all others, hold already."""
    stored, alike, labels = stored_hashes(graphs), wl_hashes(graphs), graphs.targets
    counts = np.zeros(3, dtype=np.int64)
    for part in tests:
        test: Array = np.asarray(part, dtype=np.int64)
        train = np.setdiff1d(np.arange(len(graphs)), test)
        seen = np.isin(alike[test], alike[train])
        # a hash and a class make one number: is there a twin of the same class?
        agreed = np.isin(_with_class(alike, labels)[test], _with_class(alike, labels)[train])
        counts += np.array([np.isin(stored[test], stored[train]).sum(), seen.sum(), (seen & ~agreed).sum()])
    return Twins(sum(len(part) for part in tests), *(int(count) for count in counts))


def _with_class(hashes: Array, labels: Array) -> Array:
    mixed: Array = hashes * np.uint64(0x9E3779B97F4A7C15) + labels.astype(np.uint64)
    return mixed
