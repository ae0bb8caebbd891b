"""Base class of the models of :mod:`gcaps.tasks`: parameters, settings, progress bar and saving."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import torch
from sklearn.utils.validation import check_is_fitted
from torch import nn

from gcaps.config.tasks import StepsConfig
from gcaps.data.arrays import Array
from gcaps.errors import ModelError
from gcaps.estimators.auto import usable_device
from gcaps.estimators.fitting import Fitting
from gcaps.training.selection import Curves

State = tuple[dict[str, Array], dict[str, Any]]
"""Arrays and JSON values of a fitted model."""
NETWORK = "network."
"""Prefix of the names of a network's arrays in a saved model."""
C = TypeVar("C", bound=StepsConfig)


class TaskModel(Fitting, Generic[C]):
    """Base class of the models of :mod:`gcaps.tasks`.

    A subclass spells out the fields of its settings and ``random_state`` in its constructor, calls :meth:`_store` with
    ``locals()``, and implements ``fit``, :meth:`state` and :meth:`restore`.

    Attributes:
        curves_: loss of each epoch, and its score on validation data.
        epoch_: the epoch that the model comes from.
    """

    settings: ClassVar[type[Any]]
    """Class C of the settings in :mod:`gcaps.config`."""
    counted: ClassVar[str] = "steps"

    curves_: Curves
    epoch_: int

    @property
    def config(self) -> C:
        """The settings, validated."""
        found: C = self.settings.parse({name: getattr(self, name) for name in self.settings.model_fields})
        return found

    @abstractmethod
    def state(self) -> State:
        """Return the fitted state as arrays and JSON values, for :mod:`gcaps.persistence`."""

    @abstractmethod
    def restore(self, arrays: dict[str, Array], values: dict[str, Any]) -> None:
        """Set the fitted state from the values that :meth:`state` returned."""

    def save(self, path: str | Path) -> None:
        """Write the fitted model to the folder ``path`` (safetensors and JSON); ``gcaps.load_model`` reads it."""
        from gcaps import persistence

        check_is_fitted(self)
        persistence.save(self, path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "epoch_")


def device_of(name: str) -> torch.device:
    """Return the device of a setting ``device``."""
    return torch.device(usable_device("cuda") if name == "auto" else name)


def network_arrays(network: nn.Module) -> dict[str, Array]:
    """Return a network's weights and statistics under the names of :meth:`TaskModel.state`."""
    return {NETWORK + name: tensor.detach().cpu().numpy() for name, tensor in network.state_dict().items()}


def load_network(network: nn.Module, arrays: dict[str, Array]) -> None:
    """Load what :func:`network_arrays` returned.

    Raises:
        ModelError: names or shapes are those of another network.
    """
    tensors = {n.removeprefix(NETWORK): torch.from_numpy(a.copy()) for n, a in arrays.items() if n.startswith(NETWORK)}
    try:
        network.load_state_dict(tensors)
    except RuntimeError as error:
        raise ModelError("its arrays are not those of a network with these settings") from error
    network.eval()
