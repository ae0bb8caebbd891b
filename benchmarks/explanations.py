"""Are explanations right, and are they faithful? A planted motif, deletion and insertion curves, a randomised model.

    python benchmarks/explanations.py [motif] [fidelity] [--methods NAME,…]

`motif`: ROC-AUC of |contributions of nodes| against membership in a house that is planted in random trees, mean over
the held-out graphs that have one. `fidelity`: areas under the deletion curve (nodes are hidden, the most important
first: larger is better) and the insertion curve (they are shown again in that order: smaller is better) of predicted
probabilities of held-out graphs, for each attribution that the method allows and for nodes in random order; and the
rank correlation with the explanation of a randomised model (fresh weights; methods without weights are fitted to
permuted classes). GCAPS_DATA names the folder of the sets.
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
from gcaps.estimators import make_estimator
from gcaps.explain import explain, fidelity_of, random_fidelity, randomised_correlation

ATTRIBUTIONS = ("substructures", "integrated-gradients", "gradient-x-input", "saliency", "occlusion")
MOTIF_TRAINING, MOTIF_TESTED, TESTED = 120, 12, 12
ONE_NETWORK = {"ensemble_size": 1, "with_svm": False}
MOTIF_MODELS: dict[str, tuple[bool, dict[str, Any]]] = {
    "wl": (True, {"n_iter": (1,)}),
    "wloa": (True, {"n_iter": (1,)}),
    "sp": (True, {}),
    "rw": (False, {"decays": (0.01,)}),
    "gin": (True, {"epochs": 40}),
    "gcaps": (True, {"epochs": 15, **ONE_NETWORK}),
    "capsule-svm": (True, {}),
    "dgcnn": (True, {"epochs": 40}),
    "dcnn": (False, {"epochs": 40}),
    "pscn": (False, {"epochs": 40}),
    "ecc": (False, {"epochs": 20}),
    "deepsets": (False, {"epochs": 30}),
}
"""Whether graphs without the motif have its labels, too, so that the arrangement decides; and settings."""
MODELS: dict[str, dict[str, dict[str, Any]]] = {
    "MUTAG": {
        "gcaps": {"epochs": 40, "hidden": 16, **ONE_NETWORK},
        "gin": {"epochs": 40},
        "dgcnn": {"epochs": 40},
        "dcnn": {"epochs": 40},
        "pscn": {"epochs": 40},
        "ecc": {"epochs": 20},
        "deepsets": {"epochs": 40},
        "capsule-svm": {},
        "wl": {},
        "wloa": {},
        "sp": {},
        "gk": {},
        "rw": {"decays": (0.01,)},
        "fgsd": {"n_estimators": 100},
        "ensemble": {"methods": "wl,sp,fgsd", "inner_folds": 3},
    },
    "BACE": {
        "ecfp": {"n_estimators": 100},
        "tanimoto": {},
    },
}


def motif() -> None:
    """Print the ROC-AUC of the nodes of held-out graphs with a motif, one row for each model."""
    print("| method | decided by | accuracy |", " | ".join(ATTRIBUTIONS), "|")
    print("|---|---|---|" + "---|" * len(ATTRIBUTIONS))
    for name, (decoys, settings) in MOTIF_MODELS.items():
        made = make_motifs(MOTIF_TRAINING + MOTIF_TESTED, 0, decoys=decoys)
        train, test = made.graphs[:MOTIF_TRAINING], made.graphs[MOTIF_TRAINING:]
        model = make_estimator(name, settings).fit(train)
        accuracy = float((model.predict(test) == test.y).mean())
        chosen = MOTIF_TRAINING + np.flatnonzero(test.y == 1)
        inside = [made.inside[made.graphs.ptr[g] : made.graphs.ptr[g + 1]] for g in chosen]
        cells = []
        for method in ATTRIBUTIONS:
            try:
                found = explain(model, made.graphs.subset(chosen), method=method)
            except ConfigError:
                cells.append("–")
                continue
            areas = [roc_auc_score(where, np.abs(own)) for where, own in zip(inside, found.nodes, strict=True)]
            cells.append(f"{np.mean(areas):.2f}")
        decided = "arrangement" if decoys else "labels"
        print("|", " | ".join([name, decided, f"{accuracy:.2f}", *cells]), "|", flush=True)


def loaded(name: str) -> GraphSet:
    """Return a set of the catalog, or the molecules of BACE."""
    if name != "BACE":
        return gcaps.load(name)
    folders = [Path(folder) for folder in os.environ.get("GCAPS_DATA", ".").split(os.pathsep)]
    path = next((f / "molecules" / "BACE.csv" for f in folders if (f / "molecules").is_dir()), Path("BACE.csv"))
    return gcaps.load(str(path), target="Class")


def fidelity(only: list[str]) -> None:
    """Print one row for each model and attribution.

    Args:
        only: methods; all if empty.
    """
    print("| data set | method | attribution | deletion ↑ | insertion ↓ | randomised |")
    print("|---|---|---|---|---|---|")
    for name, models in MODELS.items():
        graphs = loaded(name)
        order = np.random.default_rng(0).permutation(len(graphs))
        train, test = graphs.subset(np.sort(order[len(order) // 5 :])), graphs.subset(order[:TESTED])
        for method, settings in models.items():
            if only and method not in only:
                continue
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
    parser.add_argument("--methods", default="", help="only these, of fidelity")
    given = parser.parse_args()
    if "motif" in given.parts:
        motif()
    if "fidelity" in given.parts:
        fidelity([name for name in given.methods.split(",") if name])


if __name__ == "__main__":
    main()
