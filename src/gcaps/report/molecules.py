"""The part of a page that only data sets of molecules have."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gcaps.data.graphset import GraphSet
from gcaps.data.molecules.similarity import PackedBits
from gcaps.errors import GcapsError
from gcaps.evaluation.plan import PlannedData
from gcaps.evaluation.splits import Fold
from gcaps.report.chemical_space import ChemicalSpace, chemical_space
from gcaps.report.molecule_drawing import are_drawable
from gcaps.report.neighbors import TrainingGraphs, WorstErrors, worst_errors
from gcaps.report.study import Entry
from gcaps.report.target_charts import TargetChart, target_charts

BLIND_TO_ATOMS = ("fgsd",)
"""Methods whose predictions do not depend on features of atoms, so that there is nothing to explain."""


@dataclass(frozen=True)
class MoleculePart:
    """Targets, chemical space and worst errors of a data set of molecules."""

    targets: list[TargetChart]
    space: ChemicalSpace | None
    """None before any fold is done."""
    worst: WorstErrors | None
    """None if nothing is wrong."""
    commands: list[str]
    """How to see which atoms a prediction depends on; empty where there is nothing to explain."""


def molecule_part(
    entries: Sequence[Entry],
    planned: PlannedData,
    graphs: GraphSet | None,
    folds: Mapping[int, Fold],
    seed: int,
    training: TrainingGraphs,
) -> MoleculePart | None:
    """Collect what the page shows about molecules; None if the graphs are none, or cannot be read here.

    Args:
        entries: methods with results, the best first: errors that only one method can have are those of the first.
        planned: the data set.
        graphs: its graphs; None if they could not be loaded.
        folds: done folds of one seed.
        seed: that seed.
        training: the training graphs of any seed and fold.
    """
    if graphs is None or not are_drawable(graphs):
        return None
    try:
        bits = PackedBits.of_graphs(graphs)
    except GcapsError:  # SMILES that another version of RDKit wrote and this one does not read
        return None
    worst = worst_errors(entries[0], planned, graphs, bits, training) if entries else None
    return MoleculePart(
        target_charts(graphs, planned),
        chemical_space(entries, planned, graphs, bits, seed, folds),
        worst,
        _commands(worst, planned),
    )


def _commands(worst: WorstErrors | None, planned: PlannedData) -> list[str]:
    """Return the commands that train the method and explain its predictions for the worst molecules."""
    if worst is None or worst.method is None or worst.method in BLIND_TO_ATOMS:
        return []
    data = ["DATA"] if planned.copied else [planned.source]
    given = planned.reading.get("target")
    names = given if isinstance(given, str) else ",".join(map(str, given or ()))
    target = ["--target", names] if names else []
    chosen = [word for item in worst.molecules[:3] for word in ("--graph", item.molecule.id)]
    return [
        shlex.join(["gcaps", "train", *data, *target, "--method", worst.method, "-o", "model"]),
        shlex.join(["gcaps", "explain", "model", *data, *chosen, "-o", "atoms.html"]),
    ]
