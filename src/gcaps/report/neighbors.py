"""Molecules with the worst errors beside the most similar molecules that the model was trained on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet
from gcaps.data.molecules.similarity import PackedBits, most_similar
from gcaps.data.molecules.structures import molecules_of
from gcaps.data.targets import missing
from gcaps.evaluation.metrics import METRICS
from gcaps.evaluation.plan import PlannedData
from gcaps.report.molecule_drawing import draw_molecule
from gcaps.report.study import Entry, MethodName
from gcaps.report.tested_graphs import TestedGraphs

MAX_WORST = 6
"""Number of test molecules that are shown."""
NEIGHBORS = 3
"""Number of training molecules beside each."""

TrainingGraphs = Callable[[int, int], Array]
"""Positions of the training graphs of a seed and fold."""


@dataclass(frozen=True)
class ShownMolecule:
    """A molecule on the page."""

    graph: int
    id: str
    smiles: str
    picture: Markup | None
    """None if it is too large to draw."""


@dataclass(frozen=True)
class Neighbor:
    """A training molecule that is similar to a test molecule."""

    molecule: ShownMolecule
    similarity: float
    value: str
    """Of the target that was predicted worst."""


@dataclass(frozen=True)
class WorstMolecule:
    """A test molecule with a large error."""

    molecule: ShownMolecule
    seed: int
    fold: int
    target: str
    truth: str
    prediction: str
    neighbors: list[Neighbor]
    """The most similar first."""


@dataclass(frozen=True)
class WorstErrors:
    """Worst errors of one method."""

    name: MethodName
    method: str | None
    molecules: list[WorstMolecule]


def shown_molecule(graphs: GraphSet, graph: int, size: tuple[float, float] = (190.0, 140.0)) -> ShownMolecule:
    """Draw a molecule of a set."""
    name, smiles = str(graphs.ids[graph]), str(graphs.columns["smiles"][graph])
    label = f"Molecule {name}: {smiles}"
    return ShownMolecule(graph, name, smiles, draw_molecule(molecules_of(graphs, [graph])[0], label, size))


def worst_errors(
    entry: Entry, planned: PlannedData, graphs: GraphSet, bits: PackedBits, training: TrainingGraphs
) -> WorstErrors | None:
    """Return the worst errors of a method with their nearest training molecules; None if there is no error.

    Args:
        entry: a method on a data set.
        planned: the data set.
        graphs: its molecules.
        bits: their fingerprints.
        training: the training graphs of each fold: neighbors are sought among those of the fold that tested a molecule.
    """
    tested = TestedGraphs.of(entry, planned.task)
    found = [] if tested is None else tested.worst(MAX_WORST)
    if tested is None or not found:
        return None
    molecules = []
    for place, target in found:
        graph, seed, fold = (int(values[place]) for values in (tested.graph, tested.seed, tested.fold))
        candidates = training(seed, fold)
        near, similarity = most_similar(bits, np.array([graph]), candidates, NEIGHBORS) if len(candidates) else ((), ())
        molecules.append(
            WorstMolecule(
                shown_molecule(graphs, graph),
                seed,
                fold,
                planned.targets[target] if len(planned.targets) > target else "",
                _value_text(graphs, graph, target),
                _prediction_text(tested, place, target, planned),
                [
                    Neighbor(shown_molecule(graphs, other), value, _value_text(graphs, other, target))
                    for others, values in zip(near, similarity, strict=True)
                    for other, value in zip(others.tolist(), values.tolist(), strict=True)
                ],
            )
        )
    return WorstErrors(entry.name, entry.method, molecules)


def _value_text(graphs: GraphSet, graph: int, target: int) -> str:
    """Return a target's value of one molecule, as in the source."""
    assert graphs.y is not None, "a comparison has targets"
    row = graphs.y[graph : graph + 1].reshape(1, -1)[:, target]
    if missing(row)[0]:
        return "unknown"
    value: Any = row[0].item()
    if isinstance(value, float):
        return f"{value:g}" if value.is_integer() else METRICS["mae"].text(value)
    return str(value)


def _prediction_text(tested: TestedGraphs, place: int, target: int, planned: PlannedData) -> str:
    """Return what was predicted, with the probability of a class."""
    if tested.task == "regression":
        return METRICS["mae"].text(float(tested.predictions[place, target]))
    code = int(tested.predictions[place] if tested.task == "classification" else tested.predictions[place, target])
    name = str(planned.classes[code]) if code < len(planned.classes) else str(code)
    if tested.scores is None:
        return name
    p = tested.scores[place, code if tested.task == "classification" else target]
    return f"{name} with {p if tested.task == 'classification' or code else 1 - p:.2f}"
