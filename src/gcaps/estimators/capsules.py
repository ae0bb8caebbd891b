"""GCAPS-CNN as classifier and regressor, and support vector machines on random capsules."""

from __future__ import annotations

import time
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np

from gcaps.batching import BatchSource
from gcaps.config import (
    CapsuleName,
    ClassWeight,
    DeviceName,
    EdgeFeatureName,
    FeatureName,
    FilterName,
    FingerprintName,
    RandomCapsuleConfig,
    Section,
)
from gcaps.data.arrays import Array, Ints
from gcaps.data.prepared import PreparedSet
from gcaps.documents import validated
from gcaps.errors import ModelError
from gcaps.estimators.auto import resolve
from gcaps.estimators.base import FitOptions, GraphClassifier, GraphRegressor
from gcaps.estimators.network import NetworkEstimator
from gcaps.estimators.predictor import NetworkState, RandomCapsuleState, require_columns, with_weights
from gcaps.features.nodes import NodeFeatures
from gcaps.models.random_capsules import RandomCapsuleSVM
from gcaps.models.registry import network_class, random_capsules
from gcaps.training import Epoch, FittedNetwork, reproducible
from gcaps.training.random_capsules import fit_random_capsule_svm


class GraphCapsuleClassifier(GraphClassifier, NetworkEstimator):
    """Graph classification with graph capsules (GCAPS-CNN; Verma and Zhang, 2018).

    Node features → graph capsule layers (Eq. 5) → mean and covariance of all nodes → two fully connected layers →
    class probabilities. The settings and their meaning are those of :class:`gcaps.config.Config`; those that are
    ``"auto"`` are resolved from the training graphs (:mod:`gcaps.estimators.auto`), see ``resolved_``.

    Args:
        features: node features, from labels, attributes, degree, constant, fgsd and return_probabilities, as a tuple or
            joined with commas.
        edge_features: edge features, from labels (relations) and attributes (gates); () or "none" for none.
        fgsd_bins: bins of the harmonic-distance histogram.
        rare_labels: node labels that fewer training graphs have share one column, with labels unseen in training.
        extra_features: fingerprints or descriptors of molecules (:func:`gcaps.features.fingerprint`) that are appended
            to the graph vector, as a tuple or joined with commas; () or "none" for none.
        layers: graph capsule layers ℓ.
        hidden: width h of the capsule layers.
        capsule: capsule function.
        capsule_size: instantiation parameters P of a capsule.
        filter: filter matrix M of Eq. 5.
        degree: highest power K of the filter.
        bound: powers are taken of values softly bounded to ±bound; None: Eq. 5 to the letter.
        readout: graph vector: mean and covariance of the nodes; mean, sum or max-sort for comparison.
        rank: columns that node capsules are projected to before their covariance; None: all columns.
        reduce: covariance readout by means or by sums.
        root: signed square root of the covariance.
        count: log of the node count as an extra entry of the graph vector.
        inputs: append the mean (or sum) of the node features to the graph vector.
        epochs: passes over the training graphs.
        batch_size: graphs per step.
        sampling: graphs of an epoch: each once, or as many drawn with every class equally likely.
        lr: Adam's initial learning rate.
        schedule: learning rate along half a cosine, or times ``decay`` every ``decay_every`` epochs.
        decay: factor of schedule ``"step"``.
        decay_every: epochs between two steps of schedule ``"step"``.
        weight_decay: L2 regularisation.
        selection: keep the last epoch, or the best on an inner validation split.
        validation: share of the training graphs in that split.
        patience: stop after so many epochs without a better one.
        refit: train anew on all graphs for the chosen number of epochs.
        ensemble_size: networks trained side by side whose probabilities are averaged.
        threads: CPU threads.
        device: auto, cpu, cuda or mps.
        class_weight: weight of each class: ``"balanced"``, or a dictionary from class to weight.
        fc: width of the fully connected layers.
        dropout: dropout before each fully connected layer.
        with_svm: average with the probabilities of a :class:`RandomCapsuleSVC` on capsules twice as wide.
        random_state: the same number gives the same classifier.
        verbose: show a progress bar while fitting.
    """

    method: ClassVar[str] = "gcaps"

    def __init__(
        self,
        *,
        features: tuple[FeatureName, ...] | str = "auto",
        edge_features: tuple[EdgeFeatureName, ...] | str = "auto",
        fgsd_bins: int = 32,
        rare_labels: int | Literal["auto"] = "auto",
        extra_features: tuple[FingerprintName, ...] | str = (),
        layers: int | Literal["auto"] = "auto",
        hidden: int = 32,
        capsule: CapsuleName = "moments",
        capsule_size: int = 2,
        filter: FilterName = "adjacency",  # noqa: A002  # the paper's word
        degree: int = 1,
        bound: float | None = 3.0,
        readout: Literal["covariance", "mean", "sum", "max_sort"] = "covariance",
        rank: int | None = 32,
        reduce: Literal["auto", "mean", "sum"] = "auto",
        root: bool = True,
        count: bool = True,
        inputs: bool = False,
        epochs: int | Literal["auto"] = "auto",
        batch_size: int = 64,
        sampling: Literal["shuffle", "balanced"] = "shuffle",
        lr: float = 0.003,
        schedule: Literal["step", "cosine"] = "cosine",
        decay: float = 0.1,
        decay_every: int = 40,
        weight_decay: float | Literal["auto"] = "auto",
        selection: Literal["last", "validation"] = "last",
        validation: float = 0.1,
        patience: int | None = None,
        refit: bool = False,
        ensemble_size: int | Literal["auto"] = "auto",
        threads: int = 1,
        device: DeviceName = "auto",
        class_weight: ClassWeight = None,
        fc: int = 64,
        dropout: float | Literal["auto"] = "auto",
        with_svm: bool | Literal["auto"] = "auto",
        random_state: int | np.random.RandomState | None = 0,
        verbose: bool = False,
    ) -> None:
        self._store(locals())


class GraphCapsuleRegressor(GraphRegressor, NetworkEstimator):
    """Regression on graphs with graph capsules: the network of :class:`GraphCapsuleClassifier` with a squared loss.

    Targets, one or several, are standardised over the training graphs; missing values (NaN) are left out of the loss;
    predictions are in the units of ``y``. The parameters are those of :class:`GraphCapsuleClassifier` without those
    about classes.
    """

    method: ClassVar[str] = "gcaps"

    def __init__(
        self,
        *,
        features: tuple[FeatureName, ...] | str = "auto",
        edge_features: tuple[EdgeFeatureName, ...] | str = "auto",
        fgsd_bins: int = 32,
        rare_labels: int | Literal["auto"] = "auto",
        extra_features: tuple[FingerprintName, ...] | str = (),
        layers: int | Literal["auto"] = "auto",
        hidden: int = 32,
        capsule: CapsuleName = "moments",
        capsule_size: int = 2,
        filter: FilterName = "adjacency",  # noqa: A002  # the paper's word
        degree: int = 1,
        bound: float | None = 3.0,
        readout: Literal["covariance", "mean", "sum", "max_sort"] = "covariance",
        rank: int | None = 32,
        reduce: Literal["auto", "mean", "sum"] = "auto",
        root: bool = True,
        count: bool = True,
        inputs: bool = False,
        epochs: int | Literal["auto"] = "auto",
        batch_size: int = 64,
        lr: float = 0.003,
        schedule: Literal["step", "cosine"] = "cosine",
        decay: float = 0.1,
        decay_every: int = 40,
        weight_decay: float | Literal["auto"] = "auto",
        selection: Literal["last", "validation"] = "last",
        validation: float = 0.1,
        patience: int | None = None,
        refit: bool = False,
        ensemble_size: int | Literal["auto"] = "auto",
        threads: int = 1,
        device: DeviceName = "auto",
        fc: int = 64,
        dropout: float | Literal["auto"] = "auto",
        with_svm: bool | Literal["auto"] = "auto",
        random_state: int | np.random.RandomState | None = 0,
        verbose: bool = False,
    ) -> None:
        self._store(locals())


class RandomCapsuleMachine(NetworkEstimator):
    """Base class of the support vector machines on random capsules."""

    def fit_prepared(self, prepared: PreparedSet, train: Ints, **options: Unpack[FitOptions]) -> Self:
        """Fit on some graphs of a prepared set; there are no epochs to watch or to pick."""
        given = self.config
        assert isinstance(given, RandomCapsuleConfig)
        problem = self._start(prepared, train, options)
        target, train = problem.target, problem.train
        config, self.resolution_ = resolve(given, prepared.graphs, train, target.task)
        graphs, seed, began = prepared.graphs, self._seed(), time.perf_counter()
        with reproducible(seed, config.threads):
            features = NodeFeatures.fit(config, prepared, train)
            x = features if graphs.mapped else features.encode(prepared)
            merge = network_class(config).merges(config)
            source = BatchSource(graphs, x, merge=merge, y=problem.y, sample_weight=problem.weight, prepared=prepared)
            network = fit_random_capsule_svm(
                config, source, train, target.outputs, seed, target.task, options.get("groups")
            )
        self.fitted_ = FittedNetwork(config, features, network, seed)
        self._describe(config)
        if (on_epoch := options.get("on_epoch")) is not None:
            on_epoch(Epoch(1, 0.0, network.shape_args["inner"], len(train) / (time.perf_counter() - began)))
        return self

    def _describe(self, config: Section) -> None:
        shape = self.fitted_.network.shape_args
        self.resolved_, self.chosen_ = config.to_dict(), {name: shape[name] for name in ("C", "inner")}

    @property
    def describes(self) -> str:
        """Description of the model."""
        return f"an SVM on random capsules, {self.fitted_.network.shape_args['vectors']:,} support graphs"

    def restore(self, arrays: dict[str, Array], values: dict[str, Any]) -> None:
        """Build the capsules again and load weights and support graphs."""
        config = RandomCapsuleConfig.parse(self.resolved_)
        task, outputs = self.target_.task, self.target_.outputs
        problem = "the state of the network is damaged"
        found = validated(NetworkState, values, problem, ModelError)
        machine = validated(RandomCapsuleState, values["shape"], problem, ModelError)
        features = NodeFeatures.from_state(found.features)
        require_columns(features, found.in_channels, features.shape)

        def build() -> RandomCapsuleSVM:
            capsules = random_capsules(config, found.in_channels, outputs, features.shape)
            return RandomCapsuleSVM(capsules, outputs, task=task, **machine.model_dump())

        network = with_weights(build, arrays)
        self.fitted_ = FittedNetwork(config, features, network.eval(), found.seed)
        self.epoch_ = 1


class RandomCapsuleSVC(GraphClassifier, RandomCapsuleMachine):
    """Support vector classification on graph vectors of random (untrained) capsules.

    The capsule layers and the covariance readout of GCAPS-CNN with random weights give a graph vector z, standardised
    over the training graphs; an SVM with the kernel exp(−γ ‖z_g − z_h‖₁) decides. Kernel width and penalty are chosen
    by cross-validation on the training graphs. Nothing is trained by gradients: seconds for thousands of graphs.

    Args:
        features: node features, from labels, attributes, degree, constant, fgsd and return_probabilities, as a tuple or
            joined with commas.
        edge_features: edge features, from labels (relations) and attributes (gates); () or "none" for none.
        fgsd_bins: bins of the harmonic-distance histogram.
        rare_labels: node labels that fewer training graphs have share one column, with labels unseen in training.
        extra_features: fingerprints or descriptors of molecules (:func:`gcaps.features.fingerprint`) that are appended
            to the graph vector, as a tuple or joined with commas; () or "none" for none.
        layers: graph capsule layers ℓ.
        hidden: width h of the capsule layers.
        capsule: capsule function.
        capsule_size: instantiation parameters P of a capsule.
        filter: filter matrix M of Eq. 5.
        degree: highest power K of the filter.
        bound: powers are taken of values softly bounded to ±bound; None: Eq. 5 to the letter.
        readout: graph vector: mean and covariance of the nodes; mean, sum or max-sort for comparison.
        rank: columns that node capsules are projected to before their covariance; None: all columns.
        reduce: covariance readout by means or by sums.
        root: signed square root of the covariance.
        count: log of the node count as an extra entry of the graph vector.
        inputs: append the mean (or sum) of the node features to the graph vector.
        batch_size: graphs per batch when normalisation statistics are collected.
        C: penalties to choose from.
        gamma: kernel widths to choose from, over the mean distance of two training graphs.
        inner_folds: folds of the training graphs that choose.
        threads: CPU threads.
        class_weight: weight of each class: ``"balanced"``, or a dictionary from class to weight.
        random_state: decides the weights and the inner folds.
    """

    method: ClassVar[str] = "capsule-svm"

    def __init__(
        self,
        *,
        features: tuple[FeatureName, ...] | str = "auto",
        edge_features: tuple[EdgeFeatureName, ...] | str = "auto",
        fgsd_bins: int = 32,
        rare_labels: int | Literal["auto"] = "auto",
        extra_features: tuple[FingerprintName, ...] | str = (),
        layers: int | Literal["auto"] = "auto",
        hidden: int = 64,
        capsule: CapsuleName = "moments",
        capsule_size: int = 2,
        filter: FilterName = "adjacency",  # noqa: A002  # the paper's word
        degree: int = 1,
        bound: float | None = 3.0,
        readout: Literal["covariance", "mean", "sum", "max_sort"] = "covariance",
        rank: int | None = 64,
        reduce: Literal["auto", "mean", "sum"] = "auto",
        root: bool = True,
        count: bool = True,
        inputs: bool = False,
        batch_size: int = 64,
        C: tuple[float, ...] = (1.0, 10.0, 100.0),
        gamma: tuple[float, ...] = (0.3, 1.0, 3.0),
        inner_folds: int = 5,
        threads: int = 1,
        class_weight: ClassWeight = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self._store(locals())
