"""A page with molecules whose atoms are colored by what they contribute to a prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from gcaps.data.arrays import Floats
from gcaps.data.targets import Target, missing
from gcaps.evaluation.metrics import METRICS
from gcaps.explain.contributions import Explanation
from gcaps.report.chart import coordinate
from gcaps.report.molecule_drawing import AtomMark, draw_molecule, opacity
from gcaps.report.template import environment
from gcaps.version import __version__

if TYPE_CHECKING:
    from gcaps.estimators.base import GraphEstimator

SIZE = (340.0, 260.0)
"""Width and height of a drawing in CSS pixels."""
NOTED = 3
"""Number of atoms of a molecule that have their contribution written beside them."""
LEAST_NOTED = 0.15
"""Smaller contributions, relative to the end of the color scale, are not written beside atoms."""
QUANTILE = 0.99
"""Quantile of all contributions at which the color scale ends, so that one extreme atom does not fade the others."""
LEGEND = np.linspace(-1, 1, 9)
"""Strengths shown in the legend."""


@dataclass(frozen=True)
class AtomRow:
    """A row of a molecule's table."""

    number: int
    """Counted from 0 in the order of the SMILES."""
    symbol: str
    contribution: str
    value: float


@dataclass(frozen=True)
class ExplainedMolecule:
    """A molecule on the page."""

    id: str
    smiles: str
    picture: Markup | None
    """None if it is too large to draw."""
    prediction: str
    explained: str
    """The number that is explained, where the prediction is a class."""
    truth: str
    """Empty if it is not known."""
    rows: list[AtomRow]
    """Largest contribution first."""


def explanation_page(model: GraphEstimator, explanation: Explanation, command: str = "") -> str:
    """Return contributions of atoms as one self-contained HTML page.

    Args:
        model: the estimator that predicted.
        explanation: see :func:`gcaps.explain.explain`.
        command: how the page was made.
    """
    by_atom: list[Floats] = [
        np.bincount(one.atom, weights=values, minlength=one.molecule.GetNumAtoms()).astype(np.float64)
        for one, values in zip(explanation.atoms, explanation.contributions, strict=True)
    ]
    reach = float(np.quantile(np.abs(np.concatenate(by_atom)), QUANTILE)) or 1.0
    molecules = [_molecule(model.target_, explanation, i, values, reach) for i, values in enumerate(by_atom)]
    probability = explanation.output.is_probability
    return (
        environment()
        .get_template("explanation.html.j2")
        .render(
            data=explanation.graphs.name,
            model=model.describes,
            trained_on=getattr(model, "data_", {}),
            output=explanation.output.words,
            molecules=molecules,
            legend=color_legend(reach, probability=probability),
            hydrogens=any(one.is_hydrogen.any() for one in explanation.atoms),
            command=command,
            version=__version__,
        )
    )


def _molecule(target: Target, explanation: Explanation, place: int, values: Floats, reach: float) -> ExplainedMolecule:
    graphs, probability = explanation.graphs, explanation.output.is_probability
    name, smiles = str(graphs.ids[place]), str(graphs.columns["smiles"][place])
    molecule = explanation.atoms[place].molecule
    order = np.argsort(-np.abs(values), kind="stable").tolist()
    noted = {i for i in order[:NOTED] if abs(values[i]) >= LEAST_NOTED * reach}
    texts = [signed_text(float(value), probability=probability) for value in values]
    symbols = [atom.GetSymbol() for atom in molecule.GetAtoms()]
    marks = [
        AtomMark(float(value) / reach, f"{symbol} {i}: {text}", _note(float(value)) if i in noted else "")
        for i, (value, symbol, text) in enumerate(zip(values, symbols, texts, strict=True))
    ]
    label = f"Molecule {name}, atoms colored by contribution; strongest: " + ", ".join(
        f"{symbols[i]} {i} {texts[i]}" for i in order[:NOTED]
    )
    scores = explanation.scores[place : place + 1]
    number = explanation.output.target
    prediction, explained = _prediction_texts(target, scores, number, explanation.output.of_row(scores, place))
    return ExplainedMolecule(
        id=name,
        smiles=smiles,
        picture=draw_molecule(molecule, label, SIZE, marks),
        prediction=prediction,
        explained=explained,
        truth=_truth_text(explanation, place, target),
        rows=[AtomRow(i, symbols[i], texts[i], float(values[i])) for i in order],
    )


def _note(value: float) -> str:
    """Format a contribution as briefly as possible."""
    return f"{value:+.2f}" if 0.1 <= abs(value) < 10 else f"{value:+.2g}" if abs(value) < 10 else f"{value:+.0f}"


def signed_text(value: float, *, probability: bool) -> str:
    """Format a contribution with its sign."""
    if not probability:
        return METRICS["mae"].difference(value)
    text = f"{value:+.3f}".replace("-", "−")
    return text[1:] if float(text[1:]) == 0 else text


def _prediction_texts(target: Target, scores: Floats, number: int, explained: float) -> tuple[str, str]:
    """Return the prediction in the source's words, and the explained probability if it is a class."""
    decoded = target.decode(scores).reshape(1, -1)[0]
    if target.classes is None:
        return METRICS["mae"].text(float(decoded[number])), ""
    return str(decoded[number]), f"{explained:.3f}"


def _truth_text(explanation: Explanation, place: int, target: Target) -> str:
    """Return the true value of the explained target; empty if the graphs do not have it."""
    y = explanation.graphs.y
    if y is None or y.reshape(len(y), -1).shape[1] != len(target.names):
        return ""
    value = y.reshape(len(y), -1)[place : place + 1, explanation.output.target]
    if missing(value)[0]:
        return ""
    if target.classes is not None and value.dtype.kind == "f":
        return f"{value[0]:g}"
    return METRICS["mae"].text(float(value[0])) if value.dtype.kind == "f" else str(value[0])


def color_legend(reach: float, *, probability: bool) -> Markup:
    """Return the color scale from −reach to reach with numbers."""
    width, height = 34.0, 16.0
    cells = "".join(_legend_cell(i * width, width, height, float(s)) for i, s in enumerate(LEGEND))
    ends = [(0.0, f"≤ {signed_text(-reach, probability=probability)}", "start")]
    ends += [(len(LEGEND) * width / 2, "0", "middle")]
    ends += [(len(LEGEND) * width, f"≥ {signed_text(reach, probability=probability)}", "end")]
    texts = "".join(
        f'<text x="{coordinate(x)}" y="32" text-anchor="{anchor}">{words}</text>' for x, words, anchor in ends
    )
    box = f"0 0 {coordinate(len(LEGEND) * width)} 38"
    label = f"Color scale: orange lowers the prediction, blue raises it, from {ends[0][1][2:]} to {ends[2][1][2:]}"
    return Markup(
        f'<svg class="chart mol legend-scale" viewBox="{box}" role="img" aria-label="{label}">{cells}{texts}</svg>'
    )


def _legend_cell(x: float, width: float, height: float, strength: float) -> str:
    kind = "raises" if strength >= 0 else "lowers"
    corners = f"M{coordinate(x)} 0h{coordinate(width)}v{coordinate(height)}h-{coordinate(width)}Z"
    return f'<path class="{kind}" fill-opacity="{opacity(strength):.2f}" d="{corners}"/>'


def chosen_graphs(ids: Sequence[str], wanted: Sequence[str], count: int) -> list[int]:
    """Return the positions of the graphs called ``wanted``, by default of the first ``count``; −1 for no graph."""
    if not wanted:
        return list(range(min(count, len(ids))))
    places = {name: place for place, name in reversed(list(enumerate(ids)))}
    return [places.get(name, -1) for name in wanted]
