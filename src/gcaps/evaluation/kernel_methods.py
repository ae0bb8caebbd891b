"""Kernels as methods: Gram matrix, SVM, both chosen on the training folds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gcaps.data.arrays import Floats
from gcaps.data.graphset import GraphSet
from gcaps.evaluation.folds import Fold
from gcaps.evaluation.result import FoldResult
from gcaps.training import Epoch

if TYPE_CHECKING:
    from gcaps.kernels.base import GraphKernel
    from gcaps.kernels.config import KernelConfig

KERNELS = ("rw", "sp", "gk", "wl", "wloa", "dgk", "mlg")
"""Kernel methods; each has a configuration in ``gcaps.kernels.config``."""


@dataclass(frozen=True)
class KernelMethod:
    """A kernel and an SVM on one fold; kernel parameters and C are chosen by cross-validation on its training graphs.

    A kernel whose value depends on its two graphs alone is computed once for the set, whichever graphs a fold trains
    on; others are fitted on each fold's training graphs.
    """

    shares: ClassVar[bool] = True

    name: str
    grams: tuple[Floats | None, ...] | None = None
    """For each kernel of the grid its Gram matrix over the whole set, None where it must be fitted on each fold."""

    @property
    def config(self) -> type[KernelConfig]:
        """The method's own configuration."""
        from gcaps.kernels.config import CONFIGS

        return CONFIGS[self.name]

    def prepared(self, graphs: GraphSet, config: KernelConfig) -> KernelMethod:
        """The same method with what all folds share."""
        return replace(self, grams=tuple(config.grams(graphs)))

    def __call__(
        self,
        graphs: GraphSet,
        fold: Fold,
        number: int,
        config: KernelConfig,
        seed: int,
        on_epoch: Callable[[Epoch], None],
    ) -> FoldResult:
        """The fold's predictions; the one \"epoch\" reports the inner error and accuracy."""
        from gcaps.kernels.svm import choose, class_scores, fit_svm, inner_splits

        began = time.perf_counter()
        y = graphs.targets[fold.train]
        if fold.validation is None:
            splits = inner_splits(y, config.inner_folds, seed)
        else:
            held = np.isin(fold.train, fold.validation)
            splits = [(np.flatnonzero(~held), np.flatnonzero(held))]
        kernels = config.kernels(graphs)
        choice = choose((self._train(k, kernels, graphs, fold) for k in range(len(kernels))), y, config.C, splits)
        inside = self._train(choice.kernel, kernels, graphs, fold)
        across = self._test(choice.kernel, kernels, graphs, fold)
        machine = fit_svm(inside, y, choice.C)
        scores = class_scores(machine, across, graphs.num_classes)
        kernel, seconds = kernels[choice.kernel], time.perf_counter() - began
        on_epoch(Epoch(1, 1 - choice.accuracy, choice.accuracy, len(graphs) / seconds))
        return FoldResult(
            fold=number,
            test=fold.test.tolist(),
            labels=graphs.targets[fold.test].tolist(),
            predictions=machine.predict(across).tolist(),
            scores=np.round(scores, 6).tolist(),
            epoch=1,
            train_loss=[],
            train_accuracy=[],
            test_accuracy=[],
            validation_accuracy=[],
            seconds=seconds,
            chosen={"kernel": type(kernel).__name__, **kernel.get_params(), "C": choice.C, "inner": choice.accuracy},
        )

    def _train(self, k: int, kernels: list[GraphKernel], graphs: GraphSet, fold: Fold) -> Floats:
        """[n, n] of the fold's training graphs under kernel k, which is then fitted on them if it has to be."""
        whole = None if self.grams is None else self.grams[k]
        if whole is None:
            return kernels[k].fit_transform(graphs.subset(fold.train))
        inside: Floats = whole[np.ix_(fold.train, fold.train)]
        return inside

    def _test(self, k: int, kernels: list[GraphKernel], graphs: GraphSet, fold: Fold) -> Floats:
        """[m, n] test against training graphs, after :meth:`_train`."""
        whole = None if self.grams is None else self.grams[k]
        if whole is None:
            return kernels[k].transform(graphs.subset(fold.test))
        across: Floats = whole[np.ix_(fold.test, fold.train)]
        return across
