"""Conversion of molecules to graphs: hydrogens, fragments, charges and features of atoms and bonds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Any, Literal, Self, get_args, get_type_hints

from gcaps.errors import ConfigError

AtomFeatures = Literal["full", "element"]
Hydrogens = Literal["implicit", "explicit"]
Salts = Literal["keep", "strip"]
Charges = Literal["keep", "neutralize"]


@dataclass(frozen=True)
class MoleculePreparation:
    """What is done to molecules before they become graphs; saved with models, so that new ones are prepared alike.

    Tautomers are left as they are written.

    Args:
        atom_features: what nodes and edges tell: ``"full"``, everything that
            :mod:`gcaps.data.molecules.featurizer` lists; ``"element"``, atomic numbers and bond orders.
        hydrogens: ``"implicit"``: hydrogens are counted at the atom they are bound to; ``"explicit"``: each is a node.
        salts: ``"strip"`` keeps the largest organic fragment of a mixture, ``"keep"`` all of them.
        charges: ``"neutralize"`` adds and removes protons until atoms are neutral where that is possible.
    """

    atom_features: AtomFeatures = "full"
    hydrogens: Hydrogens = "implicit"
    salts: Salts = "keep"
    charges: Charges = "keep"

    def __post_init__(self) -> None:
        for name, known in _choices().items():
            value = getattr(self, name)
            if value not in known:
                raise ConfigError(f"{name} is {value!r}; it should be {' or '.join(map(repr, known))}")

    @property
    def changes_molecules(self) -> bool:
        """Whether fragments are removed or charges changed."""
        return self.salts != "keep" or self.charges != "keep"

    def __str__(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in asdict(self).items())

    def to_dict(self) -> dict[str, str]:
        """Return JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Restore from :meth:`to_dict`.

        Raises:
            ConfigError: a name or value is unknown.
        """
        unknown = set(values) - {entry.name for entry in fields(cls)}
        if unknown:
            raise ConfigError(f"there is no preparation of molecules called {min(unknown)!r}")
        return cls(**values)


@cache
def _choices() -> dict[str, tuple[str, ...]]:
    """Known values of each field."""
    kinds = get_type_hints(MoleculePreparation)
    return {entry.name: get_args(kinds[entry.name]) for entry in fields(MoleculePreparation)}
