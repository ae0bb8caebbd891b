"""Molecules that are not as most are: each is a graph, or is left out for a reason that is said in one line."""

import importlib.util

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("rdkit") is None, reason="needs RDKit: pip install 'gcaps[chem]'"
)

from tests.data.awkward_molecules import MARKED, MOLECULES, PAGE, outcome, rows  # noqa: E402


def test_there_are_at_least_sixty_with_different_names():
    assert len({one.title for one in MOLECULES}) == len(MOLECULES) >= 60


@pytest.mark.parametrize("one", MOLECULES, ids=[one.title for one in MOLECULES])
def test_awkward_molecule_is_a_graph_or_is_left_out_in_one_line(one, capfd):
    text = outcome(one.smiles)
    assert "node" in text or text.startswith("left out: ")
    assert "\n" not in text
    assert capfd.readouterr() == ("", ""), "RDKit does not write to the terminal"


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("a proton", "charge 1"),
        ("heavy water", "3 nodes, 2 edges"),
        ("sodium chloride", "2 nodes, 0 edges; charge -1, 1"),
        ("cisplatin, dative", "bond order 5"),
        ("polymer with wildcards", "2 wildcards"),
        ("methyl radical", "radical electrons 1"),
        ("carbon of five bonds", "left out: 'C(C)(C)(C)(C)C' is not a valid molecule: Explicit valence"),
        ("empty", "left out: has no SMILES"),
        ("peptide of 500 atoms", "501 nodes, 500 edges"),
        ("60,000 characters", "a SMILES may have 20,000"),
    ],
)
def test_outcome_of(title, expected):
    (one,) = (one for one in MOLECULES if one.title == title)
    assert expected in outcome(one.smiles)


@pytest.mark.skipif(not PAGE.exists(), reason="this copy has no docs")
def test_the_table_of_the_documentation_is_what_happens():
    found = MARKED.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    page = found[0].removeprefix(found[1]).removesuffix(found[2]).strip()
    assert page == rows().strip(), "run python tests/data/awkward_molecules.py"
