"""What every kernel is: a scikit-learn transformer from graphs to a Gram matrix."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gcaps.data.arrays import Floats, Ints
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.errors import DataError
from gcaps.kernels.gram import gram, squares
from gcaps.kernels.hashing import Names


class Bag(NamedTuple):
    """What a set's graphs are made of: substructures by name, and how often each occurs."""

    ptr: Ints
    """[G+1] graph g owns the entries ptr[g] … ptr[g+1]−1."""
    names: Names
    """[T] a name may stand several times in a graph; its counts add up."""
    counts: Floats
    """[T]"""


class GraphKernel(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A kernel between graphs: ``fit`` keeps the training graphs, ``transform`` compares others with them.

    Graphs come as a GraphSet or as anything :func:`gcaps.load` takes. Gram matrices are float64, finite and positive
    semi-definite; with ``normalize`` the entry of G and H is k(G, H)/√(k(G, G) k(H, H)), 0 where k(G, G) = 0.
    """

    normalize: bool

    def pairwise(self, graphs: GraphSet) -> bool:
        """Whether k(G, H) depends on G and H alone, not on the training graphs."""
        return True

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what the kernel needs of the training graphs, and keep it."""
        self._fit(self._graphs(X, fitting=True))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """[n, n] the Gram matrix of the training graphs."""
        self.fit(X)
        return scaled(self._train_gram(), self._scale_, self._scale_) if self.normalize else self._train_gram()

    def transform(self, X: Any) -> Floats:
        """[m, n] graphs against training graphs."""
        check_is_fitted(self, "_scale_")
        K, diagonal = self._cross_gram(self._graphs(X, fitting=False))
        return scaled(K, inverse_root(diagonal), self._scale_) if self.normalize else K

    def _graphs(self, X: Any, fitting: bool) -> GraphSet:
        graphs = load(X, labelled=False)
        columns = 0 if graphs.node_labels is None else graphs.node_labels.shape[1]
        if fitting:
            self.label_columns_ = columns
        elif columns != self.label_columns_:
            raise DataError(
                f"{graphs.name} has {columns} columns of node labels; the kernel was fitted on {self.label_columns_}"
            )
        return graphs

    @abstractmethod
    def _fit(self, graphs: GraphSet) -> None:
        """Keep what :meth:`_train_gram` and :meth:`_cross_gram` need; set ``_scale_`` to 1/√k(G, G)."""

    @abstractmethod
    def _train_gram(self) -> Floats:
        """[n, n]"""

    @abstractmethod
    def _cross_gram(self, graphs: GraphSet) -> tuple[Floats, Floats]:
        """[m, n] and the m graphs' k(G, G)."""


class FeatureKernel(GraphKernel):
    """A kernel with an explicit feature map: k(G, H) = ⟨φ(G), φ(H)⟩, φ counts substructures.

    Attributes:
        vocabulary_: [V] names of the training graphs' substructures, ascending; column j of the feature map counts the
            j-th.
    """

    @abstractmethod
    def bag(self, graphs: GraphSet) -> Bag:
        """The substructures of each graph; a graph's bag does not depend on the other graphs."""

    def features(self, X: Any) -> csr_array:
        """[m, V + U] φ of each graph: a column for each name of ``vocabulary_``, and behind them one for each of the U
        names that only these graphs have."""
        check_is_fitted(self, "vocabulary_")
        return self._columns(self.bag(self._graphs(X, fitting=False)))

    def _fit(self, graphs: GraphSet) -> None:
        bag = self.bag(graphs)
        self.vocabulary_, column = np.unique(bag.names, return_inverse=True)
        self._train_ = counted(bag, column, len(self.vocabulary_))
        self._scale_ = inverse_root(squares(self._train_))

    def _columns(self, bag: Bag) -> csr_array:
        column = np.searchsorted(self.vocabulary_, bag.names)
        known = np.append(self.vocabulary_, np.uint64(0))[column] == bag.names
        known &= column < len(self.vocabulary_)
        unseen, number = np.unique(bag.names[~known], return_inverse=True)
        column[~known] = len(self.vocabulary_) + number
        return counted(bag, column, len(self.vocabulary_) + len(unseen))

    def _train_gram(self) -> Floats:
        return gram(self._train_)

    def _cross_gram(self, graphs: GraphSet) -> tuple[Floats, Floats]:
        found = self._columns(self.bag(graphs))
        return gram(found[:, : len(self.vocabulary_)], self._train_), squares(found)


def counted(bag: Bag, column: Ints, width: int) -> csr_array:
    """[G, width] the counts, entries of the same graph and column added up."""
    index = np.int32 if max(width, len(column)) < 2**31 else np.int64
    found = csr_array(
        (bag.counts.astype(np.float64), column.astype(index), bag.ptr.astype(index)), shape=(len(bag.ptr) - 1, width)
    )
    found.sum_duplicates()
    return found


def inverse_root(diagonal: Floats) -> Floats:
    """1/√d, and 0 for d = 0."""
    out: Floats = np.zeros_like(diagonal)
    np.divide(1.0, np.sqrt(diagonal), out=out, where=diagonal > 0)
    return out


def scaled(K: Floats, left: Floats, right: Floats) -> Floats:
    """diag(left) K diag(right), in place."""
    K *= left[:, None]
    K *= right
    return K
