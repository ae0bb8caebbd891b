"""Filters, capsule functions, the graph capsule convolution and permutation-invariant readouts.

Each is a pure function and a thin module over it. :mod:`gcaps.nn.cpu` holds compiled versions of the same formulas,
which are used for tensors in CPU memory. Code under ``torch.compiler.is_compiling()`` is what torch.compile and
torch.export record: it does not depend on the values of a tensor, so that one program serves graphs of every size, and
leaves the backward pass to autograd.
"""

from gcaps.nn.capsules import CAPSULES, CapsuleFunction, bounded, central_moments, moments
from gcaps.nn.conv import GraphCapsuleConv, flatten_capsules
from gcaps.nn.dense import DenseGraphCapsuleConv
from gcaps.nn.filters import FILTERS, Filter, batch_filter, edge_filter
from gcaps.nn.pooling import MaxSortPool, max_sort_pool
from gcaps.nn.readout import MeanCovariance, segment_covariance, segment_mean, signed_root, upper_triangle
from gcaps.nn.recurrent import GraphCapsuleGRU, GraphCapsuleLSTM
from gcaps.nn.spectral import filter_polynomial
from gcaps.nn.symmetric_polynomials import symmetric_means

__all__ = [
    "CAPSULES",
    "FILTERS",
    "CapsuleFunction",
    "DenseGraphCapsuleConv",
    "Filter",
    "GraphCapsuleConv",
    "GraphCapsuleGRU",
    "GraphCapsuleLSTM",
    "MaxSortPool",
    "MeanCovariance",
    "batch_filter",
    "bounded",
    "central_moments",
    "edge_filter",
    "filter_polynomial",
    "flatten_capsules",
    "max_sort_pool",
    "moments",
    "segment_covariance",
    "segment_mean",
    "signed_root",
    "symmetric_means",
    "upper_triangle",
]
