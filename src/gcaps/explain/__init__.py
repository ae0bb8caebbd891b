"""Explanations of predictions: how much each atom of a molecule contributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcaps.lazy import lazy_names

if TYPE_CHECKING:
    from gcaps.explain.atoms import AtomsOf as AtomsOf
    from gcaps.explain.atoms import atoms_of as atoms_of
    from gcaps.explain.contributions import Explanation as Explanation
    from gcaps.explain.contributions import atom_contributions as atom_contributions
    from gcaps.explain.contributions import explain as explain

_HOMES = {
    **dict.fromkeys(("Explanation", "atom_contributions", "explain"), "contributions"),
    **dict.fromkeys(("AtomsOf", "atoms_of"), "atoms"),
}

__all__ = list(_HOMES)

__getattr__, __dir__ = lazy_names("gcaps.explain", _HOMES)
