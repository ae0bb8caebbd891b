"""Options of :func:`gcaps.load`: which columns of a table to read, and what to do with rows that are not graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from gcaps.data.molecules.preparation import AtomFeatures, Charges, Hydrogens, MoleculePreparation, Salts
from gcaps.errors import ConfigError

Invalid = Literal["error", "skip"]
Empty = Literal["error", "drop"]
Directed = Literal["error", "symmetrize"]


@dataclass(frozen=True)
class Reading:
    """How a source is read; see :func:`gcaps.load` for the meaning of each field."""

    target: str | Sequence[str] | None = None
    smiles: str | None = None
    id: str | None = None
    columns: Sequence[str] = ()
    invalid: Invalid = "error"
    empty: Empty = "error"
    directed: Directed = "error"
    labelled: bool = True
    nodes: str | Path | None = None
    labels: str | Path | None = None
    atom_features: AtomFeatures = "full"
    hydrogens: Hydrogens = "implicit"
    salts: Salts = "keep"
    charges: Charges = "keep"
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        for name, kind in (("invalid", Invalid), ("empty", Empty), ("directed", Directed)):
            if getattr(self, name) not in get_args(kind):
                wanted = " or ".join(repr(value) for value in get_args(kind))
                raise ConfigError(f"{name} is {getattr(self, name)!r}; it should be {wanted}")
        if isinstance(self.columns, str):
            object.__setattr__(self, "columns", tuple(part.strip() for part in self.columns.split(",")))
        _ = self.preparation  # checks its values
        if self.n_jobs is not None and self.n_jobs < 1:
            raise ConfigError(f"n_jobs is {self.n_jobs}; it should be 1 or more, or None for all CPUs")

    @property
    def preparation(self) -> MoleculePreparation:
        """Conversion of molecules to graphs."""
        return MoleculePreparation(self.atom_features, self.hydrogens, self.salts, self.charges)

    @property
    def targets(self) -> tuple[str, ...] | None:
        """Names or patterns as given; a string that is not a column itself may hold several, separated by commas."""
        if self.target is None:
            return None
        return (self.target,) if isinstance(self.target, str) else tuple(self.target)


def listed(names: Iterable[str], most: int = 12) -> str:
    """Join names for an error message; of many, the first ones and their number."""
    every = list(names)
    shown = ", ".join(every[:most])
    return shown if len(every) <= most else f"{shown}, … ({len(every)} in all)"
