"""A page with a map of graphs: their vectors in two dimensions, and a table of the points."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from markupsafe import Markup

from gcaps.data.arrays import Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.targets import Target, missing
from gcaps.errors import ConfigError
from gcaps.escaping import visible
from gcaps.report.chart import Drawing, Scale, clipped, padded, signed_number
from gcaps.report.chemical_space import STEPS, in_steps
from gcaps.report.graph_drawing import draw_graph
from gcaps.report.molecule_drawing import draw_molecule
from gcaps.report.template import environment, read_resource
from gcaps.version import __version__

MOST = 2_000
"""Graphs on a map; of more, a sample is drawn."""
Projection = Literal["pca", "tsne"]
SIZE = (900.0, 560.0)
"""Width and height of the map in CSS pixels."""
DRAWN = 400
"""Graphs that are drawn; of more, none is."""
DRAWN_NODES = 60
"""Graphs with more nodes are not drawn."""
LISTED = 500
"""Rows of the table of graphs."""
CLASSES = 8
"""Colors of classes; a ninth class has the first color again."""


class EmbeddedPart(NamedTuple):
    """Some graphs of a map."""

    graphs: GraphSet
    """With targets where they are known."""
    vectors: Floats
    """[n, d]"""
    scores: Floats
    """[n, ·] of the model, see :meth:`gcaps.estimators.base.GraphEstimator.scores`."""


@dataclass(frozen=True)
class Place:
    """A point of the map."""

    x: float
    y: float
    id: str
    truth: str
    predicted: str
    wrong: bool


def project(vectors: Floats, how: Projection) -> tuple[Floats, str]:
    """Project vectors to two dimensions; return them [n, 2] and a description of the projection.

    Args:
        vectors: [n, d]
        how: pca: the plane of the largest variance; tsne: neighbors stay neighbors, distances between groups mean
            little. t-SNE begins from at most 50 principal components.
    """
    from sklearn.decomposition import PCA

    x = np.asarray(vectors, np.float64)
    x = x - x.mean(axis=0)
    scale = float(np.abs(x).max(initial=0)) or 1.0
    kept = min(50 if how == "tsne" else 2, *x.shape)
    with np.errstate(all="ignore"):  # the share of a variance that is zero
        pca = PCA(kept, random_state=0)
        found = pca.fit_transform(x / scale)
    if how == "tsne" and len(x) > 4:
        from sklearn.manifold import TSNE

        perplexity = float(min(30, (len(x) - 1) / 3))
        made: Floats = TSNE(2, perplexity=perplexity, init="pca", random_state=0).fit_transform(found)
        return made.astype(np.float64), f"t-SNE with perplexity {perplexity:.0f}, on {kept} principal components"
    share = float(np.nan_to_num(pca.explained_variance_ratio_[:2].sum()))
    flat = np.zeros((len(x), 2))
    flat[:, : min(2, kept)] = found[:, :2]
    return flat, f"the first two principal components, {100 * share:.0f} % of the variance"


def embedding_page(
    parts: Sequence[EmbeddedPart],
    target: Target,
    *,
    total: int | None = None,
    projection: Projection = "pca",
    describes: str = "",
    command: str = "",
) -> str:
    """Return a map of graphs as one self-contained HTML page.

    Args:
        parts: the graphs, with their vectors and predictions.
        target: what the model predicts.
        total: number of graphs, of which these may be a sample.
        projection: see :func:`project`.
        describes: what the vectors are.
        command: how the page was made.
    """
    vectors = np.concatenate([part.vectors for part in parts])
    if len(vectors) < 2:
        raise ConfigError("a map needs two graphs or more")
    flat, how = project(vectors, projection)
    words = [one for part in parts for one in _words(part, target)]
    group, keys, title = _groups(words, target)
    drawn = len(vectors) <= DRAWN
    pictures = [picture for part in parts for picture in (draw_all(part.graphs) if drawn else [""] * len(part.graphs))]
    width, height = SIZE
    x = Scale(*padded(flat[:, 0].tolist(), 0.03, 1e-9), 12, width - 12)
    y = Scale(*padded(flat[:, 1].tolist(), 0.03, 1e-9), height - 12, 12)
    places = [
        Place(round(x(a), 1), round(y(b), 1), word.id, word.truth, word.predicted, word.wrong)
        for (a, b), word in zip(flat.tolist(), words, strict=True)
    ]
    script, data = read_resource("embedding.js"), parts[0].graphs.name
    shown = [[p.x, p.y, visible(p.id), visible(p.truth), visible(p.predicted), int(p.wrong)] for p in places]
    return (
        environment()
        .get_template("embedding.html.j2")
        .render(
            data=data,
            total=len(places) if total is None else total,
            shown=len(places),
            describes=describes,
            dimensions=vectors.shape[1],
            how=how,
            title=title,
            keys=keys,
            picture=_picture(places, group, [kind for kind, _ in keys], f"{len(places)} graphs of {data}, {how}."),
            points=_json(shown),
            drawings=[Markup(picture) for picture in pictures] if any(pictures) else [],
            rows=places[:LISTED],
            regression=target.task == "regression",
            any_truth=any(place.truth for place in places),
            wrong=sum(place.wrong for place in places),
            command=command,
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            version=__version__,
        )
    )


def _json(value: Any) -> Markup:
    """Return JSON that can stand inside a script element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _picture(places: Sequence[Place], group: Ints, kinds: Sequence[str], label: str) -> Markup:
    """Return the dots, one path for each color, and rings around wrong predictions."""
    picture = Drawing(*SIZE, label)
    size = 9.0 if len(places) <= 400 else 6.0
    for code, kind in [(-1, "line"), *enumerate(kinds)]:
        here = [(one.x, one.y) for one, own in zip(places, group.tolist(), strict=True) if own == code]
        picture.dots(here, kind, size)
    for one in places:
        if one.wrong:
            picture.parts.append(f'<circle class="ring" cx="{one.x:g}" cy="{one.y:g}" r="{0.5 * size + 2.2:g}"/>')
    picture.parts.append('<circle id="chosen" class="chosen" r="9" visibility="hidden"/>')
    return picture.svg()


class _Word(NamedTuple):
    """Description of a graph."""

    id: str
    truth: str
    """As in the source; empty where it is not known."""
    predicted: str
    wrong: bool
    group: str
    """The class that colors the point: the true one where it is known."""
    value: float
    """The number that colors the point."""


def _groups(words: Sequence[_Word], target: Target) -> tuple[Ints, list[tuple[str, str]], str]:
    """Return the color of each graph, the colors with their meaning, and what is colored."""
    some = any(word.truth for word in words)
    unknown = (
        "" if all(word.truth for word in words) else ", predicted where it is not known" if some else ", predicted"
    )
    if target.classes is None:
        numbers = np.array([word.value for word in words])
        steps, names = in_steps(numbers, [float(cut) for cut in np.quantile(numbers, np.arange(1, STEPS) / STEPS)])
        return steps, [(f"q{place}", name) for place, name in enumerate(names)], f"{target.names[0]}{unknown}"
    names = [str(name) for name in target.classes.tolist()]
    group = np.array([names.index(word.group) if word.group in names else -1 for word in words])
    keys = [(f"k{place % CLASSES}", clipped(name, 30)) for place, name in enumerate(names)]
    return group, keys, f"{target.names[0] if target.task == 'multilabel' else 'class'}{unknown}"


def _words(part: EmbeddedPart, target: Target) -> list[_Word]:
    """Return the description of each graph, by the first of several targets."""
    graphs, scores = part.graphs, part.scores
    names = [str(name) for name in graphs.ids.tolist()]
    ids = [f"Graph {name}" if name.isdigit() else name for name in names]
    truth = _truth(graphs, target)
    if target.classes is None:
        return [
            _Word(name, "" if y is None else _number(y), _number(value), False, "", value if y is None else float(y))
            for name, y, value in zip(ids, truth, scores[:, 0].tolist(), strict=True)
        ]
    decoded = target.decode(scores)
    decoded = decoded[:, 0] if decoded.ndim == 2 else decoded
    shares = scores.max(axis=1) if target.task == "classification" else np.maximum(scores[:, 0], 1 - scores[:, 0])
    found = []
    for name, y, guess, share in zip(ids, truth, map(str, decoded.tolist()), shares.tolist(), strict=True):
        known = "" if y is None else _text(y)
        predicted = f"{guess} ({100 * share:.0f} %)"
        found.append(_Word(name, known, predicted, bool(known) and known != guess, known or guess, 0.0))
    return found


def _truth(graphs: GraphSet, target: Target) -> list[Any]:
    """Return the first target of each graph; None where it is not known, or not of the model's kind."""
    table = None if graphs.y is None else graphs.y.reshape(len(graphs), -1)
    numbers = target.classes is None
    if table is None or table.shape[1] != len(target.names) or (numbers and table.dtype.kind not in "iuf"):
        return [None] * len(graphs)
    lacking = missing(table[:, 0])
    return [None if gap else value for value, gap in zip(table[:, 0].tolist(), lacking.tolist(), strict=True)]


def _number(value: float) -> str:
    return signed_number(float(f"{value:.4g}"))


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) and value.is_integer() else str(value)


def draw_all(graphs: GraphSet) -> list[str]:
    """Return a drawing of each graph, empty where it is too large."""
    if "smiles" in graphs.columns:
        from gcaps.data.molecules.structures import molecules_of

        ids = graphs.ids.tolist()
        return [
            str(draw_molecule(molecule, f"Molecule {name}", (220.0, 165.0)) or "")
            for molecule, name in zip(molecules_of(graphs), ids, strict=True)
        ]
    labels = [] if graphs.node_labels is None else np.unique(graphs.node_labels[:, 0]).tolist()
    colors = {label: place for place, label in enumerate(labels)}
    sizes = graphs.sizes.tolist()
    return [
        str(draw_graph(graphs[place], f"Graph {graphs.ids[place]}", colors, 165) or "") if size <= DRAWN_NODES else ""
        for place, size in enumerate(sizes)
    ]
