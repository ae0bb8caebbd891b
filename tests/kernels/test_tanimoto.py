"""The Tanimoto kernel against its definition."""

import json
from itertools import pairwise

import numpy as np
import pytest
from rdkit import Chem, DataStructs
from rdkit.Chem import rdFingerprintGenerator

import gcaps
from gcaps.errors import ConfigError, DataError, MemoryLimitError
from gcaps.features.fingerprints import fingerprint_counts
from gcaps.kernels import Tanimoto
from gcaps.kernels.tanimoto import require_gram_memory
from gcaps.testing import hostile_graphs

SMILES = [
    *("C", "CC", "CCO", "c1ccccc1", "CC(=O)O", "[Na+].[Cl-]", "O", "CC(=O)[O-].[Na+]", "CCO", "OCC", "CCCCCCCCCCCC"),
    *("c1ccc2ccccc2c1", "CCN(CC)CC", "Cn1cnc2c1c(=O)n(C)c(=O)n2C", "CC(C)Cc1ccc(cc1)C(C)C(=O)O"),
]
KINDS = pytest.mark.parametrize("kind", ["morgan", "morgan_bits", "atom_pairs", "maccs"])


@pytest.fixture(scope="module")
def molecules():
    return gcaps.load(SMILES, labelled=False)


def min_max(graphs, kind, radius):
    """Σ min / Σ max by a double loop over molecules and one over substructures; 0 for empty fingerprints."""
    ptr, keys, counts = fingerprint_counts(graphs, kind, radius=radius)
    bags = [dict(zip(keys[a:b].tolist(), counts[a:b].tolist(), strict=True)) for a, b in pairwise(ptr)]
    K = np.zeros((len(bags), len(bags)))
    for i, a in enumerate(bags):
        for j, b in enumerate(bags):
            both = set(a) | set(b)
            largest = sum(max(a.get(s, 0), b.get(s, 0)) for s in both)
            K[i, j] = sum(min(a.get(s, 0), b.get(s, 0)) for s in both) / largest if largest else 0.0
    return K


@KINDS
def test_values_are_minima_over_maxima(kind, molecules):
    K = Tanimoto(kind, radius=2).fit_transform(molecules)
    np.testing.assert_allclose(K, min_max(molecules, kind, 2), rtol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-12
    assert set(K.diagonal()) <= {0.0, 1.0}


@KINDS
def test_new_molecules_are_compared_with_the_training_molecules(kind, molecules):
    whole = min_max(molecules, kind, 1)
    kernel = Tanimoto(kind, radius=1).fit(molecules[:6])
    np.testing.assert_allclose(kernel.transform(molecules), whole[:, :6], rtol=1e-12)
    assert kernel.restrict([4, 0]) is kernel
    np.testing.assert_allclose(kernel.transform(molecules), whole[:, [4, 0]], rtol=1e-12)


def test_bits_give_rdkits_similarity(molecules):
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2)
    bits = [generator.GetSparseFingerprint(Chem.MolFromSmiles(text)) for text in SMILES]
    expected = [[DataStructs.TanimotoSimilarity(a, b) for a in bits] for b in bits]
    np.testing.assert_allclose(Tanimoto("morgan_bits").fit_transform(molecules), expected, rtol=1e-12)


def test_a_molecule_without_pairs_of_atoms_resembles_nothing(molecules):
    K = Tanimoto("atom_pairs").fit_transform(molecules)
    np.testing.assert_array_equal(K[[0, 6]], 0.0)
    assert np.isfinite(Tanimoto("atom_pairs").fit(molecules[[0]]).transform(molecules)).all()


def test_equal_molecules_have_equal_rows(molecules):
    K = Tanimoto().fit_transform(molecules)
    assert K[2, 8] == K[2, 9] == 1.0
    np.testing.assert_array_equal(K[2], K[9])


def test_the_state_has_counts_and_no_smiles(molecules):
    kernel = Tanimoto("morgan", radius=3).fit(molecules[:8])
    arrays, values = kernel.state()
    assert all(array.dtype.kind in "iuf" for array in arrays.values())
    again = Tanimoto(**json.loads(json.dumps(kernel.get_params()))).restore(arrays, json.loads(json.dumps(values)))
    np.testing.assert_array_equal(again.transform(molecules), kernel.transform(molecules))


def test_mistakes_are_one_line(molecules):
    with pytest.raises(DataError, match="hostile: the Tanimoto kernel needs molecules"):
        Tanimoto().fit(hostile_graphs(8))
    with pytest.raises(ConfigError, match="radius must be from 0 to 16, not 17"):
        Tanimoto(radius=17).fit(molecules)
    with pytest.raises(ConfigError, match=r"fingerprint: .*descriptors"):
        Tanimoto("descriptors").fit(molecules)
    with pytest.raises(MemoryLimitError, match=r"of 10,000,000 graphs needs .* GiB for its Gram matrices"):
        require_gram_memory(10**7)
