"""Support vector machines on graph kernels; kernel and penalty are chosen on the training graphs."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Self, Unpack

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from gcaps import kernels as graph_kernels
from gcaps.config import ClassWeight, check_parameters
from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.documents import Name, Page, validated
from gcaps.errors import ConfigError, ModelError
from gcaps.estimators.auto import Resolution, resolve
from gcaps.estimators.base import FitOptions, GraphClassifier, GraphEstimator, GraphRegressor, State
from gcaps.estimators.problem import Problem
from gcaps.kernels.base import GraphKernel, require_array
from gcaps.kernels.multi_output import MultiOutputSVM, fit_multi_output, random_splits, score_of
from gcaps.kernels.svm import SVM, accuracy_of, choose, class_scores, fit_svm, inner_splits
from gcaps.training import Epoch

PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
VALUES = 1 << 24
"""Kernel values that are in memory together when many graphs are predicted."""


class Best(NamedTuple):
    """Training data of an estimator on kernels."""

    kernel: int
    """Number of the chosen kernel."""
    machine: SVM | MultiOutputSVM
    """Linear in the kernel values of its Gram matrix."""
    chosen: dict[str, Any]
    """Further chosen values, for ``chosen_``."""
    score: float
    """By which it was chosen."""


class KernelState(Page):
    """JSON values of a fitted :class:`KernelEstimator`."""

    kernel: Name
    """Name of its class in :mod:`gcaps.kernels`."""
    params: dict[Name, Any]
    """The kernel's parameters, checked against the annotations of its constructor."""
    values: dict[Name, Any]
    """State of the kernel, which it validates."""
    chosen: dict[Name, Any]
    """Values chosen on the training graphs, for display."""


class KernelEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, GraphEstimator):  # type: ignore[misc]
    """Base class: a support vector machine on the best of several kernels.

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
    svm_: SVM | MultiOutputSVM

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

    def release(self) -> None:
        """Fit the chosen kernel on the support graphs and release the others."""
        self._fitted_kernel()

    def fit_prepared(self, prepared: PreparedSet, train: Ints, **options: Unpack[FitOptions]) -> Self:
        """Fit on some graphs of a prepared set; ``validation`` graphs choose kernel and C where they are given."""
        began = time.perf_counter()
        kernels, (_, folds) = self.resolved_kernels(prepared.graphs), self._checked()
        problem = self._start(prepared, train, options)
        train = problem.train
        self.resolved_, self.resolution_ = self._settings(prepared.graphs, train)
        splits = self._inner_splits(problem, folds, options)
        training_gram = self._training_grams(prepared, kernels, train)
        best = self._fit_best(problem, training_gram, len(kernels), splits)
        support = best.machine.support
        if not len(support):  # a constant function; a kernel cannot be fitted to no graph
            support = np.zeros(1, dtype=np.int64)
        self.svm_, self._support_ = best.machine.restrict(support), train[support]
        self.kernel_, self._choice_ = kernels[best.kernel], best.kernel
        self._graphs_: GraphSet | None = prepared.graphs  # the kernel is fitted when it is first needed
        if not self.kernel_.pairwise(prepared.graphs):
            self.kernel_, self._graphs_ = self._fit_chosen(prepared.graphs.subset(train)).restrict(support), None
        self.chosen_ = {"kernel": type(self.kernel_).__name__, **self.kernel_.get_params(), **best.chosen}
        if (on_epoch := options.get("on_epoch")) is not None:
            speed = len(prepared.graphs) / (time.perf_counter() - began)
            on_epoch(Epoch(1, 1 - best.score, best.score, speed))
        return self

    def _training_grams(
        self, prepared: PreparedSet, kernels: Sequence[GraphKernel], train: Ints
    ) -> Callable[[int], Floats]:
        """Return a function from the number of a kernel to the Gram matrix of the training graphs.

        A kernel that is not pairwise is fitted to them when the function is called.
        """
        whole = self._whole_grams(prepared, kernels)

        def training_gram(k: int) -> Floats:
            gram = whole[k]
            if gram is None:
                return kernels[k].fit_transform(prepared.graphs.subset(train))
            inside: Floats = gram[np.ix_(train, train)]
            return inside

        return training_gram

    def _fit_chosen(self, graphs: GraphSet) -> GraphKernel:
        """Return the chosen kernel, which is not pairwise, fitted to the training graphs; here, it already is."""
        return self.kernel_

    def _prepared_gram(self, prepared: PreparedSet, rows: Ints, columns: Ints) -> Floats | None:
        """Return values of the chosen kernel between graphs of a prepared set, None if it must be fitted."""
        gram = self._whole_grams(prepared, self.resolved_kernels(prepared.graphs))[self._choice_]
        return None if gram is None else gram[np.ix_(rows, columns)]

    def _fit_best(
        self,
        problem: Problem,
        training_gram: Callable[[int], Floats],
        kernels: int,
        splits: Sequence[tuple[Ints, Ints]],
    ) -> Best:
        """Choose kernel and C by inner cross-validation and fit an SVM.

        Args:
            problem: what is fitted.
            training_gram: returns the Gram matrix of the training graphs for the number of a kernel.
            kernels: number of kernels.
            splits: (train, validation) positions among the training graphs.
        """
        task, y, weight = problem.target.task, problem.y[problem.train], problem.training_weight()
        penalties, _ = self._checked()
        score = accuracy_of(y, weight) if task == "classification" else score_of(y, task, weight)
        choice = choose((training_gram(k) for k in range(kernels)), score, penalties, splits)
        gram = training_gram(choice.kernel)
        svm: SVM | MultiOutputSVM
        if task == "classification":
            svm = fit_svm(gram, y, choice.C, weight)
        else:
            svm = fit_multi_output(gram, y, choice.C, task, weight)
        return Best(choice.kernel, svm, {"C": choice.C, "inner": choice.score}, choice.score)

    def _inner_splits(self, problem: Problem, folds: int, options: FitOptions) -> list[tuple[Ints, Ints]]:
        """Return (train, validation) positions among the training graphs that choose kernel and C."""
        validation, groups = options.get("validation"), options.get("groups")
        own = None if groups is None else groups[problem.train]
        if validation is not None:
            held = np.isin(problem.train, validation)
            return [(np.flatnonzero(~held), np.flatnonzero(held))]
        if problem.target.task == "classification":
            return inner_splits(problem.y[problem.train], folds, self._seed(), own)
        return random_splits(len(problem.train), folds, self._seed(), own)

    def scores_prepared(self, prepared: PreparedSet, indices: Ints) -> Floats:
        """Return scores; the Gram matrix of the prepared set is used where there is one."""
        gram = self._prepared_gram(prepared, indices, self._support_)
        return self._scores(prepared.graphs.subset(indices)) if gram is None else self._scores_of(gram)

    def _scores(self, graphs: GraphSet) -> Floats:
        kernel = self._fitted_kernel()
        rows = max(1, VALUES // self.svm_.coefficients.shape[1])
        parts = [graphs] if len(graphs) <= rows else [graphs[i : i + rows] for i in range(0, len(graphs), rows)]
        return np.concatenate([self._scores_of(kernel.transform(part)) for part in parts])

    def _scores_of(self, K: Floats) -> Floats:
        """Return scores for kernel values K [n, s] of graphs and support graphs."""
        if isinstance(self.svm_, SVM):
            return class_scores(self.svm_, K, self.target_.outputs)
        return self._in_units(self.svm_.scores(K, self.target_.task))

    def transform(self, X: Any) -> Floats:
        """Return the kernel values [G, s] of graphs against the support graphs."""
        check_is_fitted(self, "target_")
        graphs = self.loaded(X)
        return self._fitted_kernel().transform(graphs)

    def _fitted_kernel(self) -> GraphKernel:
        """Return the chosen kernel, fitted on the support graphs when it is first needed."""
        if self._graphs_ is not None:
            self.kernel_ = clone(self.kernel_).fit(self._graphs_.subset(self._support_))
            self._graphs_ = None
        return self.kernel_

    @property
    def _n_features_out(self) -> int:
        return self._fitted_kernel()._n_features_out

    def _checked(self) -> tuple[tuple[float, ...], int]:
        """Return the penalties and the number of inner folds, validated."""
        config = self.config
        return config.C, config.inner_folds  # type: ignore[attr-defined]

    def _settings(self, graphs: GraphSet, train: Ints) -> tuple[dict[str, Any], list[Resolution]]:
        config, resolution = resolve(self.config, graphs, train)
        return config.to_dict(), resolution

    @property
    def describes(self) -> str:
        """Description of the model."""
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
        found = validated(KernelState, values, "the state of the kernel is damaged", ModelError)
        make = getattr(graph_kernels, found.kernel, None)
        if not (isinstance(make, type) and issubclass(make, GraphKernel)):
            raise ModelError(f"there is no kernel {found.kernel!r}")
        kernel = make(**found.params)
        check_parameters(kernel)
        self.kernel_ = kernel.restore(_part(arrays, "kernel."), found.values)
        self.svm_ = self._restored_svm(_part(arrays, "svm."), self.kernel_._n_features_out)
        self.chosen_, self._graphs_ = found.chosen, None

    def _restored_svm(self, arrays: dict[str, Array], graphs: int) -> SVM | MultiOutputSVM:
        """Return the SVM of a file, whose shapes must be those of so many support graphs and of the target."""
        coefficients = require_array(arrays, "coefficients", "f", (None, graphs))
        require_array(arrays, "intercepts", "f", (len(coefficients),))
        if self.target_.task != "classification":
            if len(coefficients) != len(self.target_.names):
                raise ModelError("the state of the SVM is damaged (it is not of as many targets)")
            return MultiOutputSVM.from_arrays(arrays)
        classes, pairs = (require_array(arrays, name, "i", shape) for name, shape in
                          (("classes_", (None,)), ("pairs", (len(coefficients), 2))))  # fmt: skip
        for codes, count in ((classes, self.target_.outputs), (pairs, len(classes))):
            if codes.size and not 0 <= codes.min() <= codes.max() < count:
                raise ModelError("the state of the SVM is damaged (a class does not exist)")
        if (np.diff(classes) <= 0).any():
            raise ModelError("the state of the SVM is damaged (its classes do not ascend)")
        return SVM.from_arrays(arrays)


def _part(arrays: dict[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


class AnyKernel(KernelEstimator):
    """Base class of the machines on kernels that the caller gives."""

    kernel: GraphKernel | Sequence[GraphKernel]

    def kernels(self) -> list[GraphKernel]:
        """Return unfitted copies of the given kernels."""
        given = [self.kernel] if isinstance(self.kernel, GraphKernel) else list(self.kernel)
        return [clone(kernel) for kernel in given]

    def _checked(self) -> tuple[tuple[float, ...], int]:
        if not len(self.C) or min(self.C) <= 0 or self.inner_folds < 2:
            raise ConfigError(f"{type(self).__name__} needs positive penalties C and two inner folds or more")
        return tuple(self.C), self.inner_folds

    def _settings(self, graphs: GraphSet, train: Ints) -> tuple[dict[str, Any], list[Resolution]]:
        kernels = [repr(kernel) for kernel in self.resolved_kernels(graphs)]
        return {"kernel": kernels, "C": self.C, "inner_folds": self.inner_folds}, []


class KernelClassifier(GraphClassifier, KernelEstimator):
    """Base class of the support vector classifiers on graph kernels."""

    def decision_function(self, X: Any) -> Floats:
        """Return decision values: [G] for two classes, positive for the second; [G, C] for more, [G, T] for targets."""
        check_is_fitted(self, "target_")
        return self.svm_.decision_function(self._fitted_kernel().transform(X))


class KernelSVC(KernelClassifier, AnyKernel):
    """Support vector classification on any graph kernels.

    Args:
        kernel: a kernel of :mod:`gcaps.kernels`, or several to choose from.
        C: penalties to choose from.
        inner_folds: folds of the training graphs that choose kernel and C.
        class_weight: weight of each class: ``"balanced"``, or a dictionary from class to weight.
        random_state: decides the inner folds.
    """

    def __init__(
        self,
        kernel: GraphKernel | Sequence[GraphKernel],
        *,
        C: tuple[float, ...] = PENALTIES,
        inner_folds: int = 5,
        class_weight: ClassWeight = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())


class KernelSVR(GraphRegressor, AnyKernel):
    """Support vector regression on any graph kernels, one machine a target.

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
