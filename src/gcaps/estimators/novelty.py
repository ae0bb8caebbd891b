"""Applicability domain: similarity of graphs to the training graphs, independently of the method.

Similarity is Σ min / Σ max over counts of substructures (Ruzicka; Tanimoto for bits): circular substructures of
molecules (ECFP4); for other graphs the colors of two Weisfeiler-Lehman refinements, and the deciles of node attributes.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from pydantic import Field
from scipy.sparse import csr_array

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import Hashes, join, mix
from gcaps.data.molecules.required import is_molecules, require_molecules
from gcaps.documents import Name, Page, validated
from gcaps.errors import DataError, ModelError
from gcaps.features.fingerprints import fingerprint_counts
from gcaps.kernels.base import FeatureKernel, State, SubstructureCounts, count_matrix, require_array
from gcaps.kernels.gram import intersections
from gcaps.kernels.weisfeiler_lehman import color_counts, refine

MAX_GRAPHS = 2000
"""Most training graphs that are kept; of more, a random sample is."""
MAX_COUNTS = 1 << 20
"""Most counts of substructures that are kept for all of them (12 MiB)."""
REFINEMENTS = 2
RADIUS = 2
"""Of circular substructures: ECFP4."""
MAX_ATTRIBUTES = 64
"""Most node attributes that are compared, the first ones."""
PERCENTILE = 0.99
"""A graph is novel if this share of the training graphs is more similar to another training graph than it is."""
NODES = 1 << 18
"""Most nodes of the graphs that are compared together."""


class Novelty(NamedTuple):
    """Similarity of graphs to the training graphs."""

    similarity: Floats
    """[G] to the most similar training graph, from 0 to 1."""
    nearest: Array
    """[G] name of that training graph."""
    percentile: Floats
    """[G] share of the training graphs that are more similar to another one than this graph is to any."""
    novel: Array
    """[G] whether ``percentile`` is at least :data:`PERCENTILE`."""


class DomainState(Page):
    """JSON values of a :class:`Domain`."""

    molecules: bool
    names: Annotated[list[Name], Field(min_length=1, max_length=MAX_GRAPHS)]
    kernel: dict[Name, Any]


class Substructures(FeatureKernel):
    """Ruzicka similarity of substructure counts.

    Args:
        molecules: count circular substructures; otherwise colors, and deciles of attributes.

    Attributes:
        deciles_: [F, 9] of each node attribute over the training graphs.
    """

    normalize = False
    edge_labels = "auto"

    def __init__(self, molecules: bool = False) -> None:
        self.molecules = molecules

    def count_substructures(self, graphs: GraphSet) -> SubstructureCounts:
        """Count the substructures of each graph."""
        if self.molecules:
            return SubstructureCounts(*_of_molecules(graphs))
        labels = graphs.node_labels is not None
        arcs = self.compares_edge_labels(graphs)
        colors = color_counts(graphs, refine(graphs, REFINEMENTS, labels=labels, edge_labels=arcs))
        if not len(self.deciles_):
            return colors
        return _side_by_side(graphs, colors, self._attributes(graphs))

    def similarities(self, graphs: GraphSet) -> Floats:
        """Return the similarity of graphs (rows) and training graphs (columns), [m, n]."""
        found: Floats = self.transform(graphs)
        return found

    def _attributes(self, graphs: GraphSet) -> SubstructureCounts:
        """Count the deciles of node attributes; all attributes together have the weight of one refinement."""
        width = len(self.deciles_)
        x = np.zeros((graphs.num_nodes, 0)) if graphs.x is None else np.asarray(graphs.x, np.float64)
        if x.shape[1] < width:
            raise DataError(f"{graphs.name} has {x.shape[1]} node attributes; the model was fitted with {width}")
        bins = np.stack([np.searchsorted(edges, x[:, f]) for f, edges in enumerate(self.deciles_)], axis=1)
        hashes = join(np.broadcast_to(np.arange(width), bins.shape).ravel(), mix(bins.ravel() + (1 << 32)))
        return SubstructureCounts(graphs.ptr * width, hashes, np.full(hashes.size, 1 / width))

    def _graphs(self, X: Any, fitting: bool) -> GraphSet:
        if not self.molecules:
            return super()._graphs(X, fitting)
        require_molecules(X, "the comparison with the training molecules")
        if fitting:
            self.label_columns_ = self.edge_label_columns_ = 0
        found: GraphSet = X
        return found

    def _fit(self, graphs: GraphSet) -> None:
        self.deciles_ = np.zeros((0, 9))
        if not self.molecules and graphs.x is not None and graphs.num_nodes:
            x = np.asarray(graphs.x[:, :MAX_ATTRIBUTES], np.float64)
            self.deciles_ = np.quantile(x, np.linspace(0.1, 0.9, 9), axis=0).T
        found = self.count_substructures(graphs)
        self.vocabulary_, column = np.unique(found.hashes, return_inverse=True)
        self._train_ = count_matrix(found, column, len(self.vocabulary_))
        self._scale_ = np.ones(len(graphs))

    def _train_gram(self) -> Floats:
        return _ruzicka(intersections(self._train_), _sums(self._train_), _sums(self._train_))

    def _cross_gram(self, graphs: GraphSet) -> tuple[Floats, Floats]:
        found = self._columns(self.count_substructures(graphs))
        inside = csr_array(found[:, : len(self.vocabulary_)])
        return _ruzicka(intersections(inside, self._train_), _sums(found), _sums(self._train_)), np.ones(len(graphs))

    @property
    def counts(self) -> Ints:
        """[n] number of different substructures of each training graph."""
        found: Ints = np.diff(self._train_.indptr).astype(np.int64)
        return found

    def state(self) -> State:
        """Vocabulary, counts and deciles."""
        arrays, values = super().state()
        return {**arrays, "deciles": self.deciles_}, values

    def restore(self, arrays: Any, values: Any) -> Self:
        """See :meth:`gcaps.kernels.base.GraphKernel.restore`."""
        super().restore(arrays, values)
        self.deciles_ = require_array(arrays, "deciles", "f", (None, 9))
        if (self.deciles_[:, 1:] < self.deciles_[:, :-1]).any() or (self._train_.data < 0).any():
            raise ModelError("the training graphs that new ones are compared with are damaged")
        return self


class Domain:
    """The training graphs, or a sample of them, that new graphs are compared with.

    Args:
        kernel: fitted to these graphs.
        names: [n] their names.
        own: [n] similarity of each to the most similar other one, ascending.
    """

    def __init__(self, kernel: Substructures, names: Array, own: Floats) -> None:
        self.kernel, self.names, self.own = kernel, names, own

    @classmethod
    def of(cls, graphs: GraphSet, seed: int) -> Self:
        """Return the domain of training graphs; of many, a random sample is kept."""
        chosen = np.arange(len(graphs))
        if len(chosen) > MAX_GRAPHS:
            chosen = np.sort(np.random.default_rng([seed, 7]).choice(len(chosen), MAX_GRAPHS, replace=False))
        some = graphs.subset(chosen)
        kernel = Substructures(is_molecules(graphs)).fit(some)
        if kernel.counts.sum() > MAX_COUNTS:
            order = np.random.default_rng([seed, 8]).permutation(len(chosen))
            fitting = int(np.searchsorted(np.cumsum(kernel.counts[order]), MAX_COUNTS, side="right"))
            kept = np.sort(order[: max(fitting, 1)])
            kernel, chosen = kernel.restrict(kept), chosen[kept]
        similar = kernel._train_gram()
        np.fill_diagonal(similar, -1.0)
        own = np.sort(similar.max(axis=1)) if len(chosen) > 1 else np.zeros(1)
        return cls(kernel, np.array([str(name) for name in graphs.ids[chosen]]), own)

    def compare(self, graphs: GraphSet) -> Novelty:
        """Compare graphs with the training graphs, in chunks of bounded memory."""
        parts = [self.kernel.similarities(part) for part in graphs.chunks(NODES)] if len(graphs) else []
        best = np.concatenate([part.max(axis=1) for part in parts]) if parts else np.zeros(0)
        at = np.concatenate([part.argmax(axis=1) for part in parts]) if parts else np.zeros(0, np.int64)
        closer = len(self.own) - np.searchsorted(self.own, best + 1e-12, side="right")
        percentile = closer / len(self.own)
        return Novelty(best, self.names[at], percentile, percentile >= PERCENTILE)

    def neighbors(self, graphs: GraphSet, count: int) -> list[list[tuple[str, float]]]:
        """Return for each graph names and similarities of the most similar training graphs, the nearest first."""
        found: list[list[tuple[str, float]]] = []
        for part in graphs.chunks(NODES) if len(graphs) else ():
            for row in self.kernel.similarities(part):
                nearest = np.argsort(-row, kind="stable")[:count].tolist()
                found.append([(str(self.names[i]), float(row[i])) for i in nearest])
        return found

    def state(self) -> State:
        """Return arrays and JSON values."""
        arrays, values = self.kernel.state()
        own = {"own": self.own}
        return {**arrays, **own}, {
            "molecules": self.kernel.molecules,
            "names": self.names.tolist(),
            "kernel": values,
        }

    @classmethod
    def restored(cls, arrays: dict[str, Array], values: Any) -> Self:
        """Restore a domain from the values that :meth:`state` returned."""
        found = validated(DomainState, values, "the training graphs that new ones are compared with", ModelError)
        kernel = Substructures(found.molecules).restore(arrays, found.kernel)
        own = require_array(arrays, "own", "f", (len(found.names),))
        if len(kernel.counts) != len(found.names) or (np.diff(own) < 0).any():
            raise ModelError("the training graphs that new ones are compared with are damaged")
        return cls(kernel, np.array(found.names), own)


def _of_molecules(graphs: GraphSet) -> tuple[Ints, Hashes, Floats]:
    ptr, substructures, counts = fingerprint_counts(graphs, "morgan", radius=RADIUS)
    return ptr, mix(substructures), counts.astype(np.float64)


def _side_by_side(graphs: GraphSet, *parts: SubstructureCounts) -> SubstructureCounts:
    """Concatenate the counts of several kinds of substructures for each graph."""
    graph = np.concatenate([np.repeat(np.arange(len(graphs)), np.diff(part.ptr)) for part in parts])
    order = np.argsort(graph, kind="stable")
    hashes, counts = (np.concatenate([getattr(part, name) for part in parts])[order] for name in ("hashes", "counts"))
    return SubstructureCounts(np.sum([part.ptr for part in parts], axis=0), hashes, counts)


def _sums(counts: csr_array) -> Floats:
    found: Floats = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
    return found


def _ruzicka(minima: Floats, left: Floats, right: Floats) -> Floats:
    """Divide sums of minima [m, n] by sums of maxima; two graphs without substructures are equal."""
    largest = left[:, None] + right - minima
    found: Floats = np.where(largest > 0, minima / np.where(largest > 0, largest, 1.0), 1.0)
    return found
