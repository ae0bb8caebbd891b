"""Features of whole graphs: fingerprints and descriptors of molecules, scaled by the training graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Self, get_args

import numpy as np
from pydantic import Field, model_validator

from gcaps.config import FingerprintName
from gcaps.data.arrays import Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.documents import Name, Number, Page, validated
from gcaps.errors import DataError, ModelError
from gcaps.features.fingerprints import COUNTS, fingerprint, fingerprint_columns

MAX_DEVIATIONS = 5.0
"""Descriptors are clipped to so many standard deviations from their mean, so that an absurd value does no harm."""
PIECE = 4096
"""Training graphs whose vectors are read together when columns are scaled."""


class FingerprintState(Page):
    """Fitted :class:`ScaledFingerprint`: names of its columns; of descriptors, mean and deviation of each."""

    columns: list[Name]
    mean: list[Number] | None = None
    deviation: list[Annotated[Number, Field(gt=0)]] | None = None

    @model_validator(mode="after")
    def _of_one_length(self) -> Self:
        if len({len(part) for part in (self.columns, self.mean, self.deviation) if part is not None}) > 1:
            raise ValueError("columns, mean and deviation should have the same length")
        if (self.mean is None) != (self.deviation is None):
            raise ValueError("mean and deviation belong together")
        return self


class ScaledFingerprint:
    """A fingerprint, or the descriptors, of molecules as columns for a network.

    - Counts c become log(1 + c), and bits stay as they are: divided by its deviation, a substructure of one training
      graph would outweigh all others.
    - Descriptors are standardised and clipped to ±:data:`MAX_DEVIATIONS`; where one is undefined, it is 0, the mean of
      the training graphs.

    Columns that are constant over the training graphs are left out.

    Args:
        name: of the fingerprint, see :func:`gcaps.features.fingerprints.fingerprint`.
    """

    def __init__(self, name: FingerprintName) -> None:
        self.name: FingerprintName = name

    def fit(self, vectors: Iterable[Floats]) -> Self:
        """Compute mean and deviation of each column over its defined values, with Chan's formula.

        Args:
            vectors: [·, d] fingerprints of the training graphs, piece by piece.
        """
        count, mean, squares = np.zeros((3, 1))
        for piece in vectors:
            values = self._raw(piece).astype(np.float64)
            known = ~np.isnan(values)
            n = known.sum(axis=0)
            total = np.maximum(count + n, 1)
            own = np.where(known, values, 0).sum(axis=0) / np.maximum(n, 1)
            within = (np.where(known, values - own, 0) ** 2).sum(axis=0)
            squares = squares + within + (own - mean) ** 2 * (count * n / total)
            mean = mean + (own - mean) * (n / total)
            count = count + n
        deviation = np.sqrt(squares / np.maximum(count, 1))
        kept = np.flatnonzero(deviation > 1e-6 * (1 + np.abs(mean)))  # others differ by rounding at most
        names = fingerprint_columns(self.name)
        scaling = (mean[kept], deviation[kept]) if self.name == "descriptors" else None
        return self._of([names[i] for i in kept], scaling)

    def _of(self, columns: Sequence[str], scaling: tuple[Floats, Floats] | None) -> Self:
        """Set the state: the names of the columns that are kept, and mean and deviation of standardised ones."""
        self.columns_, self.scaling_ = list(columns), scaling
        return self

    @property
    def num_features(self) -> int:
        """Number of columns."""
        return len(self.columns_)

    def transform(self, vectors: Floats) -> Floats:
        """[G, ·] float32 scaled columns of fingerprints [G, d].

        Raises:
            ModelError: RDKit has other descriptors than when the model was trained.
        """
        number = {name: i for i, name in enumerate(fingerprint_columns(self.name))}
        if missing := [name for name in self.columns_ if name not in number]:
            raise ModelError(f"extra_features: the model was trained with {missing[0]}, which this RDKit does not have")
        values = self._raw(vectors[:, np.array([number[name] for name in self.columns_], dtype=np.int64)])
        if self.scaling_ is None:
            return values
        mean, deviation = self.scaling_
        scaled = np.clip((values - mean) / deviation, -MAX_DEVIATIONS, MAX_DEVIATIONS)
        return np.nan_to_num(scaled, nan=0.0).astype(np.float32)

    def _raw(self, vectors: Floats) -> Floats:
        return np.log1p(vectors) if self.name in COUNTS else vectors

    def state(self) -> dict[str, Any]:
        """Return the fitted state as JSON values."""
        state: dict[str, Any] = {"columns": self.columns_}
        if self.scaling_ is not None:
            state |= {"mean": self.scaling_[0].tolist(), "deviation": self.scaling_[1].tolist()}
        return state

    @classmethod
    def from_state(cls, name: FingerprintName, state: dict[str, Any]) -> Self:
        """Restore a fitted object.

        Raises:
            ModelError: the state is not one that :meth:`state` returns.
        """
        problem = f"the state of extra_features {name} is damaged"
        found = validated(FingerprintState, state, problem, ModelError)
        if (found.mean is not None) != (name == "descriptors"):
            raise ModelError(f"{problem} (mean and deviation belong to descriptors)")
        scaling = None if found.mean is None else (np.array(found.mean), np.array(found.deviation))
        return cls(name)._of(found.columns, scaling)


class GraphFeatures:
    """Fitted features of graphs, side by side in one matrix.

    Args:
        parts: scaled fingerprints by name.
    """

    def __init__(self, parts: dict[FingerprintName, ScaledFingerprint] | None = None) -> None:
        self.parts = parts or {}

    @classmethod
    def fit(cls, names: Iterable[FingerprintName], graphs: GraphSet | PreparedSet, chosen: Ints) -> Self:
        """Scale the fingerprints ``names`` by the graphs at ``chosen`` and no others.

        Args:
            names: of the fingerprints.
            graphs: molecules; a PreparedSet keeps their fingerprints for the next fold, a memory-mapped set is read
                piece by piece.
            chosen: positions of the training graphs.

        Raises:
            DataError: the graphs are not molecules, or RDKit is missing.
        """
        return cls({name: ScaledFingerprint(name).fit(_pieces(graphs, name, chosen)) for name in names})

    @property
    def num_features(self) -> int:
        """Number of columns."""
        return sum(part.num_features for part in self.parts.values())

    def encode(self, graphs: GraphSet | PreparedSet) -> Floats | None:
        """[G, num_features] float32; None if no features are configured."""
        if not self.parts:
            return None
        return np.concatenate([part.transform(_vectors(graphs, name)) for name, part in self.parts.items()], axis=1)

    def state(self) -> dict[str, Any]:
        """Return the fitted state as JSON values."""
        return {name: part.state() for name, part in self.parts.items()}

    @classmethod
    def from_state(cls, state: dict[Any, Any]) -> Self:
        """Restore fitted features."""
        if unknown := set(state) - set(get_args(FingerprintName)):
            raise ModelError(f"the state of extra_features is damaged (there is no {min(map(str, unknown))!r})")
        return cls({name: ScaledFingerprint.from_state(name, part) for name, part in state.items()})


def _pieces(graphs: GraphSet | PreparedSet, name: FingerprintName, chosen: Ints) -> Iterator[Floats]:
    """Yield the fingerprints of the graphs at ``chosen``; the pieces are the same for every kind of set."""
    own = graphs.graphs if isinstance(graphs, PreparedSet) else graphs
    for first in range(0, len(chosen), PIECE):
        some = chosen[first : first + PIECE]
        if isinstance(graphs, PreparedSet) and not own.mapped:
            yield _vectors(graphs, name)[some]
        else:
            yield _vectors(own.subset(some), name)


def _vectors(graphs: GraphSet | PreparedSet, name: FingerprintName) -> Floats:
    own = graphs.graphs if isinstance(graphs, PreparedSet) else graphs
    if "smiles" not in own.columns:
        remedy = "a table with a column of SMILES, or an SDF"
        raise DataError(f"extra_features: {name} needs molecules ({remedy}); {own.name} has other graphs")
    return fingerprint(graphs, name)
