"""Drawing of a molecule by RDKit, reduced to a few paths whose colors come from the page's style sheet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from importlib.util import find_spec
from typing import Any, NamedTuple
from xml.etree import ElementTree  # nosec B405  # of drawings that RDKit has just made

import numpy as np
from markupsafe import Markup

from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet
from gcaps.escaping import visible
from gcaps.report.chart import coordinate

MAX_ATOMS = 200
"""Molecules with more heavy atoms are not drawn."""
SIZE = (230.0, 170.0)
"""Width and height of a drawing in CSS pixels."""
BOND_LENGTH, MARKED_BOND_LENGTH = 24.0, 38.0
"""Pixels of a bond in a plain drawing and in one with marks; shorter where the molecule would not fit."""
COLORS = {7: "blue", 8: "red", 9: "green", 15: "orange", 16: "k6", 17: "green", 35: "k7", 53: "purple"}
"""Class of the style sheet for atoms of an element, by atomic number; others have the color of text."""

_SVG = "{http://www.w3.org/2000/svg}"
_STEPS = re.compile(r"[MLQCZ]|-?\d+(?:\.\d+)?")
_CODES = {f"#0000{code:02X}": kind for code, kind in enumerate(dict.fromkeys(COLORS.values()), 1)}
"""Classes of the style sheet by the placeholder colors that RDKit draws with."""


class AtomMark(NamedTuple):
    """A disc behind an atom."""

    strength: float
    """From −1 to 1: the sign chooses the color, the size its intensity."""
    words: str
    """Shown when the pointer rests on the atom."""
    note: str = ""
    """Short text beside the atom."""


class BondMark(NamedTuple):
    """A line behind a bond."""

    begin: int
    """Atom of the molecule."""
    end: int
    strength: float
    """From −1 to 1, as of an atom; the size also decides the width."""
    words: str
    """Shown when the pointer rests on the bond."""


def are_drawable(graphs: GraphSet | None) -> bool:
    """Whether graphs are molecules that RDKit can draw here."""
    return graphs is not None and "smiles" in graphs.columns and find_spec("rdkit") is not None


def draw_molecule(
    molecule: Any,
    label: str,
    size: tuple[float, float] = SIZE,
    marks: Sequence[AtomMark] = (),
    bonds: Sequence[BondMark] = (),
) -> Markup | None:
    """Return a molecule as an SVG element; None if it is too large or RDKit cannot lay it out.

    Only the outlines of RDKit's drawing are kept, as at most two paths for each color, so nothing else that its output
    might contain reaches the page.

    Args:
        molecule: RDKit molecule.
        label: text alternative for screen readers.
        size: width and height in CSS pixels.
        marks: one for each atom; with them, all atoms have the color of text.
        bonds: those with a line behind them, where there are marks of atoms.
    """
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdDepictor
    from rdkit.Chem.Draw import rdMolDraw2D

    if molecule.GetNumHeavyAtoms() > MAX_ATOMS:
        return None
    drawn: Any = Chem.Mol(molecule)
    for atom, mark in zip(drawn.GetAtoms(), marks, strict=False):
        if mark.note:
            atom.SetProp("atomNote", mark.note.replace("−", "-"))  # RDKit's font has no minus sign
    drawer: Any = rdMolDraw2D.MolDraw2DSVG(round(size[0]), round(size[1]))
    _configure(drawer.drawOptions(), plain=bool(marks))
    with rdBase.BlockLogs():
        try:
            rdDepictor.Compute2DCoords(drawn)
            rdDepictor.StraightenDepiction(drawn)
            drawer.DrawMolecule(_prepared(drawn))
        except (ValueError, RuntimeError):
            return None
    drawer.FinishDrawing()
    places = [drawer.GetDrawCoords(i) for i in range(len(marks))]
    at = np.array([(p.x, p.y) for p in places]).reshape(-1, 2)
    discs = _discs(at, drawn, marks)
    lines = "".join(marked_line(at[bond.begin], at[bond.end], bond.strength, bond.words) for bond in bonds)
    box = f"0 0 {coordinate(size[0])} {coordinate(size[1])}"
    head = f'<svg class="chart mol" viewBox="{box}" role="img" aria-label="{escape(visible(label))}"'
    style = f'style="max-width:{coordinate(1.2 * size[0])}px"'
    return Markup(f"{head} {style}>{lines}{discs}{_paths(drawer.GetDrawingText())}</svg>")


def _configure(options: Any, *, plain: bool) -> None:
    """Set how RDKit draws.

    Args:
        options: RDKit's drawing options.
        plain: all atoms have the color of text.
    """
    options.clearBackground = False
    options.fixedBondLength = MARKED_BOND_LENGTH if plain else BOND_LENGTH
    options.padding = 0.04
    options.minFontSize, options.maxFontSize = 6, 15
    options.annotationFontScale = 0.65
    codes = {kind: int(code[-2:], 16) / 255 for code, kind in _CODES.items()}
    elements = {} if plain else {element: (0.0, 0.0, codes[kind]) for element, kind in COLORS.items()}
    options.setAtomPalette({-1: (0.0, 0.0, 0.0), 0: (0.0, 0.0, 0.0), **elements})
    options.setAnnotationColour((0.0, 0.0, 0.0))


def _prepared(molecule: Any) -> Any:
    """Return the molecule with wedges and, where possible, alternating bonds."""
    from rdkit.Chem.Draw import rdMolDraw2D

    try:
        return rdMolDraw2D.PrepareMolForDrawing(molecule)
    except ValueError:  # aromatic bonds without an alternating form
        return rdMolDraw2D.PrepareMolForDrawing(molecule, kekulize=False)


def _paths(text: str) -> str:
    """Return RDKit's bonds and letters: for each color a path of lines and one of filled outlines."""
    found: dict[tuple[str, str], list[str]] = {}
    for element in ElementTree.fromstring(text.encode("iso-8859-1")).iter(f"{_SVG}path"):  # nosec B314
        style = dict(part.split(":", 1) for part in element.get("style", "").split(";") if ":" in part)
        filled = style.get("fill", element.get("fill", "none"))
        if "class" not in element.attrib:
            continue  # corners between bonds; the style sheet rounds the ends of lines instead
        kind, color = ("stroke", style.get("stroke", "")) if filled == "none" else ("fill", filled)
        found.setdefault((kind, _CODES.get(color.upper(), "")), []).append(_steps(element.get("d", "")))
    return "".join(
        f'<path class="{f"{kind} {color}".strip()}" d="{"".join(steps)}"/>' for (kind, color), steps in found.items()
    )


def _steps(d: str) -> str:
    """Return the steps of a path with coordinates to a tenth of a pixel; everything else is left out."""
    out = ""
    for token in _STEPS.findall(d):
        text = token if token.isalpha() else coordinate(float(token))
        out += text if not out or text.isalpha() or out[-1].isalpha() or text[0] == "-" else f" {text}"
    return out


def _discs(places: Any, molecule: Any, marks: Sequence[AtomMark]) -> str:
    """Return a disc for each marked atom, with its description as a tooltip."""
    if not marks:
        return ""
    bonds = [(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in molecule.GetBonds()]
    ends = np.array(bonds, dtype=np.int64).reshape(-1, 2)
    inside = ends[(ends < len(marks)).all(axis=1)]
    lengths = np.linalg.norm(places[inside[:, 0]] - places[inside[:, 1]], axis=1)
    radius = coordinate(0.46 * float(np.median(lengths)) if len(lengths) else 0.46 * MARKED_BOND_LENGTH)
    return "".join(
        f'<circle class="{"raises" if mark.strength >= 0 else "lowers"}" cx="{coordinate(x)}" cy="{coordinate(y)}" '
        f'r="{radius}" fill-opacity="{opacity(mark.strength):.2f}">'
        f"<title>{escape(visible(mark.words))}</title></circle>"
        for (x, y), mark in zip(places.tolist(), marks, strict=True)
    )


def marked_line(a: Array, b: Array, strength: float, words: str, width: float = 9.0) -> str:
    """Return a line whose color and width show the contribution of an edge, with its description as a tooltip."""
    kind, size = "raises" if strength >= 0 else "lowers", min(abs(strength), 1.0)
    ends = " ".join(f'{name}="{coordinate(v)}"' for name, v in zip(("x1", "y1", "x2", "y2"), (*a, *b), strict=True))
    return (
        f'<line class="{kind}" {ends} stroke-width="{coordinate(1.2 + (width - 1.2) * size)}" '
        f'stroke-opacity="{0.15 + 0.7 * size:.2f}"><title>{escape(visible(words))}</title></line>'
    )


def opacity(strength: float) -> float:
    """Return the opacity of a disc for a strength from −1 to 1; letters stay readable on the strongest."""
    return 0.7 * min(abs(strength), 1.0)
