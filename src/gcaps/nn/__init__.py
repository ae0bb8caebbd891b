"""Layers: filters, capsule functions, the graph capsule convolution and permutation-invariant readouts."""

from gcaps.nn.capsules import CAPSULES, CapsuleFunction, bounded, central_moments, moments, symmetric_means
from gcaps.nn.conv import GraphCapsuleConv, flatten_capsules
from gcaps.nn.filters import FILTERS, Filter, batch_filter, edge_filter
from gcaps.nn.readout import MeanCovariance, segment_covariance, segment_mean, signed_root, upper_triangle
from gcaps.nn.sortpool import MaxSortPool, max_sort_pool
from gcaps.nn.spectral import filter_polynomial

__all__ = [
    "CAPSULES",
    "FILTERS",
    "CapsuleFunction",
    "Filter",
    "GraphCapsuleConv",
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
