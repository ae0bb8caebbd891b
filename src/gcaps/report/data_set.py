"""The part of a page about one data set: its facts, leakage across folds, and where each method errs on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from markupsafe import Markup

from gcaps.data.arrays import Array, Ints
from gcaps.data.audit import describe, facts
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import stored_hashes, wl_hashes
from gcaps.errors import GcapsError
from gcaps.evaluation.diagnostics import Calibration, Hard, calibration, hardest_graphs
from gcaps.evaluation.outcome import Outcome
from gcaps.evaluation.plan import PlannedData
from gcaps.evaluation.published import published
from gcaps.evaluation.result import FoldResult
from gcaps.evaluation.statistics import PairedTest
from gcaps.report import figures
from gcaps.report.graph_drawing import draw_graph
from gcaps.report.study import OURS, Entry, Majority, MethodName, Study

MAX_DRAWN = 8
"""Number of graphs that are drawn."""
MAX_MISTAKES = 10
"""Number of confident mistakes that are listed."""
MAX_CLASSES = 10
"""Confusion matrices of more classes are not shown."""


@dataclass(frozen=True)
class Leakage:
    """Number of test graphs that also occur among the training graphs of their fold, over the folds of one seed."""

    tested: int
    identical: int
    """Stored identically: same node order, labels and attributes."""
    wl_equal: int
    """Equal Weisfeiler-Lehman hash, which is an upper bound on isomorphic graphs."""
    conflicting: int
    """Of those, test graphs whose duplicates in training all have another class."""


@dataclass(frozen=True)
class LoadedData:
    """A data set as found when the report was written."""

    graphs: GraphSet | None
    """None if the data could not be loaded."""
    error: str | None = None
    """Why it could not."""
    facts: dict[str, str] = field(default_factory=dict)
    leakage: Leakage | None = None


@dataclass(frozen=True)
class Difference:
    """A method compared with the best one and with GCAPS-CNN."""

    name: MethodName
    mean: float
    best: PairedTest | None
    """This method minus the best; None for the best itself."""
    ours: PairedTest | None
    """This method minus GCAPS-CNN; None if GCAPS-CNN is the best or was not run."""


@dataclass(frozen=True)
class Mistake:
    """A test graph that was misclassified."""

    graph: int
    fold: int
    truth: str
    prediction: str
    probability: float
    """Probability of the predicted class."""
    truth_probability: float
    """Probability of the true class."""


@dataclass(frozen=True)
class MethodErrors:
    """Errors of one method, all folds together."""

    name: MethodName
    wrong: int
    tested: int
    confusion: list[list[tuple[int, float]]] | None
    """[true][predicted] number of graphs and share of the true class; None if there are too many classes."""
    calibration: Calibration | None
    """None if the method gives no scores."""
    reliability: Markup | None
    histogram: Markup | None
    """Only on the page of a single method."""
    mistakes: list[Mistake]
    """Wrong predictions with the highest probability."""


@dataclass(frozen=True)
class DrawnGraph:
    """A graph that is hard or was misclassified."""

    graph: int
    truth: str
    nodes: int | None = None
    """None if the data could not be loaded."""
    picture: Markup | None = None
    """None if the graph is too large or could not be loaded."""
    hard: Hard | None = None
    mistake: Mistake | None = None
    missed: str = ""
    """Methods that misclassify a hard graph."""


@dataclass(frozen=True)
class ClassRow:
    """A class, its number of tested graphs, and the share of them that each method classifies correctly."""

    name: str
    graphs: int
    share: float
    recall: list[float | None]


@dataclass(frozen=True)
class DataSection:
    """Contents of the part of the page about one data set."""

    number: int
    planned: PlannedData
    classes: list[str]
    majority: Majority | None
    loaded: LoadedData
    methods: list[MethodName]
    """Methods with at least one result, in the order of the plan."""
    differences: list[Difference]
    accuracies: dict[tuple[int, int], list[float | None]]
    """By seed and fold, the honest accuracy of each method."""
    folds: list[Outcome]
    """Done cells of the method on the page of a single method."""
    pictures: dict[str, Markup | None]
    accuracy_curves: list[tuple[MethodName, Markup]]
    loss_curves: list[tuple[MethodName, Markup]]
    validation: bool
    """Whether a method chose its epoch on validation graphs."""
    maps: list[tuple[MethodName, Markup]]
    errors: list[MethodErrors]
    drawn: list[DrawnGraph]
    """Hardest graphs of several methods, or the most confident mistakes of one."""
    missed_by_most: int
    """Number of graphs that more than half of the methods misclassify."""
    missed_by_all: int
    tested: int
    class_rows: list[ClassRow]
    chosen: list[tuple[MethodName, str]]
    """Settings chosen on the training graphs, and in how many folds."""


def data_section(study: Study, number: int) -> DataSection:
    """Load a data set if possible and collect everything the page shows about it."""
    planned = study.sets[number]
    data, truth, majority = planned.name, study.truth(planned.name), study.majority(planned.name)
    classes = study.classes(data)
    entries = [entry for entry in study.of_set(data) if entry.folds]
    complete = study.complete(data)
    loaded = load_data(planned, _test_folds(entries))
    size = figures.LARGE if study.single else figures.SMALL
    bounds = figures.curve_bounds(entries)
    errors = [_errors(entry, classes, detailed=study.single) for entry in entries]
    hard = hardest_graphs({entry.label: entry.folds for entry in entries})
    if study.single and errors and errors[0].mistakes:
        drawn = [DrawnGraph(m.graph, m.truth, mistake=m) for m in errors[0].mistakes[:MAX_DRAWN]]
    else:
        drawn = [
            DrawnGraph(
                h.graph, classes[truth[h.graph]], hard=h, missed=", ".join(study.names[m].short for m in h.missed)
            )
            for h in hard[:MAX_DRAWN]
        ]
    alone = entries[0] if study.single and entries else None
    pictures = {
        "rules": figures.rule_dots(complete, majority, published(data) if study.single else ()),
        "folds": None if alone is None or majority is None else figures.fold_accuracies(alone, majority),
        "seconds": None if study.single else figures.cost_scatter(complete, "seconds"),
        "memory": None if study.single else figures.cost_scatter(complete, "peak_mib"),
    }
    return DataSection(
        number=number,
        planned=planned,
        classes=classes,
        majority=majority,
        loaded=loaded,
        methods=[entry.name for entry in entries],
        differences=[] if study.single else _differences(study, data),
        accuracies=_accuracies(entries),
        folds=[] if alone is None else [outcome for outcome in alone.outcomes if outcome.result is not None],
        pictures=pictures,
        accuracy_curves=_present((e.name, figures.accuracy_curves(e, bounds, size)) for e in entries),
        loss_curves=_present((e.name, figures.loss_curve(e, size)) for e in entries),
        validation=any(fold.validation_accuracy for entry in entries for fold in entry.folds),
        maps=_present((e.name, figures.embedding_map(e, truth, classes, size)) for e in entries),
        errors=errors,
        drawn=_with_pictures(drawn, loaded.graphs, data),
        missed_by_most=sum(len(graph.missed) > graph.methods / 2 for graph in hard),
        missed_by_all=sum(len(graph.missed) == graph.methods for graph in hard),
        tested=len(truth),
        class_rows=_class_rows(entries, truth, classes),
        chosen=[(e.name, found) for e in entries if (found := _chosen(e))],
    )


def load_data(planned: PlannedData, tests: Sequence[Sequence[int]]) -> LoadedData:
    """Load a data set and count duplicates between test and training graphs.

    Args:
        planned: the data set.
        tests: test graphs of each fold, of one seed.
    """
    try:
        graphs = planned.load()
    except GcapsError as error:
        return LoadedData(None, str(error))
    return LoadedData(graphs, None, describe(facts(graphs)), find_leakage(graphs, tests))


def find_leakage(graphs: GraphSet, tests: Sequence[Sequence[int]]) -> Leakage:
    """Count test graphs with a duplicate in training; the training graphs of a fold are all others."""
    stored, hashes = stored_hashes(graphs), wl_hashes(graphs)
    assert graphs.y is not None, "a comparison has targets"
    y: Ints = np.unique(graphs.y, return_inverse=True)[1]
    # a hash and a class combined into one number: equal only for duplicates of the same class
    with_class: Array = hashes * np.uint64(0x9E3779B97F4A7C15) + y.astype(np.uint64)
    counts = np.zeros(3, dtype=np.int64)
    for part in tests:
        test: Ints = np.asarray(part, dtype=np.int64)
        train = np.setdiff1d(np.arange(len(graphs)), test)
        identical, wl_equal, agreeing = (np.isin(h[test], h[train]) for h in (stored, hashes, with_class))
        counts += np.array([identical.sum(), wl_equal.sum(), (wl_equal & ~agreeing).sum()])
    return Leakage(sum(len(part) for part in tests), *(int(count) for count in counts))


def _test_folds(entries: list[Entry]) -> list[list[int]]:
    """Return the test graphs of each fold of the first seed, of the entry with the most folds."""
    most: list[list[int]] = []
    for entry in entries:
        first = min(outcome.seed for outcome in entry.outcomes)
        found = [o.result.test for o in entry.outcomes if o.result is not None and o.seed == first]
        most = max(most, found, key=len)
    return most


def _differences(study: Study, data: str) -> list[Difference]:
    tests, best = study.tests[data], study.best(data)
    return [
        Difference(
            name=entry.name,
            mean=entry.protocols["honest"].mean,
            best=tests.get((entry.label, best or "")),
            ours=None if best == OURS else tests.get((entry.label, OURS)),
        )
        for entry in study.complete(data)
    ]


def _accuracies(entries: list[Entry]) -> dict[tuple[int, int], list[float | None]]:
    keys = sorted({key for entry in entries for key in entry.accuracies})
    return {key: [entry.accuracies.get(key) for entry in entries] for key in keys}


def _present(charts: Iterable[tuple[MethodName, Markup | None]]) -> list[tuple[MethodName, Markup]]:
    return [(name, svg) for name, svg in charts if svg is not None]


def confusion(folds: Iterable[FoldResult], classes: int) -> Ints:
    """Return [true class, predicted class], the number of test graphs of all folds."""
    counts = np.zeros((classes, classes), dtype=np.int64)
    for fold in folds:
        np.add.at(counts, (fold.y, fold.predictions), 1)
    return counts


def confident_mistakes(folds: Iterable[FoldResult], classes: Sequence[str]) -> list[Mistake]:
    """Return the wrong predictions with the highest probability, each graph once."""
    found: dict[int, Mistake] = {}
    for fold in folds:
        for graph, true, guess, row in zip(fold.test, fold.y, fold.predictions, fold.scores, strict=True):
            if true != guess and (graph not in found or row[guess] > found[graph].probability):
                found[graph] = Mistake(graph, fold.fold, classes[true], classes[guess], row[guess], row[true])
    return sorted(found.values(), key=lambda m: (-m.probability, m.graph))[:MAX_MISTAKES]


def _errors(entry: Entry, classes: list[str], *, detailed: bool) -> MethodErrors:
    counts = confusion(entry.folds, len(classes))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    found = calibration(entry.folds)
    table = [list(zip(row.tolist(), share.tolist(), strict=True)) for row, share in zip(counts, shares, strict=True)]
    return MethodErrors(
        name=entry.name,
        wrong=int(counts.sum() - counts.trace()),
        tested=int(counts.sum()),
        confusion=table if len(classes) <= MAX_CLASSES else None,
        calibration=found,
        reliability=None if found is None else figures.reliability_plot(entry, found, 1.5 if detailed else 1.0),
        histogram=figures.probability_histogram(entry, len(classes)) if found is not None and detailed else None,
        mistakes=[] if found is None else confident_mistakes(entry.folds, classes),
    )


def _with_pictures(drawn: list[DrawnGraph], graphs: GraphSet | None, data: str) -> list[DrawnGraph]:
    """Add drawings; the most frequent node labels of the data set have the first colors, in every drawing."""
    if graphs is None:
        return drawn
    colors: dict[int, int] = {}
    if graphs.node_labels is not None:
        labels, counts = np.unique(graphs.node_labels[:, 0], return_counts=True)
        colors = {int(label): place for place, label in enumerate(labels[np.argsort(-counts, kind="stable")])}
    found = []
    for item in drawn:
        graph = graphs[item.graph]
        label = f"Graph {item.graph} of {data}: {graph.num_nodes} nodes, {graph.edge_index.shape[1] // 2} edges."
        found.append(replace(item, nodes=graph.num_nodes, picture=draw_graph(graph, label, colors)))
    return found


def _class_rows(entries: list[Entry], truth: Mapping[int, int], classes: list[str]) -> list[ClassRow]:
    counts = Counter(truth.values())
    tables = [confusion(entry.folds, len(classes)) for entry in entries]
    recalls = [table.diagonal() / np.maximum(table.sum(axis=1), 1) for table in tables]
    return [
        ClassRow(
            name=name,
            graphs=counts[number],
            share=counts[number] / max(counts.total(), 1),
            recall=[
                float(recall[number]) if table[number].sum() else None
                for table, recall in zip(tables, recalls, strict=True)
            ],
        )
        for number, name in enumerate(classes)
    ]


def _chosen(entry: Entry) -> str:
    """Return the settings that the folds chose from a grid or among kernel parameters, and in how many folds."""
    configs = entry.configs
    varied = [key for key in configs[0] if any(c.get(key) != configs[0][key] for c in configs)] if configs else []
    choices: list[dict[str, str]] = []
    for outcome in entry.outcomes:
        if outcome.result is not None:
            settings = {key: value for key, value in (outcome.config or {}).items() if key in varied}
            settings |= {key: value for key, value in outcome.result.chosen.items() if key not in ("inner", "kernel")}
            choices.append({key: f"{v:g}" if isinstance(v, float) else str(v) for key, v in settings.items()})
    parts = []
    for key in dict.fromkeys(key for choice in choices for key in choice):
        counts = Counter(choice[key] for choice in choices if key in choice).most_common()
        counted = [value if len(counts) == 1 else f"{value} ({count}×)" for value, count in counts]
        parts.append(f"{key} {', '.join(counted)}")
    return "; ".join(parts)
