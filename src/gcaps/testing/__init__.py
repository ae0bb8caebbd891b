"""Public assertions for whoever writes a layer, a feature or a model for graphs: invariance, batches, hostile input."""

from gcaps.testing.assertions import assert_batch_equals_singles, assert_permutation_invariant
from gcaps.testing.graphs import hostile_graphs, permute_nodes

__all__ = ["assert_batch_equals_singles", "assert_permutation_invariant", "hostile_graphs", "permute_nodes"]
