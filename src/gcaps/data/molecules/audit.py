"""Facts about a set of molecules: its scaffolds, and activity cliffs that limit what any method can predict."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.molecules.keys import MoleculeKeys
from gcaps.data.molecules.similarity import NEAR, PackedBits, similar_pairs
from gcaps.data.targets import infer_task, missing

MOST_MOLECULES = 100_000
"""Sets with more molecules are searched for activity cliffs in a random sample of so many."""
WORST = 5
"""Number of activity cliffs that are named."""


@dataclass(frozen=True)
class Cliff:
    """Two different molecules that are nearly the same and have different targets."""

    first: str
    """Name of a molecule."""
    second: str
    similarity: float
    target: str
    """Name of the target that differs; empty where there is only one."""
    values: tuple[str, str]
    """Of the first and of the second molecule."""

    def __str__(self) -> str:
        named = f" of {self.target}" if self.target else ""
        return f"{self.first} and {self.second} ({self.values[0]} and {self.values[1]}{named}, {self.similarity:.2f})"


@dataclass(frozen=True)
class MoleculeFacts:
    """A set of molecules in numbers."""

    scaffolds: int
    """Number of different Bemis–Murcko scaffolds."""
    largest: int
    """Molecules with the most frequent scaffold."""
    largest_scaffold: str
    acyclic: int
    """Molecules without a ring, which have no scaffold."""
    near_pairs: int
    """Pairs of different molecules with a similarity of at least :data:`~gcaps.data.molecules.similarity.NEAR`."""
    cliffs: int | None
    """Those of the pairs whose targets differ: another class, or numbers more than one standard deviation apart; None
    without targets."""
    in_cliffs: int
    """Molecules in such pairs."""
    worst: tuple[Cliff, ...]
    """The largest differences; of equal ones the most similar molecules."""
    searched: int
    """Molecules that were searched for cliffs: all, or a random sample."""


def molecule_facts(graphs: GraphSet, keys: MoleculeKeys) -> MoleculeFacts:
    """Count the scaffolds and activity cliffs of a set of molecules.

    Args:
        graphs: the set.
        keys: of its molecules.
    """
    names, counts = np.unique(keys.scaffolds, return_counts=True)
    cyclic = names != ""
    most = int(np.argmax(np.where(cyclic, counts, 0))) if cyclic.any() else None
    chosen = np.arange(len(graphs))
    if len(chosen) > MOST_MOLECULES:
        chosen = np.sort(np.random.default_rng(0).choice(chosen, MOST_MOLECULES, replace=False))
    same = np.unique(keys.smiles[chosen], return_inverse=True)[1]
    near, first, second, similarity, gap, at = _cliffs(keys.bits.take(chosen), same, graphs, chosen)
    order = np.lexsort((-similarity, -gap))[:WORST]
    return MoleculeFacts(
        scaffolds=int(cyclic.sum()),
        largest=0 if most is None else int(counts[most]),
        largest_scaffold="" if most is None else str(names[most]),
        acyclic=int(counts[~cyclic].sum()),
        near_pairs=near,
        cliffs=None if graphs.y is None else len(first),
        in_cliffs=len(np.unique(np.concatenate([first, second]))),
        worst=tuple(_cliff(graphs, first[k], second[k], similarity[k], at[k]) for k in order),
        searched=len(chosen),
    )


def _cliffs(
    bits: PackedBits, same: Ints, graphs: GraphSet, chosen: Ints
) -> tuple[int, Ints, Ints, Floats, Floats, Ints]:
    """The number of similar pairs of different molecules, and of those with different targets: both graphs, their
    similarity, the difference and the target that differs most."""
    y, limit = _scaled_targets(graphs)
    near, found = 0, []
    for a, b, similarity in similar_pairs(bits):
        different = same[a] != same[b]  # equal molecules are duplicates
        a, b, similarity = np.minimum(a, b)[different], np.maximum(a, b)[different], similarity[different]
        near += len(a)
        if y is None:
            continue
        gaps = np.abs(y[chosen[a]] - y[chosen[b]])
        gaps = np.where(np.isnan(gaps), 0.0, gaps if limit else gaps > 0)
        at = gaps.argmax(axis=1)
        gap = gaps[np.arange(len(a)), at]
        cliff = gap > limit
        found.append((chosen[a[cliff]], chosen[b[cliff]], similarity[cliff], gap[cliff], at[cliff]))
    if not found:
        none = np.zeros(0, dtype=np.int64)
        return near, none, none, np.zeros(0), np.zeros(0), none
    first, second, similarities, gap, at = (np.concatenate(part) for part in zip(*found, strict=True))
    return near, first, second, similarities, gap, at


def _scaled_targets(graphs: GraphSet) -> tuple[Floats | None, float]:
    """[G, T] targets, NaN where missing, and the difference above which two molecules are a cliff.

    Numbers are divided by their standard deviation, and a difference of more than 1 is a cliff; classes are numbered,
    and any difference is.
    """
    if graphs.y is None or missing(graphs.y).all():
        return None, 0.0
    table = graphs.y[:, None] if graphs.y.ndim == 1 else graphs.y
    known = ~missing(table)
    values = np.full(table.shape, np.nan)
    if infer_task(graphs.y).task == "regression":
        values[known] = table[known].astype(np.float64)
        deviation = np.array([np.std(c[k]) if k.any() else 0.0 for c, k in zip(values.T, known.T, strict=True)])
        return values / np.where(deviation > 0, deviation, np.inf), 1.0
    for t in range(table.shape[1]):
        values[known[:, t], t] = np.unique(table[known[:, t], t], return_inverse=True)[1]
    return values, 0.0


def _cliff(graphs: GraphSet, first: int, second: int, similarity: float, target: int) -> Cliff:
    assert graphs.y is not None
    column: Array = graphs.y if graphs.y.ndim == 1 else graphs.y[:, target]
    several = graphs.y.ndim == 2 and graphs.y.shape[1] > 1
    name = graphs.target_names[target] if several and target < len(graphs.target_names) else ""
    values = tuple(f"{column[i]:g}" if column.dtype.kind == "f" else str(column[i]) for i in (first, second))
    return Cliff(
        str(graphs.ids[first]), str(graphs.ids[second]), float(similarity), name or (f"y{target}" if several else ""),
        (values[0], values[1]),
    )  # fmt: skip


def describe_molecules(found: MoleculeFacts, molecules: int) -> dict[str, str]:
    """Return the facts in words, by topic."""
    rows = {"scaffolds": f"{found.scaffolds:,} different"}
    if found.largest:
        rows["scaffolds"] += f", the largest in {100 * found.largest / molecules:.1f} % of the molecules"
    if found.acyclic:
        rows["scaffolds"] += f"; {100 * found.acyclic / molecules:.1f} % have no ring"
    if found.cliffs is None:
        return rows
    similar = f"{found.near_pairs:,} pairs of molecules with a similarity of {NEAR:g} or more"
    rows["activity cliffs"] = f"none among {similar}"
    if found.cliffs:
        rows["activity cliffs"] = (
            f"{found.cliffs:,} of {similar} have different targets, {found.in_cliffs:,} molecules in all: "
            + "; ".join(map(str, found.worst))
            + ("; …" if found.cliffs > WORST else "")
        )
    if found.searched < molecules:
        rows["activity cliffs"] += f" (of {found.searched:,} molecules drawn at random)"
    return rows
