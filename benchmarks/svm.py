"""Choice of C by cross-validation on a Gram matrix: gcaps against scikit-learn's SVC (LIBSVM) on the same splits.

    python benchmarks/svm.py [NAME ...] [--json FILE]

MUTAG by default; other sets need GCAPS_DATA. Weisfeiler-Lehman kernel with 4 iterations, C from 10⁻³ to 10³, five
folds. Times are processor seconds, the fastest of three runs, without compilation.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.svm import SVC

import gcaps
from gcaps.kernels import WeisfeilerLehman
from gcaps.kernels.svm import MAX_STEPS, accuracy_of, choose, inner_splits, svm_path

PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)


def fastest(compute: Callable[[], float], repeats: int = 3) -> tuple[float, float]:
    """Processor seconds of the fastest of several runs, and the value returned."""
    value, seconds = 0.0, []
    for _ in range(repeats):
        began = time.process_time()
        value = compute()
        seconds.append(time.process_time() - began)
    return min(seconds), value


def measure(name: str) -> dict[str, Any]:
    graphs = gcaps.load(name)
    y = np.unique(graphs.y, return_inverse=True)[1]
    K = WeisfeilerLehman(4, edge_labels=False).fit_transform(graphs)
    splits = inner_splits(y, 5, 0)

    def svc() -> float:
        accuracy = np.zeros((len(splits), len(PENALTIES)))
        for s, (train, validation) in enumerate(splits):
            inside, across = K[np.ix_(train, train)], K[np.ix_(validation, train)]
            for c, C in enumerate(PENALTIES):
                classifier = SVC(C=C, kernel="precomputed", cache_size=500, max_iter=MAX_STEPS, break_ties=True)
                accuracy[s, c] = classifier.fit(inside, y[train]).score(across, y[validation])
        return float(accuracy.mean(axis=0).max())

    list(svm_path(K[:20, :20], np.arange(20) % 2, [1.0]))  # compiles
    ours, accuracy = fastest(lambda: choose([K], accuracy_of(y), PENALTIES, splits).score)
    theirs, expected = fastest(svc)
    return {"data": name, "gcaps": ours, "svc": theirs, "ratio": theirs / ours, "accuracies": [accuracy, expected]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["MUTAG"])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # LIBSVM warns if it stops at the limit
    rows = [measure(name) for name in options.names]
    table = Table("data set", "gcaps, s", "SVC, s", "times faster", "best inner accuracy, %: gcaps", "SVC")
    for row in rows:
        figures = f"{row['gcaps']:.3f}", f"{row['svc']:.3f}", f"{row['ratio']:.1f}"
        table.add_row(row["data"], *figures, *(f"{100 * value:.2f}" for value in row["accuracies"]))
    Console(width=110).print(table)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
