"""From a GraphSet to block-diagonal batches, by array indexing alone."""

from gcaps.batching.ahead import ahead
from gcaps.batching.batch import Batch, BatchSource, Extras
from gcaps.batching.sampler import shuffled, within_budget

__all__ = ["Batch", "BatchSource", "Extras", "ahead", "shuffled", "within_budget"]
