"""The part of a page about one data set: its facts, leakage across folds, and where each method errs on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from markupsafe import Markup

from gcaps.data.arrays import Array, Ints
from gcaps.data.audit import describe, facts
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import stored_hashes, wl_hashes
from gcaps.data.prepared import PreparedSet
from gcaps.data.targets import Task
from gcaps.errors import GcapsError
from gcaps.evaluation.coverage import Coverage, coverage_of
from gcaps.evaluation.diagnostics import Hard, hardest_graphs
from gcaps.evaluation.leakage import MoleculeLeakage, molecule_leakage
from gcaps.evaluation.metrics import METRICS, Metric
from gcaps.evaluation.outcome import Outcome
from gcaps.evaluation.plan import PlannedData
from gcaps.evaluation.splits import Fold
from gcaps.evaluation.statistics import PairedTest
from gcaps.report import figures
from gcaps.report.class_errors import ClassRow, MethodErrors, class_errors, class_rows
from gcaps.report.graph_drawing import draw_graph
from gcaps.report.learning_curve import CurveSection, curve_section
from gcaps.report.molecule_drawing import are_drawable
from gcaps.report.molecules import MoleculePart, molecule_part
from gcaps.report.neighbors import shown_molecule
from gcaps.report.residuals import MethodResiduals, method_residuals
from gcaps.report.study import OURS, Baseline, Entry, Majority, MethodName, Study
from gcaps.report.summary import paired_words, published_beside, spread

MAX_DRAWN = 8
"""Number of graphs that are drawn."""


@dataclass(frozen=True)
class Leakage:
    """Number of test graphs that also occur among the training graphs of their fold, over the folds of one seed."""

    tested: int
    identical: int
    """Stored identically: same node order, labels and attributes."""
    wl_equal: int
    """Equal Weisfeiler-Lehman hash, which is an upper bound on isomorphic graphs."""
    conflicting: int | None
    """Of those, test graphs whose duplicates in training all have another class; None without classes."""


@dataclass(frozen=True)
class LoadedData:
    """A data set as found when the report was written."""

    graphs: GraphSet | None
    """None if the data could not be loaded."""
    error: str | None = None
    """Reason why it could not."""
    facts: dict[str, str] = field(default_factory=dict)
    leakage: Leakage | None = None
    molecules: MoleculeLeakage | None = None
    """Only of molecules."""
    folds: dict[int, Fold] = field(default_factory=dict)
    """Of the first seed, those that were tested."""


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
class DrawnGraph:
    """A graph that is hard, or whose prediction is wrong."""

    graph: int
    truth: str
    words: str
    """What was predicted, or by which methods it was misclassified."""
    nodes: int | None = None
    """None if the data could not be loaded."""
    picture: Markup | None = None
    """None if the graph is too large or could not be loaded."""
    id: str = ""
    """Name of a molecule."""
    smiles: str = ""


@dataclass(frozen=True)
class MetricRow:
    """A metric of every method."""

    metric: Metric
    values: list[str]
    note: str
    """Where it is not defined, by method."""
    headline: bool


@dataclass(frozen=True)
class TargetRow:
    """One of several targets: its known values and the headline metric of every method."""

    name: str
    known: int
    values: list[float | None]


@dataclass(frozen=True)
class DataSection:
    """Contents of the part of the page about one data set."""

    number: int
    planned: PlannedData
    classes: list[str]
    metric: Metric
    """The headline metric."""
    baseline: Baseline | None
    majority: Majority | None
    loaded: LoadedData
    methods: list[MethodName]
    """Methods with at least one result, in the order of the plan."""
    differences: list[Difference]
    paired: str
    """Unit of the tests between methods."""
    metrics: list[MetricRow]
    targets: list[TargetRow]
    """Only where there are several."""
    curve: CurveSection | None
    """Only where methods were also trained on parts of the training graphs."""
    values: dict[tuple[int, int], list[float | None]]
    """By seed and fold, the headline metric of each method."""
    folds: list[Outcome]
    """Done cells of the method on the page of a single method."""
    pictures: dict[str, Markup | None]
    score_curves: list[tuple[MethodName, Markup]]
    loss_curves: list[tuple[MethodName, Markup]]
    validation: bool
    """Whether a method chose its epoch on validation graphs."""
    maps: list[tuple[MethodName, Markup]]
    map_groups: list[str]
    """Legend of the colors of the maps."""
    errors: list[MethodErrors]
    """Only of classifiers."""
    residuals: list[MethodResiduals]
    """Only of regressors."""
    coverage: list[tuple[MethodName, Coverage]]
    """Only of methods with probabilities or values, and of several folds."""
    drawn: list[DrawnGraph]
    """Hardest graphs of several methods, or the most confident mistakes or largest errors of one."""
    missed_by_most: int
    """Number of graphs that more than half of the methods misclassify."""
    missed_by_all: int
    tested: int
    class_rows: list[ClassRow]
    chosen: list[tuple[MethodName, str]]
    """Settings chosen on the training graphs, and in how many folds."""
    molecules: MoleculePart | None
    """None if the graphs are not molecules, could not be loaded, or RDKit is missing."""


def data_section(study: Study, number: int) -> DataSection:
    """Load a data set if possible and collect everything the page shows about it."""
    planned = study.sets[number]
    data, majority = planned.name, study.majority(planned.name)
    truth, baseline = study.truth(data), study.baseline(data)
    classes = study.classes(data)
    entries = [entry for entry in study.of_set(data) if entry.folds]
    complete = study.complete(data)
    seed, tests = _test_folds(entries)
    loaded = load_data(planned, seed, tests)
    size = figures.LARGE if study.single else figures.SMALL
    bounds = figures.curve_bounds(entries)
    errors: list[MethodErrors] = []
    residuals: list[MethodResiduals] = []
    hard: list[Hard] = []
    if planned.task == "classification":
        errors = [class_errors(entry, classes, detailed=study.single) for entry in entries]
        hard = hardest_graphs({entry.label: entry.folds for entry in entries})
    elif planned.task == "regression":
        residuals = [method_residuals(entry, planned.targets, detailed=study.single) for entry in entries]
    alone = entries[0] if study.single and entries else None
    shown = alone if alone is not None and alone.values else None
    pictures = {
        "rules": figures.rule_dots(complete, baseline, published_beside(study, data) if study.single else ()),
        "folds": None if shown is None else figures.fold_values(shown, baseline),
        "seconds": None if study.single else figures.cost_scatter(complete, "seconds"),
        "memory": None if study.single else figures.cost_scatter(complete, "peak_mib"),
    }
    groups, names, kind = _map_groups(planned.task, truth, classes)
    return DataSection(
        number=number,
        planned=planned,
        classes=classes,
        metric=study.metric(data),
        baseline=baseline,
        majority=majority,
        loaded=loaded,
        methods=[entry.name for entry in entries],
        differences=[] if study.single else _differences(study, data),
        paired=paired_words(study, data),
        metrics=_metric_rows(entries),
        targets=_target_rows(entries, planned.targets),
        curve=curve_section(study, data),
        values=_values(entries),
        folds=[] if alone is None else [outcome for outcome in alone.outcomes if outcome.result is not None],
        pictures=pictures,
        score_curves=_present((e.name, figures.score_curves(e, bounds, size)) for e in entries),
        loss_curves=_present((e.name, figures.loss_curve(e, size)) for e in entries),
        validation=any(fold.validation_score for entry in entries for fold in entry.folds),
        maps=_present((e.name, figures.embedding_map(e, groups, names, size, kind)) for e in entries),
        map_groups=[f"{kind} {name}" for name in names] if planned.task == "classification" else names,
        errors=errors,
        residuals=residuals,
        coverage=[(e.name, own) for e in entries if (own := coverage_of(e.repetitions)) is not None],
        drawn=_with_pictures(_drawn(study, data, errors, residuals, hard), loaded.graphs, data),
        missed_by_most=sum(len(graph.missed) > graph.methods / 2 for graph in hard),
        missed_by_all=sum(len(graph.missed) == graph.methods for graph in hard),
        tested=len(truth),
        class_rows=class_rows(entries, truth, classes) if planned.task == "classification" else [],
        chosen=[(e.name, found) for e in entries if (found := _chosen(e))],
        molecules=_molecules(planned, complete or entries, loaded, seed),
    )


def _molecules(planned: PlannedData, entries: list[Entry], loaded: LoadedData, seed: int) -> MoleculePart | None:
    """Return what is shown about molecules; neighbors are sought in the training graphs of the same seed and fold."""
    tests = {(o.seed, o.fold): o.result.test for e in entries for o in e.outcomes if o.result is not None}

    def training(chosen: int, number: int) -> Array:
        if chosen == seed and number in loaded.folds:
            return loaded.folds[number].train
        assert loaded.graphs is not None
        return _fold(planned, loaded.graphs, chosen, number, tests[chosen, number]).train

    return molecule_part(entries, planned, loaded.graphs, loaded.folds, seed, training)


def _drawn(
    study: Study, data: str, errors: list[MethodErrors], residuals: list[MethodResiduals], hard: list[Hard]
) -> list[DrawnGraph]:
    """Return the graphs to draw, in words."""
    if study.single and errors and errors[0].mistakes:
        return [
            DrawnGraph(m.graph, f"class {m.truth}", f"predicted {m.prediction} with {m.probability:.2f}")
            for m in errors[0].mistakes[:MAX_DRAWN]
        ]
    if study.single and residuals:
        return [
            DrawnGraph(r.graph, f"true {r.truth}", f"predicted {r.prediction}")
            for r in residuals[0].largest[:MAX_DRAWN]
        ]
    classes, truth = study.classes(data), study.truth(data)
    found = []
    for one in hard[:MAX_DRAWN]:
        words = "misclassified"
        if one.methods > 1 and len(one.missed) == one.methods:
            words += f" by all {one.methods} methods"
        elif one.methods > 1:
            listed = ", ".join(study.names[m].short for m in one.missed)
            words += f" by {len(one.missed)} of {one.methods}" + (f": {listed}" if len(one.missed) <= 4 else "")
        found.append(DrawnGraph(one.graph, f"class {classes[truth[one.graph]]}", words))
    return found


def _map_groups(task: Task, truth: Mapping[int, Any], classes: list[str]) -> tuple[dict[int, int], list[str], str]:
    """Return the group of each graph that colors its dot, the groups' names, and what they are."""
    if task == "classification":
        return dict(truth), classes, "class"
    values = {graph: y for graph, y in truth.items() if isinstance(y, int | float)}
    if task == "multilabel" or not values:
        return dict.fromkeys(truth, 0), ["graphs"], "graph"
    cuts = np.quantile(list(values.values()), (0.25, 0.5, 0.75))
    names = ["lowest quarter", "second quarter", "third quarter", "highest quarter"]
    return {g: int(np.searchsorted(cuts, v)) for g, v in values.items()}, names, "quarter of the target's values"


def _metric_rows(entries: list[Entry]) -> list[MetricRow]:
    names = dict.fromkeys(name for name in METRICS if any(name in entry.metrics for entry in entries))
    return [
        MetricRow(
            METRICS[name],
            [spread(e.metrics[name], metric=METRICS[name]) if name in e.metrics else "–" for e in entries],
            "; ".join(dict.fromkeys(text for e in entries if name in e.metrics and (text := e.undefined(name)))),
            headline=name == entries[0].metric.name,
        )
        for name in names
    ]


def _target_rows(entries: list[Entry], targets: Sequence[str]) -> list[TargetRow]:
    if len(targets) < 2:
        return []
    rows = []
    for number, name in enumerate(targets):
        found = [entry.target_metrics(number) for entry in entries]
        known = max((round(row["known"]) for row in found), default=0)
        rows.append(TargetRow(name, known, [row.get(e.metric.name) for e, row in zip(entries, found, strict=True)]))
    return rows


def load_data(planned: PlannedData, seed: int, tests: Mapping[int, Sequence[int]]) -> LoadedData:
    """Load a data set and count duplicates between test and training graphs.

    Args:
        planned: the data set.
        seed: of the folds.
        tests: test graphs of each fold of that seed.
    """
    try:
        graphs = planned.load()
    except GcapsError as error:
        return LoadedData(None, str(error))
    folds = {number: _fold(planned, graphs, seed, number, test) for number, test in tests.items()}
    prepared, every = PreparedSet(graphs), list(folds.values())
    leakage = find_leakage(graphs, every, planned.task)
    return LoadedData(graphs, None, describe(facts(prepared)), leakage, molecule_leakage(prepared, every), folds)


def _fold(planned: PlannedData, graphs: GraphSet, seed: int, number: int, test: Sequence[int]) -> Fold:
    """Return a fold of the plan; of folds that the caller gave, all graphs that are not tested were trained on."""
    try:
        return planned.fold(graphs, seed, number)
    except GcapsError:
        return Fold(np.setdiff1d(np.arange(len(graphs)), test), np.asarray(test, dtype=np.int64))


def find_leakage(graphs: GraphSet, folds: Sequence[Fold], task: Task = "classification") -> Leakage:
    """Count test graphs with a duplicate among the training graphs of their fold."""
    stored, hashes = stored_hashes(graphs), wl_hashes(graphs)
    assert graphs.y is not None, "a comparison has targets"
    with_class: Array = hashes
    if task == "classification":
        y: Ints = np.unique(graphs.y, return_inverse=True)[1]
        # a hash and a class combined into one number: equal only for duplicates of the same class
        with_class = hashes * np.uint64(0x9E3779B97F4A7C15) + y.astype(np.uint64)
    counts = np.zeros(3, dtype=np.int64)
    for fold in folds:
        identical, wl_equal, agreeing = (np.isin(h[fold.test], h[fold.train]) for h in (stored, hashes, with_class))
        counts += np.array([identical.sum(), wl_equal.sum(), (wl_equal & ~agreeing).sum()])
    tested, (same, equal, conflicting) = sum(len(fold.test) for fold in folds), counts.tolist()
    return Leakage(tested, same, equal, conflicting if task == "classification" else None)


def _test_folds(entries: list[Entry]) -> tuple[int, dict[int, list[int]]]:
    """Return the first seed and the test graphs of each of its folds, of the entry with the most folds."""
    seed, most = 0, dict[int, list[int]]()
    for entry in entries:
        first = min(outcome.seed for outcome in entry.outcomes)
        found = {o.fold: o.result.test for o in entry.outcomes if o.result is not None and o.seed == first}
        if len(found) > len(most):
            seed, most = first, found
    return seed, most


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


def _values(entries: list[Entry]) -> dict[tuple[int, int], list[float | None]]:
    keys = sorted({key for entry in entries for key in entry.values})
    return {key: [entry.values.get(key) for entry in entries] for key in keys}


def _present(charts: Iterable[tuple[MethodName, Markup | None]]) -> list[tuple[MethodName, Markup]]:
    return [(name, svg) for name, svg in charts if svg is not None]


def _with_pictures(drawn: list[DrawnGraph], graphs: GraphSet | None, data: str) -> list[DrawnGraph]:
    """Add drawings; the most frequent node labels of the data set have the first colors, in every drawing."""
    if graphs is None:
        return drawn
    if are_drawable(graphs):
        molecules = [shown_molecule(graphs, item.graph) for item in drawn]
        return [
            replace(item, nodes=int(graphs.sizes[item.graph]), picture=m.picture, id=m.id, smiles=m.smiles)
            for item, m in zip(drawn, molecules, strict=True)
        ]
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
