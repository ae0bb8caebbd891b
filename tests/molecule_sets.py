"""Small sets of molecules, and evaluations on them, for tests of reports and explanations."""

from __future__ import annotations

import csv
from pathlib import Path

import gcaps
from gcaps.evaluation.comparison import Comparison

CORES = ("c1ccc({})cc1", "C1CCC({})CC1", "c1cnc({})cc1", "CC({})CC", "c1ccc2cc({})ccc2c1", "CC(=O)C{}", "CCOC(C){}")
GROUPS = ("[N+](=O)[O-]", "N", "O", "C", "Cl", "C(=O)O", "C#N", "OC", "F", "N(C)C", "C(=O)N", "CO", "Br", "S")
NITRO = "[N+](=O)[O-]"


def molecules(count: int = 98) -> list[str]:
    """Return up to 98 different SMILES; every core with every group, the nitro group first."""
    return [core.format(group) for group in GROUPS for core in CORES][:count]


def write_table(path: Path, smiles: list[str], hostile: str = "") -> Path:
    """Write a table: ``value`` is a number, ``class`` a class, ``a`` and ``b`` are binary with missing values.

    The value is the number of characters, but for the third molecule; ``hostile`` replaces the first id.
    """
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "smiles", "value", "class", "a", "b"])
        for i, text in enumerate(smiles):
            nitro = int(NITRO in text)
            ring = int("1" in text)
            value = len(text) + 0.25 + (40 if i == 2 else 0)
            name = hostile if hostile and i == 0 else f"m{i}"
            rows.writerow([name, text, value, "yes" if nitro ^ (i == 2) else "no", ring, "" if i % 4 == 0 else nitro])
    return path


def evaluated(path: Path, target: str, methods: tuple[str, ...] = ("wl",), **options: object) -> Comparison:
    """Return a comparison of methods on a table."""
    return gcaps.compare([str(path)], list(methods), run=None, folds=3, reading={"target": target}, **options)
