"""Generated graphs against random models and the floor: distances of distributions, validity, novelty, variety.

    python benchmarks/tasks_generation.py {molecules,communities} [--epochs 6] [--updates 40] [--seeds 1]
        [--sampling-steps 400] [--record FOLDER]

molecules: connected molecules of 2 to 12 atoms of C, N, O, F, P, S, Cl and Br out of AIDS ($GCAPS_DATA/more), with
their bonds. communities: 500 synthetic graphs of two communities. 80 % of the graphs train, 20 % are the test. The
table has the squared MMD to the test graphs of as many graphs from each source (mean and deviation over two samples
for each training seed): the training graphs themselves (the floor), the generator, the configuration model and
Erdős–Rényi. With --record, trained models are kept and an interrupted training continues.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

import gcaps
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import wl_hashes
from gcaps.tasks import CapsuleGraphGenerator
from gcaps.tasks.dense_graphs import Alphabet, is_connected
from gcaps.tasks.generation_quality import distances_to, variety
from gcaps.tasks.random_graphs import communities, configuration_model, erdos_renyi

SYMBOLS = {0: "C", 1: "O", 2: "N", 3: "Cl", 4: "F", 5: "S", 7: "P", 11: "Br"}
"""Elements of AIDS by label."""
SAMPLES = 2


def molecules() -> GraphSet:
    """Small connected molecules of AIDS."""
    graphs = gcaps.load(Path(os.environ.get("GCAPS_DATA", ".")) / "more" / "AIDS.zip")
    small = [g for g in np.flatnonzero((graphs.sizes >= 2) & (graphs.sizes <= 12)) if elements(graphs[g].node_labels)]
    chosen = replace(graphs[np.array(small)], x=None)
    dense = Alphabet.of(chosen).encode(chosen, 12)
    return chosen[np.flatnonzero(is_connected(dense).numpy())]


def elements(labels: np.ndarray | None) -> bool:
    """Whether all labels are those of :data:`SYMBOLS`."""
    return labels is not None and bool(np.isin(labels[:, 0], list(SYMBOLS)).all())


def sanitized(graphs: GraphSet) -> float:
    """Share of the molecules that RDKit accepts: the valence of every atom is possible."""
    from rdkit import Chem, rdBase

    rdBase.DisableLog("rdApp.*")
    kinds = {0: Chem.BondType.SINGLE, 1: Chem.BondType.DOUBLE, 2: Chem.BondType.TRIPLE}
    accepted = 0
    for graph in graphs:
        assert graph.node_labels is not None
        assert graph.edge_labels is not None
        molecule = Chem.RWMol()
        for label in graph.node_labels[:, 0].tolist():
            molecule.AddAtom(Chem.Atom(SYMBOLS[label]))
        for (i, j), kind in zip(graph.edge_index.T.tolist(), graph.edge_labels[:, 0].tolist(), strict=True):
            if i < j:
                molecule.AddBond(i, j, kinds[kind])
        accepted += Chem.SanitizeMol(molecule, catchErrors=True) == Chem.SanitizeFlags.SANITIZE_NONE
    return accepted / len(graphs)


def connected(graphs: GraphSet) -> float:
    """Share of connected graphs."""
    dense = Alphabet.of(graphs).encode(graphs, int(graphs.sizes.max()))
    return float(is_connected(dense).float().mean())


def row(title: str, draw: Callable[[int], GraphSet], train: GraphSet, test: GraphSet, natural: float) -> None:
    """Print a row of the table; several samples."""
    found = []
    for seed in range(SAMPLES):
        graphs = draw(seed)
        seen = variety(graphs, train)
        facts = {**distances_to(graphs, test), "connected": connected(graphs)}
        if test.node_labels is not None:
            facts["valid"] = sanitized(graphs)
        found.append({**facts, "unique": seen.unique, "novel": seen.novel, "spread": seen.spread})
        collapsed = seen.collapsed(natural)
    if title.startswith("training"):
        print("| graphs | " + " | ".join(found[0]) + " |")
        print("|---" * (1 + len(found[0])) + "|")
    cells = [f"{np.mean([f[k] for f in found]):.4f} ± {np.std([f[k] for f in found]):.4f}" for k in found[0]]
    print(f"| {title}{' (mode collapse)' if collapsed else ''} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Generated graphs against random models.")
    parser.add_argument("data", choices=("molecules", "communities"))
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--updates", type=int, default=40)
    parser.add_argument("--sampling-steps", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--record", type=Path)
    given = parser.parse_args()
    graphs = molecules() if given.data == "molecules" else communities(500)
    order = np.random.default_rng(0).permutation(len(graphs))
    train, test = graphs[order[: int(0.8 * len(graphs))]], graphs[order[int(0.8 * len(graphs)) :]]
    count = len(test)
    print(f"{given.data}: {len(train)} training and {count} test graphs", flush=True)
    folder = given.record or Path(tempfile.mkdtemp())
    models = []
    for seed in range(given.seeds):
        path = folder / f"{given.data}-{seed}"
        if not path.exists():
            began = time.process_time()
            model = CapsuleGraphGenerator(epochs=given.epochs, updates=given.updates, random_state=seed)
            model.set_params(sampling_steps=given.sampling_steps)
            model.fit(
                train,
                checkpoint=folder / f"{given.data}-{seed}.checkpoint",
                on_epoch=lambda e: print(f"  epoch {e.number}: loss {e.loss:.3f}", flush=True),
            )
            model.save(path)
            print(f"  seed {seed}: {model.num_parameters_:,} parameters, {time.process_time() - began:.0f} CPU s")
        models.append(gcaps.load_model(path))

    def floor(seed: int) -> GraphSet:
        return train[np.random.default_rng(seed).permutation(len(train))[:count]]

    natural = len(np.unique(wl_hashes(floor(0)))) / count
    row("training graphs (floor)", floor, train, test, natural)
    for seed, model in enumerate(models):
        row(f"capsule generator, seed {seed}", partial(model.sample, count), train, test, natural)
    row("configuration model", lambda s: configuration_model(train, count, s), train, test, natural)
    row("Erdős–Rényi", lambda s: erdos_renyi(train, count, s), train, test, natural)


if __name__ == "__main__":
    main()
