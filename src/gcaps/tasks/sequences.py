"""Forecasts of the values on the nodes of a graph, by recurrent cells with graph capsule gates."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from gcaps.data.arrays import Array, Ints
from gcaps.data.sequence import Edges, GraphSequence
from gcaps.errors import ConfigError, DataError
from gcaps.nn.filters import FILTERS, Filter, edge_filter
from gcaps.nn.recurrent import GCNGRU, GCNLSTM, GraphCapsuleGRU, GraphCapsuleLSTM
from gcaps.tasks.autoregression import Autoregression, choose_autoregression

CELLS = {("capsule", "gru"), ("capsule", "lstm"), ("gcn", "gru"), ("gcn", "lstm")}
BASES = ("autoregression", "last", "none")
BATCH = 64
"""Windows of a batch."""


class ForecastNetwork(nn.Module):
    """A recurrent cell over the steps of a window, and a linear map of its last state to H corrections.

    Args:
        cell: the cell.
        num_nodes: n.
        embedding: columns of a learned vector of each node, part of the input of each step.
        horizons: H.
        dropout: of the state before the linear map.

    Shapes:
        - **input:** a window of values [W, m·n], m windows of n nodes, and a filter for each of the W steps.
        - **output:** [m·n, H], zeros before training.
    """

    def __init__(self, cell: GraphCapsuleGRU, num_nodes: int, embedding: int, horizons: int, dropout: float) -> None:
        super().__init__()
        self.cell, self.dropout = cell, nn.Dropout(dropout)
        self.embedding = nn.Parameter(0.1 * torch.randn(num_nodes, embedding))
        self.head = nn.Linear(cell.out_channels * cell.capsule_size, horizons)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, values: Tensor, filters: Sequence[Filter]) -> Tensor:
        """Corrections of the forecasts, [m·n, H]."""
        of_node = self.embedding.repeat(values.size(1) // self.embedding.size(0), 1)
        state: tuple[Tensor, ...] | None = None
        for row, M in zip(values, filters, strict=True):
            state = self.cell(torch.cat([row.unsqueeze(1), of_node], dim=1), M, state)
        assert state is not None
        out: Tensor = self.head(self.dropout(state[0].flatten(1)))
        return out


class Windows(NamedTuple):
    """What the network sees of several origins: values [W, m·n] and the filter of each step."""

    values: Tensor
    filters: list[Filter]


class _WindowSource:
    """Cut windows that end at given steps out of a sequence; filters of fixed edges are made once."""

    def __init__(self, sequence: GraphSequence, values: Array, window: int, filter_name: str, scale: float) -> None:
        self.sequence, self.values, self.window, self.filter, self.scale = sequence, values, window, filter_name, scale
        self._made: dict[tuple[int, ...], list[Filter]] = {}

    def take(self, origins: Ints) -> Windows:
        """Windows of steps origin − W + 1, …, origin."""
        steps = origins[None, :] - np.arange(self.window)[::-1, None]
        return Windows(torch.from_numpy(self.values[steps].reshape(self.window, -1)).float(), self._filters(steps))

    def _filters(self, steps: Ints) -> list[Filter]:
        fixed = len(self.sequence.edges) == 1
        key = (steps.shape[1],) if fixed else tuple(steps[-1].tolist())
        if key not in self._made:
            if not fixed and len(self._made) > BATCH:
                self._made.clear()
            rows = steps[:1] if fixed else steps
            self._made[key] = [self._filter(row) for row in rows] * (self.window if fixed else 1)
        return self._made[key]

    def _filter(self, row: Ints) -> Filter:
        """Filter of the graphs of several steps side by side."""
        n = self.sequence.num_nodes
        parts = [self.sequence.edges_at(int(step)) for step in row]
        index = np.concatenate([part.index + number * n for number, part in enumerate(parts)], axis=1)
        weight = None
        if parts[0].weight is not None:
            weight = torch.from_numpy(np.concatenate([part.weight for part in parts]) / self.scale).float()  # type: ignore[misc]
        return edge_filter(self.filter, torch.from_numpy(index), weight, torch.zeros(len(row) * n, 1))


class CapsuleForecaster(BaseEstimator):  # type: ignore[misc]
    """Forecast the next H values of every node of a graph from the values and edges so far.

    The forecast is that of a base, fitted first, plus a correction by a recurrent cell over the last steps. The network
    starts with corrections of zero and keeps the epoch of least error on the validation steps, so that a network that
    finds nothing leaves the base as it is. Values are standardised by the training steps of each node.

    Args:
        convolution: of the gates: ``"capsule"`` (:class:`gcaps.nn.GraphCapsuleGRU`) or ``"gcn"``, for comparison.
        cell: ``"gru"`` or ``"lstm"``.
        hidden: width h of the state.
        capsule_size: P.
        degree: K.
        filter: the filter matrix; GCN gates have theirs.
        window: W, steps that the cell sees.
        horizons: H.
        embedding: columns of the learned vector of each node.
        base: ``"autoregression"`` (of each node, pulled towards the regression that all nodes share; lags and pull
            chosen on the validation steps), ``"last"`` (the last value) or ``"none"`` (the mean).
        epochs: at most.
        patience: epochs without improvement on validation after which training ends.
        learning_rate: of Adam.
        weight_decay: of AdamW.
        dropout: of the state before the last map.
        ensemble_size: networks of different seeds whose corrections are averaged.
        random_state: seed.
    """

    def __init__(
        self,
        convolution: str = "capsule",
        cell: str = "gru",
        hidden: int = 8,
        capsule_size: int = 2,
        degree: int = 1,
        filter: str = "mean",  # noqa: A002 (the paper's word)
        window: int = 8,
        horizons: int = 4,
        embedding: int = 2,
        base: str = "autoregression",
        epochs: int = 100,
        patience: int = 20,
        learning_rate: float = 0.01,
        weight_decay: float = 0.01,
        dropout: float = 0.2,
        ensemble_size: int = 1,
        random_state: int = 0,
    ) -> None:
        self.convolution, self.cell, self.hidden, self.capsule_size = convolution, cell, hidden, capsule_size
        self.degree, self.filter, self.window, self.horizons = degree, filter, window, horizons
        self.embedding, self.base, self.epochs, self.patience = embedding, base, epochs, patience
        self.learning_rate, self.weight_decay, self.dropout = learning_rate, weight_decay, dropout
        self.ensemble_size, self.random_state = ensemble_size, random_state

    def fit(self, sequence: GraphSequence, y: None = None, *, validation: int | float = 0.25) -> CapsuleForecaster:
        """Fit on the first steps of a sequence; the last ones validate.

        Args:
            sequence: the past; what is to be forecast later must not be part of it (:meth:`GraphSequence.until`).
            y: ignored.
            validation: number of last steps, or their share, that choose base and epoch.
        """
        self._require_settings()
        T = len(sequence)
        held = validation if isinstance(validation, int) else round(validation * T)
        stop = T - held
        if held < 1 or stop < self.horizons + 4:
            raise DataError(f"{T} steps, {held} of them for validation, are too few to forecast {self.horizons}")
        train = sequence.values[:stop]
        spread = train.std(axis=0)
        self.mean_, self.scale_ = train.mean(axis=0), np.where(spread > 0, spread, 1.0)
        self.edge_scale_ = _mean_weight(sequence.edges[: stop if len(sequence.edges) > 1 else 1])
        self.n_nodes_ = sequence.num_nodes
        values = self._standardised(sequence)
        steps = np.arange(stop, T)
        self.base_, self.chosen_ = self._fit_base(values, stop, steps)
        self.networks_, self.curves_ = [], []
        for member in range(self.ensemble_size):
            torch.manual_seed(self.random_state * 1000 + member)
            network = self._network()
            self.curves_.append(self._train(network, sequence, values, stop, member))
            self.networks_.append(network)
        return self

    def predict(self, sequence: GraphSequence) -> Array:
        """[T, n, H] forecasts of steps t + 1, …, t + H made at step t; NaN where fewer steps than needed have passed.

        A forecast made at step t is a function of values and edges up to t.
        """
        check_is_fitted(self, "networks_")
        if sequence.num_nodes != self.n_nodes_:
            raise DataError(f"{sequence.name}: has {sequence.num_nodes} nodes; the forecaster was fitted on {self.n_nodes_}")
        values = self._standardised(sequence)
        out = self._base_forecasts(values)
        origins = np.arange(self._first_origin, len(sequence))
        source = self._source(sequence, values)
        for chosen in np.split(origins, np.arange(BATCH, len(origins), BATCH)):
            if len(chosen):
                out[chosen] += self._correction(source, chosen)
        out[: self._first_origin] = np.nan
        forecasts: Array = out * self.scale_[:, None] + self.mean_[:, None]
        return forecasts

    def score(self, sequence: GraphSequence, y: None = None, *, steps: int | None = None) -> float:
        """Share of the variance around the training means that the forecasts of the last steps explain (R²).

        Args:
            sequence: with the steps to be forecast at its end.
            y: ignored.
            steps: number of last steps that are targets; by default, all that can be.
        """
        forecasts = self.predict(sequence)
        first = self._first_origin + self.horizons if steps is None else len(sequence) - steps
        if first - self.horizons < self._first_origin or first >= len(sequence):
            raise DataError(f"{sequence.name}: cannot forecast {steps} of {len(sequence)} steps")
        targets = np.arange(first, len(sequence))
        truth = (sequence.values[targets] - self.mean_) / self.scale_
        found = [
            (forecasts[targets - h, :, h - 1] - self.mean_) / self.scale_ - truth for h in range(1, self.horizons + 1)
        ]
        return float(1 - np.square(found).mean() / np.square(truth).mean())

    @property
    def num_parameters_(self) -> int:
        """Learned numbers of one network."""
        return sum(parameter.numel() for parameter in self.networks_[0].parameters())

    @property
    def _first_origin(self) -> int:
        lags = self.base_.lags if isinstance(self.base_, Autoregression) else 1
        return max(self.window, lags) - 1

    def _require_settings(self) -> None:
        if (self.convolution, self.cell) not in CELLS:
            raise ConfigError(f"no cell {self.cell!r} with gates {self.convolution!r}; choose gru or lstm, capsule or gcn")
        if self.base not in BASES:
            raise ConfigError(f"unknown base {self.base!r}; choose one of {', '.join(BASES)}")
        if self.filter not in FILTERS:
            raise ConfigError(f"unknown filter {self.filter!r}; choose one of {', '.join(FILTERS)}")
        for name in ("hidden", "capsule_size", "window", "horizons", "ensemble_size", "patience"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; at least 1")
        if self.epochs < 0 or self.embedding < 0 or not 0 <= self.dropout < 1:
            raise ConfigError("epochs and embedding are at least 0, dropout at least 0 and below 1")

    def _network(self) -> ForecastNetwork:
        columns = 1 + self.embedding
        cell: GraphCapsuleGRU
        if self.convolution == "gcn":
            cell = (GCNGRU if self.cell == "gru" else GCNLSTM)(columns, self.hidden)
        else:
            kind = GraphCapsuleGRU if self.cell == "gru" else GraphCapsuleLSTM
            cell = kind(columns, self.hidden, self.capsule_size, self.degree, self.filter)
        return ForecastNetwork(cell, self.n_nodes_, self.embedding, self.horizons, self.dropout)

    def _standardised(self, sequence: GraphSequence) -> Array:
        values: Array = (sequence.values - self.mean_) / self.scale_
        return values

    def _source(self, sequence: GraphSequence, values: Array) -> _WindowSource:
        name = "kipf" if self.convolution == "gcn" else self.filter
        return _WindowSource(sequence, values, self.window, name, self.edge_scale_)

    def _fit_base(self, values: Array, stop: int, validation: Ints) -> tuple[Autoregression | None, dict[str, float]]:
        if self.base != "autoregression":
            return None, {}
        return choose_autoregression(values, stop, validation, self.horizons, share=True)

    def _base_forecasts(self, values: Array) -> Array:
        """[T, n, H] in standardised values."""
        if self.base_ is not None:
            return self.base_.predict(values)
        last = np.repeat(values[:, :, None], self.horizons, axis=2)
        return last if self.base == "last" else np.zeros_like(last)

    def _correction(self, source: _WindowSource, origins: Ints) -> Array:
        """[origins, n, H] mean over the networks."""
        windows = source.take(origins)
        with torch.no_grad():
            found = torch.stack([network.eval()(*windows) for network in self.networks_]).double().mean(dim=0)
        out: Array = found.view(len(origins), -1, self.horizons).numpy()
        return out

    def _train(
        self, network: ForecastNetwork, sequence: GraphSequence, values: Array, stop: int, member: int
    ) -> dict[str, list[float]]:
        """Train until the validation error has not fallen for some epochs, and keep the best epoch."""
        T, H, first = len(sequence), self.horizons, self._first_origin
        base = self._base_forecasts(values)
        ahead = np.full((T, self.n_nodes_, H), np.nan)
        for h in range(1, H + 1):
            ahead[: T - h, :, h - 1] = values[h:]
        residual = ahead - base
        horizon = np.arange(1, H + 1)
        steps = np.arange(T)[:, None] + horizon
        learned = np.where((steps < stop)[:, None, :], residual, np.nan)
        held = np.where((steps >= stop)[:, None, :], residual, np.nan)
        source, rng = self._source(sequence, values), np.random.default_rng((self.random_state, member))
        train, validation = np.arange(first, stop - 1), np.arange(max(first, stop - H), T - 1)
        if not len(train):
            raise DataError(f"{sequence.name}: {stop} training steps are too few for a window of {self.window}")
        optimizer = torch.optim.AdamW(network.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay)
        curves: dict[str, list[float]] = {"loss": [], "validation": [self._error(network, source, validation, held)]}
        best, kept = curves["validation"][0], copy.deepcopy(network.state_dict())
        since = 0
        for _ in range(self.epochs):
            network.train()
            losses = []
            for origins in _batches(train, rng):
                loss = _masked_error(network(*source.take(origins)), torch.from_numpy(learned[origins]).float())
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                optimizer.step()
                losses.append(float(loss.detach()))
            curves["loss"].append(float(np.mean(losses)))
            error = self._error(network, source, validation, held)
            curves["validation"].append(error)
            since += 1
            if error < best:
                best, kept, since = error, copy.deepcopy(network.state_dict()), 0
            if since >= self.patience:
                break
        network.load_state_dict(kept)
        return curves

    def _error(self, network: ForecastNetwork, source: _WindowSource, origins: Ints, held: Array) -> float:
        """Mean squared error over the validation targets."""
        total, count = 0.0, 0
        network.eval()
        for chosen in np.split(origins, np.arange(BATCH, len(origins), BATCH)):
            goal = held[chosen].reshape(-1, self.horizons)
            with torch.no_grad():
                found = network(*source.take(chosen)).double().numpy()
            squares = np.square(found - goal)[np.isfinite(goal)]
            total, count = total + float(squares.sum()), count + squares.size
        return total / count


def _batches(origins: Ints, rng: np.random.Generator) -> Iterator[Ints]:
    """Origins in ascending order where one batch holds them, else in random order."""
    if len(origins) <= BATCH:
        yield origins
        return
    order = rng.permutation(origins)
    for first in range(0, len(order), BATCH):
        yield np.sort(order[first : first + BATCH])


def _masked_error(found: Tensor, goal: Tensor) -> Tensor:
    """Mean squared difference where the goal [m, n, H] is known."""
    goal = goal.view(-1, goal.size(2))
    known = torch.isfinite(goal)
    loss: Tensor = (found - torch.where(known, goal, found.detach())).square().sum() / known.sum()
    return loss


def _mean_weight(edges: Sequence[Edges]) -> float:
    """Mean weight of edges between different nodes; 1 where there are none."""
    weights: list[Any] = [
        weight[index[0] != index[1]] for index, weight in edges if weight is not None
    ]
    together = np.concatenate(weights) if weights else np.zeros(0)
    mean = float(together.mean()) if len(together) else 1.0
    return mean if mean > 0 else 1.0
