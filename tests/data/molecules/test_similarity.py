"""Similarities are RDKit's, and every pair above a threshold is found once, in blocks of any size."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gcaps
from gcaps.data.molecules import similarity
from gcaps.data.molecules.similarity import PackedBits, has_similar, most_similar, similar_pairs


def tanimoto(a: np.ndarray, b: np.ndarray) -> float:
    """Common bits over all bits, one pair at a time; 0 where neither has any."""
    first, second = set(np.flatnonzero(a)), set(np.flatnonzero(b))
    return len(first & second) / len(first | second) if first | second else 0.0


def alike(seed: int, n: int, width: int = 128) -> np.ndarray:
    """Fingerprints of a few families, with some bits turned and one without any bit."""
    rng = np.random.default_rng(seed)
    bits = (rng.random((4, width)) < 0.3)[rng.integers(0, 4, n)]
    bits ^= rng.random(bits.shape) < rng.choice([0, 0.01, 0.1], (n, 1))
    bits[0] = False
    return bits


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.sampled_from([0.3, 0.5, 0.8, 0.9, 1.0]))
def test_similar_pairs_are_those_of_all_pairs_written_out(seed: int, n: int, threshold: float) -> None:
    bits = alike(seed, n)
    expected = {
        (i, j): value for i, j in combinations(range(n), 2) if (value := tanimoto(bits[i], bits[j])) >= threshold
    }
    found = [
        ((int(min(i, j)), int(max(i, j))), float(value))
        for a, b, values in similar_pairs(PackedBits.of(bits), threshold)
        for i, j, value in zip(a, b, values, strict=True)
    ]
    assert len(found) == len(expected), "each pair once"
    assert dict(found) == pytest.approx(expected)


def test_pairs_do_not_depend_on_the_size_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = PackedBits.of(alike(1, 60))

    def pairs() -> set[tuple[int, int]]:
        return {
            (int(min(i, j)), int(max(i, j))) for a, b, _ in similar_pairs(bits, 0.5) for i, j in zip(a, b, strict=True)
        }

    whole = pairs()
    monkeypatch.setattr(similarity, "PAIRS_AT_ONCE", 7)
    assert pairs() == whole
    assert len(whole) > 100


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.integers(1, 20), st.sampled_from([0.5, 0.9, 1.0]))
def test_has_similar_asks_every_other_fingerprint(seed: int, queries: int, others: int, threshold: float) -> None:
    bits = alike(seed, queries + others)
    a, b = bits[:queries], bits[queries:]
    expected = [max(tanimoto(x, y) for y in b) >= threshold for x in a]
    assert has_similar(PackedBits.of(a), PackedBits.of(b), threshold).tolist() == expected


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.integers(0, 20), st.integers(1, 4))
def test_most_similar_are_the_first_of_all_sorted(seed: int, queries: int, others: int, count: int) -> None:
    bits = alike(seed, queries + others)
    asked, candidates = np.arange(queries), np.arange(queries, queries + others)[::-1]
    found, values = most_similar(PackedBits.of(bits), asked, candidates, count)
    assert found.shape == values.shape == (queries, min(count, others))
    for query, own, closeness in zip(asked, found, values, strict=True):
        every = np.array([tanimoto(bits[query], bits[other]) for other in candidates])
        first = np.argsort(-every, kind="stable")[:count]
        assert own.tolist() == candidates[first].tolist()
        assert closeness.tolist() == pytest.approx(every[first].tolist())


def test_packed_bits_unpack() -> None:
    bits = alike(2, 7)
    assert np.array_equal(PackedBits.of(bits).unpacked, bits)


def test_no_fingerprints_have_no_pairs() -> None:
    assert list(similar_pairs(PackedBits.of(np.zeros((0, 64), dtype=bool)))) == []
    few = PackedBits.of(np.ones((2, 64), dtype=bool))
    assert has_similar(few, few.take(np.zeros(0, dtype=np.int64))).tolist() == [False, False]


def test_fingerprints_and_similarities_are_rdkits() -> None:
    chem = pytest.importorskip("rdkit.Chem")
    from rdkit import DataStructs
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    molecules = [chem.MolFromSmiles(s) for s in ("CCO", "CCCO", "c1ccccc1O", "c1ccccc1OC", "CC(=O)Oc1ccccc1C(=O)O")]
    theirs = [GetMorganGenerator(radius=2, fpSize=2048).GetFingerprint(molecule) for molecule in molecules]
    ours = PackedBits.of_molecules(molecules)
    graphs = gcaps.load([chem.MolToSmiles(molecule) for molecule in molecules], labelled=False)
    assert np.array_equal(PackedBits.of_graphs(graphs).words, ours.words)
    assert ours.counts.tolist() == [fp.GetNumOnBits() for fp in theirs]
    for a, b, values in similar_pairs(ours, 0.01):
        for i, j, value in zip(a, b, values, strict=True):
            assert value == pytest.approx(DataStructs.TanimotoSimilarity(theirs[i], theirs[j]))
