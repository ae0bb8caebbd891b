"""Columns of ``gcaps predict --uncertainty``: calibrated probabilities, sets or intervals, and novelty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from gcaps.data.arrays import Array, Floats
    from gcaps.data.graphset import GraphSet
    from gcaps.data.targets import Target
    from gcaps.estimators.base import GraphEstimator

SEPARATOR = "|"
"""Separator of the classes of a set."""


@dataclass
class Doubts:
    """Cells about the uncertainty of predictions, and their summary."""

    estimator: GraphEstimator
    coverage: float
    by_class: bool
    known: int = 0
    """Number of known targets of the graphs."""
    covered: int = 0
    sizes: int = 0
    """Number of classes in all sets of graphs with known targets."""
    graphs: int = 0
    novel: int = 0

    @classmethod
    def of(cls, estimator: GraphEstimator, coverage: float, *, by_class: bool) -> Self:
        """Check that a model is calibrated.

        Raises:
            ConfigError: it is not, or the coverage is not between 0 and 1.
        """
        from gcaps.errors import ConfigError
        from gcaps.estimators.conformal import require_coverage

        require_coverage(coverage)
        estimator.known_uncertainty()
        if by_class and estimator.target_.classes is None:
            raise ConfigError("--by-class is for classes; this model predicts values")
        return cls(estimator, coverage, by_class)

    @property
    def header(self) -> list[str]:
        """Names of the columns."""
        target = self.estimator.target_
        if target.classes is None:
            ends = [f"{end}({name})" if len(target.names) > 1 else end for name in target.names
                    for end in ("lower", "upper")]  # fmt: skip
        elif target.task == "classification":
            ends = [*(f"calibrated({name})" for name in target.classes), "set"]
        else:
            ends = [t for name in target.names for t in (f"calibrated({name} = {target.classes[1]})", f"set({name})")]
        return [*ends, "similarity", "nearest", "novel"]

    def cells(self, graphs: GraphSet, scores: Floats) -> list[list[str]]:
        """Return the cells of each graph."""
        from gcaps.predictions import doubt_of

        target = self.estimator.target_
        doubt = doubt_of(self.estimator, graphs, scores, self.coverage, by_class=self.by_class)
        if doubt.intervals is not None:
            self._count_intervals(target, graphs, doubt.intervals)
            own = [[f"{value:.6g}" for value in row] for row in doubt.intervals.reshape(len(graphs), -1).tolist()]
        else:
            assert doubt.sets is not None
            assert doubt.calibrated is not None
            self._count_sets(target, graphs, doubt.sets)
            own = self._of_classes(target, doubt.calibrated, doubt.sets)
        novelty = doubt.novelty
        self.graphs += len(graphs)
        self.novel += int(novelty.novel.sum())
        return [
            [*cells, f"{similarity:.3f}", str(nearest), "yes" if novel else "no"]
            for cells, similarity, nearest, novel in zip(
                own, novelty.similarity.tolist(), novelty.nearest.tolist(), novelty.novel.tolist(), strict=True
            )
        ]

    @staticmethod
    def _of_classes(target: Target, calibrated: Floats, sets: Array) -> list[list[str]]:
        assert target.classes is not None
        names = [str(name) for name in target.classes.tolist()]
        shares = [[f"{p:.6f}" for p in row] for row in calibrated.tolist()]
        listed = [
            [f"{{{SEPARATOR.join(n for n, inside in zip(names, one, strict=True) if inside)}}}" for one in row]
            for row in sets.tolist()
        ]
        if target.task == "classification":
            return [[*row, *one] for row, one in zip(shares, listed, strict=True)]
        return [
            [cell for pair in zip(row, one, strict=True) for cell in pair]
            for row, one in zip(shares, listed, strict=True)
        ]

    def _truth(self, target: Target, graphs: GraphSet) -> Array | None:
        """[n, T] class numbers, −1 where unknown, or values; None if the graphs have no such targets."""
        import numpy as np

        y = graphs.y
        if y is None or y.reshape(len(y), -1).shape[1] != len(target.names):
            return None
        if (y.dtype.kind == "U") != (target.classes is not None and target.classes.dtype.kind == "U"):
            return None
        if target.classes is None:
            return np.asarray(y, np.float64).reshape(len(y), -1)
        codes = target.encode(y).reshape(len(y), -1)
        return np.where(np.isnan(codes), -1, codes).astype(np.int64)

    def _count_sets(self, target: Target, graphs: GraphSet, sets: Array) -> None:
        import numpy as np

        truth = self._truth(target, graphs)
        if truth is None:
            return
        known = truth >= 0
        inside = np.take_along_axis(sets, np.maximum(truth, 0)[:, :, None], axis=2)[:, :, 0]
        self.known += int(known.sum())
        self.covered += int(inside[known].sum())
        self.sizes += int(sets.sum(axis=2)[known].sum())

    def _count_intervals(self, target: Target, graphs: GraphSet, ends: Floats) -> None:
        import numpy as np

        truth = self._truth(target, graphs)
        if truth is None:
            return
        known = ~np.isnan(truth)
        inside = (ends[..., 0] <= truth) & (truth <= ends[..., 1])
        self.known += int(known.sum())
        self.covered += int(inside[known].sum())

    @property
    def summary(self) -> str:
        """One line about all graphs."""
        of_classes = self.estimator.target_.classes is not None
        kind = "sets" if of_classes else "intervals"
        graphs = self.estimator.known_uncertainty().graphs
        parts = [f"{kind} for a coverage of {self.coverage:.0%}, from {graphs:,} calibration graphs"]
        if self.known:
            held = f"they contain {self.covered / self.known:.1%} of {self.known:,} known targets"
            parts.append(f"{held}, with {self.sizes / self.known:.2f} classes on average" if of_classes else held)
        are = "is" if self.novel == 1 else "are"
        return "; ".join([*parts, f"{self.novel:,} of {self.graphs:,} graphs {are} unlike anything seen in training"])
