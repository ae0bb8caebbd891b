"""The part of a comparison's page that is about one data set."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from gcaps.data.graphset import GraphSet
from gcaps.evaluation.calibration import Calibration, calibration
from gcaps.evaluation.hardness import Hard, hardest_graphs
from gcaps.evaluation.plan import PlannedData
from gcaps.evaluation.significance import PairedTest
from gcaps.report import comparison_figures as figures
from gcaps.report.aggregate import confusion_of
from gcaps.report.graph_drawing import draw_graph
from gcaps.report.headline import OURS
from gcaps.report.names import MethodName, method_name
from gcaps.report.sets import Looked, look_at
from gcaps.report.study import Entry, Study

HARDEST = 8
"""Graphs that are drawn."""
CONFUSION = 10
"""Classes up to which confusion is shown as a table."""


@dataclass(frozen=True)
class Difference:
    """A method against the best and against GCAPS-CNN."""

    name: MethodName
    mean: float
    best: PairedTest | None
    """This method minus the best; None for the best itself."""
    ours: PairedTest | None
    """Likewise; None everywhere where GCAPS-CNN is the best or does not take part."""


@dataclass(frozen=True)
class Card:
    """Where one method errs."""

    name: MethodName
    confusion: list[list[tuple[int, float]]] | None
    """[true][predicted] graphs and their share of the true class; None where there are too many classes."""
    calibration: Calibration | None
    reliability: Markup | None


@dataclass(frozen=True)
class HardGraph:
    """A graph that most methods get wrong."""

    hard: Hard
    truth: str
    missed: str
    picture: Markup | None
    nodes: int | None


@dataclass(frozen=True)
class SetView:
    """Everything that is said about a data set."""

    number: int
    planned: PlannedData
    classes: list[str]
    looked: Looked
    differences: list[Difference]
    pictures: dict[str, Markup | None]
    curves: list[tuple[MethodName, Markup]]
    maps: list[tuple[MethodName, Markup]]
    cards: list[Card]
    hardest: list[HardGraph]
    missed_by_most: int
    """Graphs that more than half of the methods get wrong."""
    missed_by_all: int
    tested: int
    chosen: list[tuple[MethodName, str]]
    """What was chosen on the training graphs, and in how many folds."""


def set_view(study: Study, number: int) -> SetView:
    """Look at a data set and draw what its entries show."""
    planned = study.sets[number]
    data = planned.name
    entries = [study.entry(data, method) for method in study.methods]
    with_folds = [entry for entry in entries if entry.folds]
    labels = {g: y for e in with_folds for f in e.folds for g, y in zip(f.test, f.labels, strict=True)}
    classes = [str(name) for name in planned.classes]
    classes += [str(extra) for extra in range(len(classes), max(labels.values(), default=-1) + 1)]
    looked = look_at(planned, _tests(with_folds))
    bounds = figures.curve_bounds(with_folds)
    curves = [(method_name(e.method), figures.learning_curves(e, bounds)) for e in with_folds]
    maps = [(method_name(e.method), figures.embedding_map(e, labels, classes)) for e in with_folds]
    hard = hardest_graphs({entry.method: entry.folds for entry in with_folds})
    return SetView(
        number=number,
        planned=planned,
        classes=classes,
        looked=looked,
        differences=_differences(study, data),
        pictures={
            "rules": figures.rule_dots(study, data),
            "seconds": figures.cost_scatter(study, data, "seconds"),
            "memory": figures.cost_scatter(study, data, "peak_mib"),
        },
        curves=[(name, svg) for name, svg in curves if svg is not None],
        maps=[(name, svg) for name, svg in maps if svg is not None],
        cards=[_card(entry, len(classes)) for entry in with_folds],
        hardest=_drawn(hard[:HARDEST], looked.graphs, data, classes),
        missed_by_most=sum(len(graph.missed) > graph.methods / 2 for graph in hard),
        missed_by_all=sum(len(graph.missed) == graph.methods for graph in hard),
        tested=len(labels),
        chosen=[
            (method_name(e.method), found) for e in with_folds if (found := _chosen(e, study.plan.methods[e.method]))
        ],
    )


def _tests(entries: list[Entry]) -> list[list[int]]:
    """The test graphs of each fold of the first seed, from the method that has most of them."""
    most: list[list[int]] = []
    for entry in entries:
        first = min(outcome.seed for outcome in entry.outcomes)
        found = [o.result.test for o in entry.outcomes if o.result is not None and o.seed == first]
        most = max(most, found, key=len)
    return most


def _differences(study: Study, data: str) -> list[Difference]:
    tests, best = study.tests(data), study.best(data)
    return [
        Difference(
            name=method_name(entry.method),
            mean=entry.protocols["honest"].mean,
            best=tests.get((entry.method, best or "")),
            ours=None if best == OURS else tests.get((entry.method, OURS)),
        )
        for entry in study.complete(data)
    ]


def _card(entry: Entry, classes: int) -> Card:
    counts = confusion_of(entry.folds, classes)
    totals = counts.sum(axis=1)
    found = calibration(entry.folds)
    return Card(
        name=method_name(entry.method),
        confusion=[
            [(int(count), float(count / max(total, 1))) for count in row]
            for row, total in zip(counts, totals, strict=True)
        ]
        if classes <= CONFUSION
        else None,
        calibration=found,
        reliability=None if found is None else figures.reliability_plot(entry, found),
    )


def _drawn(hard: list[Hard], graphs: GraphSet | None, data: str, classes: list[str]) -> list[HardGraph]:
    colours: dict[int, int] = {}
    if graphs is not None and graphs.node_labels is not None:
        # the commonest labels of the set get the first colours, the same in every picture
        kinds, counts = np.unique(graphs.node_labels[:, 0], return_counts=True)
        colours = {int(kind): place for place, kind in enumerate(kinds[np.argsort(-counts, kind="stable")])}
    found = []
    for entry in hard:
        names = ", ".join(method_name(method).short for method in entry.missed)
        picture, nodes = None, None
        if graphs is not None and entry.graph < len(graphs):
            graph = graphs[entry.graph]
            nodes = graph.num_nodes
            label = f"Graph {entry.graph} of {data}: {nodes} nodes, {graph.edge_index.shape[1] // 2} edges."
            picture = draw_graph(graph, label, colours)
        found.append(HardGraph(entry, classes[entry.label], names, picture, nodes))
    return found


def _chosen(entry: Entry, configs: list[dict[str, Any]]) -> str:
    """What the folds chose where there was a choice, of a grid or a kernel's parameters, and in how many folds."""
    varied = [key for key in configs[0] if any(c.get(key) != configs[0][key] for c in configs)] if configs else []
    choices: list[dict[str, str]] = []
    for outcome in entry.outcomes:
        if outcome.result is not None:
            settings = {key: value for key, value in (outcome.config or {}).items() if key in varied}
            settings |= {key: value for key, value in outcome.result.chosen.items() if key not in ("inner", "kernel")}
            choices.append({key: _short(value) for key, value in settings.items()})
    keys = dict.fromkeys(key for choice in choices for key in choice)
    parts = []
    for key in keys:
        counts = Counter(choice[key] for choice in choices if key in choice).most_common()
        told = [value if len(counts) == 1 else f"{value} ({count}×)" for value, count in counts]
        parts.append(f"{key} {', '.join(told)}")
    return "; ".join(parts)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
