"""What test molecules share with training molecules, counted one molecule at a time."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rdkit")

import gcaps
from gcaps.data.graphset import GraphSet
from gcaps.evaluation import Fold, folds_of, leakage
from gcaps.evaluation.leakage import molecule_leakage

SMILES = ["C" * n + tail for n in range(1, 9) for tail in ("O", "N", "c1ccccc1", "C1CCCC1", "c1ccncc1")]
SMILES += ["OC", "C(c1ccccc1)", "C1CC1", "c1ccsc1"]


@pytest.fixture(scope="module")
def graphs() -> GraphSet:
    loaded = gcaps.load(SMILES, labelled=False)
    return replace(loaded, y=np.arange(len(SMILES)) % 2)


def slow_leakage(folds: list[Fold]) -> tuple[int, int, int, int]:
    from rdkit import Chem, DataStructs
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

    molecules = [Chem.MolFromSmiles(text) for text in SMILES]
    generator = GetMorganGenerator(radius=2, fpSize=2048)
    bits = [generator.GetFingerprint(molecule) for molecule in molecules]
    names, scaffolds = [Chem.MolToSmiles(m) for m in molecules], [MurckoScaffoldSmiles(mol=m) for m in molecules]
    tested = shared = near = identical = 0
    for fold in folds:
        for i in fold.test:
            tested += 1
            shared += bool(scaffolds[i]) and scaffolds[i] in {scaffolds[j] for j in fold.train}
            near += max(DataStructs.BulkTanimotoSimilarity(bits[i], [bits[j] for j in fold.train])) >= 0.9
            identical += names[i] in {names[j] for j in fold.train}
    return tested, shared, near, identical


@pytest.mark.parametrize("split", ["random", "stratified"])
def test_leakage_is_counted_molecule_by_molecule(graphs: GraphSet, split: str) -> None:
    folds = folds_of(graphs, 4, split, 1)
    found = molecule_leakage(graphs, folds)
    assert found is not None
    assert (found.tested, found.scaffold, found.near, found.identical) == slow_leakage(folds)
    assert found.near > found.identical > 0
    assert not found.sampled
    assert "% of the test molecules share their scaffold with training molecules" in str(found)


@pytest.mark.parametrize("split", ["scaffold", "scaffold-balanced"])
def test_scaffold_folds_share_no_scaffold(graphs: GraphSet, split: str) -> None:
    for folds in (1, 3):
        found = molecule_leakage(graphs, folds_of(graphs, folds, split, 0))
        assert found is not None
        assert found.scaffold == 0


def test_many_pairs_are_sampled(graphs: GraphSet, monkeypatch: pytest.MonkeyPatch) -> None:
    folds = folds_of(graphs, 4, "random", 1)
    whole = molecule_leakage(graphs, folds)
    monkeypatch.setattr(leakage, "MOST_PAIRS", 700)
    found = molecule_leakage(graphs, folds)
    assert whole is not None
    assert found is not None
    assert (found.scaffold, found.identical) == (whole.scaffold, whole.identical)
    assert found.sampled
    assert 0 < found.compared < whole.compared


def test_other_graphs_and_a_missing_rdkit_have_none(graphs: GraphSet, monkeypatch: pytest.MonkeyPatch) -> None:
    folds = folds_of(graphs, 2, "random", 0)
    assert molecule_leakage(gcaps.load("families"), folds) is None
    assert molecule_leakage(graphs, []) is None
    monkeypatch.setitem(sys.modules, "rdkit", None)
    assert molecule_leakage(graphs, folds) is None
