"""Functional groups of molecules, found by SMARTS patterns."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gcaps.data.arrays import Ints
from gcaps.explain.atoms import AtomsOf

PATTERNS = (
    ("nitro", "[$([NX3](=O)=O),$([NX3+](=O)[O-])](~O)~O"),
    ("sulfonamide", "[SX4](=O)(=O)[NX3]"),
    ("sulfonyl", "[SX4](=O)(=O)([#6])[#6]"),
    ("sulfonic acid", "[SX4](=O)(=O)[OX2H,OX1-]"),
    ("phosphate", "[PX4](=O)([OX2,OX1-])([OX2,OX1-])"),
    ("carboxylic acid", "[CX3](=O)[OX2H1,OX1-]"),
    ("ester", "[CX3](=O)[OX2H0][#6]"),
    ("urea", "[NX3][CX3](=O)[NX3]"),
    ("carbamate", "[NX3][CX3](=O)[OX2H0]"),
    ("amide", "[NX3][CX3](=O)[#6,H]"),
    ("acyl halide", "[CX3](=O)[F,Cl,Br,I]"),
    ("nitrile", "[CX2]#[NX1]"),
    ("azo", "[NX2]=[NX2]"),
    ("nitroso", "[NX2]=[OX1]"),
    ("aldehyde", "[CX3H1](=O)[#6,H]"),
    ("ketone", "[#6][CX3](=O)[#6]"),
    ("imine", "[CX3]=[NX2]"),
    ("epoxide", "[OX2r3]1[#6r3][#6r3]1"),
    ("thiol", "[#6][SX2H]"),
    ("thioether", "[#6][SX2H0][#6]"),
    ("trifluoromethyl", "[CX4](F)(F)F"),
    ("phenol", "[OX2H][c]"),
    ("alcohol", "[OX2H][CX4]"),
    ("ether", "[OD2]([#6;!$(C=O)])[#6;!$(C=O)]"),
    ("aromatic amine", "[NX3;!$(N=*);!$(N~[!#6]);!$(NC=O)]c"),
    ("amine", "[NX3,NX4+;!$(N=*);!$(N#*);!$(N~[!#6]);!$(NC=[O,S,N]);!$(Nc)][CX4]"),
    ("alkyne", "[CX2]#[CX2]"),
    ("alkene", "[CX3]=[CX3]"),
    ("fluoride", "[#6][F]"),
    ("chloride", "[#6][Cl]"),
    ("bromide", "[#6][Br]"),
    ("iodide", "[#6][I]"),
)
"""Name and SMARTS of each group; a group within one listed before it is left out."""


@cache
def _patterns() -> tuple[tuple[str, Any], ...]:
    from rdkit import Chem

    return tuple((name, Chem.MolFromSmarts(smarts)) for name, smarts in PATTERNS)


def functional_groups(atoms: AtomsOf) -> list[tuple[str, Ints]]:
    """Return name and nodes of each functional group and ring system of a molecule, with their hydrogens.

    Carbons that a pattern needs for context only, such as that of an alcohol, are not part of the group.
    """
    taken: set[int] = set()
    found: list[tuple[str, frozenset[int]]] = []
    for name, pattern in _patterns():
        for match in atoms.molecule.GetSubstructMatches(pattern):
            members = _core(atoms.molecule, match)
            if members and not members <= taken:
                taken |= members
                found.append((name, members))
    found += [(name, ring) for name, ring in ring_systems(atoms.molecule)]
    return [(name, np.flatnonzero(np.isin(atoms.atom, list(members)))) for name, members in found]


def _core(molecule: Any, match: tuple[int, ...]) -> frozenset[int]:
    """Return the atoms of a match without carbons that have no multiple bond and no heteroatom in the match alone."""
    inside = set(match)
    kept = set()
    for number in match:
        atom = molecule.GetAtomWithIdx(number)
        if atom.GetAtomicNum() != 6:
            kept.add(number)
            continue
        for bond in atom.GetBonds():
            if bond.GetOtherAtomIdx(number) in inside and bond.GetBondTypeAsDouble() in (2.0, 3.0):
                kept.add(number)
    return frozenset(kept)


def ring_systems(molecule: Any) -> list[tuple[str, frozenset[int]]]:
    """Return ring systems, fused rings as one, with a name made of size and kind."""
    systems: list[set[int]] = []
    counts: list[int] = []
    for ring in molecule.GetRingInfo().AtomRings():
        own, number = set(ring), 1
        for place in reversed(range(len(systems))):
            if len(systems[place] & own) >= 2:
                own |= systems.pop(place)
                number += counts.pop(place)
        systems.append(own)
        counts.append(number)
    return [(_ring_name(molecule, own, number), frozenset(own)) for own, number in zip(systems, counts, strict=True)]


def _ring_name(molecule: Any, own: set[int], rings: int) -> str:
    atoms = [molecule.GetAtomWithIdx(i) for i in own]
    aromatic = all(atom.GetIsAromatic() for atom in atoms)
    carbons = all(atom.GetAtomicNum() == 6 for atom in atoms)
    if rings > 1:
        return f"{'aromatic ' if aromatic else ''}system of {rings} rings"
    if aromatic and carbons and len(own) == 6:
        return "benzene ring"
    kind = "aromatic " if aromatic else ""
    return f"{kind}{'carbon' if carbons else 'hetero'} ring of {len(own)}"
