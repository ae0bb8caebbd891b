"""Forecasts of the values on the nodes of a graph, by recurrent cells with graph capsule gates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from gcaps.config.sequences import SequenceConfig
from gcaps.data.arrays import Array, Ints, array_digest
from gcaps.data.sequence import GraphSequence
from gcaps.documents import Count, Number, Page, validated
from gcaps.errors import DataError, ModelError
from gcaps.nn.recurrent import GCNGRU, GCNLSTM, GraphCapsuleGRU, GraphCapsuleLSTM
from gcaps.tasks.autoregression import Autoregression, choose_autoregression
from gcaps.tasks.base import State, TaskModel, load_network, network_arrays
from gcaps.tasks.training import Score, StepRun, fit_steps
from gcaps.tasks.windows import ForecastNetwork, WindowSource, batches, consecutive, masked_error, mean_weight
from gcaps.training import reproducible
from gcaps.training.loop import Epoch
from gcaps.training.selection import Curves


class CapsuleForecaster(TaskModel[SequenceConfig]):
    """Forecast the next H values of every node of a graph from its values and edges so far.

    The forecast is that of a base, fitted first, plus a correction by a recurrent cell over the last steps. The last
    steps given to ``fit`` are used for validation: they choose lags and penalty of the autoregression and the epoch of
    the network; epoch 0, no correction, is chosen if no epoch is better than the base alone. With ``refit``, base and
    network are then fitted again on all steps, with the chosen values. Values are standardised for each node over the
    steps of the fit.

    The settings are those of :class:`gcaps.config.sequences.SequenceConfig`.
    """

    settings: ClassVar[type[SequenceConfig]] = SequenceConfig

    def __init__(
        self,
        convolution: str = "capsule",
        cell: str = "gru",
        hidden: int = 8,
        capsule_size: int = 2,
        degree: int = 2,
        filter: str = "mean",  # noqa: A002 (the paper's word)
        window: int = 8,
        horizons: int = 4,
        embedding: int = 2,
        context: bool = False,
        base: str = "autoregression",
        dropout: float = 0.2,
        refit: bool = True,
        epochs: int = 150,
        patience: int | None = 20,
        lr: float = 0.005,
        schedule: str = "step",
        decay: float = 1.0,
        decay_every: int = 100,
        weight_decay: float = 0.001,
        threads: int = 1,
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self._store(locals())

    def fit(
        self,
        sequence: GraphSequence,
        y: None = None,
        *,
        validation: int | float = 0.25,
        checkpoint: str | Path | None = None,
        on_epoch: Callable[[Epoch], None] | None = None,
    ) -> CapsuleForecaster:
        """Fit on the first steps of a sequence, and validate on the last ones.

        Args:
            sequence: the known steps, without those to be forecast later (see :meth:`GraphSequence.until`).
            y: ignored.
            validation: number of last steps, or their share.
            checkpoint: folder for the state of the training, from which an interrupted one is resumed.
            on_epoch: called after each epoch.
        """
        config = self.config
        T = len(sequence)
        held = validation if isinstance(validation, int) else round(validation * T)
        stop = T - held
        if held < 1 or stop < config.horizons + 4:
            raise DataError(f"{T} steps, {held} of them for validation, are too few to forecast {config.horizons}")
        self.n_nodes_ = sequence.num_nodes
        with self._progress("fitting", config.epochs, on_epoch) as report:
            self._standardise(sequence, stop)
            choice, self.base_ = None, None
            if config.base == "autoregression":
                steps = np.arange(stop, T)
                self.base_, choice = choose_autoregression(self._values(sequence), stop, steps, config.horizons)
            folder = None if checkpoint is None else Path(checkpoint) / "choice"
            self.curves_, epoch = self._train(sequence, stop, config, folder, report)
            if config.refit:
                self._standardise(sequence, T)
                if choice is not None:
                    self.base_ = choice.fit(self._values(sequence), T, config.horizons)
                if epoch:
                    again = config.model_copy(update={"epochs": epoch, "patience": None})
                    folder = None if checkpoint is None else Path(checkpoint) / "refit"
                    self._train(sequence, T, again, folder, report)
        self.choice_, self.epoch_ = choice, epoch
        return self

    def predict(self, sequence: GraphSequence) -> Array:
        """Return forecasts [T, n, H] of steps t + 1, …, t + H made at step t; NaN for the first steps.

        A forecast made at step t depends on values and edges up to t only.
        """
        check_is_fitted(self)
        if sequence.num_nodes != self.n_nodes_:
            raise DataError(f"{sequence.name}: has {sequence.num_nodes} nodes; the forecaster knows {self.n_nodes_}")
        first = self._first_origin
        out = self._base_forecasts(self._values(sequence))
        out[:first] = np.nan
        source = self._source(sequence)
        self.network_.eval()
        for origins in consecutive(np.arange(first, len(sequence))):
            with torch.no_grad():
                found = self.network_(*source.take(origins)).double()
            out[origins] += found.view(len(origins), self.n_nodes_, -1).numpy()
        forecasts: Array = out * self.scale_[:, None] + self.mean_[:, None]
        return forecasts

    def score(self, sequence: GraphSequence, y: None = None, *, steps: int | None = None) -> float:
        """Return the share of the variance around the means of the fitted steps that the forecasts explain (R²).

        Args:
            sequence: with the steps to be forecast at its end.
            y: ignored.
            steps: number of last steps that are targets; by default all that can be forecast.
        """
        forecasts = self.predict(sequence)
        H = forecasts.shape[2]
        first = self._first_origin + H if steps is None else len(sequence) - steps
        if not self._first_origin + H <= first < len(sequence):
            raise DataError(f"{sequence.name}: cannot forecast {steps} of {len(sequence)} steps")
        targets = np.arange(first, len(sequence))
        truth = self._values(sequence)[targets]
        made = (forecasts - self.mean_[:, None]) / self.scale_[:, None]
        errors = [made[targets - h, :, h - 1] - truth for h in range(1, H + 1)]
        return float(1 - np.square(errors).mean() / np.square(truth).mean())

    @property
    def num_parameters_(self) -> int:
        """Number of parameters of the network."""
        return sum(parameter.numel() for parameter in self.network_.parameters())

    @property
    def _first_origin(self) -> int:
        config = self.config
        return int(max(config.window, 1 if self.base_ is None else self.base_.lags)) - 1

    def _standardise(self, sequence: GraphSequence, stop: int) -> None:
        """Set means, standard deviations and the scale of edge weights from the steps before ``stop``."""
        spread = sequence.values[:stop].std(axis=0)
        self.mean_, self.scale_ = sequence.values[:stop].mean(axis=0), np.where(spread > 0, spread, 1.0)
        self.edge_scale_ = mean_weight(sequence.edges[:stop])

    def _values(self, sequence: GraphSequence) -> Array:
        values: Array = (sequence.values - self.mean_) / self.scale_
        return values

    def _base_forecasts(self, values: Array) -> Array:
        """[T, n, H] in standardised values."""
        config = self.config
        if self.base_ is not None:
            return self.base_.predict(values)
        last = np.repeat(values[:, :, None], config.horizons, axis=2)
        return last if config.base == "last" else np.zeros_like(last)

    def _source(self, sequence: GraphSequence) -> WindowSource:
        config = self.config
        name = "kipf" if config.convolution == "gcn" else config.filter
        return WindowSource(sequence, self._values(sequence), config.window, name, self.edge_scale_)

    def _network(self) -> ForecastNetwork:
        config = self.config
        columns = 1 + config.embedding + int(config.context)
        cell: GraphCapsuleGRU
        if config.convolution == "gcn":
            cell = (GCNGRU if config.cell == "gru" else GCNLSTM)(columns, config.hidden)
        else:
            kind = GraphCapsuleGRU if config.cell == "gru" else GraphCapsuleLSTM
            cell = kind(columns, config.hidden, config.capsule_size, config.degree, config.filter)
        return ForecastNetwork(cell, self.n_nodes_, config.embedding, config.horizons, config.dropout, config.context)

    def _train(
        self,
        sequence: GraphSequence,
        stop: int,
        config: SequenceConfig,
        checkpoint: Path | None,
        on_epoch: Callable[[Epoch], None] | None,
    ) -> tuple[Curves, int]:
        """Train a network on targets before ``stop``; choose the epoch on the others, if there are any."""
        values, T, H, first = self._values(sequence), len(sequence), config.horizons, self._first_origin
        residual = residuals(values, self._base_forecasts(values))
        is_training = (np.arange(T)[:, None] + np.arange(1, H + 1) < stop)[:, None, :]
        learned, held = np.where(is_training, residual, np.nan), np.where(is_training, np.nan, residual)
        train, validation = np.arange(first, stop - 1), np.arange(max(first, stop - H), T - 1)
        if not len(train):
            raise DataError(f"{sequence.name}: {stop} training steps are too few for a window of {first + 1}")
        source, seed = self._source(sequence), self._seed()

        def losses(rng: np.random.Generator) -> Iterator[Tensor]:
            for origins in batches(train, rng):
                yield masked_error(network(*source.take(origins)), learned[origins])

        def validate() -> Score:
            error = validation_error(network, source, validation, held)
            return Score(-error, error)

        with reproducible(seed, config.threads):
            network = self._network()
            self.network_ = network
            identity = {"parameters": {k: str(v) for k, v in config.model_dump().items()}, "seed": seed, "stop": stop}
            identity["data"] = array_digest(sequence.values)
            chooses = stop < T
            curves, epoch = fit_steps(
                StepRun(network, losses, config, seed),
                validate if chooses else None,
                patience=config.patience,
                identity=identity,
                checkpoint=checkpoint,
                on_epoch=on_epoch,
            )
            if chooses and -max(curves.validation) >= float(np.nanmean(np.square(held[validation]))):
                network.reset_head()
                epoch = 0
        return curves, epoch

    def state(self) -> State:
        """Return the fitted state as arrays and JSON values."""
        arrays = network_arrays(self.network_) | {"mean": self.mean_, "scale": self.scale_}
        if self.base_ is not None:
            arrays["base"] = self.base_.weight
        return arrays, {"n_nodes": self.n_nodes_, "edge_scale": self.edge_scale_}

    def restore(self, arrays: dict[str, Array], values: dict[str, Any]) -> None:
        """Set the fitted state from the values that :meth:`state` returned."""
        page = validated(_ForecasterPage, values, "the model is damaged", ModelError)
        config = self.config
        self.n_nodes_, self.edge_scale_ = page.n_nodes, page.edge_scale
        n, H = self.n_nodes_, config.horizons
        expected = {"mean", "scale"} | ({"base"} if config.base == "autoregression" else set())
        if not expected <= arrays.keys() or any(arrays[name].shape != (n,) for name in ("mean", "scale")):
            raise ModelError("the model is damaged (its means and scales are missing or of another shape)")
        self.mean_, self.scale_, self.base_ = arrays["mean"], arrays["scale"], None
        if "base" in expected:
            base = arrays["base"]
            if base.ndim != 3 or base.shape[:2] != (n, H) or base.shape[2] < 2:
                raise ModelError("the model is damaged (its autoregression is of another shape)")
            self.base_ = Autoregression(base)
        self.network_, self.choice_, self.curves_ = self._network(), None, Curves()
        load_network(self.network_, arrays)


class _ForecasterPage(Page):
    """JSON values of a fitted forecaster."""

    n_nodes: Count
    edge_scale: Number


def residuals(values: Array, forecasts: Array) -> Array:
    """[T, n, H] errors of the forecasts made at step t, for h steps later; NaN where the value is not known."""
    out = np.full(forecasts.shape, np.nan)
    for h in range(1, forecasts.shape[2] + 1):
        out[:-h, :, h - 1] = values[h:] - forecasts[:-h, :, h - 1]
    return out


def validation_error(network: nn.Module, source: WindowSource, origins: Ints, goal: Array) -> float:
    """Mean squared error of the corrections at some steps, where the goal [T, n, H] is known."""
    total, count = 0.0, 0
    for chosen in consecutive(origins):
        wanted = goal[chosen].reshape(-1, goal.shape[2])
        known = np.isfinite(wanted)
        found = network(*source.take(chosen)).double().numpy()
        total, count = total + float(np.square(found - wanted)[known].sum()), count + int(known.sum())
    return total / max(count, 1)
