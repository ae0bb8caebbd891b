"""Block-diagonal batches cut out of a GraphSet by array indexing."""

from gcaps.batching.batch import Batch, BatchSource, Extras, node_budget_batches, shuffled
from gcaps.batching.prefetch import prefetch

__all__ = ["Batch", "BatchSource", "Extras", "node_budget_batches", "prefetch", "shuffled"]
