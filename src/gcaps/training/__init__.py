"""Training of networks: the loop, the choice of the epoch, checkpoints and several processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcaps.lazy import lazy_names

if TYPE_CHECKING:
    from gcaps.training.fit import Curves as Curves
    from gcaps.training.fit import TrainingData as TrainingData
    from gcaps.training.fit import fit_network as fit_network
    from gcaps.training.fitted import FittedNetwork as FittedNetwork
    from gcaps.training.loop import Epoch as Epoch
    from gcaps.training.loop import TrainingRun as TrainingRun
    from gcaps.training.loop import reproducible as reproducible
    from gcaps.training.loop import train as train
    from gcaps.training.progress import training_bar as training_bar

_HOMES = {
    "Curves": "fit",
    "Epoch": "loop",
    "FittedNetwork": "fitted",
    "TrainingData": "fit",
    "TrainingRun": "loop",
    "fit_network": "fit",
    "reproducible": "loop",
    "train": "loop",
    "training_bar": "progress",
}

__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names("gcaps.training", _HOMES)
