"""Tanimoto kernel of molecules' fingerprints with an SVM or a Gaussian process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

import numpy as np

from gcaps.config import ClassWeight, CountName, TanimotoConfig
from gcaps.data.arrays import Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.molecules.required import require_molecules
from gcaps.data.prepared import PreparedSet
from gcaps.errors import ConfigError
from gcaps.estimators.base import FitOptions
from gcaps.estimators.kernel_svm import PENALTIES, Best, KernelClassifier, KernelEstimator
from gcaps.estimators.problem import Problem
from gcaps.kernels.base import GraphKernel
from gcaps.kernels.gaussian_process import fit_gaussian_process
from gcaps.kernels.tanimoto import Tanimoto, require_gram_memory


class TanimotoEstimator(KernelEstimator):
    """Base class of the SVMs and Gaussian processes on the Tanimoto kernel."""

    needs_molecules: ClassVar[bool] = True

    model: Literal["svm", "gp"]

    def kernels(self) -> list[GraphKernel]:
        """Return a kernel for each fingerprint, and for each radius of Morgan fingerprints."""
        config = self.config
        assert isinstance(config, TanimotoConfig)
        found: list[GraphKernel] = []
        for name in config.fingerprints:
            radii = config.radius if name.startswith("morgan") else (2,)
            found += [Tanimoto(name, radius=radius) for radius in radii]
        return found

    def grams(self, graphs: GraphSet, kernels: Sequence[GraphKernel]) -> list[Floats | None]:
        """Return the Gram matrices.

        Raises:
            DataError: the graphs are not molecules.
            MemoryLimitError: the matrices would not fit in memory.
        """
        require_molecules(graphs, self.method)
        require_gram_memory(len(graphs), len(kernels))
        return super().grams(graphs, kernels)

    def _start(self, prepared: PreparedSet, train: Ints, options: FitOptions) -> Problem:
        require_molecules(prepared.graphs, self.method)
        problem = super()._start(prepared, train, options)
        if self.model == "gp" and problem.target.task != "regression":
            raise ConfigError("model = gp is for regression; set model to svm for classes")
        return problem

    def _fit_best(
        self,
        problem: Problem,
        training_gram: Callable[[int], Floats],
        kernels: int,
        splits: Sequence[tuple[Ints, Ints]],
    ) -> Best:
        if self.model != "gp":
            return super()._fit_best(problem, training_gram, kernels, splits)
        y, weight = problem.y[problem.train], problem.training_weight()
        found = [fit_gaussian_process(training_gram(k), y, weight) for k in range(kernels)]
        k = int(np.argmax([process.likelihood for process in found]))
        best = found[k]
        chosen = {
            "noise": best.noise.tolist(),
            "scale": best.scale.tolist(),
            "log_likelihood": best.likelihood,
        }
        return Best(k, best.mean, chosen, 1.0)  # no graphs were held back to score it on

    @property
    def describes(self) -> str:
        """Description of the model."""
        if self.resolved_["model"] != "gp":
            return super().describes
        graphs = self.svm_.coefficients.shape[1]
        noise = ", ".join(f"{np.sqrt(value):.3g}" for value in self.chosen_["noise"])
        return f"a Gaussian process on Tanimoto, {graphs:,} graphs, noise {noise} standard deviations of the target"


class TanimotoSVC(KernelClassifier, TanimotoEstimator):
    """SVM on the Tanimoto kernel of molecules' fingerprints.

    Needs molecules: graphs read from SMILES or an SDF. Fingerprint, radius and C are chosen by cross-validation on the
    training graphs.

    Args:
        fingerprints: fingerprints to choose from: ``"morgan"``, counts of circular substructures (ECFP);
            ``"morgan_bits"``, which of them occur; ``"atom_pairs"``; ``"maccs"``.
        radius: radii of Morgan fingerprints to choose from.
        model: ``"svm"``; :class:`TanimotoSVR` takes ``"gp"``, too.
        C: penalties to choose from.
        inner_folds: folds of the training graphs that choose kernel and C.
        class_weight: weight of each class: ``"balanced"``, or a dictionary from class to weight.
        random_state: decides the inner folds.
    """

    method: ClassVar[str] = "tanimoto"

    def __init__(
        self,
        *,
        fingerprints: tuple[CountName, ...] | str = ("morgan",),
        radius: tuple[int, ...] = (1, 2, 3),
        model: Literal["svm", "gp"] = "svm",
        C: tuple[float, ...] = PENALTIES,
        inner_folds: int = 5,
        class_weight: ClassWeight = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())
