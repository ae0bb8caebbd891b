"""Property prediction for molecules: gcaps, chemprop and Morgan fingerprints with a forest on the same divisions.

    python benchmarks/molecules.py run RUN --data FOLDER [--sets ESOL ...] [--splits random scaffold] [--seeds 0 1 2]
                                   [--methods gcaps chemprop ...] [--chemprop PROGRAM] [--without FILE]
    python benchmarks/molecules.py table RUN [--json FILE]

FOLDER holds MoleculeNet's tables as CSV. Every cell (set, split, seed, method) is a file in RUN: an interrupted run
is resumed by the same command, and several may work on one RUN at once; ``run --without FILE`` leaves out the cells
of a JSON file that ``table --json FILE`` wrote, and ``table`` keeps those. A division puts 80 % of the molecules into
the training, 10 % into the validation and 10 % into the test part, at random or by balanced Bemis–Murcko scaffolds.
All methods train on the training part and are tested on the test part; chemprop, which picks its epoch on validation
molecules, has the validation part for that, the others do not see it.

Every method is used through its command line, in processes of their own with one thread: ``gcaps train`` and ``gcaps
predict``; ``chemprop train`` and ``chemprop predict`` of an environment of its own (python -m venv E; E/bin/pip install
torch==2.13.0 chemprop==2.3.1; --chemprop E/bin/chemprop); RDKit and scikit-learn by ``benchmarks/molecules.py forest``.
Times are processor seconds of the process, imports and reading included, peaks are resident memory. ``chemprop@1`` to
``chemprop@5`` are the models of chemprop's ensemble, each with a seed of its own; the table averages their predictions.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import numpy as np

PROGRAM = Path(sys.executable).parent
PARTS = ("train", "val", "test")
TREES, BITS, RADIUS = 500, 2048, 2
MEMBERS = 5
"""Models of chemprop's ensemble."""


class Table(NamedTuple):
    """A table of MoleculeNet."""

    file: str
    targets: tuple[str, ...]
    task: str
    """regression, classification, or multilabel."""


TABLES = {
    "FreeSolv": Table("FreeSolv.csv", ("expt",), "regression"),
    "ESOL": Table("ESOL.csv", ("measured log solubility in mols per litre",), "regression"),
    "Lipophilicity": Table("Lipophilicity.csv", ("exp",), "regression"),
    "BBBP": Table("BBBP.csv", ("p_np",), "classification"),
    "BACE": Table("BACE.csv", ("Class",), "classification"),
    "Tox21": Table(
        "Tox21.csv",
        (
            *("NR-AR", "NR-AR-LBD", "NR-AhR", "NR-Aromatase", "NR-ER", "NR-ER-LBD", "NR-PPAR-gamma"),
            *("SR-ARE", "SR-ATAD5", "SR-HSE", "SR-MMP", "SR-p53"),
        ),
        "multilabel",
    ),
    "HIV": Table("HIV.csv.gz", ("HIV_active",), "classification"),
}
GCAPS: dict[str, list[str]] = {
    "gcaps": ["--ensemble-size", "1", "--with-svm", "off"],
    "ensemble": ["--method", "ensemble", "--weights", "mean"],
}
"""Options of ``gcaps train``: one network, and the plain mean of a network, fingerprints, descriptors and a kernel."""


class Cell(NamedTuple):
    """One model to train and test."""

    data: str
    split: str
    seed: int
    method: str

    @property
    def name(self) -> str:
        return "-".join(map(str, self))


def cell_of(found: dict[str, Any]) -> Cell:
    """Return which cell a record is of."""
    return Cell(*(found[field] for field in Cell._fields))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run")
    run.add_argument("folder", type=Path)
    run.add_argument("--data", type=Path, required=True)
    run.add_argument("--sets", nargs="+", default=list(TABLES), choices=list(TABLES))
    run.add_argument("--splits", nargs="+", default=["random", "scaffold"], choices=["random", "scaffold"])
    run.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    run.add_argument("--methods", nargs="+", default=["forest", *GCAPS, "chemprop"])
    run.add_argument("--chemprop", type=Path, default=Path("chemprop"), metavar="PROGRAM")
    run.add_argument("--without", type=Path, metavar="FILE")
    table = verbs.add_parser("table")
    table.add_argument("folder", type=Path)
    table.add_argument("--json", type=Path)
    forest = verbs.add_parser("forest")
    forest.add_argument("task")
    forest.add_argument("files", type=Path, nargs=3, metavar="TRAIN TEST PREDICTIONS")
    given = parser.parse_args()
    if given.verb == "forest":
        fit_forest(given.task, *given.files)
    elif given.verb == "table":
        print_table(given.folder, given.json)
    else:
        done = set() if given.without is None else {cell_of(one) for one in json.loads(given.without.read_text())}
        for data in given.sets:
            for seed in given.seeds:
                for split in given.splits:
                    for method in given.methods:
                        if (cell := Cell(data, split, seed, method)) not in done:
                            run_cell(cell, given.folder, given.data, given.chemprop)


# --- divisions ---


def division(cell: Cell, folder: Path, data: Path) -> Path:
    """Return the table of a division: SMILES, targets and the part of each molecule; made once."""
    goal = folder / "divisions" / f"{cell.data}-{cell.split}-{cell.seed}.csv"
    if goal.exists():
        return goal
    from rdkit import Chem, rdBase
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

    table = TABLES[cell.data]
    path = data / table.file
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as text, rdBase.BlockLogs():
        rows = [row for row in csv.DictReader(text) if Chem.MolFromSmiles(row["smiles"]) is not None]
        rng = np.random.default_rng(cell.seed)
        if cell.split == "random":
            place = random_parts(len(rows), rng)
        else:
            scaffold = [MurckoScaffoldSmiles(mol=Chem.MolFromSmiles(row["smiles"])) for row in rows]
            place = balanced_scaffold_parts(scaffold, rng)
    goal.parent.mkdir(parents=True, exist_ok=True)
    partial = goal.with_suffix(f".{os.getpid()}")
    with partial.open("w", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(["smiles", *table.targets, "split"])
        for row, part in zip(rows, place, strict=True):
            writer.writerow([row["smiles"].strip(), *(row[name] for name in table.targets), PARTS[part]])
    partial.rename(goal)
    return goal


def random_parts(count: int, rng: np.random.Generator) -> np.ndarray:
    """[n] 0, 1 or 2: 80 % for training, 10 % for validation, the rest for the test."""
    place = np.full(count, 2)
    order = rng.permutation(count)
    place[order[: int(0.8 * count)]] = 0
    place[order[int(0.8 * count) : int(0.9 * count)]] = 1
    return place


def balanced_scaffold_parts(scaffolds: list[str], rng: np.random.Generator) -> np.ndarray:
    """[n] as :func:`random_parts`, with every scaffold in one part.

    Scaffolds of more molecules than half a test part come first, so that they are trained on; the others follow in
    random order (the balanced scaffold split of chemprop).
    """
    members = defaultdict(list)
    for i, scaffold in enumerate(scaffolds):
        members[scaffold].append(i)
    count = len(scaffolds)
    groups = list(members.values())
    groups = [groups[i] for i in rng.permutation(len(groups))]
    large = [group for group in groups if len(group) > 0.05 * count]
    small = [group for group in groups if len(group) <= 0.05 * count]
    place, filled = np.zeros(count, dtype=np.int64), [0, 0, 0]
    for group in [*large, *small]:
        if filled[0] + len(group) <= 0.8 * count:
            part = 0
        elif filled[1] + len(group) <= 0.1 * count:
            part = 1
        else:
            part = 2
        place[group] = part
        filled[part] += len(group)
    return place


# --- cells ---


def run_cell(cell: Cell, folder: Path, data: Path, chemprop: Path) -> None:
    """Train and test one model, unless that is done or another process is at it."""
    goal = folder / "cells" / f"{cell.name}.json"
    goal.parent.mkdir(parents=True, exist_ok=True)
    if goal.exists():
        return
    lock = goal.with_suffix(".lock")
    try:
        with lock.open("x") as text:
            text.write(str(os.getpid()))
    except FileExistsError:
        holder = lock.read_text()
        if not holder or Path(f"/proc/{holder}").exists():
            return
        lock.write_text(str(os.getpid()))
    try:
        with tempfile.TemporaryDirectory() as place:
            found = measure(cell, division(cell, folder, data), Path(place), chemprop)
        partial = goal.with_suffix(".partial")
        partial.write_text(json.dumps(found))
        partial.rename(goal)
        print(
            f"{cell.name}: {found['metric']} {found['value']:.4f}, training {found['train']['cpu']:.1f} s, "
            f"prediction {found['predict']['cpu']:.1f} s, {found['train']['peak'] / 2**20:.0f} MiB",
            flush=True,
        )
    finally:
        lock.unlink()


def measure(cell: Cell, table: Path, place: Path, chemprop: Path) -> dict[str, Any]:
    """Train and test one model in the folder ``place``."""
    about = TABLES[cell.data]
    with table.open(newline="") as text:
        rows = list(csv.DictReader(text))
    train, test = ([row for row in rows if row["split"] == part] for part in ("train", "test"))
    for name, some in (("train", train), ("test", test)):
        with (place / f"{name}.csv").open("w", newline="") as text:
            writer = csv.DictWriter(text, ["smiles", *about.targets], extrasaction="ignore")
            writer.writeheader()
            writer.writerows(some)
    cost, commands, columns = {}, [], list(about.targets)
    if cell.method.startswith("chemprop"):
        member = int(cell.method.partition("@")[2] or 0)
        task = "regression" if about.task == "regression" else "classification"
        train_command = [
            *(str(chemprop), "train", "--data-path", str(table), "--smiles-columns", "smiles"),
            *("--target-columns", *about.targets, "--splits-column", "split", "--task-type", task),
            *("--output-dir", str(place / "model"), "--pytorch-seed", str(10 * cell.seed + member)),
            *("--accelerator", "cpu", "--devices", "1"),
        ]
        predict_command = [
            *(str(chemprop), "predict", "--test-path", str(place / "test.csv"), "--smiles-columns", "smiles"),
            *("--model-paths", str(place / "model" / "model_0" / "best.pt"), "--accelerator", "cpu", "--devices", "1"),
            *("--preds-path", str(place / "predictions.csv")),
        ]
        commands = [train_command, predict_command]
    elif cell.method == "forest":
        files = [str(place / name) for name in ("train.csv", "test.csv", "predictions.csv")]
        commands = [[sys.executable, __file__, "forest", about.task, *files]]
    else:
        train_command = [
            *(str(PROGRAM / "gcaps"), "train", str(place / "train.csv"), "--smiles", "smiles", "--task", about.task),
            *("--target", ",".join(about.targets), "-o", str(place / "model"), "--seed", str(cell.seed)),
            *GCAPS[cell.method],
        ]
        predict_command = [
            *(str(PROGRAM / "gcaps"), "predict", str(place / "model"), str(place / "test.csv"), "--smiles", "smiles"),
            *("-o", str(place / "predictions.csv")),
        ]
        commands = [train_command, predict_command]
        if about.task == "multilabel":
            columns = [f"p({name} = 1)" for name in about.targets]
        elif about.task == "classification":
            columns = ["p(1)"]
    for step, command in zip(("train", "predict"), commands, strict=False):
        cost[step] = run_measured(command)
    with (place / "predictions.csv").open(newline="") as text:
        predicted = np.array([[float(row[name]) for name in columns] for row in csv.DictReader(text)])
    cost.setdefault("predict", cost["train"])  # one command does both
    truth = np.array([[float(row[name] or "nan") for name in about.targets] for row in test])
    metric, value = score(about.task, truth, predicted)
    return {
        **cell._asdict(),
        "task": about.task,
        "metric": metric,
        "value": value,
        "molecules": {"train": len(train), "test": len(test)},
        **cost,
        "commands": [
            " ".join(Path(part).name if part.startswith("/") else part for part in command) for command in commands
        ],
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "predictions": np.round(predicted, 6).tolist(),
        "truth": [[None if np.isnan(v) else v for v in row] for row in truth.tolist()],
    }


def run_measured(command: list[str]) -> dict[str, float]:
    """Run a command with one thread; its processor and wall time in seconds, and the peak of its memory in bytes."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    began = time.perf_counter()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, env=os.environ | threads)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise SystemExit(f"{' '.join(command)}\n{said.read()[-3000:]}")
    cpu, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
    return {"cpu": round(cpu, 2), "wall": round(time.perf_counter() - began, 2), "peak": peak}


def score(task: str, truth: np.ndarray, predicted: np.ndarray) -> tuple[str, float]:
    """RMSE, or ROC AUC; the mean over the targets where it is defined."""
    from sklearn.metrics import roc_auc_score

    found = []
    for y, p in zip(truth.T, predicted.T, strict=True):
        known = ~np.isnan(y)
        if task == "regression":
            found.append(float(np.sqrt(np.mean((y[known] - p[known]) ** 2))))
        elif len(np.unique(y[known])) == 2:
            found.append(float(roc_auc_score(y[known], p[known])))
    return ("RMSE" if task == "regression" else "ROC AUC"), mean(found)


def fit_forest(task: str, train: Path, test: Path, goal: Path) -> None:
    """The usual baseline: a random forest of 500 trees on ECFP4 counts, as one would write it."""
    from rdkit import Chem
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    generator = GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    tables = []
    for path in (train, test):
        with path.open(newline="") as text:
            rows = list(csv.DictReader(text))
        counts = [generator.GetCountFingerprintAsNumPy(Chem.MolFromSmiles(row["smiles"])) for row in rows]
        targets = [name for name in rows[0] if name != "smiles"]
        tables.append((np.stack(counts), np.array([[float(row[t] or "nan") for t in targets] for row in rows])))
    (x, y), (unseen, _) = tables
    columns = []
    for column in y.T:
        known = ~np.isnan(column)
        if task == "regression":
            columns.append(RandomForestRegressor(TREES, random_state=0).fit(x[known], column[known]).predict(unseen))
        else:
            forest = RandomForestClassifier(TREES, random_state=0).fit(x[known], column[known].astype(int))
            columns.append(forest.predict_proba(unseen)[:, 1])
    with goal.open("w", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(targets)
        writer.writerows(zip(*columns, strict=True))


# --- tables ---


def print_table(folder: Path, goal: Path | None) -> None:
    """Print quality and cost of every method; add the cells, without their predictions, to a JSON file."""
    cells = [json.loads(path.read_text()) for path in sorted((folder / "cells").glob("*.json"))]
    cells += ensembles(cells)
    if goal is not None and goal.exists():
        own = {cell_of(cell) for cell in cells}
        cells += [cell for cell in json.loads(goal.read_text()) if cell_of(cell) not in own]
        cells.sort(key=cell_of)
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for cell in cells:
        found[cell["data"], cell["split"], cell["method"]].append(cell)
    for (data, split, method), some in sorted(found.items()):
        values = [cell["value"] for cell in some]
        spread = f" ± {stdev(values):.3f}" if len(values) > 1 else ""
        cpu = mean(cell["train"]["cpu"] for cell in some)
        print(f"{data:14} {split:9} {method:14} {mean(values):.3f}{spread} ({len(values)}), {cpu:.0f} s")
    if goal is not None:
        kept = [
            {key: value for key, value in cell.items() if key not in ("predictions", "truth")}
            for cell in cells
            if "@" not in cell["method"]
        ]
        goal.write_text(json.dumps(kept, indent=1) + "\n")


def ensembles(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the mean of chemprop's models wherever all five were trained."""
    members: dict[tuple[str, str, int], list[dict[str, Any]]] = defaultdict(list)
    for cell in cells:
        if cell["method"].startswith("chemprop@"):
            members[cell["data"], cell["split"], cell["seed"]].append(cell)
    found = []
    for some in members.values():
        if len(some) == MEMBERS:
            predicted = np.mean([cell["predictions"] for cell in some], axis=0)
            truth = np.array(some[0]["truth"], dtype=float)
            cost = {
                step: {
                    "cpu": round(sum(c[step]["cpu"] for c in some), 2),
                    "peak": max(c[step]["peak"] for c in some),
                }
                for step in ("train", "predict")
            }
            value = score(some[0]["task"], truth, predicted)[1]
            found.append({**some[0], "method": "chemprop-ensemble", "value": value, **cost})
    return found


if __name__ == "__main__":
    main()
