"""Members of an ensemble before they are fitted: their settings, and the memory they need."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, NamedTuple

from gcaps.config import TrainingConfig
from gcaps.data.prepared import PreparedSet
from gcaps.data.targets import Task
from gcaps.estimators.base import GraphEstimator
from gcaps.estimators.kernel_svm import KernelEstimator
from gcaps.estimators.portfolio import EFFORT, OTHER
from gcaps.estimators.registry import make_estimator
from gcaps.training.random_capsules import COPIES

INSTALLED_SHARE = 0.8
"""Share of the installed memory that Gram matrices may take by default."""
SINGLE = {"ensemble_size": 1}
"""Settings of a network whose inner folds are averaged, which is an ensemble already."""


class Member(NamedTuple):
    """A member of an ensemble before it is fitted."""

    name: str
    """Unique among the members."""
    estimator: GraphEstimator
    chosen: bool
    """Whether it was given by the caller, so that its failure is an error."""

    @property
    def effort(self) -> float:
        """Relative cost of a fit."""
        return EFFORT.get(self.estimator.method, OTHER)

    @property
    def bagged(self) -> bool:
        """Whether the models of the inner folds are kept and averaged, instead of one fitted on all graphs.

        This holds for networks, which cost most to train and gain most from averaging.
        """
        return bool(self.estimator.method) and isinstance(self.estimator.config, TrainingConfig)


def named(name: str, seed: int, task: Task, *, alone: bool, beside: tuple[str, ...] = ()) -> GraphEstimator:
    """Return the estimator of a method with the extra features that follow a plus sign.

    Args:
        name: such as ``"gcaps+descriptors"``.
        seed: its ``random_state``.
        task: what is predicted.
        alone: with default settings. Otherwise networks are single ones, and GCAPS-CNN comes without an SVM where
            ``capsule-svm`` is a member itself.
        beside: names of all members.
    """
    method, *extra = name.split("+")
    settings: dict[str, Any] = {"extra_features": ",".join(extra)} if extra else {}
    if method == "gcaps" and not alone:
        settings |= SINGLE | ({"with_svm": False} if "capsule-svm" in beside else {})
    return make_estimator(method, settings or None, seed, task)


def gram_mib(estimator: GraphEstimator, prepared: PreparedSet, training: int) -> tuple[float, float]:
    """Estimate the memory of a member's Gram matrices before anything is allocated, in MiB.

    Args:
        estimator: the member.
        prepared: the set; its Gram matrices are kept as long as it is.
        training: number of training graphs.

    Returns:
        Memory kept for the whole set, and temporary memory.
    """
    if isinstance(estimator, KernelEstimator):
        whole = len(prepared.graphs)
        kept = sum(kernel.pairwise(prepared.graphs) for kernel in estimator.kernels())
        return kept * 8 * whole**2 / 2**20, 3 * 8 * training**2 / 2**20
    if estimator.method == "capsule-svm" or getattr(estimator, "with_svm", False) is True:
        return 0.0, COPIES * 4 * training**2 / 2**20
    return 0.0, 0.0


def installed_mib() -> float:
    """Return the share of the installed memory that is used by default."""
    return INSTALLED_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20


@dataclass
class Memory:
    """Memory for Gram matrices, in MiB."""

    prepared: PreparedSet
    mib: float
    kept: float = 0.0

    def admits(self, member: Member, training: int) -> str | None:
        """Reserve a member's memory, or return the reason if there is not enough."""
        own, working = gram_mib(member.estimator, self.prepared, training)
        left = self.mib - self.kept
        if own + working > left:
            return f"its Gram matrices need {(own + working) / 1024:.2f} GiB, {max(left, 0) / 1024:.2f} GiB are left"
        self.kept += own
        return None
