"""Explanations of predictions: which nodes, edges and features they depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcaps.lazy import lazy_names

if TYPE_CHECKING:
    from gcaps.explain.atoms import AtomsOf as AtomsOf
    from gcaps.explain.atoms import atoms_of as atoms_of
    from gcaps.explain.classes import ClassSummary as ClassSummary
    from gcaps.explain.classes import class_summaries as class_summaries
    from gcaps.explain.contributions import EXPLAIN_METHODS as EXPLAIN_METHODS
    from gcaps.explain.contributions import atom_contributions as atom_contributions
    from gcaps.explain.contributions import explain as explain
    from gcaps.explain.explanation import Explanation as Explanation
    from gcaps.explain.explanation import Group as Group
    from gcaps.explain.explanation import Substructure as Substructure
    from gcaps.explain.fidelity import Fidelity as Fidelity
    from gcaps.explain.fidelity import fidelity_of as fidelity_of
    from gcaps.explain.fidelity import random_fidelity as random_fidelity
    from gcaps.explain.fidelity import randomised_correlation as randomised_correlation
    from gcaps.explain.gradients import integrated_gradients as integrated_gradients

_HOMES = {
    **dict.fromkeys(("EXPLAIN_METHODS", "atom_contributions", "explain"), "contributions"),
    **dict.fromkeys(("Explanation", "Group", "Substructure"), "explanation"),
    **dict.fromkeys(("AtomsOf", "atoms_of"), "atoms"),
    **dict.fromkeys(("ClassSummary", "class_summaries"), "classes"),
    **dict.fromkeys(("Fidelity", "fidelity_of", "random_fidelity", "randomised_correlation"), "fidelity"),
    "integrated_gradients": "gradients",
}

__all__ = list(_HOMES)

__getattr__, __dir__ = lazy_names("gcaps.explain", _HOMES)
