"""Training: the loop, the rule that picks the epoch, and the classifier that comes out."""

from gcaps.training.fit import Curves, fit
from gcaps.training.fitted import Fitted
from gcaps.training.loop import Epoch, TrainingRun, reproducible, train
from gcaps.training.progress import training_bar

__all__ = ["Curves", "Epoch", "Fitted", "TrainingRun", "fit", "reproducible", "train", "training_bar"]
