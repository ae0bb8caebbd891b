"""Base class of the estimators that train a network."""

from __future__ import annotations

from typing import Any, Self, Unpack

import numpy as np
import torch
from sklearn.base import TransformerMixin

from gcaps.config import Config, Section, TrainingConfig
from gcaps.data.arrays import Array, Floats, Ints
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.errors import ConfigError
from gcaps.estimators.auto import resolve, usable_device
from gcaps.estimators.base import FitOptions, GraphEstimator, State
from gcaps.features import NodeFeatures
from gcaps.models.ensemble import Ensemble
from gcaps.models.random_capsules import RandomCapsuleSVM
from gcaps.models.registry import random_capsules, restore_network
from gcaps.training import FittedNetwork, TrainingData, fit_network
from gcaps.training.random_capsules import svm_beside


class NetworkEstimator(TransformerMixin, GraphEstimator):  # type: ignore[misc]
    """Base class of the estimators that train a network.

    Attributes:
        fitted_: node features and network (:class:`gcaps.training.FittedNetwork`).
    """

    fitted_: FittedNetwork

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

    def transform(self, X: Any) -> Floats:
        """Return graph embeddings [G, ·]: the vectors before the fully connected layers.

        Of GCAPS-CNN [μ, C], followed by ``extra_features``.
        """
        graphs = self.loaded(X)
        return self.fitted_.embed(graphs)

    @property
    def describes(self) -> str:
        """What predicts, in words."""
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
        kind = type(self.config)
        config = kind.parse({name: value for name, value in self.resolved_.items() if name in kind.model_fields})
        assert isinstance(config, TrainingConfig)
        config = config.model_copy(update={"device": usable_device(config.device)})
        task, outputs, in_channels = self.target_.task, self.target_.outputs, int(values["in_channels"])
        network = restore_network(config, in_channels, outputs, values["shape"], task)
        features = NodeFeatures.from_state(values["features"])
        if values["svm"] is not None:
            assert isinstance(config, Config)
            capsules = random_capsules(svm_beside(config), in_channels, outputs, features.shape)
            network = Ensemble([network, RandomCapsuleSVM(capsules, outputs, task=task, **values["svm"])])
        load_weights(network, arrays)
        network.to(config.device)
        self.fitted_ = FittedNetwork(config, features, network.eval(), int(values["seed"]))
        self.epoch_ = int(values["epoch"])


def load_weights(network: torch.nn.Module, arrays: dict[str, Array]) -> None:
    """Load arrays as the state of a network of the same shape."""
    network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})


def _scaled(sample_weight: Floats | None, train: Ints) -> Floats | None:
    """Scale weights to a mean of one over the training graphs, so that the learning rate keeps its meaning."""
    if sample_weight is None:
        return None
    scaled: Floats = sample_weight / sample_weight[train].mean()
    return scaled
