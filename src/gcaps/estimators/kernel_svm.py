"""Support vector classification on graph kernels; kernel and penalty are chosen on the training graphs."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from gcaps import kernels as graph_kernels
from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.errors import ConfigError
from gcaps.estimators.auto import Resolution, resolve
from gcaps.estimators.base import FitOptions, GraphClassifier, State
from gcaps.kernels.base import GraphKernel
from gcaps.kernels.svm import SVM, choose, class_scores, fit_svm, inner_splits
from gcaps.training import Epoch

PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)


class KernelClassifier(GraphClassifier):
    """Base class: an SVM on the best of several kernels.

    Kernel and C are chosen by cross-validation on the training graphs. A kernel whose value depends on its two graphs
    alone is computed once for a prepared set, whichever graphs a fold trains on; others are fitted on each fold's
    training graphs.

    Attributes:
        kernel_: the chosen kernel.
        svm_: the SVM on its Gram matrix.
    """

    shares_folds: ClassVar[bool] = True

    C: tuple[float, ...]
    inner_folds: int
    kernel_: GraphKernel
    svm_: SVM

    @abstractmethod
    def kernels(self) -> list[GraphKernel]:
        """Return the kernels to choose from, the simplest first: ties go to the first."""

    def resolved_kernels(self, graphs: GraphSet) -> list[GraphKernel]:
        """Return :meth:`kernels` with ``edge_labels="auto"`` replaced by whether the set has edge labels."""
        found = self.kernels()
        for kernel in found:
            if kernel.edge_labels == "auto":
                kernel.set_params(edge_labels=kernel.compares_edge_labels(graphs))
        return found

    def grams(self, graphs: GraphSet, kernels: Sequence[GraphKernel]) -> list[Floats | None]:
        """Return each kernel's Gram matrix over a set, None for one that must be fitted on training graphs."""
        return [kernel.fit_transform(graphs) if kernel.pairwise(graphs) else None for kernel in kernels]

    def prepare(self, prepared: PreparedSet) -> None:
        """Compute the Gram matrices of the kernels that need no fit."""
        self._whole_grams(prepared, self.resolved_kernels(prepared.graphs))

    def _whole_grams(self, prepared: PreparedSet, kernels: Sequence[GraphKernel]) -> list[Floats | None]:
        """Return :meth:`grams` of a prepared set, computed once."""
        key = ("grams", *(repr((type(k).__name__, sorted(k.get_params().items()))) for k in kernels))
        return prepared.get(key, lambda: self.grams(prepared.graphs, kernels))

    def fit_prepared(self, prepared: PreparedSet, train: Ints, **options: Unpack[FitOptions]) -> Self:
        """Fit on some graphs of a prepared set; ``validation`` graphs choose kernel and C where they are given."""
        if options.get("sample_weight") is not None:
            raise ConfigError(f"{self.method or type(self).__name__} takes no sample_weight")
        began = time.perf_counter()
        kernels, penalties, folds = self.resolved_kernels(prepared.graphs), *self._checked()
        _, codes = self._start(prepared, train)
        self.resolved_, self.resolution_ = self._settings(prepared.graphs, train)
        y = codes[train]
        if (validation := options.get("validation")) is None:
            splits = inner_splits(y, folds, self._seed())
        else:
            held = np.isin(train, validation)
            splits = [(np.flatnonzero(~held), np.flatnonzero(held))]
        whole = self._whole_grams(prepared, kernels)

        def training_gram(k: int) -> Floats:
            gram = whole[k]
            if gram is None:
                return kernels[k].fit_transform(prepared.graphs.subset(train))
            inside: Floats = gram[np.ix_(train, train)]
            return inside

        choice = choose((training_gram(k) for k in range(len(kernels))), y, penalties, splits)
        svm = fit_svm(training_gram(choice.kernel), y, choice.C)
        support = svm.support
        self.svm_, self._support_ = svm.restrict(support), np.asarray(train)[support]
        self.kernel_, self._choice_ = kernels[choice.kernel], choice.kernel
        self._graphs_: GraphSet | None = prepared.graphs  # the kernel is fitted when it is first needed
        if whole[choice.kernel] is None:
            self.kernel_, self._graphs_ = self.kernel_.restrict(support), None
        self.chosen_ = {
            "kernel": type(self.kernel_).__name__,
            **self.kernel_.get_params(),
            "C": choice.C,
            "inner": choice.accuracy,
        }
        if (on_epoch := options.get("on_epoch")) is not None:
            speed = len(prepared.graphs) / (time.perf_counter() - began)
            on_epoch(Epoch(1, 1 - choice.accuracy, choice.accuracy, speed))
        return self

    def predict_proba_prepared(self, prepared: PreparedSet, indices: Ints) -> Floats:
        """Return class probabilities [n, C]; the Gram matrix of the prepared set is used where there is one."""
        gram = self._whole_grams(prepared, self.resolved_kernels(prepared.graphs))[self._choice_]
        if gram is None:
            return self._predict_proba(prepared.graphs.subset(indices))
        return class_scores(self.svm_, gram[np.ix_(indices, self._support_)], len(self.classes_))

    def _predict_proba(self, graphs: GraphSet) -> Floats:
        return class_scores(self.svm_, self.transform(graphs), len(self.classes_))

    def decision_function(self, X: Any) -> Floats:
        """Return decision values: [G] for two classes, positive for the second; [G, C] for more."""
        check_is_fitted(self, "classes_")
        return self.svm_.decision_function(self.transform(X))

    def transform(self, X: Any) -> Floats:
        """Return the kernel values [G, s] of graphs against the support graphs."""
        check_is_fitted(self, "classes_")
        return self._fitted_kernel().transform(load(X, labelled=False))

    def _fitted_kernel(self) -> GraphKernel:
        """Return the chosen kernel, fitted on the support graphs when it is first needed."""
        if self._graphs_ is not None:
            self.kernel_ = clone(self.kernel_).fit(self._graphs_.subset(self._support_))
            self._graphs_ = None
        return self.kernel_

    def _checked(self) -> tuple[tuple[float, ...], int]:
        """Return the penalties and the number of inner folds, validated."""
        config = self.config
        return config.C, config.inner_folds  # type: ignore[attr-defined]

    def _settings(self, graphs: GraphSet, train: Ints) -> tuple[dict[str, Any], list[Resolution]]:
        config, resolution = resolve(self.config, graphs, train)
        return config.to_dict(), resolution

    @property
    def describes(self) -> str:
        """What predicts, in words."""
        support = self.svm_.coefficients.shape[1]
        return f"an SVM on {type(self.kernel_).__name__} with C = {self.chosen_['C']:g}, {support:,} support graphs"

    def state(self) -> State:
        """Return the chosen kernel, fitted on the support graphs, and the SVM."""
        arrays, values = self._fitted_kernel().state()
        return {
            **{f"kernel.{name}": array for name, array in arrays.items()},
            **{f"svm.{name}": array for name, array in self.svm_.arrays().items()},
        }, {
            "kernel": type(self.kernel_).__name__,
            "params": self.kernel_.get_params(),
            "values": values,
            "chosen": self.chosen_,
        }

    def restore(self, arrays: dict[str, Array], values: dict[str, Any]) -> None:
        """Build kernel and SVM again."""
        kernel: GraphKernel = getattr(graph_kernels, values["kernel"])(**values["params"])
        self.kernel_ = kernel.restore(_part(arrays, "kernel."), values["values"])
        self.svm_ = SVM.from_arrays(_part(arrays, "svm."))
        self.chosen_, self._graphs_ = values["chosen"], None


def _part(arrays: dict[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


class KernelSVC(KernelClassifier):
    """Support vector classification on any graph kernels.

    Args:
        kernel: a kernel of :mod:`gcaps.kernels`, or several to choose from.
        C: penalties to choose from.
        inner_folds: folds of the training graphs that choose kernel and C.
        random_state: decides the inner folds.
    """

    def __init__(
        self,
        kernel: GraphKernel | Sequence[GraphKernel],
        *,
        C: tuple[float, ...] = PENALTIES,
        inner_folds: int = 5,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())

    kernel: GraphKernel | Sequence[GraphKernel]

    def kernels(self) -> list[GraphKernel]:
        """Return unfitted copies of the given kernels."""
        given = [self.kernel] if isinstance(self.kernel, GraphKernel) else list(self.kernel)
        return [clone(kernel) for kernel in given]

    def _checked(self) -> tuple[tuple[float, ...], int]:
        if not len(self.C) or min(self.C) <= 0 or self.inner_folds < 2:
            raise ConfigError("KernelSVC needs positive penalties C and two inner folds or more")
        return tuple(self.C), self.inner_folds

    def _settings(self, graphs: GraphSet, train: Ints) -> tuple[dict[str, Any], list[Resolution]]:
        kernels = [repr(kernel) for kernel in self.resolved_kernels(graphs)]
        return {"kernel": kernels, "C": self.C, "inner_folds": self.inner_folds}, []
