"""From a GraphSet to block-diagonal batches, by array indexing alone."""

from gcaps.batching.batch import Batch, BatchSource
from gcaps.batching.sampler import shuffled, within_budget

__all__ = ["Batch", "BatchSource", "shuffled", "within_budget"]
