"""Tanimoto similarity of molecules in bulk: Morgan fingerprints as packed bits, compared by counting common bits.

Two sets of bits A and B have the similarity |A ∩ B| / |A ∪ B|. It is at most min(|A|, |B|) / max(|A|, |B|), so
fingerprints are sorted by their number of bits and only those within reach of a threshold are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.molecules.scaffolds import AT_ONCE
from gcaps.data.molecules.structures import molecules_of

RADIUS = 2
"""Radius of the Morgan fingerprints: 2 gives ECFP4."""
BITS = 2048
"""Length of the fingerprints."""
NEAR = 0.9
"""Similarity from which two molecules count as nearly the same."""
PAIRS_AT_ONCE = 4_000_000
"""Pairs that a block of :func:`similar_pairs` may hold, which bounds its memory."""


class PackedBits(NamedTuple):
    """Fingerprints of n molecules."""

    words: NDArray[np.uint64]
    """[n, BITS / 64]."""
    counts: Ints
    """[n] number of bits that are set."""

    @classmethod
    def of(cls, bits: Array) -> PackedBits:
        """Pack zeros and ones [n, d]; d is a multiple of 64."""
        packed = np.packbits(np.asarray(bits, dtype=bool), axis=1, bitorder="little")
        return cls.of_words(np.ascontiguousarray(packed).view(np.uint64))

    @classmethod
    def of_molecules(cls, molecules: Sequence[Any]) -> PackedBits:
        """Compute the Morgan fingerprints of RDKit molecules."""
        from rdkit import DataStructs
        from rdkit.Chem import rdFingerprintGenerator

        generator = rdFingerprintGenerator.GetMorganGenerator(radius=RADIUS, fpSize=BITS)
        texts = [DataStructs.BitVectToBinaryText(generator.GetFingerprint(molecule)) for molecule in molecules]
        return cls.of_words(np.frombuffer(b"".join(texts), dtype=np.uint64).reshape(len(texts), BITS // 64))

    @classmethod
    def of_graphs(cls, graphs: GraphSet) -> PackedBits:
        """Compute the Morgan fingerprints of the molecules of a set, a bounded number of molecules at a time.

        Raises:
            DataError: the graphs are not molecules, or RDKit is missing.
        """
        places = np.arange(len(graphs))
        words = [
            cls.of_molecules(molecules_of(graphs, places[first : first + AT_ONCE])).words
            for first in range(0, len(graphs), AT_ONCE)
        ]
        return cls.of_words(np.concatenate([np.zeros((0, BITS // 64), dtype=np.uint64), *words]))

    @classmethod
    def of_words(cls, words: NDArray[np.uint64]) -> PackedBits:
        """Count the bits of packed fingerprints [n, ·]."""
        return cls(words, np.bitwise_count(words).sum(axis=1, dtype=np.int64))

    @property
    def unpacked(self) -> NDArray[np.uint8]:
        """Zeros and ones [n, d]."""
        return np.unpackbits(self.words.view(np.uint8), axis=1, bitorder="little")

    def take(self, indices: Array) -> PackedBits:
        """Return the fingerprints at ``indices``."""
        return PackedBits(self.words[indices], self.counts[indices])


def similar_pairs(bits: PackedBits, threshold: float = NEAR) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Yield all pairs of different molecules with at least this similarity, in blocks of bounded size.

    Args:
        bits: n fingerprints; two of them without any bit have no similarity.
        threshold: above 0.

    Yields:
        [p] first molecules, [p] second molecules, and [p] similarities; every pair once.
    """
    from gcaps.data.molecules import bit_loops

    order = np.argsort(bits.counts, kind="stable")
    ordered = bits.take(order)
    n = len(order)
    # the last fingerprint that each one can reach
    ends = np.searchsorted(ordered.counts, np.floor(ordered.counts / threshold * (1 + 1e-12)), side="right")
    candidates = np.maximum(ends - np.arange(n) - 1, 0)
    first = 0
    while first < n:
        reach = np.cumsum(candidates[first:])
        last = first + max(int(np.searchsorted(reach, PAIRS_AT_ONCE, side="right")), 1)
        a, b = np.empty((2, int(reach[last - first - 1])), dtype=np.int64)
        similarity = np.empty(len(a), dtype=np.float64)
        found = bit_loops.write_pairs(ordered.words, ordered.counts, first, last, ends, threshold, a, b, similarity)
        if found:
            yield order[a[:found]], order[b[:found]], similarity[:found].copy()
        first = last


def has_similar(queries: PackedBits, others: PackedBits, threshold: float = NEAR) -> NDArray[np.bool_]:
    """[q] whether one of ``others`` has at least this similarity to each of the queries."""
    from gcaps.data.molecules import bit_loops

    ordered = others.take(np.argsort(others.counts, kind="stable"))
    low = np.searchsorted(ordered.counts, np.ceil(queries.counts * threshold * (1 - 1e-12)), side="left")
    high = np.searchsorted(ordered.counts, np.floor(queries.counts / threshold * (1 + 1e-12)), side="right")
    found: NDArray[np.bool_] = bit_loops.any_similar(
        queries.words, queries.counts, ordered.words, ordered.counts, low, high, threshold
    )
    return found


def most_similar(bits: PackedBits, queries: Array, candidates: Array, count: int = 1) -> tuple[Ints, Floats]:
    """Return the candidates that are most similar to each query, and their similarity, both [q, count].

    Args:
        bits: fingerprints of all molecules.
        queries: [q] positions of molecules.
        candidates: [c] positions of others; of equally similar ones the first wins.
        count: how many are returned; fewer if there are fewer candidates.
    """
    from gcaps.data.molecules import bit_loops

    count = min(count, len(candidates))
    place = np.zeros((len(queries), count), dtype=np.int64)
    similarity = np.full((len(queries), count), -1.0)
    own, others = bits.take(queries), bits.take(candidates)
    bit_loops.insert_nearest(own.words, own.counts, others.words, others.counts, place, similarity)
    nearest: Ints = np.asarray(candidates)[place]
    return nearest, similarity
