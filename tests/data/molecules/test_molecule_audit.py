"""Scaffolds and activity cliffs of molecules, against all pairs written out; what is said without RDKit."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("rdkit")

import gcaps
from gcaps.data.audit import describe, facts
from gcaps.data.graphset import GraphSet
from gcaps.data.molecules import audit
from gcaps.data.molecules.keys import molecule_keys
from gcaps.data.molecules.scaffolds import scaffolds_of

ALCOHOLS = ["C" * n + "O" for n in range(5, 11)]  # circular substructures of radius 2 soon repeat
RINGS = ["c1ccccc1C", "c1ccccc1CC", "Cc1ccccc1", "C[C@H](N)c1ccccc1", "C[C@@H](N)c1ccccc1", "C1CC1O"]
SMILES = ALCOHOLS + RINGS


def molecules(y: object, **columns: object) -> GraphSet:
    graphs = gcaps.load(SMILES, labelled=False)
    return replace(graphs, y=np.asarray(y), given_ids=np.array([f"m{i}" for i in range(len(SMILES))]), **columns)


def slow_cliffs(graphs: GraphSet, differ: object) -> set[tuple[str, str]]:
    """Pairs of different molecules with a similarity of 0.9 or more for which ``differ(i, j)`` holds."""
    from rdkit import Chem, DataStructs
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    found = [Chem.MolFromSmiles(text) for text in SMILES]
    bits = [GetMorganGenerator(radius=2, fpSize=2048).GetFingerprint(molecule) for molecule in found]
    return {
        (f"m{i}", f"m{j}")
        for i, j in combinations(range(len(found)), 2)
        if DataStructs.TanimotoSimilarity(bits[i], bits[j]) >= 0.9
        and Chem.MolToSmiles(found[i]) != Chem.MolToSmiles(found[j])
        and differ(i, j)
    }


def found_cliffs(graphs: GraphSet, monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    monkeypatch.setattr(audit, "WORST", 1000)
    found = facts(graphs).molecules
    assert isinstance(found, audit.MoleculeFacts)
    assert found.cliffs == len(found.worst)
    assert found.in_cliffs == len({name for cliff in found.worst for name in (cliff.first, cliff.second)})
    return {(cliff.first, cliff.second) for cliff in found.worst}


def test_cliffs_of_classes_are_similar_pairs_of_different_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    y = np.array(["a", "b"] * 6)
    graphs = molecules(y)
    expected = slow_cliffs(graphs, lambda i, j: y[i] != y[j])
    assert len(expected) > 2
    assert ("m9", "m10") in expected, "stereoisomers have the same fingerprint"
    assert found_cliffs(graphs, monkeypatch) == expected


def test_cliffs_of_numbers_differ_by_more_than_a_standard_deviation(monkeypatch: pytest.MonkeyPatch) -> None:
    y = np.array([0.5, 0.7, 5.5, 0.6, 9.5, 0.9, 1.5, 2.5, 9.5, 0.1, 0.2, 0.3])
    expected = slow_cliffs(molecules(y), lambda i, j: abs(y[i] - y[j]) > y.std())
    graphs = molecules(y)
    assert expected
    assert found_cliffs(graphs, monkeypatch) == expected
    monkeypatch.setattr(audit, "WORST", 1)
    (worst,) = facts(graphs).molecules.worst
    gaps = {pair: abs(y[int(pair[0][1:])] - y[int(pair[1][1:])]) for pair in expected}
    assert gaps[worst.first, worst.second] == max(gaps.values())


def test_a_missing_value_is_no_cliff_and_the_target_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    y = np.tile([[0.0, np.nan], [1.0, 1.0]], (6, 1))
    y[9:11] = [[np.nan, 0.0], [1.0, 1.0]]
    graphs = molecules(y, target_names=("NR", "SR"))
    differ = lambda i, j: np.nanmax(np.append(np.abs(y[i] - y[j]), 0)) > 0  # noqa: E731
    assert found_cliffs(graphs, monkeypatch) == slow_cliffs(graphs, differ)
    stereo = next(cliff for cliff in facts(graphs).molecules.worst if cliff.first == "m9")
    assert str(stereo) == "m9 and m10 (0 and 1 of SR, 1.00)"


def test_equal_molecules_are_duplicates_and_no_cliffs(monkeypatch: pytest.MonkeyPatch) -> None:
    y = np.zeros(12, dtype=np.int64)
    y[6] = 1  # toluene, which is there twice
    graphs = molecules(y)
    assert facts(graphs).identical.conflicting_graphs == 2
    assert ("m6", "m8") not in found_cliffs(graphs, monkeypatch)


def test_scaffolds_are_counted() -> None:
    found = facts(molecules(np.arange(12) % 2)).molecules
    assert (found.scaffolds, found.largest, found.largest_scaffold, found.acyclic) == (2, 5, "c1ccccc1", 6)
    rows = describe(facts(molecules(np.arange(12) % 2)))
    assert rows["scaffolds"] == "2 different, the largest in 41.7 % of the molecules; 50.0 % have no ring"
    assert rows["activity cliffs"].endswith("; …") == (found.cliffs > 5)


def test_sets_without_cliffs_or_targets_say_so() -> None:
    rows = describe(facts(molecules(np.zeros(12, dtype=np.int64))))
    assert rows["activity cliffs"].startswith("none among ")
    assert "activity cliffs" not in describe(facts(replace(molecules(np.zeros(12)), y=None)))
    assert facts(gcaps.load("families")).molecules is None


def test_large_sets_are_sampled_and_the_text_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MOST_MOLECULES", 8)
    found = facts(molecules(np.arange(12) % 2))
    assert found.molecules.searched == 8
    assert describe(found)["activity cliffs"].endswith("(of 8 molecules drawn at random)")


def test_keys_do_not_depend_on_how_many_molecules_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = molecules(np.arange(12))
    whole, scaffolds = molecule_keys(graphs), scaffolds_of(graphs)
    monkeypatch.setattr("gcaps.data.molecules.keys.AT_ONCE", 5)
    monkeypatch.setattr("gcaps.data.molecules.scaffolds.AT_ONCE", 5)
    again = molecule_keys(graphs)
    for a, b in zip([*whole[:3], *whole.bits], [*again[:3], *again.bits], strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(scaffolds_of(graphs), scaffolds)
    np.testing.assert_array_equal(whole.scaffolds, scaffolds)


def test_without_rdkit_the_other_facts_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = molecules(np.arange(12) % 2)
    monkeypatch.setitem(sys.modules, "rdkit", None)
    rows = describe(facts(graphs))
    assert rows["scaffolds"].startswith("not found: ")
    assert "pip install 'gcaps[chem]'" in rows["scaffolds"]
    assert "activity cliffs" not in rows
    assert rows["graphs"] == "12"
