"""Sound inputs of every format, written by code; the corpus and the mutants are made from them."""

from __future__ import annotations

import contextlib
import io
import json
import random
from pathlib import Path

import numpy as np

SMILES = (
    *("CCO", "c1ccccc1", "CC(=O)O", "C1CCCCC1", "CCN", "c1ccncc1", "CC(C)O", "CCCl", "c1ccsc1", "CC#N", "OCC(O)CO"),
    *("c1ccc2ccccc2c1", "C[C@H](N)C(=O)O", "[Na+].[Cl-]", "CCBr", "O=C=O"),
)
GRAPHS = 16
TRAIN = ["--method", "deepsets", "--epochs", "2", "--hidden", "4"]


def verb(*arguments: object) -> None:
    """Run a verb silently; it must succeed."""
    from gcaps.cli.app import main

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        main([str(a) for a in arguments])


def make_bases(folder: Path) -> None:
    """Write every base below ``folder``: data sets, models, runs, records, splits, experiments and grids."""
    folder.mkdir(parents=True, exist_ok=True)
    _tu(folder / "tu")
    _molecules(folder)
    for name in ("graphs.json", "graphs.graphml", "tables.edges", "graphs.gset"):
        with contextlib.suppress(SystemExit):
            verb("data", "convert", folder / "tu", folder / name)
    _npz(folder / "graphs.npz")
    folds = [{"test": list(range(i, GRAPHS, 4))} for i in range(4)]
    for fold in folds:
        fold["train"] = [g for g in range(GRAPHS) if g not in fold["test"]]
    (folder / "splits.json").write_text(json.dumps(folds))
    (folder / "grid.toml").write_text("[deepsets]\nepochs = 2\nhidden = [4, 8]\n")
    (folder / "experiment.toml").write_text(
        f'data = ["{folder / "tu"}"]\nfolds = 2\nseeds = [0]\n\n[[entries]]\nmethod = "deepsets"\n'
        "[entries.settings]\nepochs = 2\nhidden = 4\n"
    )
    (folder / "settings.toml").write_text("epochs = 2\nhidden = 4\nlr = 0.01\n")
    for name, options in {"network": TRAIN, "kernel": ["--method", "wl"], "trees": ["--method", "fgsd"]}.items():
        with contextlib.suppress(SystemExit):
            verb("train", folder / "tu", "-o", folder / f"{name}.model", *options)
    with contextlib.suppress(SystemExit):
        verb("train", folder / "classes.csv", "-o", folder / "molecules.model", *TRAIN)
    with contextlib.suppress(SystemExit):
        verb("train", folder / "tu", "-o", folder / "calibrated.model", "--method", "fgsd", "--calibrate", "split")
    _requests(folder)
    _study(folder)
    (folder / "run.toml").write_text("[deepsets]\nepochs = 2\nhidden = 4\n")
    with contextlib.suppress(SystemExit):
        verb(
            "compare",
            folder / "tu",
            "--methods",
            "deepsets",
            "--folds",
            2,
            "--jobs",
            1,
            "-o",
            folder / "run",
            "--grid",
            folder / "run.toml",
            "--record",
            folder / "record.json",
        )


def _tu(folder: Path) -> None:
    """Paths and rings with labels and attributes of nodes and edges."""
    folder.mkdir()
    rng = random.Random(0)
    arcs, indicator, node_labels, attributes, edge_labels = [], [], [], [], []
    first = 1
    for graph in range(GRAPHS):
        size = 4 + graph % 5
        edges = [(i, i + 1) for i in range(size - 1)] + ([(0, size - 1)] if graph % 2 else [])
        for u, v in edges:
            kind = rng.randrange(3)
            arcs += [f"{first + u}, {first + v}", f"{first + v}, {first + u}"]
            edge_labels += [str(kind)] * 2
        indicator += [str(graph + 1)] * size
        node_labels += [str(rng.randrange(4)) for _ in range(size)]
        attributes += [f"{rng.uniform(-1, 1):.3f}, {rng.uniform(0, 9):.2f}" for _ in range(size)]
        first += size
    parts = {
        "A": arcs,
        "graph_indicator": indicator,
        "graph_labels": [str(g % 2) for g in range(GRAPHS)],
        "node_labels": node_labels,
        "node_attributes": attributes,
        "edge_labels": edge_labels,
    }
    for part, lines in parts.items():
        (folder / f"DS_{part}.txt").write_text("\n".join(lines) + "\n")


def _molecules(folder: Path) -> None:
    from rdkit import Chem

    rows = [f"m{i},{s},{'yes' if i % 2 else 'no'}" for i, s in enumerate(SMILES)]
    (folder / "classes.csv").write_text("name,smiles,active\n" + "\n".join(rows) + "\n")
    rows = [f"{s}\t{i * 0.37:.2f}" for i, s in enumerate(SMILES)]
    (folder / "values.tsv").write_text("smiles\tsolubility\n" + "\n".join(rows) + "\n")
    (folder / "list.smi").write_text("\n".join(f"{s} m{i}" for i, s in enumerate(SMILES)) + "\n")
    writer = Chem.SDWriter(str(folder / "molecules.sdf"))
    for i, text in enumerate(SMILES):
        molecule = Chem.MolFromSmiles(text)
        molecule.SetProp("active", str(i % 2))
        writer.write(molecule)
    writer.close()


def _npz(path: Path) -> None:
    ring = np.roll(np.eye(6, dtype=np.int64), 1, axis=0)
    stack = np.stack([ring + ring.T, np.ones((6, 6), dtype=np.int64) - np.eye(6, dtype=np.int64)] * 4)
    np.savez(path, adjacency=stack, y=np.arange(8) % 2)


def _requests(folder: Path) -> None:
    """Bodies of requests to a server; their names say where they are sent."""
    ring = {"id": "ring", "nodes": [{"id": i, "label": i % 3} for i in range(4)]}
    ring["links"] = [{"source": i, "target": (i + 1) % 4, "label": 1} for i in range(4)]  # type: ignore[list-item]
    graphs = json.loads((folder / "graphs.json").read_text())
    graphs = (graphs["graphs"] if isinstance(graphs, dict) else graphs)[:3]
    bodies: dict[str, object] = {
        "predict.body": {"graphs": [*graphs, ring], "ids": list("abcd"), "coverage": 0.8, "neighbors": 2},
        "smiles.body": {"smiles": list(SMILES[:4]), "threshold": 0.4, "by_class": False, "neighbors": 1},
        "explain.body": {"graph": graphs[0], "method": "occlusion"},
    }
    for name, body in bodies.items():
        (folder / name).write_text(json.dumps(body))
    (folder / "upload.csv").write_bytes((folder / "classes.csv").read_bytes())
    (folder / "upload.json").write_text(json.dumps(graphs))


def _study(folder: Path) -> None:
    """A search of settings, what it writes, and a space of one's own."""
    given = ["--method", "deepsets", "--epochs", 2, "--trials", 4, "--folds", 2, "--pruner", "none"]
    with contextlib.suppress(SystemExit):
        verb("tune", folder / "tu", *given, "-o", folder / "study")
    (folder / "best.toml").write_bytes((folder / "study" / "best.toml").read_bytes())
    for name in ("best.toml", "trials.csv", "report.html", ".lock"):
        (folder / "study" / name).unlink(missing_ok=True)
    (folder / "space.toml").write_text(
        "[deepsets]\nhidden = [4, 8, 16]\nlr = { low = 0.001, high = 0.01, log = true }\n"
        "layers = { low = 1, high = 3 }\n"
    )
