"""Tanimoto kernel of molecules' fingerprints (Ralaivola, Swamidass, Saigo and Baldi, 2005)."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import numpy as np

from gcaps.config import CountName
from gcaps.data.arrays import Array, Floats
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import join
from gcaps.data.molecules.required import require_molecules
from gcaps.errors import ConfigError, MemoryLimitError
from gcaps.features.fingerprints import fingerprint_counts
from gcaps.kernels.base import FeatureKernel, SubstructureCounts
from gcaps.kernels.gram import gram, squares

LARGEST_RADIUS = 16
MATRICES = 3
"""Matrices of all pairs of training graphs that are in memory at once: one, and those an SVM works on."""
_ROWS = 256
"""Rows of a Gram matrix that are divided together."""


class Tanimoto(FeatureKernel):
    """Tanimoto (min-max) kernel of the counts n_s of substructures s in two molecules.

    k(G, H) = Σ_s min(n_s(G), n_s(H)) / Σ_s max(n_s(G), n_s(H))

    For fingerprints without counts this is the Tanimoto similarity of bits. It is 1 for equal fingerprints, and 0 where
    one is empty, as in RDKit. Fingerprints are not folded to a fixed length. With min(a, b) = Σ_{t≥1} [t ≤ a][t ≤ b],
    φ has a one for the first, second, third, … occurrence of a substructure, so that Σ min = ⟨φ(G), φ(H)⟩ is a sparse
    product, and Σ max = |φ(G)| + |φ(H)| − Σ min.

    Args:
        fingerprint: ``"morgan"``, counts of circular substructures (ECFP); ``"morgan_bits"``, which of them occur;
            ``"atom_pairs"``, counts of pairs of atoms and their distance; ``"maccs"``, 166 structural keys.
        radius: of Morgan fingerprints; 2 is ECFP4.
    """

    needs_molecules: ClassVar[bool] = True
    normalize = False  # values are between 0 and 1 as they are

    def __init__(self, fingerprint: CountName = "morgan", *, radius: int = 2) -> None:
        self.fingerprint, self.radius = fingerprint, radius

    def count_substructures(self, graphs: GraphSet) -> SubstructureCounts:
        """List the pairs (substructure, t), t = 1..its count."""
        ptr, substructures, counts = fingerprint_counts(graphs, self.fingerprint, radius=self.radius)
        first = np.cumsum(counts) - counts
        t = np.arange(counts.sum()) - np.repeat(first, counts)
        ends = np.append(first, counts.sum())[ptr]
        return SubstructureCounts(ends, join(np.repeat(substructures, counts), t), np.ones(len(t)))

    def _graphs(self, X: Any, fitting: bool) -> GraphSet:
        graphs = load(X, labelled=False)
        require_molecules(graphs, "the Tanimoto kernel")
        if fitting:
            self.label_columns_ = self.edge_label_columns_ = 0  # labels of atoms and bonds are not compared
        return graphs

    def _fit(self, graphs: GraphSet) -> None:
        if not 0 <= self.radius <= LARGEST_RADIUS:
            raise ConfigError(f"radius must be from 0 to {LARGEST_RADIUS}, not {self.radius}")
        super()._fit(graphs)
        self._scale_ = np.ones(len(graphs))

    def _train_gram(self) -> Floats:
        require_gram_memory(len(self._scale_))
        own = squares(self._train_)
        return _divide(gram(self._train_), own, own)

    def _cross_gram(self, graphs: GraphSet) -> tuple[Floats, Floats]:
        found = self._columns(self.count_substructures(graphs))
        inside, own = found[:, : len(self.vocabulary_)], squares(found)
        return _divide(gram(inside, self._train_), own, squares(self._train_)), (own > 0).astype(np.float64)


def _divide(K: Floats, left: Floats, right: Floats) -> Floats:
    """Replace sums of minima K [m, n] by their quotients by sums of maxima, given the sums of both counts."""
    for first in range(0, len(K), _ROWS):
        part: Array = K[first : first + _ROWS]
        largest = left[first : first + _ROWS, None] + right - part
        np.divide(part, largest, out=part, where=largest > 0)
    return K


def require_gram_memory(graphs: int, matrices: int = 1) -> None:
    """Refuse Gram matrices that would not fit in memory.

    Args:
        graphs: training graphs.
        matrices: Gram matrices that are kept.

    Raises:
        MemoryLimitError: before anything is allocated.
    """
    needed = (matrices + MATRICES - 1) * 8 * graphs**2
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > 0.8 * installed:
        raise MemoryLimitError(
            f"the Tanimoto kernel of {graphs:,} graphs needs {needed / 2**30:.1f} GiB for its Gram matrices, this "
            f"computer has {installed / 2**30:.1f}; use method ecfp"
        )
