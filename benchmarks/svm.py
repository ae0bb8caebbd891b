"""Choosing C by cross-validation on a Gram matrix: gcaps against scikit-learn's SVC (LIBSVM), the same splits.

    python benchmarks/svm.py [NAME ...] [--json FILE]

MUTAG by default; other sets need GCAPS_DATA. Weisfeiler-Lehman kernel, h = 4, C from 10⁻³ to 10³, five folds. Times are
processor seconds, compiling not counted.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.svm import SVC

import gcaps
from gcaps.kernels import WeisfeilerLehman, WLConfig
from gcaps.kernels.svm import MAX_STEPS, choose, inner_splits, svm_path


def measure(name: str) -> dict[str, Any]:
    graphs = gcaps.load(name)
    y, penalties = np.unique(graphs.y, return_inverse=True)[1], WLConfig().C
    K = WeisfeilerLehman(4, normalize=True).fit_transform(graphs)
    splits = inner_splits(y, 5, 0)
    list(svm_path(K[:20, :20], np.arange(20) % 2, [1.0]))  # compiles
    began = time.process_time()
    choice = choose([K], y, penalties, splits)
    ours = time.process_time() - began
    began = time.process_time()
    accuracy = np.zeros((len(splits), len(penalties)))
    for s, (learn, check) in enumerate(splits):
        inside, across = K[np.ix_(learn, learn)], K[np.ix_(check, learn)]
        for c, C in enumerate(sorted(penalties)):
            machine = SVC(C=C, kernel="precomputed", cache_size=500, max_iter=MAX_STEPS, break_ties=True)
            accuracy[s, c] = machine.fit(inside, y[learn]).score(across, y[check])
    theirs = time.process_time() - began
    best = float(accuracy.mean(axis=0).max())
    return {"data": name, "gcaps": ours, "svc": theirs, "ratio": theirs / ours, "accuracies": [choice.accuracy, best]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["MUTAG"])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # LIBSVM's, where it stops at the limit
    rows = [measure(name) for name in options.names]
    table = Table("data set", "gcaps, s", "SVC, s", "times faster", "best inner accuracy, %: gcaps", "SVC")
    for row in rows:
        figures = f"{row['gcaps']:.2f}", f"{row['svc']:.2f}", f"{row['ratio']:.1f}"
        table.add_row(row["data"], *figures, *(f"{100 * value:.2f}" for value in row["accuracies"]))
    Console(width=110).print(table)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
