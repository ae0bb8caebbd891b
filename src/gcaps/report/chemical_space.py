"""Test and training molecules: similarity, the metric by similarity, and a map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.molecules.similarity import PackedBits, most_similar
from gcaps.evaluation.plan import PlannedData
from gcaps.evaluation.splits import Fold
from gcaps.report.chart import Drawing, Scale, padded, signed_number
from gcaps.report.figures import LARGE, SMALL, axis_text, axis_title
from gcaps.report.study import Entry, MethodName
from gcaps.report.tested_graphs import TestedGraphs

MAX_POINTS = 2_000
"""Molecules on a map, and test molecules whose similarity is computed; of more, a sample is drawn."""
LEAST_IN_BIN = 10
"""Bins of fewer molecules have no metric."""
EDGES = np.linspace(0, 1, 11)
"""Limits of the bins of similarity; a bin contains its upper limit."""
STEPS = 5
"""Colors of a scale from low to high values."""


class Coverage(NamedTuple):
    """Similarity of tested molecules to the nearest training molecule of the fold that tested them."""

    graph: Ints
    """[n]"""
    similarity: Floats
    """[n] Tanimoto, 0 to 1."""
    tested: int
    """Number of tested molecules, of which ``graph`` may be a sample."""

    @property
    def bins(self) -> Ints:
        """[n] bin of each similarity."""
        return np.clip(np.searchsorted(EDGES, self.similarity) - 1, 0, len(EDGES) - 2)


class SpaceMap(NamedTuple):
    """A map of the molecules and the meaning of its colors."""

    picture: Markup
    caption: str
    keys: list[tuple[str, str]]
    """Class of a color, and its meaning."""


@dataclass(frozen=True)
class ChemicalSpace:
    """Charts about a data set of molecules and the predictions of methods on it."""

    coverage: Coverage
    histogram: Markup
    by_similarity: list[tuple[MethodName, Markup]]
    maps: list[SpaceMap]
    mapped: int
    """Number of molecules on the maps."""


def chemical_space(
    entries: Sequence[Entry],
    planned: PlannedData,
    graphs: GraphSet,
    bits: PackedBits,
    seed: int,
    folds: Mapping[int, Fold],
) -> ChemicalSpace | None:
    """Collect the charts; None if no fold is done.

    Args:
        entries: methods with results; errors on the map are those of the first.
        planned: the data set.
        graphs: its molecules.
        bits: their fingerprints.
        seed: of the folds.
        folds: those of that seed that are done.
    """
    tested = [(entry, found) for entry in entries if (found := TestedGraphs.of(entry, planned.task, seed))]
    if not tested or not folds:
        return None
    coverage = find_coverage(bits, folds)
    size = LARGE if len(tested) == 1 else SMALL
    curves = [(entry.name, svg) for entry, own in tested if (svg := metric_by_similarity(entry, own, coverage, size))]
    places, chosen = project(bits)
    maps = [_target_map(planned, graphs, places, chosen), _error_map(*tested[0], places, chosen)]
    return ChemicalSpace(
        coverage, similarity_histogram(coverage, planned.name), curves, [m for m in maps if m], len(chosen)
    )


def sample(count: int) -> Ints:
    """Draw at most :data:`MAX_POINTS` of ``count`` positions, always the same ones; ascending."""
    if count <= MAX_POINTS:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, MAX_POINTS, replace=False))


def find_coverage(bits: PackedBits, folds: Mapping[int, Fold]) -> Coverage:
    """Return the similarity of (a sample of) the test molecules to their nearest training molecule."""
    test = np.concatenate([fold.test for fold in folds.values()])
    number = np.repeat(np.arange(len(folds)), [len(fold.test) for fold in folds.values()])
    kept = sample(len(test))
    similarity = np.zeros(len(kept), dtype=np.float64)
    for i, fold in enumerate(folds.values()):
        own = number[kept] == i
        if own.any() and len(fold.train):
            similarity[own] = most_similar(bits, test[kept][own], fold.train)[1][:, 0]
    return Coverage(test[kept], similarity, len(test))


def similarity_histogram(coverage: Coverage, data: str) -> Markup:
    """Return how many test molecules have a training molecule of which similarity."""
    counts = np.bincount(coverage.bins, minlength=len(EDGES) - 1)
    middle = float(np.median(coverage.similarity))
    far = float((coverage.similarity <= 0.4).mean())
    label = (
        f"Similarity of {len(coverage.graph)} test molecules of {data} to the nearest training molecule: median "
        f"{middle:.2f}; {100 * far:.0f} percent are at most 0.4."
    )
    picture = Drawing(*LARGE, label)
    x, y = Scale(0, 1, 46, LARGE[0] - 8), Scale(0, 1.08 * max(int(counts.max()), 1), LARGE[1] - 38, 24)
    picture.axes(x, y, ("Tanimoto similarity to the nearest training molecule", "test molecules"), signed_number)
    picture.bars(x, y, EDGES.tolist(), counts.tolist(), "blue")
    picture.segments([((x(middle), y.start), (x(middle), y.end))], "stroke thin muted dashed")
    picture.text(x(middle) + (5 if middle < 0.7 else -5), y.end + 6, "median", "start" if middle < 0.7 else "end")
    return picture.svg()


def metric_by_similarity(
    entry: Entry, tested: TestedGraphs, coverage: Coverage, size: tuple[float, float]
) -> Markup | None:
    """Return the headline metric of test molecules by their similarity to training; None where no bin defines it.

    All folds together; the dashed line is the metric of all of them.
    """
    row_of = dict(zip(tested.graph.tolist(), range(len(tested.graph)), strict=True))
    rows = np.array([row_of.get(graph, -1) for graph in coverage.graph.tolist()], dtype=np.int64)
    found: list[tuple[float, float, int]] = []
    for number in range(len(EDGES) - 1):
        own = rows[(coverage.bins == number) & (rows >= 0)]
        value = tested.metric(entry.metric.name, own) if len(own) >= LEAST_IN_BIN else None
        if value is not None:
            found.append((float(EDGES[number : number + 2].mean()), value, len(own)))
    whole = tested.metric(entry.metric.name, rows[rows >= 0]) if found else None
    if whole is None:
        return None
    metric, name = entry.metric, entry.name.short
    listing = "; ".join(f"{x:.2f}: {metric.text(v, digits=1)} of {n}" for x, v, n in found)
    picture = Drawing(*size, f"{axis_title(metric)} of {name} on {entry.data} by similarity to training: {listing}.")
    x = Scale(0, 1, 46, size[0] - 8)
    least = 0.02 if not metric.unit else max(1e-12, 0.02 * abs(whole))
    y = Scale(*padded([whole, *(v for _, v, _ in found)], 0.1, least), size[1] - 38, 24)
    picture.axes(x, y, ("similarity to the nearest training molecule", axis_title(metric)), axis_text(metric))
    picture.segments([((x.start, y(whole)), (x.end, y(whole)))], "stroke thin muted dashed")
    picture.path([(x(a), y(v)) for a, v, _ in found], "stroke blue")
    total = sum(n for _, _, n in found)
    for a, v, n in found:
        picture.dots([(x(a), y(v))], "blue", 4 + 9 * (n / total) ** 0.5)
    if size == SMALL:
        picture.text(size[0] - 8, 14, name, "end", "title")
    return picture.svg()


def project(bits: PackedBits) -> tuple[Floats, Ints]:
    """Return the first two principal components [n, 2] of a sample of the fingerprints, and its positions [n]."""
    from sklearn.utils.extmath import randomized_svd

    chosen = sample(len(bits.counts))
    rows = bits.take(chosen).unpacked.astype(np.float32)
    rows -= rows.mean(axis=0)
    u, s, _ = randomized_svd(rows, n_components=2, random_state=0)
    places: Floats = np.zeros((len(rows), 2))
    places[:, : u.shape[1]] = u * s
    return places, chosen


def in_steps(values: Floats, cuts: Sequence[float]) -> tuple[Ints, list[str]]:
    """Return the step of each value between ascending ``cuts``, and the name of each step."""
    cuts = sorted(set(cuts))
    texts = [signed_number(float(f"{cut:.3g}")) for cut in cuts]
    inner = [f"{a} to {b}" for a, b in pairwise(texts)]
    return np.searchsorted(cuts, values), [f"up to {texts[0]}", *inner, f"above {texts[-1]}"]


def _fifths(values: Floats) -> list[float]:
    return [float(cut) for cut in np.quantile(values, np.arange(1, STEPS) / STEPS)]


def _target_map(planned: PlannedData, graphs: GraphSet, places: Floats, chosen: Ints) -> SpaceMap:
    """Return the map colored by target: classes, fifths of the values, or the number of positive targets."""
    assert graphs.y is not None, "a comparison has targets"
    table = graphs.y.reshape(len(graphs), -1)[chosen]
    if planned.task == "regression":
        values = table[:, 0].astype(np.float64)
        steps, names = in_steps(values, _fifths(values[~np.isnan(values)]))
        group: Array = np.where(np.isnan(values), -1, steps)
        keys, title = [(f"q{i}", name) for i, name in enumerate(names)], planned.targets[0]
    elif planned.task == "multilabel":
        counts = np.minimum((table == planned.classes[1]).sum(axis=1), 3)
        group, keys = counts, [(f"q{i + (i > 0)}", f"{n}") for i, n in enumerate(("0", "1", "2", "3 or more"))]
        title = f"number of its targets that are {planned.classes[1]}"
    else:
        names = [str(name) for name in planned.classes]
        group = np.array([names.index(text) if (text := _plain(v)) in names else -1 for v in table[:, 0].tolist()])
        keys, title = [(f"k{i % 8}", name) for i, name in enumerate(names)], planned.targets[0]
    label = f"{len(chosen)} molecules of {planned.name}, each colored by {title}."
    return SpaceMap(_map(places, group, [kind for kind, _ in keys], label), f"Colored by {title}.", keys)


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) and value.is_integer() else str(value)


def _error_map(entry: Entry, tested: TestedGraphs, places: Floats, chosen: Ints) -> SpaceMap | None:
    """Return the map colored by the error of one method, mean over the targets; molecules without one are grey."""
    matrix = tested.errors()
    known = ~np.isnan(matrix).all(axis=1)
    mean = np.nanmean(matrix[known], axis=1)
    by_graph = dict(zip(tested.graph[known].tolist(), mean.tolist(), strict=True))
    values = np.array([by_graph.get(graph, np.nan) for graph in chosen.tolist()])
    if np.isnan(values).all():
        return None
    regression = tested.task == "regression"
    steps, names = in_steps(values, _fifths(values[~np.isnan(values)]) if regression else [0.2, 0.4, 0.6, 0.8])
    group = np.where(np.isnan(values), -1, steps)
    what = "distance from the true value in standard deviations" if regression else "1 − probability of the true class"
    keys = [(f"q{i}", name) for i, name in enumerate(names)]
    keys += [("line", "not tested")] if (group < 0).any() else []
    label = f"{len(chosen)} molecules of {entry.data}, each colored by the error of {entry.name.short}: {what}."
    caption = f"Colored by the error of {entry.name.short} where it was tested: {what}."
    return SpaceMap(_map(places, group, [kind for kind, _ in keys[: len(names)]], label), caption, keys)


def _map(places: Floats, group: Array, kinds: Sequence[str], label: str) -> Markup:
    """Return dots in groups of one color; those of group −1 are grey and below the others."""
    width, height = LARGE[0], LARGE[1] + 40
    picture = Drawing(width, height, label)
    x = Scale(*padded(places[:, 0].tolist(), 0.02, 1e-6), 10, width - 10)
    y = Scale(*padded(places[:, 1].tolist(), 0.02, 1e-6), height - 10, 10)
    size = 5.5 if len(places) < 500 else 4.0
    for code, kind in [(-1, "line"), *enumerate(kinds)]:
        here = places[group == code].tolist()
        picture.dots([(x(a), y(b)) for a, b in here], kind, size)
    return picture.svg()
