"""Quality of generated graphs: distances to the distribution of real graphs, novelty and mode collapse."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gcaps.data.arrays import Array, pointer
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import neighbors_of_set, wl_hashes
from gcaps.kernels.graphlet import Graphlet

BINS = 50
"""Bins of the histograms of clustering coefficients and eigenvalues."""


def degree_histograms(graphs: GraphSet) -> Array:
    """[G, ·] share of the nodes of each graph that have degree 0, 1, …"""
    return _shares(graphs, graphs.degrees, int(graphs.degrees.max(initial=0)) + 1)


def clustering_histograms(graphs: GraphSet) -> Array:
    """[G, BINS] share of nodes by local clustering coefficient: edges among neighbors per pair of neighbors."""
    values = []
    for A in adjacencies(graphs):
        degree = A.sum(axis=1)
        pairs = degree * (degree - 1)
        values.append(np.where(pairs > 0, (A @ A @ A).diagonal() / np.maximum(pairs, 1), 0.0))
    return _shares(graphs, _bins(np.concatenate(values), 1.0), BINS)


def spectrum_histograms(graphs: GraphSet) -> Array:
    """[G, BINS] share of the eigenvalues of the symmetric normalised Laplacian in each part of [0, 2]."""
    values = []
    for A in adjacencies(graphs):
        degree = A.sum(axis=1)
        root = np.where(degree > 0, 1 / np.sqrt(np.maximum(degree, 1)), 0.0)
        values.append(np.linalg.eigvalsh(np.diag((degree > 0).astype(float)) - root[:, None] * A * root))
    return _shares(graphs, _bins(np.concatenate(values), 2.0), BINS)


def graphlet_shares(graphs: GraphSet) -> Array:
    """[G, kinds] share of each induced connected subgraph on 4 nodes among all of them, by the graphlet kernel."""
    counts = Graphlet(4, connected=True, n_jobs=1).count_substructures(graphs).counts.reshape(len(graphs), -1)
    shares: Array = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return shares


def label_shares(graphs: GraphSet) -> Array:
    """[G, ·] share of the nodes of each graph with each label, by the value of the label."""
    labels = np.zeros(graphs.num_nodes, dtype=np.int64) if graphs.node_labels is None else graphs.node_labels[:, 0]
    return _shares(graphs, labels, int(labels.max(initial=0)) + 1)


MEASURES = {
    "degree": (degree_histograms, True),
    "clustering": (clustering_histograms, True),
    "graphlets": (graphlet_shares, False),
    "spectrum": (spectrum_histograms, True),
    "labels": (label_shares, False),
}
"""Descriptors of graphs, and whether their columns are ordered."""


def mmd(x: Array, y: Array, *, ordered: bool, width: float | None = None) -> float:
    r"""Squared maximum mean discrepancy of two samples of histograms (biased estimate, never negative).

    .. math::
        \mathrm{MMD}^2 = \overline{k(x, x')} + \overline{k(y, y')} - 2\,\overline{k(x, y)}, \qquad
        k(x, y) = \exp(-d(x, y)^2 / 2 \sigma^2)

    d is the earth mover's distance, in bins, where columns are ordered, else the city-block distance.

    Args:
        x: [m, c].
        y: [n, c'] the reference; the shorter histograms are padded with zeros.
        ordered: whether the columns are ordered.
        width: σ; by default the median distance within y, or 1 if that is 0.
    """
    columns = max(x.shape[1], y.shape[1])
    x, y = (np.pad(z, ((0, 0), (0, columns - z.shape[1]))) for z in (x, y))
    if ordered:
        x, y = np.cumsum(x, axis=1), np.cumsum(y, axis=1)
    yy = _distances(y, y)
    if width is None:
        width = float(np.median(yy[np.triu_indices(len(y), 1)])) if len(y) > 1 else 1.0
        width = width if width > 0 else 1.0
    means = [np.exp(-np.square(d / width) / 2).mean() for d in (_distances(x, x), yy, _distances(x, y))]
    return float(means[0] + means[1] - 2 * means[2])


def distances_to(graphs: GraphSet, reference: GraphSet) -> dict[str, float]:
    """Squared MMD between two sets of graphs by each of :data:`MEASURES`; labels only where the reference has them."""
    names = [name for name in MEASURES if name != "labels" or reference.node_labels is not None]
    return {
        name: mmd(MEASURES[name][0](graphs), MEASURES[name][0](reference), ordered=MEASURES[name][1]) for name in names
    }


class Variety(NamedTuple):
    """Differences of generated graphs from each other and from the training graphs."""

    unique: float
    """Number of different graphs (up to 4 rounds of Weisfeiler–Lehman refinement) per generated graph."""
    novel: float
    """Share of the generated graphs that are not among the training graphs."""
    spread: float
    """Mean graphlet and degree distance between two generated graphs, per that between two training graphs."""

    def collapsed(self, natural: float) -> bool:
        """Whether the generator has collapsed: half as unique as a sample of real graphs, or half their spread.

        Args:
            natural: uniqueness of as many real graphs.
        """
        return self.unique < natural / 2 or self.spread < 0.5


def variety(graphs: GraphSet, training: GraphSet) -> Variety:
    """Return uniqueness, novelty and spread of generated graphs."""
    own, known = wl_hashes(graphs), wl_hashes(training)

    def spread(one: GraphSet) -> float:
        degree = np.cumsum(degree_histograms(one), axis=1)
        total = _distances(degree, degree) + _distances(graphlet_shares(one), graphlet_shares(one))
        return float(total.sum() / max(len(one) * (len(one) - 1), 1))

    return Variety(
        unique=len(np.unique(own)) / len(own),
        novel=float(1 - np.isin(own, known).mean()),
        spread=spread(graphs) / max(spread(training), 1e-12),
    )


def adjacencies(graphs: GraphSet) -> list[Array]:
    """[n, n] adjacency matrix of each graph, without weights."""
    found = []
    source, target = np.repeat(np.arange(graphs.num_nodes), graphs.degrees), neighbors_of_set(graphs)
    ends = pointer(graphs.arc_counts)
    for g in range(len(graphs)):
        A = np.zeros((graphs.sizes[g], graphs.sizes[g]))
        arcs = slice(ends[g], ends[g + 1])
        A[source[arcs] - graphs.ptr[g], target[arcs] - graphs.ptr[g]] = 1
        found.append(A)
    return found


def _bins(values: Array, largest: float) -> Array:
    """Bin of each value in [0, largest]; rounded first, so that rounding errors cross no edge."""
    bins: Array = np.clip(np.floor(np.round(values / largest * BINS, 6)), 0, BINS - 1).astype(np.int64)
    return bins


def _shares(graphs: GraphSet, bins: Array, columns: int) -> Array:
    counts = np.zeros((len(graphs), columns))
    np.add.at(counts, (np.repeat(np.arange(len(graphs)), graphs.sizes), bins), 1)
    shares: Array = counts / graphs.sizes[:, None]
    return shares


def _distances(x: Array, y: Array) -> Array:
    """[m, n] city-block distances; of cumulated histograms, earth mover's distances."""
    found: Array = np.abs(x[:, None, :] - y[None, :, :]).sum(axis=2)
    return found
