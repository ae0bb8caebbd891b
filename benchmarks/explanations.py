"""Are explanations right, and are they faithful? A planted motif, deletion and insertion curves, a randomised model.

    python benchmarks/explanations.py [motif] [fidelity]

`motif`: ROC-AUC of |contributions of nodes| against membership in a house that is planted in random trees, mean over 12
held-out graphs. `fidelity`: areas under the deletion curve (nodes are hidden, the most important first: larger is
better) and the insertion curve (they are shown again in that order: smaller is better) of predicted probabilities of
held-out graphs, for each attribution that the method allows and for nodes in random order; and the rank correlation
with the explanation of a randomised model (fresh weights; methods without weights are fitted to permuted classes).
GCAPS_DATA names the folder of the sets.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

import gcaps
from gcaps.data.graphset import GraphSet
from gcaps.data.synthetic import make_motifs
from gcaps.errors import ConfigError
from gcaps.estimators import GraphEstimator, make_estimator
from gcaps.explain import explain, fidelity_of, random_fidelity, randomised_correlation

ATTRIBUTIONS = ("substructures", "integrated-gradients", "gradient-x-input", "saliency", "occlusion")
MOTIF_TRAINING, MOTIF_TESTED, TESTED = 240, 24, 12
ONE_NETWORK = {"ensemble_size": 1, "with_svm": False}
MOTIF_MODELS: dict[str, dict[str, Any]] = {
    "gcaps": {"epochs": 20, **ONE_NETWORK},
    "capsule-svm": {},
    "gin": {"epochs": 40},
    "dgcnn": {"epochs": 60},
    "dcnn": {"epochs": 40},
    "pscn": {"epochs": 40},
    "ecc": {"epochs": 20},
    "deepsets": {"epochs": 30},
    "wl": {"n_iter": (1,)},
    "wloa": {"n_iter": (1,)},
    "sp": {},
    "gk": {},
    "rw": {"decays": (0.01,)},
}
MODELS: dict[str, dict[str, dict[str, Any]]] = {
    "MUTAG": {
        "gcaps": {"epochs": 40, "hidden": 16, **ONE_NETWORK},
        "gin": {"epochs": 40},
        "dgcnn": {"epochs": 40},
        "capsule-svm": {},
        "wl": {},
        "wloa": {},
        "sp": {},
        "gk": {},
        "fgsd": {"n_estimators": 100},
        "ensemble": {"methods": "wl,sp,fgsd", "inner_folds": 3},
    },
    "BACE": {
        "ecfp": {"n_estimators": 100},
        "tanimoto": {},
        "wl": {"n_iter": (2,), "C": (1.0,)},
        "gin": {"epochs": 30},
    },
}


def auc_of_motif(model: GraphEstimator, decoys: bool, method: str) -> float:
    """Return the mean ROC-AUC of the nodes of held-out graphs with a motif; the model is fitted here."""
    made = make_motifs(MOTIF_TRAINING + MOTIF_TESTED, 0, decoys=decoys)
    if not hasattr(model, "target_"):
        model.fit(made.graphs[:MOTIF_TRAINING])
    chosen = MOTIF_TRAINING + np.flatnonzero(made.graphs.y[MOTIF_TRAINING:] == 1)
    found = explain(model, made.graphs.subset(chosen), method=method)
    inside = [made.inside[made.graphs.ptr[g] : made.graphs.ptr[g + 1]] for g in chosen]
    return float(np.mean([roc_auc_score(where, np.abs(own)) for where, own in zip(inside, found.nodes, strict=True)]))


def motif() -> None:
    """Print one row for each model: with decoys (arrangement decides) and without (labels suffice)."""
    print("| method | motif | accuracy |", " | ".join(ATTRIBUTIONS), "|")
    print("|---|---|---|" + "---|" * len(ATTRIBUTIONS))
    for name, settings in MOTIF_MODELS.items():
        for decoys in (True, False):
            made = make_motifs(MOTIF_TRAINING + 200, 0, decoys=decoys).graphs
            model = make_estimator(name, settings)
            cells = []
            for method in ATTRIBUTIONS:
                try:
                    cells.append(f"{auc_of_motif(model, decoys, method):.2f}")
                except ConfigError:
                    cells.append("–")
            accuracy = float((model.predict(made[MOTIF_TRAINING:]) == made.y[MOTIF_TRAINING:]).mean())
            row = [name, "arrangement" if decoys else "labels", f"{accuracy:.2f}", *cells]
            print("|", " | ".join(row), "|", flush=True)


def loaded(name: str) -> GraphSet:
    """Return a set of the catalog, or the molecules of BACE."""
    if name != "BACE":
        return gcaps.load(name)
    folders = [Path(folder) for folder in os.environ.get("GCAPS_DATA", ".").split(os.pathsep)]
    path = next((f / "molecules" / "BACE.csv" for f in folders if (f / "molecules").is_dir()), Path("BACE.csv"))
    return gcaps.load(str(path), target="Class")


def fidelity() -> None:
    """Print one row for each model and attribution."""
    print("| data set | method | attribution | deletion ↑ | insertion ↓ | randomised |")
    print("|---|---|---|---|---|---|")
    for name, models in MODELS.items():
        graphs = loaded(name)
        order = np.random.default_rng(0).permutation(len(graphs))
        train, test = graphs.subset(np.sort(order[len(order) // 5 :])), graphs.subset(order[:TESTED])
        for method, settings in models.items():
            model = make_estimator(method, settings).fit(train)
            last = None
            for attribution in ATTRIBUTIONS:
                try:
                    found = last = explain(model, test, method=attribution)
                except ConfigError:
                    continue
                curves = fidelity_of(model, found)
                areas = f"{curves.deletion_area:.3f} | {curves.insertion_area:.3f}"
                rank = randomised_correlation(model, found, train)
                print(f"| {name} | {method} | {attribution} | {areas} | {rank:.2f} |", flush=True)
            assert last is not None, "occlusion explains every model"
            curves = random_fidelity(model, last)
            areas = f"{curves.deletion_area:.3f} | {curves.insertion_area:.3f}"
            print(f"| {name} | {method} | random order | {areas} | – |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=["motif", "fidelity", []], default=["motif", "fidelity"])
    for number, part in enumerate(parser.parse_args().parts):
        print("\n" * bool(number), end="")
        {"motif": motif, "fidelity": fidelity}[part]()


if __name__ == "__main__":
    main()
