"""Names of the columns of a network's node features, and sums of contributions by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gcaps.data.arrays import Array, Floats
from gcaps.data.graphset import GraphSet
from gcaps.data.molecules.featurizer import ATOM_ATTRIBUTES, ATOM_LABELS
from gcaps.features import NodeFeatures
from gcaps.features.structural import LabelFeatures, OneHotFeatures

WORDS = {"degree": "degree", "constant": "constant", "fgsd": "FGSD", "return_probabilities": "return probabilities"}


def label_text(graphs: GraphSet, column: int, value: int) -> str:
    """Return a node label as in the source; for atoms the symbol of the element."""
    if graphs.preparation is not None and column == 0:
        try:
            from rdkit import Chem
        except ImportError:
            return str(value)
        return str(Chem.GetPeriodicTable().GetElementSymbol(value)) if 0 < value < 119 else "*"
    return str(graphs.label_names.get(value, value))


def label_words(graph: GraphSet, node: int) -> str:
    """Return the label of a node; for atoms element, charge, hydrogens and whether they are aromatic or in a ring."""
    assert graph.node_labels is not None
    row = graph.node_labels[node]
    text = label_text(graph, 0, int(row[0]))
    if graph.preparation is None:
        return f"label {text}"
    if len(row) < len(ATOM_LABELS):
        return text
    values = dict(zip(ATOM_LABELS, row.tolist(), strict=True))
    charge, hydrogens = values["charge"], values["hydrogens"]
    text += f"H{hydrogens if hydrogens > 1 else ''}" if hydrogens else ""
    text += f"{abs(charge) if abs(charge) > 1 else ''}{'+' if charge > 0 else '−'}" if charge else ""
    where = "aromatic " if values["aromatic"] else "ring " if values["ring"] else ""
    return f"{where}{text} of {values['degree']} bond{'s' if values['degree'] != 1 else ''}"


def label_column(graphs: GraphSet, column: int) -> str:
    """Return the name of a column of node labels."""
    columns = 1 if graphs.node_labels is None else graphs.node_labels.shape[1]
    if graphs.preparation is not None and columns <= len(ATOM_LABELS):
        return ATOM_LABELS[column]
    return "label" if columns == 1 else f"label {column + 1}"


def attribute_column(graphs: GraphSet, column: int) -> str:
    """Return the name of a column of node attributes."""
    columns = 1 if graphs.x is None else graphs.x.shape[1]
    if graphs.preparation is not None and columns == len(ATOM_ATTRIBUTES):
        return ATOM_ATTRIBUTES[column]
    return "attribute" if columns == 1 else f"attribute {column + 1}"


def column_names(features: NodeFeatures, graphs: GraphSet) -> list[str]:
    """Return a name for each column of ``features.encode(graphs).toarray()``; columns of one kind share it.

    Each label and each attribute has its own name; degrees, FGSD and return probabilities have one each.
    """
    one_hot: list[str] = []
    dense: list[str] = []
    for name, part in features.parts.items():
        if isinstance(part, LabelFeatures):
            for number, (own, rare) in enumerate(zip(part.frequent, part.rare_, strict=True)):
                title = label_column(graphs, number)
                one_hot += [f"{title} {label_text(graphs, number, int(value))}" for value in own]
                one_hot += [f"{title}: rare"] * bool(len(rare))
        elif name == "attributes":
            dense += [attribute_column(graphs, number) for number in range(part.num_features)]
        else:
            (one_hot if isinstance(part, OneHotFeatures) else dense).extend([WORDS[name]] * part.num_features)
    return [*one_hot, *dense]


def by_name(names: Sequence[str], contributions: Floats) -> dict[str, float]:
    """Return the sums of contributions [d] of columns with the same name, without zeros, the largest first."""
    found: dict[str, float] = {}
    for name, value in zip(names, contributions.tolist(), strict=True):
        if value:
            found[name] = found.get(name, 0.0) + value
    return largest_first(found)


def largest_first(found: dict[str, float]) -> dict[str, float]:
    """Return the items in descending order of their absolute values."""
    return dict(sorted(found.items(), key=lambda item: -abs(item[1])))


def hidden_columns(graphs: GraphSet) -> list[tuple[str, Array]]:
    """Return for each column of node labels and attributes its name and its place (0 labels, 1 attributes; number)."""
    labels = 0 if graphs.node_labels is None else graphs.node_labels.shape[1]
    attributes = 0 if graphs.x is None else graphs.x.shape[1]
    return [(label_column(graphs, i), np.array([0, i])) for i in range(labels)] + [
        (attribute_column(graphs, i), np.array([1, i])) for i in range(attributes)
    ]
