"""Training: the loop, the rule that picks the epoch, and the classifier that comes out."""

from gcaps.training.fit import Curves, fit
from gcaps.training.fitted import Fitted
from gcaps.training.loop import Epoch, reproducible, train
from gcaps.training.progress import training_bar

__all__ = ["Curves", "Epoch", "Fitted", "fit", "reproducible", "train", "training_bar"]
