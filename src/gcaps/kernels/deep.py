"""Deep graph kernels (Yanardag and Vishwanathan, 2015): substructures that keep the same company count as similar."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.sparse import coo_array, csr_array
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_is_fitted

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError
from gcaps.kernels.base import FeatureKernel, GraphKernel, inverse_root
from gcaps.kernels.gram import gram, squares, take_columns
from gcaps.kernels.graphlet import Graphlet
from gcaps.kernels.hashing import mix, neighbors_of_set
from gcaps.kernels.shortest_path import ShortestPath
from gcaps.kernels.weisfeiler_lehman import WeisfeilerLehman, refine

_CONTEXTS = 200_000
"""Nodes whose company is looked at."""
_WINDOW = 4
"""Neighbors drawn for each."""
_COLORS = 200_000
"""Colors of an embedding from nodes; rarer ones have no vector."""
_WORDS = 4000
"""Words of an embedding from whole graphs; rarer ones have no vector."""


class DeepGraphKernel(GraphKernel):
    """k(G, H) = φ(G)ᵀ M φ(H), M = (1−s) I + s E Eᵀ, with an embedding E [V, d] of the substructures that φ counts.

    E is learned from the training graphs: E = U√Σ of the truncated singular value decomposition of the positive
    pointwise mutual information of substructures that occur together, what skip-gram with negative sampling factorises
    (Levy and Goldberg, 2014); its rows have length one. Colors occur together at a node and at its neighbors; paths and
    graphlets within a graph, in proportion to their counts. The paper has M = E Eᵀ (s = 1); there, vectors of rare
    substructures hardly move from their random start and are nearly orthogonal, for which (1−s) I stands here. The very
    rare ones of large sets have a row of zeros in E.

    Args:
        base: φ: ``wl`` colors of h refinements, ``sp`` shortest paths, ``graphlet`` graphlets.
        dimension: d.
        share: s, from 0 (the base kernel) to 1.
        height: refinements of ``wl``.
        size: nodes of a graphlet.
        seed: decides samples and the decomposition's start.
        normalize: divide by √(k(G, G) k(H, H)).
    """

    def __init__(
        self,
        base: Literal["wl", "sp", "graphlet"] = "wl",
        *,
        dimension: int = 64,
        share: float = 0.1,
        height: int = 3,
        size: int = 5,
        seed: int = 0,
        normalize: bool = False,
    ) -> None:
        self.base, self.dimension, self.share, self.height, self.size = base, dimension, share, height, size
        self.seed, self.normalize = seed, normalize

    def pairwise(self, graphs: GraphSet) -> bool:
        """The embedding comes from the training graphs."""
        return False

    def embed(self, X: Any) -> Floats:
        """[m, d] φ(G)ᵀE."""
        check_is_fitted(self, "_vectors_")
        return self._embed(self.base_.features(self._graphs(X, fitting=False)))

    def _fit(self, graphs: GraphSet) -> None:
        if self.base not in ("wl", "sp", "graphlet"):
            raise ConfigError(f"there is no base {self.base!r}; there are wl, sp, graphlet")
        if self.dimension < 1 or not 0 <= self.share <= 1:
            raise ConfigError(f"dimension must be 1 or more and share from 0 to 1; got {self.dimension}, {self.share}")
        self.base_: FeatureKernel = {
            "wl": WeisfeilerLehman(self.height),
            "sp": ShortestPath(),
            "graphlet": Graphlet(self.size, seed=self.seed),
        }[self.base]
        self.base_.fit(graphs)
        if self.base == "wl":
            self._words_, together = node_company(graphs, self.height, self.base_.vocabulary_, self.seed)
        else:
            self._words_, together = graph_company(self.base_.features(graphs))
        self._vectors_ = embedding(together, self.dimension, self.seed)
        self._counts_ = self.base_.features(graphs)
        self._embedded_ = self._embed(self._counts_)
        self._scale_ = inverse_root(self._squares(self._counts_, self._embedded_))

    def _embed(self, counts: csr_array) -> Floats:
        keep = np.zeros(counts.shape[1], dtype=bool)
        keep[self._words_] = True
        found: Floats = take_columns(counts, keep) @ self._vectors_
        return found

    def _squares(self, counts: csr_array, embedded: Floats) -> Floats:
        found: Floats = (1 - self.share) * squares(counts) + self.share * (embedded**2).sum(axis=1)
        return found

    def _train_gram(self) -> Floats:
        K: Floats = (1 - self.share) * gram(self._counts_) + self.share * (self._embedded_ @ self._embedded_.T)
        return K

    def _cross_gram(self, graphs: GraphSet) -> tuple[Floats, Floats]:
        counts = self.base_.features(graphs)
        embedded = self._embed(counts)
        K = (1 - self.share) * gram(counts[:, : self._counts_.shape[1]], self._counts_)
        return K + self.share * (embedded @ self._embedded_.T), self._squares(counts, embedded)


def node_company(graphs: GraphSet, height: int, vocabulary: Array, seed: int) -> tuple[Ints, csr_array]:
    """[W] the most frequent colors, as places in the vocabulary, and [W, W] how often two of them stand at one node or
    at neighbors, from a sample of nodes and neighbors."""
    rng = np.random.default_rng(seed)
    colors = refine(graphs, height)
    words = np.stack([np.searchsorted(vocabulary, mix(c + np.uint64(i))) for i, c in enumerate(colors)], axis=1)
    kept = _most(np.bincount(words.ravel(), minlength=len(vocabulary)), _COLORS)
    number = np.full(len(vocabulary), -1)
    number[kept] = np.arange(len(kept))
    words = number[words]
    nodes = np.sort(rng.permutation(graphs.num_nodes)[:_CONTEXTS])
    degree = graphs.degrees[nodes]
    others = [nodes]
    if len(graphs.col):
        col = neighbors_of_set(graphs)
        for _ in range(_WINDOW):
            arc = graphs.rowptr[nodes] + rng.integers(0, np.maximum(degree, 1))
            others.append(np.where(degree > 0, col[np.minimum(arc, len(col) - 1)], nodes))
    total: csr_array = csr_array((len(kept), len(kept)))
    for other in others:
        pair = np.stack(
            [np.repeat(words[nodes], height + 1, axis=1).ravel(), np.tile(words[other], height + 1).ravel()]
        )
        pair = pair[:, (pair >= 0).all(axis=0)]
        total = total + coo_array((np.ones(pair.shape[1]), tuple(pair)), shape=total.shape).tocsr()
    return kept, total + total.T


def graph_company(counts: csr_array) -> tuple[Ints, csr_array]:
    """[W] the most frequent words, and [W, W] Σ over graphs of the shares of two of them in it."""
    size: Floats = np.asarray(counts.sum(axis=1), dtype=np.float64)
    share = csr_array(counts.multiply(np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)[:, None]))
    kept = _most(np.asarray(share.sum(axis=0)), _WORDS)
    inside = share.tocsc()[:, kept]
    return kept, csr_array(inside.T @ inside)


def _most(frequency: Array, limit: int) -> Ints:
    """The places of the ``limit`` largest, ascending."""
    return np.sort(np.argsort(-frequency, kind="stable")[:limit])


def embedding(together: csr_array, dimension: int, seed: int) -> Floats:
    """[W, d] U√Σ of the positive pointwise mutual information, rows of length one (zero where there is nothing)."""
    C = together.tocoo()
    margin: Floats = np.asarray(together.sum(axis=1), dtype=np.float64)
    information = np.log(C.data * margin.sum() / (margin[C.row] * margin[C.col]), where=C.data > 0, out=np.zeros(C.nnz))
    keep = information > 0
    ppmi = csr_array((information[keep], (C.row[keep], C.col[keep])), shape=C.shape)
    rank = min(dimension, C.shape[0])
    U, sigma, _ = randomized_svd(ppmi, rank, random_state=seed, n_iter=2)
    E: Floats = U * np.sqrt(sigma)
    length = np.sqrt((E**2).sum(axis=1))
    E *= np.divide(1.0, length, out=np.zeros_like(length), where=length > 1e-9)[:, None]
    return E
