"""Fingerprints that are not folded."""

import numpy as np
import pytest

import gcaps
from gcaps.errors import ConfigError
from gcaps.features.fingerprints import fingerprint, fingerprint_counts

SMILES = ["C", "CCO", "c1ccccc1C(=O)O", "[Na+].[Cl-]", "CCCCCCCCCCCC"]


@pytest.fixture(scope="module")
def molecules():
    return gcaps.load(SMILES, labelled=False)


@pytest.mark.parametrize("radius", [0, 1, 3])
@pytest.mark.parametrize("name", ["morgan", "morgan_bits"])
def test_folded_counts_are_sums_of_the_counts_of_substructures(name, radius, molecules):
    ptr, substructures, counts = fingerprint_counts(molecules, name, radius=radius)
    folded = np.zeros((len(SMILES), 512))
    rows = np.repeat(np.arange(len(SMILES)), np.diff(ptr))
    np.add.at(folded, (rows, (substructures % 512).astype(int)), counts)
    folded = np.minimum(folded, 1) if name == "morgan_bits" else folded
    np.testing.assert_array_equal(folded, fingerprint(molecules, name, radius=radius, bits=512))


def test_atom_pairs_are_all_pairs(molecules):
    ptr, _, counts = fingerprint_counts(molecules, "atom_pairs")
    pairs = np.add.reduceat(np.append(counts, 0), ptr[:-1]) * (np.diff(ptr) > 0)
    sizes = molecules.sizes[[0, 1, 2, 4]]  # fragments of a salt have no distance
    np.testing.assert_array_equal(pairs[[0, 1, 2, 4]], sizes * (sizes - 1) // 2)


def test_keys_are_counted_once(molecules):
    ptr, keys, counts = fingerprint_counts(molecules, "maccs")
    bits = fingerprint(molecules, "maccs")
    assert (counts == 1).all()
    np.testing.assert_array_equal(np.diff(ptr), bits.sum(axis=1))
    assert all(bits[g, keys[ptr[g] : ptr[g + 1]].astype(int)].all() for g in range(len(SMILES)))


def test_descriptors_are_no_counts(molecules):
    with pytest.raises(ConfigError, match="descriptors are not counts"):
        fingerprint_counts(molecules, "descriptors")
