"""Leakage of molecules across a fold: scaffolds, near-identical molecules and duplicates on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gcaps.data.graphset import GraphSet
from gcaps.data.molecules.keys import molecule_keys
from gcaps.data.molecules.similarity import NEAR, has_similar
from gcaps.data.prepared import PreparedSet
from gcaps.errors import DataError
from gcaps.evaluation.splits import Fold

MOST_PAIRS = 4_000_000_000
"""Pairs of test and training molecules that are compared at most; of more, test molecules are drawn at random."""
NOTABLE = 0.3
"""Share of test molecules with a known scaffold from which a random split is commented on."""


@dataclass(frozen=True)
class MoleculeLeakage:
    """Test molecules that have something in common with the training molecules of their fold, over several folds."""

    tested: int
    scaffold: int
    """Whose scaffold occurs in training; molecules without a ring have none."""
    near: int
    """Whose most similar training molecule has a similarity of at least ``threshold``, of ``compared`` molecules."""
    identical: int
    """That occur in training: the same canonical SMILES including stereochemistry."""
    compared: int
    """Test molecules whose similarity was computed: all, or a random sample."""
    threshold: float = NEAR

    @property
    def sampled(self) -> bool:
        """Whether similarities are those of a sample."""
        return self.compared < self.tested

    @property
    def scaffold_share(self) -> float:
        """Share of the test molecules with a scaffold of training."""
        return self.scaffold / max(self.tested, 1)

    @property
    def near_share(self) -> float:
        """Share of the compared test molecules that are near a training molecule."""
        return self.near / max(self.compared, 1)

    @property
    def identical_share(self) -> float:
        """Share of the test molecules that occur in training."""
        return self.identical / max(self.tested, 1)

    def __str__(self) -> str:
        parts = [
            f"{100 * self.scaffold_share:.0f} % of the test molecules share their scaffold with training molecules"
        ]
        if self.near:
            parts.append(
                f"{100 * self.near_share:.0f} % have a training molecule of similarity {self.threshold:g} or more"
            )
        if self.identical:
            parts.append(f"{self.identical:,} {'is' if self.identical == 1 else 'are'} in training, too")
        return ", ".join(parts)


def molecule_leakage(graphs: GraphSet | PreparedSet, folds: Sequence[Fold]) -> MoleculeLeakage | None:
    """Count what test molecules share with the training molecules of their fold.

    Args:
        graphs: the set; a PreparedSet reads its molecules once.
        folds: of one seed.

    Returns:
        The counts; None for graphs that are not molecules, without test molecules, or without RDKit.
    """
    prepared = PreparedSet.of(graphs)
    if "smiles" not in prepared.graphs.columns or not folds:
        return None
    try:
        same, _, scaffold, bits = molecule_keys(prepared)
    except DataError:
        return None
    pairs = sum(len(fold.test) * len(fold.train) for fold in folds)
    share = min(1.0, MOST_PAIRS / max(pairs, 1))
    rng = np.random.default_rng(0)
    counts = np.zeros(5, dtype=np.int64)
    for fold in folds:
        test = fold.test
        chosen = test if share == 1 else rng.choice(test, max(1, int(share * len(test))), replace=False)
        counts += np.array(
            [
                len(test),
                (np.isin(scaffold[test], scaffold[fold.train]) & (scaffold[test] != "")).sum(),
                has_similar(bits.take(chosen), bits.take(fold.train)).sum(),
                np.isin(same[test], same[fold.train]).sum(),
                len(chosen),
            ]
        )
    return MoleculeLeakage(*counts.tolist())
