"""Explanations of predictions by any method: contributions of nodes, edges and features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from gcaps.data.arrays import Floats
from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError, DataError
from gcaps.estimators.network import NetworkEstimator
from gcaps.explain.atoms import AtomsOf, atoms_of
from gcaps.explain.edges import EdgesOf, edges_of
from gcaps.explain.explanation import Explanation, Group
from gcaps.explain.gradients import TOLERANCE, Attribution, DifferentiableModel, GradientMethod, attribute
from gcaps.explain.occlusion import Occlusion, Report
from gcaps.explain.output import Output, explained_output
from gcaps.explain.predictor import Explained, predictor_of, target_of
from gcaps.explain.substructures import (
    DecisionValues,
    contributions,
    decision_output,
    is_exact,
    require_exact,
)

GRADIENTS: tuple[GradientMethod, ...] = ("integrated-gradients", "saliency", "gradient-x-input")
EXPLAIN_METHODS = ("auto", "substructures", "occlusion", *GRADIENTS)
"""Names of the attribution methods."""
Progress = Callable[[int, int], None]
"""Callback for the amount of work done and the total."""


def explain(
    model: Any,
    graphs: Any,
    target: str | None = None,
    *,
    method: str = "auto",
    nodes_only: bool = False,
    progress: Progress | None = None,
) -> Explanation:
    """Return the contributions of nodes, edges and features to the predictions of a model.

    Args:
        model: a fitted estimator, or one that :func:`gcaps.load_model` read; or any object with ``predict_proba``,
            which is called with a GraphSet and explained by occlusion.
        graphs: a GraphSet or anything that :func:`gcaps.load` takes.
        target: one of several targets; by default the first. Its value is explained, or the probability of the second
            class; for more than two classes, that of the predicted one. ``"substructures"`` explains decision values.
        method: ``"substructures"``: exact contributions, for the kernels ``wl``, ``wloa``, ``sp`` and ``gk``;
            ``"integrated-gradients"``, ``"gradient-x-input"`` and ``"saliency"`` of networks; ``"occlusion"`` of
            any model. ``"auto"``: the first of substructures, integrated gradients and occlusion that the model allows.
        nodes_only: of networks, leave out edges and functional groups, which take about half of the time.
        progress: called with the amount of work that is done and the total.

    Raises:
        ConfigError: the model has no such target, or does not allow the method.
    """
    if method not in EXPLAIN_METHODS:
        raise ConfigError(f"there is no attribution method {method!r}; choose from {', '.join(EXPLAIN_METHODS)}")
    predictor = predictor_of(model)
    found = predictor.loaded(graphs)
    scores = predictor.scores(found)
    output = explained_output(target_of(predictor, scores), scores, target)
    chosen = chosen_method(predictor, method)
    atoms = _atoms(found)
    edges = edges_of(found)
    empty = Explanation(
        graphs=found,
        scores=scores,
        output=output,
        method=chosen,
        values=output.of(scores),
        baselines=np.full(len(found), np.nan),
        nodes=[],
        edges=None,
        edge_ends=[one.ends for one in edges],
        features=[],
        atoms=atoms,
    )
    if chosen == "own":
        given = predictor.atom_contributions(found, output.column)  # type: ignore[union-attr]
        return replace(empty, nodes=given, features=[{} for _ in given])
    work = found.sizes * (np.array([len(one.ends) for one in edges]) + (found.sizes if chosen == "occlusion" else 0))
    report = _counting(progress, int(work.sum()) if chosen in ("occlusion", "substructures") else len(found))
    if chosen == "substructures":
        return _by_substructures(empty, predictor, edges, report)
    if chosen == "occlusion":
        return _by_occlusion(empty, predictor, edges, report)
    return _by_gradients(empty, predictor, None if nodes_only else edges, report)


def chosen_method(model: Explained, method: str = "auto") -> str:
    """Return the attribution method that ``"auto"`` stands for, or the given one if the model allows it.

    Raises:
        ConfigError: it does not.
    """
    if method == "auto":
        if hasattr(model, "atom_contributions"):
            return "own"
        if is_exact(model):
            return "substructures"
        return "integrated-gradients" if has_gradients(model) else "occlusion"
    if method == "substructures":
        require_exact(model)
    if method in GRADIENTS and not isinstance(model, NetworkEstimator):
        raise ConfigError(f"{method}: {type(model).__name__} has no gradients; choose --method occlusion or auto")
    return method


def has_gradients(model: object) -> bool:
    """Whether integrated gradients of a model add up to its output.

    Those of DGCNN do not: its sort pooling is discontinuous where two nodes exchange their ranks.
    """
    return isinstance(model, NetworkEstimator) and model.method != "dgcnn"


def atom_contributions(model: Any, graphs: Any, target: str | None = None) -> list[Floats]:
    """Return the contribution of each atom to the prediction for its molecule, by occlusion.

    Args:
        model: as for :func:`explain`.
        graphs: molecules.
        target: as for :func:`explain`.

    Returns:
        [n] for each molecule, in the order of its nodes.

    Raises:
        DataError: the graphs are not molecules, or RDKit is missing.
    """
    found = explain(model, graphs, target, method="auto" if hasattr(model, "atom_contributions") else "occlusion")
    if found.atoms is None:
        atoms_of(found.graphs)  # raises the error with the reason
        raise DataError("needs molecules", found.graphs.name)
    return found.nodes


def _atoms(graphs: GraphSet) -> list[AtomsOf] | None:
    if "smiles" not in graphs.columns or graphs.preparation is None or find_spec("rdkit") is None:
        return None
    return atoms_of(graphs)


def _counting(progress: Progress | None, total: int) -> Report:
    done = 0

    def report(amount: int) -> None:
        nonlocal done
        done = min(done + amount, total)
        if progress is not None:
            progress(done, total)

    return report


def _by_occlusion(empty: Explanation, model: Explained, edges: Sequence[EdgesOf], report: Report) -> Explanation:
    graphs = empty.graphs
    hide = Occlusion(model, graphs, empty.output, empty.atoms, report)
    hidden = {hide.how(g) for g in range(len(graphs))}
    return replace(
        empty,
        nodes=[hide.nodes(g) for g in range(len(graphs))],
        edges=[hide.edges(g, edges[g]) for g in range(len(graphs))],
        features=[hide.features(g) for g in range(len(graphs))],
        groups=_groups(hide, empty),
        hidden="features" if "features" in hidden else "edges",
        notes={"edges": "occlusion"},
    )


def _by_substructures(empty: Explanation, model: Explained, edges: Sequence[EdgesOf], report: Report) -> Explanation:
    kernel = require_exact(model)
    graphs, output = empty.graphs, decision_output(kernel, empty.output, empty.scores)
    found = contributions(kernel, graphs, output)
    hide = Occlusion(DecisionValues(kernel), graphs, output, empty.atoms, report)
    return replace(
        empty,
        output=output,
        values=np.array([one.value for one in found]),
        baselines=np.array([one.bias for one in found]),
        nodes=[one.nodes for one in found],
        edges=[hide.edges(g, edges[g]) for g in range(len(graphs))],
        features=[one.features for one in found],
        groups=_groups(hide, empty),
        substructures=[one.substructures for one in found],
        notes={"edges": "occlusion"},
    )


def _by_gradients(empty: Explanation, model: Explained, edges: Sequence[EdgesOf] | None, report: Report) -> Explanation:
    assert isinstance(model, NetworkEstimator)
    graphs, method = empty.graphs, empty.method
    network = DifferentiableModel(model, graphs, empty.output)
    found: list[Attribution] = []
    for g in range(len(graphs)):
        found.append(attribute(network, g, method, edges=edges is not None))  # type: ignore[arg-type]
        report(1)
    if edges is None:
        return replace(empty, nodes=[one.nodes for one in found], features=[one.features for one in found])
    hide = Occlusion(model, graphs, empty.output, empty.atoms)
    own = [one.edges for one in found]
    missing = sum(one.gap > TOLERANCE * max(abs(one.value - one.baseline), 1e-3) for one in found)
    notes = {"edges": "occlusion" if any(one is None for one in own) else method}
    if method == "integrated-gradients" and missing:
        notes["gap"] = f"contributions of {missing} of {len(found)} graphs do not add up to within 1 %"
    adds_up = method == "integrated-gradients"
    return replace(
        empty,
        baselines=np.array([one.baseline if adds_up else np.nan for one in found]),
        nodes=[one.nodes for one in found],
        edges=[hide.edges(g, edges[g]) if one is None else one for g, one in enumerate(own)],
        features=[one.features for one in found],
        groups=_groups(hide, empty),
        notes=notes,
    )


def _groups(hide: Occlusion, empty: Explanation) -> list[list[Group]] | None:
    """Return functional groups of molecules with the prediction minus that without them."""
    if empty.atoms is None:
        return None
    from gcaps.explain.functional_groups import functional_groups

    found = []
    for g, atoms in enumerate(empty.atoms):
        named = functional_groups(atoms)
        values = hide.sets(g, [nodes for _, nodes in named]).tolist() if named else []
        made = [Group(name, nodes, value) for (name, nodes), value in zip(named, values, strict=True)]
        found.append(sorted(made, key=lambda group: -abs(group.contribution)))
    return found


__all__ = ["EXPLAIN_METHODS", "Output", "atom_contributions", "chosen_method", "explain", "has_gradients"]
