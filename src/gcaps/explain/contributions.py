"""Contributions of atoms to the predictions of any method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gcaps.data.arrays import Floats
from gcaps.data.graphset import GraphSet
from gcaps.explain.atoms import AtomsOf, atoms_of, hidden_atom_smiles
from gcaps.explain.occlusion import occlusion
from gcaps.explain.output import Output, explained_output

if TYPE_CHECKING:
    from gcaps.estimators.base import GraphEstimator


@dataclass(frozen=True)
class Explanation:
    """Predictions for molecules and what each atom contributes to them."""

    graphs: GraphSet
    atoms: list[AtomsOf]
    """The molecule of each graph."""
    scores: Floats
    """[G, ·] of the model."""
    output: Output
    """Which number of them is explained."""
    contributions: list[Floats]
    """[n] for each graph: what its nodes contribute."""


def atom_contributions(model: GraphEstimator, graphs: Any, target: str | None = None) -> list[Floats]:
    r"""Return how much each atom raises or lowers the prediction for its molecule, by occlusion.

    The contribution of atom i to the prediction f(G) is :math:`f(G) - f(G_{\setminus i})`, where the features of the
    atom are hidden in :math:`G_{\setminus i}`: its labels become one that no training graph has, its attributes the
    mean over the training graphs; for methods that read SMILES, it becomes a wildcard. Bonds stay. Contributions are
    effects of one atom at a time; they do not add up to the prediction.

    An estimator with a method ``atom_contributions(graphs, column)`` is asked instead; ``column`` [G] says which of its
    scores is explained.

    Args:
        model: a fitted estimator, or one that :func:`gcaps.load_model` read.
        graphs: molecules: a GraphSet or anything that :func:`gcaps.load` takes.
        target: one of several targets; by default the first. Explained is its value, or the probability of the second
            class; of more than two classes, that of the predicted one.

    Returns:
        [n] for each molecule, in the order of its nodes.

    Raises:
        ConfigError: the model has no such target.
        DataError: the graphs are not molecules, or RDKit is missing.
    """
    return explain(model, graphs, target).contributions


def explain(model: GraphEstimator, graphs: Any, target: str | None = None) -> Explanation:
    """Return the contributions of atoms with predictions and molecules; see :func:`atom_contributions`."""
    found = model.loaded(graphs)
    atoms = atoms_of(found)
    scores = model.scores(found)
    output = explained_output(model.target_, scores, target)
    own = getattr(model, "atom_contributions", None)
    if own is not None:
        return Explanation(found, atoms, scores, output, own(found, output.column))
    contributions = occlusion(model, found, output, [hidden_atom_smiles(one) for one in atoms])
    return Explanation(found, atoms, scores, output, contributions)
