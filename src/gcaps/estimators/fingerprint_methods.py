"""Trees on fingerprints and descriptors of molecules."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from threadpoolctl import threadpool_limits

from gcaps.config import CONFIGS, ClassWeight, FingerprintConfig, FingerprintName
from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.molecules.required import require_molecules
from gcaps.data.prepared import PreparedSet
from gcaps.estimators.base import GraphClassifier
from gcaps.estimators.problem import Problem
from gcaps.estimators.tree_methods import TreeEstimator
from gcaps.estimators.trees import Trees
from gcaps.features.fingerprints import fingerprint_columns, fingerprints

REGRESSION_COLUMNS = 1 / 3
"""Share of the columns that a split of a regression forest chooses from."""
BOOSTING_COLUMNS = 0.1
"""Share of the columns that a split of boosting chooses from."""
BOOSTING_LEAF = 5
"""Training graphs of a leaf of boosting, at least."""
NODES = 1 << 17
"""Atoms of the molecules whose fingerprints are in memory together when many are predicted."""


class FingerprintTrees(TreeEstimator):
    """Base class of the forests and boosted trees on fingerprints of molecules.

    A split of a classification forest chooses from √d of the d columns, as is customary; one of a regression forest
    from a third of them (Breiman's choice). Of √d, d/20, d/10 and d/3 of the 2,048 columns of ECFP, d/3 had the lowest
    RMSE in inner cross-validation on ESOL and Lipophilicity; scikit-learn's default, all columns, takes almost three
    times as long. Boosting chooses from a tenth of the columns, with leaves of at least five graphs and no early
    stopping, which on the descriptors of these sets had a lower RMSE than all columns.

    Attributes:
        forests_: the trees: one model for classification, one for each target otherwise.
    """

    needs_molecules: ClassVar[bool] = True

    def _start(self, prepared: PreparedSet, train: Ints, options: Any) -> Problem:
        require_molecules(prepared.graphs, self.method)
        return super()._start(prepared, train, options)

    @property
    def _settings(self) -> FingerprintConfig:
        """The settings of the fit."""
        found = CONFIGS[self.method].parse(self.resolved_)
        assert isinstance(found, FingerprintConfig)
        return found

    def _fit_vectors(self, prepared: PreparedSet, train: Ints) -> Floats:
        return self._prepared_vectors(prepared, train)

    def _prepared_vectors(self, prepared: PreparedSet, indices: Ints) -> Floats:
        config = self._settings
        found = fingerprints(prepared, config.fingerprints, radius=config.radius, bits=config.bits)
        return found if np.array_equal(indices, np.arange(len(found))) else found[indices]

    def _vectors(self, graphs: GraphSet) -> Floats:
        require_molecules(graphs, self.method)
        config = self._settings
        return fingerprints(graphs, config.fingerprints, radius=config.radius, bits=config.bits)

    def _scores(self, graphs: GraphSet) -> Floats:
        """Return scores; fingerprints of a bounded number of molecules are in memory at a time."""
        return np.concatenate([super(FingerprintTrees, self)._scores(part) for part in graphs.chunks(NODES)])

    def _fit_trees(self, x: Floats, y: Array, weight: Floats | None) -> Trees:
        config, regression = self._settings, self.target_.task == "regression"
        if config.model == "forest":
            kind = RandomForestRegressor if regression else RandomForestClassifier
            forest = kind(
                config.n_estimators,
                max_features=REGRESSION_COLUMNS if regression else "sqrt",
                n_jobs=config.threads,
                random_state=self._seed(),
            )
            return Trees.of_forest(forest.fit(x, y, sample_weight=weight))
        if not regression and (y == y[0]).all():  # boosting needs two classes
            return Trees.constant([1.0 - float(y[0]), float(y[0])])
        boost = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
        model = boost(
            max_iter=config.n_estimators,
            learning_rate=config.learning_rate,
            min_samples_leaf=BOOSTING_LEAF,
            max_features=BOOSTING_COLUMNS,
            early_stopping=False,
            random_state=self._seed(),
        )
        undefined = np.isnan(x).all(axis=0)
        if undefined.any():  # scikit-learn finds no bins for such a column; a constant one is never split
            x = np.where(undefined, np.float32(0), x)
        with threadpool_limits(config.threads, user_api="openmp"):
            return Trees.of_boosting(model.fit(x, y, sample_weight=weight))

    @property
    def _n_features_out(self) -> int:
        config = self._settings
        return sum(len(fingerprint_columns(name, config.bits)) for name in config.fingerprints)

    @property
    def describes(self) -> str:
        """Description of the model."""
        config = self._settings
        kind = "boosted trees" if config.model == "boosting" else "trees"
        return f"{sum(map(len, self.forests_)):,} {kind} on {' and '.join(config.fingerprints)}"


class ECFPClassifier(GraphClassifier, FingerprintTrees):
    """Random forest on extended-connectivity fingerprints of molecules (ECFP; Rogers and Hahn, 2010).

    Needs molecules: graphs read from SMILES or an SDF.

    Args:
        fingerprints: what describes a molecule, side by side: ``"morgan"``, counts of circular substructures (ECFP);
            ``"morgan_bits"``, which of them occur; ``"maccs"``, 166 structural keys; ``"atom_pairs"``, counts of pairs
            of atoms and their distance; ``"descriptors"``, RDKit's two-dimensional descriptors.
        radius: radius of Morgan fingerprints; 2 is ECFP4.
        bits: length of hashed fingerprints.
        model: ``"forest"``, or ``"boosting"`` for gradient boosting.
        n_estimators: trees of the forest, or steps of boosting.
        learning_rate: factor on each step of boosting.
        threads: CPU threads of the fit.
        class_weight: weight of each class: ``"balanced"``, or a dictionary from class to weight.
        random_state: decides the trees.
    """

    method: ClassVar[str] = "ecfp"

    def __init__(
        self,
        *,
        fingerprints: tuple[FingerprintName, ...] | str = ("morgan",),
        radius: int = 2,
        bits: int = 2048,
        model: Literal["forest", "boosting"] = "forest",
        n_estimators: int = 500,
        learning_rate: float = 0.05,
        threads: int = 1,
        class_weight: ClassWeight = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())


class DescriptorClassifier(GraphClassifier, FingerprintTrees):
    """Gradient boosting on RDKit's two-dimensional descriptors of molecules.

    Needs molecules: graphs read from SMILES or an SDF. The parameters are those of :class:`ECFPClassifier` with other
    defaults; a descriptor that is undefined for a molecule is a missing value, which a split sends to either side.

    Args:
        fingerprints: what describes a molecule, side by side.
        radius: radius of Morgan fingerprints.
        bits: length of hashed fingerprints.
        model: ``"forest"``, or ``"boosting"`` for gradient boosting.
        n_estimators: trees of the forest, or steps of boosting.
        learning_rate: factor on each step of boosting.
        threads: CPU threads of the fit.
        class_weight: weight of each class: ``"balanced"``, or a dictionary from class to weight.
        random_state: decides the trees.
    """

    method: ClassVar[str] = "descriptors"

    def __init__(
        self,
        *,
        fingerprints: tuple[FingerprintName, ...] | str = ("descriptors",),
        radius: int = 2,
        bits: int = 2048,
        model: Literal["forest", "boosting"] = "boosting",
        n_estimators: int = 500,
        learning_rate: float = 0.05,
        threads: int = 1,
        class_weight: ClassWeight = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())
