from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

import gcaps
from gcaps.report.molecule_drawing import MAX_ATOMS, AtomMark, are_drawable, draw_molecule, opacity

Chem = pytest.importorskip("rdkit.Chem")

AWKWARD = [
    "C",
    "[Na+].[Cl-]",
    "C[C@H](N)C(=O)O",
    "F/C=C/F",
    "*c1ccccc1",
    "[2H]C([2H])O",
    "[NH3]->[Cu]",
    "c1cc[nH]c1",
    "O=[Se]=O",
    "CC1(C)SC2C(NC(=O)Cc3ccccc3)C(=O)N2C1C(=O)O",
    "C" * 60,
]


def drawn(smiles: str, **options) -> ElementTree.Element:
    svg = draw_molecule(Chem.MolFromSmiles(smiles), 'a "molecule" <of> atoms', **options)
    assert svg is not None
    return ElementTree.fromstring(str(svg))


@pytest.mark.parametrize("smiles", AWKWARD)
def test_a_drawing_has_only_paths_inside_its_frame_and_no_colors_of_its_own(smiles: str) -> None:
    root = drawn(smiles, size=(200.0, 150.0))
    assert root.get("aria-label") == 'a "molecule" <of> atoms'
    assert {element.tag for element in root} == {"path"}
    for element in root:
        assert set(element.attrib) == {"class", "d"}
        assert re.fullmatch(r"[MLQCZ0-9. -]+", element.get("d", ""))
        numbers = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", element.get("d", ""))]
        assert min(numbers) >= -2
        assert max(numbers) <= 202
    assert "#" not in ElementTree.tostring(root, encoding="unicode")


def test_elements_have_classes_of_the_style_sheet() -> None:
    kinds = {kind for element in drawn("NCC(=O)CSCCCl") for kind in element.get("class", "").split()}
    assert kinds == {"stroke", "fill", "blue", "red", "k6", "green"}


def test_equal_molecules_have_equal_drawings_and_drawings_are_small() -> None:
    molecule = Chem.MolFromSmiles("CC1(C)SC2C(NC(=O)Cc3ccccc3)C(=O)N2C1C(=O)O")
    first, again = draw_molecule(molecule, ""), draw_molecule(molecule, "")
    assert first == again
    assert len(str(first)) < 5000


def test_marks_are_discs_behind_the_atoms_with_tooltips() -> None:
    marks = [AtomMark(1.0, "C 0: +1"), AtomMark(-0.5, "O <1>: −0.5", "-0.5"), AtomMark(0.0, "C 2: 0")]
    root = drawn("COC", marks=marks)
    discs = [element for element in root if element.tag == "circle"]
    assert list(root)[:3] == discs, "discs are painted first"
    assert [disc.get("class") for disc in discs] == ["raises", "lowers", "raises"]
    assert [float(disc.get("fill-opacity", "")) for disc in discs] == [opacity(1), opacity(0.5), 0]
    assert [disc[0].text for disc in discs] == ["C 0: +1", "O <1>: −0.5", "C 2: 0"]
    x = [float(disc.get("cx", "")) for disc in discs]
    y = [float(disc.get("cy", "")) for disc in discs]
    assert len(set(zip(x, y, strict=True))) == 3
    assert {element.get("class") for element in root if element.tag == "path"} <= {"stroke", "fill"}


@pytest.mark.parametrize("smiles", ["O", "[Na+].[Cl-]"])
def test_atoms_without_bonds_are_marked(smiles: str) -> None:
    count = Chem.MolFromSmiles(smiles).GetNumAtoms()
    root = drawn(smiles, marks=[AtomMark(1.0, "an atom")] * count)
    assert [element.tag for element in root].count("circle") == count


def test_a_molecule_with_too_many_atoms_is_not_drawn() -> None:
    assert draw_molecule(Chem.MolFromSmiles("C" * (MAX_ATOMS + 1)), "") is None


def test_only_molecules_are_drawable(monkeypatch: pytest.MonkeyPatch) -> None:
    molecules = gcaps.load(["CCO", "CCN"], labelled=False)
    assert are_drawable(molecules)
    assert not are_drawable(gcaps.load("MUTAG"))
    assert not are_drawable(None)
    monkeypatch.setattr("gcaps.report.molecule_drawing.find_spec", lambda name: None)
    assert not are_drawable(molecules)


def test_a_note_has_its_minus_sign():
    molecule = Chem.MolFromSmiles("CCO")
    pictures = {
        note: str(draw_molecule(molecule, "m", (340.0, 260.0), [AtomMark(-1.0, "C 0", note), *[AtomMark(0.0, "")] * 2]))
        for note in ("−5.5", "-5.5", "5.5")
    }
    assert pictures["−5.5"] == pictures["-5.5"] != pictures["5.5"]
