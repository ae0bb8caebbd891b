"""Base class of the estimators that train a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self, Unpack

from sklearn.base import TransformerMixin

from gcaps.config import Section, TrainingConfig
from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.errors import ConfigError
from gcaps.estimators.auto import resolve
from gcaps.estimators.base import FitOptions, GraphEstimator, State
from gcaps.estimators.predictor import restored
from gcaps.models.ensemble import Ensemble
from gcaps.models.random_capsules import RandomCapsuleSVM
from gcaps.training import FittedNetwork, TrainingData, fit_network
from gcaps.training.checkpoint import remove_checkpoint


class NetworkEstimator(TransformerMixin, GraphEstimator):  # type: ignore[misc]
    """Base class of the estimators that train a network.

    Attributes:
        fitted_: node features and network (:class:`gcaps.training.FittedNetwork`).
    """

    fitted_: FittedNetwork

    def remove_checkpoint(self, folder: Path) -> None:
        """Remove the checkpoint that a fit left in a folder."""
        remove_checkpoint(folder)

    def fit_prepared(self, prepared: PreparedSet, train: Ints, **options: Unpack[FitOptions]) -> Self:
        """Train on some graphs of a prepared set; see :meth:`GraphEstimator.fit_prepared`."""
        given = self.config
        assert isinstance(given, TrainingConfig)
        problem = self._start(prepared, train, options)
        target, train = problem.target, problem.train
        if given.sampling == "balanced" and target.task != "classification":
            raise ConfigError(f"sampling: balanced needs classes; this is {target.task}")
        config, self.resolution_ = resolve(given, prepared.graphs, train, target.task)
        weight = _scaled(problem.weight, train)
        groups = options.get("groups")
        data = TrainingData(prepared, train, problem.y, target.outputs, weight, target.task, groups)
        assert config.epochs != "auto"
        with self._progress(prepared.graphs.name, config.epochs, options.get("on_epoch")) as report:
            self.fitted_, self.curves_, self.epoch_ = fit_network(
                data,
                config,
                self._seed(),
                validation=options.get("validation"),
                watch=options.get("watch"),
                on_epoch=report,
                checkpoint=options.get("checkpoint"),
                keep_checkpoint=options.get("keep_checkpoint", False),
            )
        self._describe(config)
        return self

    def _describe(self, config: Section) -> None:
        """Set ``resolved_`` and ``chosen_`` from the fitted network."""
        network, svm = self._parts()
        self.resolved_ = config.to_dict() | network.shape_args
        self.chosen_ = {} if svm is None else {name: svm.shape_args[name] for name in ("C", "inner")}

    def _parts(self) -> tuple[Any, RandomCapsuleSVM | None]:
        """Return the trained network and the SVM that is averaged with it, if there is one."""
        network = self.fitted_.network
        if isinstance(network, Ensemble) and isinstance(network.networks[-1], RandomCapsuleSVM):
            return network.networks[0], network.networks[-1]
        return network, None

    def _scores(self, graphs: GraphSet) -> Floats:
        return self._in_units(self.fitted_.scores(graphs))

    def _spread(self, graphs: GraphSet) -> Floats | None:
        if self.target_.scale is None or (found := self.fitted_.spread(graphs)) is None:
            return None
        return found * self.target_.scale

    def transform(self, X: Any) -> Floats:
        """Return graph embeddings [G, ·]: the vectors before the fully connected layers.

        Of GCAPS-CNN [μ, C], followed by ``extra_features``.
        """
        graphs = self.loaded(X)
        return self.fitted_.embed(graphs)

    @property
    def describes(self) -> str:
        """Description of the model."""
        network, svm = self._parts()
        size = network.ensemble_size
        parts = [f"{size} networks" if size > 1 else "one network", *(["an SVM on random capsules"] if svm else [])]
        count = sum(p.numel() for p in network.parameters())
        return f"{' and '.join(parts)}, {count:,} parameters"

    def state(self) -> State:
        """Return weights, node features and what the network's shape was derived from."""
        network, svm = self._parts()
        weights = {name: t.detach().cpu().contiguous().numpy() for name, t in self.fitted_.network.state_dict().items()}
        return weights, {
            "in_channels": network.in_channels,
            "shape": network.shape_args,
            "svm": None if svm is None else svm.shape_args,
            "features": self.fitted_.features.state(),
            "seed": self.fitted_.seed,
            "epoch": self.epoch_,
        }

    def restore(self, arrays: dict[str, Array], values: dict[str, Any]) -> None:
        """Build the network again and load its weights."""
        self.fitted_, self.epoch_ = restored(self.method, self.resolved_, self.target_, arrays, values)


def _scaled(sample_weight: Floats | None, train: Ints) -> Floats | None:
    """Scale weights to a mean of one over the training graphs, so that the learning rate keeps its meaning."""
    if sample_weight is None:
        return None
    scaled: Floats = sample_weight / sample_weight[train].mean()
    return scaled
