"""Base classes of graph kernels: scikit-learn transformers from graphs to a Gram matrix."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeVar

import numpy as np
from joblib import cpu_count
from numba import njit
from pydantic import Field
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from gcaps.config import check_parameters
from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import Hashes, mix, rows
from gcaps.documents import Page, validated
from gcaps.errors import ConfigError, DataError, ModelError
from gcaps.kernels.gram import gram, squares, take_columns

DAMAGED = "the state of the kernel is damaged"
S = TypeVar("S")
T = TypeVar("T")

State = tuple[dict[str, Array], dict[str, Any]]
"""Fitted state of a kernel: arrays by name, and values that JSON can hold."""


class GraphKernel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Kernel between graphs: ``fit`` stores the training graphs, ``transform`` compares other graphs with them.

    Graphs are given as a GraphSet or as anything that :func:`gcaps.load` accepts. Gram matrices are float64, finite and
    positive semi-definite; with ``normalize`` the entry of G and H is k(G, H)/√(k(G, G) k(H, H)), 0 where k(G, G) = 0.
    In a pipeline, an estimator with ``kernel="precomputed"`` follows.
    """

    normalize: bool
    random_state: int
    edge_labels: bool | Literal["auto"] = False
    """Whether edge labels are compared; a parameter of the kernels whose definition has them."""

    def pairwise(self, graphs: GraphSet) -> bool:
        """Whether k(G, H) depends on G and H alone, not on the training graphs."""
        return True

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the kernel to the training graphs.

        Args:
            X: training graphs.
            y: ignored.
        """
        if "random_state" in self.get_params():
            check_seed(self.random_state)
        check_parameters(self)
        self._fit(self._graphs(X, fitting=True))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """Fit the kernel and return the Gram matrix of the training graphs, [n, n]."""
        self.fit(X)
        return self.training_gram()

    def training_gram(self) -> Floats:
        """Return the Gram matrix of the training graphs that are kept, [n, n]."""
        check_is_fitted(self, "_scale_")
        K = self._train_gram()
        return scaled(K, self._scale_, self._scale_) if self.normalize else K

    def transform(self, X: Any) -> Floats:
        """Return the kernel values of graphs (rows) and training graphs (columns), [m, n]."""
        check_is_fitted(self, "_scale_")
        graphs = self._graphs(X, fitting=False)
        if not len(self._scale_):
            return np.zeros((len(graphs), 0))
        K, diagonal = self._cross_gram(graphs)
        return scaled(K, inverse_root(diagonal), self._scale_) if self.normalize else K

    def state(self) -> State:
        """Return what ``fit`` learned as arrays and JSON values; parameters are not part of it."""
        check_is_fitted(self, "_scale_")
        values = {"label_columns": self.label_columns_, "edge_label_columns": self.edge_label_columns_}
        return {"scale": self._scale_}, values

    def restore(self, arrays: Mapping[str, Array], values: Mapping[str, Any]) -> Self:
        """Set the state that :meth:`state` returned for a kernel with the same parameters.

        ``transform`` then returns the same numbers, bit for bit.
        """
        found = validated(
            ColumnState, {name: values.get(name) for name in ColumnState.model_fields}, DAMAGED, ModelError
        )
        self._scale_ = require_array(arrays, "scale", "f", (None,))
        self.label_columns_, self.edge_label_columns_ = found.label_columns, found.edge_label_columns
        return self

    def restrict(self, positions: Sequence[int] | Array) -> Self:
        """Keep only the training graphs at ``positions``, in that order.

        ``transform`` then returns these columns alone, up to rounding. What a kernel has learned from the other
        training graphs (a basis, an embedding) is kept. An SVM needs only its support vectors.
        """
        check_is_fitted(self, "_scale_")
        self._restrict(np.asarray(positions, dtype=np.int64))
        return self

    @property
    def _n_features_out(self) -> int:
        return len(self._scale_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _graphs(self, X: Any, fitting: bool) -> GraphSet:
        graphs = load(X, labelled=False)
        columns = 0 if graphs.node_labels is None else graphs.node_labels.shape[1]
        if fitting:
            self.label_columns_, self.edge_label_columns_ = columns, self._edge_label_columns(graphs)
            return graphs
        if columns != self.label_columns_:
            raise DataError(_other_columns(graphs.name, columns, "node", self.label_columns_))
        if not self.edge_label_columns_:
            return graphs
        if graphs.edge_labels is None and not len(graphs.col):
            return replace(graphs, edge_labels=np.zeros((0, self.edge_label_columns_), dtype=np.int64))
        columns = 0 if graphs.edge_labels is None else graphs.edge_labels.shape[1]
        if columns != self.edge_label_columns_:
            raise DataError(_other_columns(graphs.name, columns, "edge", self.edge_label_columns_))
        return graphs

    def _edge_label_columns(self, graphs: GraphSet) -> int:
        """Return the number of columns of edge labels to compare, 0 if edge labels do not count."""
        if self.edge_labels is True and graphs.edge_labels is None:
            raise DataError(f"{graphs.name} has no edge labels; set edge_labels=False")
        return graphs.edge_labels.shape[1] if self.edge_labels and graphs.edge_labels is not None else 0

    def compares_edge_labels(self, graphs: GraphSet) -> bool:
        """Whether edge labels count: as ``fit`` found; before ``fit``, as the parameter and ``graphs`` say."""
        fitted: int | None = getattr(self, "edge_label_columns_", None)
        return (self._edge_label_columns(graphs) if fitted is None else fitted) > 0

    @abstractmethod
    def _fit(self, graphs: GraphSet) -> None:
        """Store what :meth:`_train_gram` and :meth:`_cross_gram` need; set ``_scale_`` to 1/√k(G, G)."""

    @abstractmethod
    def _train_gram(self) -> Floats:
        """Return the Gram matrix of the training graphs, [n, n], not normalised."""

    @abstractmethod
    def _cross_gram(self, graphs: GraphSet) -> tuple[Floats, Floats]:
        """Return the values against the training graphs, [m, n], and k(G, G), [m]; not normalised."""

    def _restrict(self, positions: Ints) -> None:
        self._scale_ = self._scale_[positions]


def _other_columns(name: str, columns: int, kind: str, known: int) -> str:
    """Error message for graphs with other columns of labels than the training graphs."""
    given = f"{columns} column{'' if columns == 1 else 's'} of {kind} labels"
    return f"{name} has {given}; the kernel was fitted on {known}: give graphs of the same kind as the training graphs"


class ColumnState(Page):
    """JSON values of every fitted kernel."""

    label_columns: Annotated[int, Field(ge=0, le=1 << 20)]
    edge_label_columns: Annotated[int, Field(ge=0, le=1 << 20)]


def require_array(arrays: Mapping[str, Array], name: str, kind: str, shape: tuple[int | None, ...]) -> Array:
    """Return an array out of a file.

    Raises:
        ModelError: it is not there, of another kind of numbers, or of another shape; None fits any length.
    """
    found = arrays.get(name)
    if found is None or found.dtype.kind not in kind or found.ndim != len(shape):
        raise ModelError(f"{DAMAGED} (the array {name} is missing or of another type)")
    if any(wanted is not None and length != wanted for length, wanted in zip(found.shape, shape, strict=True)):
        raise ModelError(f"{DAMAGED} (the array {name} has the shape {found.shape}, expected {shape})")
    return found


class SubstructureCounts(NamedTuple):
    """Substructures of each graph of a set, identified by 64-bit hashes, and their counts."""

    ptr: Ints
    """[G+1] graph g owns the entries ptr[g] … ptr[g+1]−1."""
    hashes: Hashes
    """[T] hashes; the counts of equal hashes in a graph add up."""
    counts: Floats
    """[T]"""


class FeatureKernel(GraphKernel):
    """Kernel with an explicit feature map, k(G, H) = ⟨φ(G), φ(H)⟩, where φ counts substructures.

    Attributes:
        vocabulary_: [V] hashes of the training graphs' substructures, ascending; column j of the feature map counts the
            j-th.
    """

    @abstractmethod
    def count_substructures(self, graphs: GraphSet) -> SubstructureCounts:
        """Count the substructures of each graph; a graph's counts do not depend on the other graphs."""

    def features(self, X: Any) -> csr_array:
        """Return φ of each graph, [m, V + U].

        The first V columns are those of ``vocabulary_``; U columns follow, one for each substructure that occurs in
        these graphs but in none of the training graphs.
        """
        check_is_fitted(self, "vocabulary_")
        return self._columns(self.count_substructures(self._graphs(X, fitting=False)))

    def weights(self, coefficients: Floats) -> Floats:
        """Return the weight of each substructure in the functions Σ_s β_s k(·, G_s) of the graphs G_s it was fitted to.

        With ``normalize``, in √k(G, G) times that function: it is then linear in the counts of a graph G but for that
        factor.

        Args:
            coefficients: [p, n] coefficients β of p functions.

        Returns:
            [p, V] in the order of ``vocabulary_``; other substructures have weight 0.
        """
        check_is_fitted(self, "vocabulary_")
        scale = self._scale_ if self.normalize else np.ones_like(self._scale_)
        found: Floats = (self._train_.T @ (coefficients * scale).T).T
        return found

    def state(self) -> State:
        """Vocabulary and training counts (as the parts of a CSR matrix)."""
        arrays, values = super().state()
        counts = {"indptr": self._train_.indptr, "indices": self._train_.indices, "data": self._train_.data}
        return {**arrays, "vocabulary": self.vocabulary_, **counts}, values

    def restore(self, arrays: Mapping[str, Array], values: Mapping[str, Any]) -> Self:
        """See :meth:`GraphKernel.restore`."""
        super().restore(arrays, values)
        self.vocabulary_ = require_array(arrays, "vocabulary", "iu", (None,))
        if (self.vocabulary_[1:] <= self.vocabulary_[:-1]).any():
            raise ModelError(f"{DAMAGED} (the vocabulary does not ascend)")
        data = require_array(arrays, "data", "f", (None,))
        indices, indptr = (require_array(arrays, name, "i", (None,)) for name in ("indices", "indptr"))
        shape = (len(self._scale_), len(self.vocabulary_))
        try:
            self._train_ = csr_array((data, indices, indptr), shape=shape)
            self._train_.check_format(full_check=True)
        except ValueError as error:
            raise ModelError(f"{DAMAGED} ({error})") from error
        return self

    def _fit(self, graphs: GraphSet) -> None:
        found = self.count_substructures(graphs)
        self.vocabulary_, column = np.unique(found.hashes, return_inverse=True)
        self._train_ = count_matrix(found, column, len(self.vocabulary_))
        self._scale_ = inverse_root(squares(self._train_))

    def _columns(self, found: SubstructureCounts) -> csr_array:
        column = np.searchsorted(self.vocabulary_, found.hashes)
        known = np.append(self.vocabulary_, np.uint64(0))[column] == found.hashes
        known &= column < len(self.vocabulary_)
        unseen, number = np.unique(found.hashes[~known], return_inverse=True)
        column[~known] = len(self.vocabulary_) + number
        return count_matrix(found, column, len(self.vocabulary_) + len(unseen))

    def _train_gram(self) -> Floats:
        return gram(self._train_)

    def _cross_gram(self, graphs: GraphSet) -> tuple[Floats, Floats]:
        found = self._columns(self.count_substructures(graphs))
        return gram(found[:, : len(self.vocabulary_)], self._train_), squares(found)

    def _restrict(self, positions: Ints) -> None:
        super()._restrict(positions)
        counts = self._train_[positions]
        used = np.bincount(counts.indices, minlength=len(self.vocabulary_)) > 0
        self.vocabulary_, self._train_ = self.vocabulary_[used], take_columns(counts, used)


def count_matrix(found: SubstructureCounts, column: Ints, width: int) -> csr_array:
    """Return the counts as a matrix [G, width]; entries of the same graph and column are added up."""
    index = np.int32 if max(width, len(column)) < 2**31 else np.int64
    shape = (len(found.ptr) - 1, width)
    X = csr_array((found.counts.astype(np.float64), column.astype(index), found.ptr.astype(index)), shape=shape)
    X.sum_duplicates()
    return X


def inverse_root(diagonal: Floats) -> Floats:
    """Return 1/√d, and 0 for d = 0."""
    out: Floats = np.zeros_like(diagonal)
    np.divide(1.0, np.sqrt(diagonal), out=out, where=diagonal > 0)
    return out


def scaled(K: Floats, left: Floats, right: Floats) -> Floats:
    """Compute diag(left) K diag(right) in place."""
    K *= left[:, None]
    K *= right
    return K


def node_hashes(graphs: GraphSet, use_labels: bool) -> Hashes:
    """Return a hash for each node, [N]: of its labels, or of its degree without labels or ``use_labels``."""
    if use_labels and graphs.node_labels is not None:
        return rows(graphs.node_labels)
    return mix(graphs.degrees)


@njit(cache=True, nogil=True)
def mix64(x: np.uint64) -> np.uint64:
    """Finaliser of SplitMix64 for one number, as :func:`gcaps.data.hashing.mix` for arrays."""
    x += np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def check_seed(random_state: Any) -> None:
    """Require a non-negative integer: with None or a generator, ``transform`` would depend on earlier calls."""
    if not isinstance(random_state, int | np.integer) or not 0 <= random_state < 2**32:
        raise ConfigError(f"random_state must be an integer from 0 to {2**32 - 1}, not {random_state!r}")


def split_work(work: Array, limit: int) -> list[tuple[int, int]]:
    """Split a sequence into consecutive ranges [first, last) of about ``limit`` work each."""
    cuts = np.flatnonzero(np.diff(np.cumsum(work) // limit)) + 1
    return [(a, b) for a, b in pairwise([0, *cuts.tolist(), len(work)]) if b > a]


def map_threads(
    function: Callable[[S], T], items: Sequence[S], title: str, n_jobs: int | None, verbose: bool
) -> list[T]:
    """Apply a function to every item in threads.

    Args:
        function: called once per item; compiled code must release the GIL.
        items: its arguments.
        title: description of the progress bar.
        n_jobs: number of threads; None is 1, −1 one for each processor, −2 all but one, …
        verbose: show a progress bar on standard error.
    """
    if n_jobs == 0:
        raise ConfigError("n_jobs must not be 0; use None or 1 for one thread, -1 for all processors")
    threads = 1 if n_jobs is None else n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs)
    with ThreadPoolExecutor(threads) as pool:
        results = pool.map(function, items)
        if verbose:
            from rich.progress import track

            from gcaps.terminal import Terminal

            return list(track(results, title, len(items), console=Terminal(stderr=True)))
        return list(results)
