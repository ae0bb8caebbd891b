"""Awkward molecules and what becomes of each, for the tests and for a table of the documentation.

    python tests/data/awkward_molecules.py

rewrites the table in docs/guides/molecules.md.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

import gcaps
from gcaps.data.molecules.featurizer import ATOM_LABELS, BOND_LABELS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guides" / "molecules.md"
MARKED = re.compile(r"(<!-- awkward molecules -->\n).*(<!-- end of awkward molecules -->\n)", re.DOTALL)
_COLUMN = {name: i for i, name in enumerate(ATOM_LABELS)}


class Molecule(NamedTuple):
    title: str
    smiles: str


MOLECULES = [
    Molecule("methane, one atom", "C"),
    Molecule("hydrogen", "[H][H]"),
    Molecule("a proton", "[H+]"),
    Molecule("helium", "[He]"),
    Molecule("water with written hydrogens", "[H]O[H]"),
    Molecule("heavy water", "[2H]O[2H]"),
    Molecule("carbon-13", "[13CH4]"),
    Molecule("tritiated toluene", "[3H]Cc1ccccc1"),
    Molecule("methyl radical", "[CH3]"),
    Molecule("oxygen, triplet", "[O][O]"),
    Molecule("TEMPO, a stable radical", "CC1(C)CCCC(C)(C)N1[O]"),
    Molecule("carbene", "[CH2]"),
    Molecule("sodium chloride", "[Na+].[Cl-]"),
    Molecule("hydrochloride of an amine", "CCN.Cl"),
    Molecule("mixture of three", "CCO.O.c1ccccc1"),
    Molecule("zwitterion", "[NH3+]CC(=O)[O-]"),
    Molecule("quaternary ammonium", "C[N+](C)(C)C"),
    Molecule("charge of 4", "[Ti+4]"),
    Molecule("ferrocene, ionic", "[Fe+2].[cH-]1cccc1.[cH-]1cccc1"),
    Molecule("cisplatin, covalent", "N[Pt](N)(Cl)Cl"),
    Molecule("cisplatin, dative", "[NH3]->[Pt](<-[NH3])(Cl)Cl"),
    Molecule("vitamin B12 core: cobalt in a ring", "C1CN2CCN1[Co]2"),
    Molecule("Grignard reagent", "C[Mg]Br"),
    Molecule("tetraethyllead", "CC[Pb](CC)(CC)CC"),
    Molecule("uranyl", "O=[U+2]=O"),
    Molecule("oganesson", "[Og]"),
    Molecule("polymer with wildcards", "*CC(C)*"),
    Molecule("attachment points with numbers", "[*:1]c1ccccc1[*:2]"),
    Molecule("R group", "[R1]C"),
    Molecule("query: any aromatic atom", "a1aaaaa1"),
    Molecule("atom map of a reaction", "[CH3:1][OH:2]"),
    Molecule("reaction", "CCO>>CC=O"),
    Molecule("quadruple bond", "[Re]$[Re]"),
    Molecule("allene", "C=C=C"),
    Molecule("E and Z: trans", "F/C=C/F"),
    Molecule("E and Z: cis", "F/C=C\\F"),
    Molecule("L-alanine", "C[C@H](N)C(=O)O"),
    Molecule("D-alanine", "C[C@@H](N)C(=O)O"),
    Molecule("square planar", "F[Pt@SP1](F)(Cl)Cl"),
    Molecule("sulfur hexafluoride", "FS(F)(F)(F)(F)F"),
    Molecule("hexafluorophosphate", "F[P-](F)(F)(F)(F)F"),
    Molecule("diborane, bridged", "[BH2]1[H][BH2][H]1"),
    Molecule("nitro group, charged", "C[N+](=O)[O-]"),
    Molecule("nitro group, pentavalent", "CN(=O)=O"),
    Molecule("azide, pentavalent", "CN=N#N"),
    Molecule("carbon of five bonds", "C(C)(C)(C)(C)C"),
    Molecule("aromatic ring that cannot be", "c1cccc1"),
    Molecule("pyrrole without its hydrogen", "n1cccc1"),
    Molecule("unclosed ring", "C1CCC"),
    Molecule("unclosed bracket", "C[NH"),
    Molecule("unclosed parenthesis", "CC(C"),
    Molecule("unknown element", "[Xx]"),
    Molecule("a name, not a SMILES", "aspirin"),
    Molecule("a number", "12345"),
    Molecule("empty", ""),
    Molecule("blank", "   "),
    Molecule("SMILES with a name behind it", "CCO ethanol"),
    Molecule("blanks around it", "  CCO  "),
    Molecule("CXSMILES with labels", "*C |$R1;$|"),
    Molecule("InChI", "InChI=1S/CH4/h1H4"),
    Molecule("not ASCII: a Greek letter", "Cα"),
    Molecule("not ASCII: a dash for a minus", "C[N+](=O)[O−]"),
    Molecule("not ASCII: full-width letters", "ＣＣＯ"),
    Molecule("cubane", "C12C3C4C1C5C2C3C45"),
    Molecule("C60", "c12c3c4c5c1c1c6c7c2c2c8c3c3c9c4c4c%10c5c5c1c1c6c6c%11c7c2c2c7c8c3c3c8c9c4c4c9c%10c5c5c1c1c6c6c%11"
             "c2c2c7c3c3c8c4c4c9c5c1c1c6c2c3c41"),
    Molecule("peptide of 500 atoms", "N" + "CC(=O)N" * 125),
    Molecule("chain of 2,000 atoms", "C" * 2000),
    Molecule("60,000 characters", "C" * 60_000),
]  # fmt: skip


def outcome(smiles: str) -> str:
    """What becomes of a SMILES: its graph and what is special about it, or why it is left out."""
    try:
        graphs = gcaps.load([smiles, "C"], labelled=False, invalid="skip")
    except gcaps.errors.GcapsError as error:
        return f"error: {error}"
    if graphs.skipped:
        return f"left out: {graphs.skipped[0].reason}"
    graph = graphs[0]
    edges = graph.edge_index.shape[1] // 2
    nodes = f"{graph.num_nodes:,} node{'s' if graph.num_nodes > 1 else ''}"
    words = [f"{nodes}, {edges:,} edge{'' if edges == 1 else 's'}"]
    labels = graph.node_labels
    for name in ("charge", "radical electrons", "chirality"):
        found = sorted(set(labels[:, _COLUMN[name]].tolist()) - {0})
        if found:
            words.append(f"{name} {', '.join(map(str, found))}")
    if (labels[:, 0] == 0).any():
        count = int((labels[:, 0] == 0).sum())
        words.append(f"{count} wildcard{'s' if count > 1 else ''}")
    for name, plain in (("order", {1, 2, 3, 4}), ("stereo", {0})):
        found = sorted(set(graph.edge_labels[:, BOND_LABELS.index(name)].tolist()) - plain)
        if found:
            words.append(f"bond {name} {', '.join(map(str, found))}")
    return "; ".join(words)


def rows() -> str:
    """Return the table of the documentation."""
    lines = ["| molecule | SMILES | outcome |", "|---|---|---|"]
    for one in MOLECULES:
        shown = one.smiles if len(one.smiles) <= 40 else one.smiles[:24] + "…"
        text = outcome(one.smiles).replace("|", "\\|").replace("[", "\\[").replace("]", "\\]")
        if len(one.smiles) > 80:
            text = text.replace(one.smiles[:80], one.smiles[:16] + "…").replace(one.smiles[:40], one.smiles[:16])
        code = f"`{shown}`".replace("|", "\\|") if shown.strip() else ""
        lines.append(f"| {one.title} | {code} | {text} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(MARKED.sub(lambda found: found[1] + "\n" + rows() + "\n" + found[2], page), encoding="utf-8")
    sys.exit(0)
