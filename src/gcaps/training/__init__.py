"""Training of networks: the loop, the choice of the epoch, checkpoints and several processes."""

from gcaps.training.fit import Curves, TrainingData, fit_network
from gcaps.training.fitted import FittedNetwork
from gcaps.training.loop import Epoch, TrainingRun, reproducible, train
from gcaps.training.progress import training_bar

__all__ = [
    "Curves",
    "Epoch",
    "FittedNetwork",
    "TrainingData",
    "TrainingRun",
    "fit_network",
    "reproducible",
    "train",
    "training_bar",
]
