"""Molecules a second: SMILES to graphs with gcaps, PyTorch Geometric and chemprop; and tables of a million SMILES.

    python benchmarks/featurization.py --table HIV.csv.gz [--molecules 5000] [--repeats 3] [--chemprop PYTHON]
                                       [--predict 1000000] [--short]

Every library turns the same SMILES into its own graphs with atoms and bonds as features: ``gcaps.load`` (one set),
``torch_geometric.utils.from_smiles`` (a list of Data), chemprop's ``SimpleMoleculeMolGraphFeaturizer`` (a list of
MolGraphs; PYTHON is the interpreter of an environment with chemprop). Best of the repeats, one process, alternating;
gcaps also with two processes on all molecules of the table. ``--predict N`` writes a table of N SMILES (those of TABLE
over and over), predicts it with ``gcaps predict`` and a small network, and says rows a second and the peak of resident
memory, and the same for a tenth of N. ``--short`` is a table of generated molecules.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

from rich.console import Console
from rich.table import Table

CHEMPROP = """
import json, sys, time
from rdkit import Chem, RDLogger
from chemprop.featurizers import SimpleMoleculeMolGraphFeaturizer
RDLogger.DisableLog("rdApp.*")
smiles, repeats = json.load(sys.stdin)
featurizer = SimpleMoleculeMolGraphFeaturizer()
found = []
for _ in range(repeats):
    began = time.perf_counter()
    graphs = [featurizer(Chem.MolFromSmiles(text)) for text in smiles]
    found.append(time.perf_counter() - began)
print(min(found))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--molecules", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--chemprop", type=Path, metavar="PYTHON")
    parser.add_argument("--predict", type=int, default=0, metavar="N")
    parser.add_argument("--short", action="store_true")
    given = parser.parse_args()
    every = short_molecules() if given.short or given.table is None else read_table(given.table)
    smiles = every[: given.molecules]
    table = Table("", "molecules/s", "times gcaps")
    own = gcaps_seconds(smiles, given.repeats, 1)
    table.add_row("gcaps, one process", f"{len(smiles) / own:,.0f}", "1")
    found = {"PyTorch Geometric, from_smiles": pyg_seconds(smiles, given.repeats)}
    if given.chemprop is not None:
        found["chemprop, MolGraph"] = chemprop_seconds(smiles, given.repeats, given.chemprop)
    for name, seconds in found.items():
        table.add_row(name, f"{len(smiles) / seconds:,.0f}", f"{own / seconds:.2f}")
    for jobs in (1, 2):
        seconds = gcaps_seconds(every, given.repeats, jobs)
        table.add_row(f"gcaps, all {len(every):,}, {jobs} processes", f"{len(every) / seconds:,.0f}", "")
    Console().print(table)
    if given.predict:
        for count in (given.predict // 10, given.predict):
            print(predicted(every, count))


def read_table(path: Path) -> list[str]:
    """Return the SMILES of a table that RDKit reads."""
    from rdkit import Chem, rdBase

    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as text, rdBase.BlockLogs():
        return [row["smiles"] for row in csv.DictReader(text) if Chem.MolFromSmiles(row["smiles"]) is not None]


def short_molecules() -> list[str]:
    """Return a few hundred chains and rings with substituents."""
    groups = ("O", "N", "Cl", "C(=O)O", "C#N", "c1ccccc1", "C1CCNCC1", "[N+](=O)[O-]")
    return [f"{'C' * n}C({a}){b}" for n in range(1, 7) for a in groups for b in groups]


def gcaps_seconds(smiles: list[str], repeats: int, jobs: int) -> float:
    import gcaps

    return best(lambda: gcaps.load(smiles, labelled=False, n_jobs=jobs), repeats)


def pyg_seconds(smiles: list[str], repeats: int) -> float:
    from torch_geometric.utils import from_smiles

    return best(lambda: [from_smiles(text) for text in smiles], repeats)


def chemprop_seconds(smiles: list[str], repeats: int, python: Path) -> float:
    given = json.dumps([smiles, repeats])
    found = subprocess.run([python, "-c", CHEMPROP], input=given, capture_output=True, text=True, check=True)
    return float(found.stdout)


def best(compute: object, repeats: int) -> float:
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        compute()  # type: ignore[operator]
        found.append(time.perf_counter() - began)
    return min(found)


def predicted(smiles: list[str], count: int) -> str:
    """Predict a table of ``count`` SMILES through the command line; say its speed and its peak of memory."""
    import gcaps

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        some = smiles[:500]
        model = gcaps.GraphCapsuleRegressor(epochs=2, ensemble_size=1, with_svm=False)
        model.fit(gcaps.load(some, labelled=False), [len(text) for text in some]).save(folder / "model")
        with (folder / "table.csv").open("w") as text:
            text.write("smiles\n")
            text.writelines(f"{one}\n" for one in islice(cycle(smiles), count))
        program = Path(sys.executable).with_name("gcaps")
        command = [program, "predict", folder / "model", folder / "table.csv", "-o", folder / "predictions.csv"]
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
        rows = sum(1 for _ in (folder / "predictions.csv").open()) - 1
        assert (process.returncode, rows) == (0, count)
    return (
        f"gcaps predict, {count:,} SMILES: {count / seconds:,.0f} rows/s, {seconds:.0f} s, peak of the main process "
        f"{usage.ru_maxrss / 1024:,.0f} MiB"
    )


if __name__ == "__main__":
    main()
