"""Deep graph kernels (Yanardag and Vishwanathan, 2015): substructures that occur together count as similar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from scipy.sparse import coo_array, csr_array
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_is_fitted

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import Hashes, neighbors_of_set
from gcaps.errors import ConfigError, ModelError
from gcaps.kernels.base import DAMAGED, FeatureKernel, GraphKernel, State, inverse_root, require_array
from gcaps.kernels.gram import gram, squares, take_columns
from gcaps.kernels.graphlet import Graphlet
from gcaps.kernels.shortest_path import ShortestPath
from gcaps.kernels.weisfeiler_lehman import WeisfeilerLehman, color_hashes, refine

_MAX_NODES = 200_000
"""Nodes sampled to count which colors occur together."""
_WINDOW = 4
"""Neighbors sampled for each of them."""
_MAX_COLORS = 200_000
"""Most frequent colors, which get a vector; the others have none."""
_MAX_WORDS = 4000
"""Most frequent paths or graphlets, which get a vector; the others have none."""


class DeepGraphKernel(GraphKernel):
    """Deep graph kernel: k(G, H) = φ(G)ᵀ M φ(H), M = (1−s) I + s E Eᵀ, with an embedding E [V, d] of substructures.

    φ counts substructures as the base kernel does. E is learned from the training graphs: E = U√Σ, rows normalised to
    length one, from the truncated singular value decomposition of the positive pointwise mutual information of
    substructures that occur together; this is the matrix that skip-gram with negative sampling factorises (Levy and
    Goldberg, 2014). Colors occur together at a node and at its neighbors; paths and graphlets within a graph, in
    proportion to their counts.

    The paper has M = E Eᵀ (s = 1). With skip-gram, the vectors of rare substructures hardly move from their random
    initial values and are nearly orthogonal; here (1−s) I has that effect. The rarest substructures of large sets have
    a row of zeros in E.

    Args:
        base: substructures: ``wl`` colors of n_iter refinements, ``sp`` shortest paths, ``graphlet`` graphlets.
        dimension: d.
        share: s, from 0 (the base kernel) to 1.
        n_iter: refinements of ``wl``.
        size: nodes of a graphlet.
        edge_labels: include the edge labels in the refinement of ``wl``; ``"auto"``: if the training graphs have them.
        random_state: seed of the samples and of the decomposition.
        normalize: divide by √(k(G, G) k(H, H)).

    Attributes:
        base_: the fitted base kernel.
    """

    def __init__(
        self,
        base: Literal["wl", "sp", "graphlet"] = "wl",
        *,
        dimension: int = 64,
        share: float = 0.1,
        n_iter: int = 3,
        size: int = 5,
        edge_labels: bool | Literal["auto"] = "auto",
        random_state: int = 0,
        normalize: bool = True,
    ) -> None:
        self.base, self.dimension, self.share, self.n_iter, self.size = base, dimension, share, n_iter, size
        self.edge_labels, self.random_state, self.normalize = edge_labels, random_state, normalize

    def pairwise(self, graphs: GraphSet) -> bool:
        """Return False: the embedding depends on the training graphs."""
        return False

    def embed(self, X: Any) -> Floats:
        """Return φ(G)ᵀE of each graph, [m, d]."""
        check_is_fitted(self, "_vectors_")
        return self._embed(self.base_.features(self._graphs(X, fitting=False)))

    def state(self) -> State:
        """State of the base kernel, and the embeddings of substructures and of training graphs."""
        arrays, values = super().state()
        base, of_base = self.base_.state()
        arrays |= {"columns": self._columns_, "vectors": self._vectors_, "embedded": self._embedded_}
        return {**arrays, **{f"base.{key}": array for key, array in base.items()}}, {**values, "base": of_base}

    def restore(self, arrays: Mapping[str, Array], values: Mapping[str, Any]) -> Self:
        """See :meth:`GraphKernel.restore`."""
        super().restore(arrays, values)
        base = {key.removeprefix("base."): array for key, array in arrays.items() if key.startswith("base.")}
        restored: Any = self._base_kernel().restore(base, values.get("base") or {})
        self.base_ = restored
        if len(self.base_._scale_) != len(self._scale_):
            raise ModelError(f"{DAMAGED} (its two parts have different graphs)")
        self._columns_ = require_array(arrays, "columns", "i", (None,))
        width = len(self.base_.vocabulary_)
        if len(self._columns_) and not 0 <= self._columns_.min() <= self._columns_.max() < width:
            raise ModelError(f"{DAMAGED} (a column does not exist)")
        if (np.diff(self._columns_) <= 0).any():
            raise ModelError(f"{DAMAGED} (its columns do not ascend)")
        self._vectors_ = require_array(arrays, "vectors", "f", (len(self._columns_), None))
        self._embedded_ = require_array(arrays, "embedded", "f", (len(self._scale_), self._vectors_.shape[1]))
        return self

    def _base_kernel(self) -> FeatureKernel:
        if self.base == "wl":
            return WeisfeilerLehman(self.n_iter, edge_labels=self.edge_label_columns_ > 0)
        return ShortestPath() if self.base == "sp" else Graphlet(self.size, random_state=self.random_state)

    def _edge_label_columns(self, graphs: GraphSet) -> int:
        columns = super()._edge_label_columns(graphs)
        if self.edge_labels is True and self.base != "wl":
            raise ConfigError(f"edge_labels=True goes with base='wl', not {self.base!r}")
        return columns if self.base == "wl" else 0

    def _fit(self, graphs: GraphSet) -> None:
        if self.base not in ("wl", "sp", "graphlet"):
            raise ConfigError(f"base must be wl, sp or graphlet, not {self.base!r}")
        if self.dimension < 1 or not 0 <= self.share <= 1:
            raise ConfigError(
                f"dimension must be at least 1 and share from 0 to 1, not {self.dimension} and {self.share}"
            )
        self.base_ = self._base_kernel().fit(graphs)
        counts = self.base_._train_
        if self.base == "wl":
            words = color_hashes(refine(graphs, self.n_iter, edge_labels=self.edge_label_columns_ > 0))
            self._columns_, together = node_cooccurrence(graphs, words, self.base_.vocabulary_, self.random_state)
        else:
            self._columns_, together = graph_cooccurrence(counts)
        self._vectors_ = embedding(together, self.dimension, self.random_state)
        self._embedded_ = self._embed(counts)
        self._scale_ = inverse_root(self._squares(counts, self._embedded_))

    def _embed(self, counts: csr_array) -> Floats:
        keep = np.zeros(counts.shape[1], dtype=bool)
        keep[self._columns_] = True
        found: Floats = take_columns(counts, keep) @ self._vectors_
        return found

    def _squares(self, counts: csr_array, embedded: Floats) -> Floats:
        found: Floats = (1 - self.share) * squares(counts) + self.share * (embedded**2).sum(axis=1)
        return found

    def _train_gram(self) -> Floats:
        K: Floats = (1 - self.share) * gram(self.base_._train_) + self.share * (self._embedded_ @ self._embedded_.T)
        return K

    def _cross_gram(self, graphs: GraphSet) -> tuple[Floats, Floats]:
        counts, train = self.base_.features(graphs), self.base_._train_
        embedded = self._embed(counts)
        K = (1 - self.share) * gram(counts[:, : train.shape[1]], train)
        return K + self.share * (embedded @ self._embedded_.T), self._squares(counts, embedded)

    def _restrict(self, positions: Ints) -> None:
        super()._restrict(positions)
        self._embedded_ = self._embedded_[positions]
        # the base kernel keeps its whole vocabulary, to whose columns the vectors belong
        self.base_._train_, self.base_._scale_ = self.base_._train_[positions], self.base_._scale_[positions]


def node_cooccurrence(graphs: GraphSet, colors: Hashes, vocabulary: Hashes, seed: int) -> tuple[Ints, csr_array]:
    """Count colors [N, h+1] that occur at the same node or at neighbors, from a sample of nodes and neighbors.

    Returns:
        Positions in the vocabulary of the W most frequent colors, [W], and the symmetric matrix of counts, [W, W].
    """
    rng = np.random.default_rng(seed)
    words = np.searchsorted(vocabulary, colors)
    each = colors.shape[1]
    kept = _most_frequent(np.bincount(words.ravel(), minlength=len(vocabulary)), _MAX_COLORS)
    number = np.full(len(vocabulary), -1)
    number[kept] = np.arange(len(kept))
    words = number[words]
    nodes = np.sort(rng.permutation(graphs.num_nodes)[:_MAX_NODES])
    degree = graphs.degrees[nodes]
    others = [nodes]
    if len(graphs.col):
        col = neighbors_of_set(graphs)
        for _ in range(_WINDOW):
            arc = graphs.rowptr[nodes] + rng.integers(0, np.maximum(degree, 1))
            others.append(np.where(degree > 0, col[np.minimum(arc, len(col) - 1)], nodes))
    total: csr_array = csr_array((len(kept), len(kept)))
    for other in others:
        pair = np.stack([np.repeat(words[nodes], each, axis=1).ravel(), np.tile(words[other], each).ravel()])
        pair = pair[:, (pair >= 0).all(axis=0)]
        total = total + coo_array((np.ones(pair.shape[1]), tuple(pair)), shape=total.shape).tocsr()
    return kept, total + total.T


def graph_cooccurrence(counts: csr_array) -> tuple[Ints, csr_array]:
    """Sum over graphs of the products of two substructures' relative frequencies.

    Returns:
        Columns of the W most frequent substructures, [W], and the symmetric matrix of sums, [W, W].
    """
    size: Floats = np.asarray(counts.sum(axis=1), dtype=np.float64)
    share = csr_array(counts.multiply(np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)[:, None]))
    kept = _most_frequent(np.asarray(share.sum(axis=0)), _MAX_WORDS)
    inside = share.tocsc()[:, kept]
    return kept, csr_array(inside.T @ inside)


def _most_frequent(frequency: Array, limit: int) -> Ints:
    """Return the positions of the ``limit`` largest values, ascending."""
    return np.sort(np.argsort(-frequency, kind="stable")[:limit])


def embedding(together: csr_array, dimension: int, seed: int) -> Floats:
    """Return U√Σ of the positive pointwise mutual information, [W, d], rows normalised to length one or zero."""
    C = together.tocoo()
    margin: Floats = np.asarray(together.sum(axis=1), dtype=np.float64)
    information = np.log(C.data * margin.sum() / (margin[C.row] * margin[C.col]), where=C.data > 0, out=np.zeros(C.nnz))
    keep = information > 0
    ppmi = csr_array((information[keep], (C.row[keep], C.col[keep])), shape=C.shape)
    U, sigma, _ = randomized_svd(ppmi, min(dimension, C.shape[0]), random_state=seed, n_iter=2)
    E: Floats = U * np.sqrt(sigma)
    length = np.sqrt((E**2).sum(axis=1))
    E *= np.divide(1.0, length, out=np.zeros_like(length), where=length > 1e-9)[:, None]
    return E
