"""Ranks and tests."""

from gcaps.evaluation.ranks import Ranks as Ranks
from gcaps.evaluation.ranks import rank_methods as rank_methods
from gcaps.evaluation.significance import PairedTest as PairedTest
from gcaps.evaluation.significance import all_pairs as all_pairs
