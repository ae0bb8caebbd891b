"""Calibration and hardness."""

from gcaps.evaluation.calibration import Calibration as Calibration
from gcaps.evaluation.calibration import calibration as calibration
from gcaps.evaluation.calibration import reliability_curve as reliability_curve
from gcaps.evaluation.hardness import Hard as Hard
from gcaps.evaluation.hardness import hardest_graphs as hardest_graphs
