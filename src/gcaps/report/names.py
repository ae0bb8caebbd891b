"""What methods are called in a report, which family they belong to, and whom others published numbers for."""

from __future__ import annotations

from typing import NamedTuple


class MethodName(NamedTuple):
    """A method as readers know it."""

    short: str
    long: str
    family: str
    """A key of :data:`FAMILIES`."""
    published: tuple[str, ...] = ()
    """Its names in :mod:`gcaps.evaluation.published`."""


FAMILIES = {
    "ours": ("ours", "blue", "circle"),
    "network": ("networks", "purple", "square"),
    "kernel": ("kernels", "orange", "diamond"),
    "features": ("features", "green", "triangle"),
    "baseline": ("baseline", "muted", "cross"),
    "other": ("other", "ink", "circle"),
}
"""For each family its name in words, the colour and the mark that stand for it in pictures."""

_KNOWN = {
    "gcaps": MethodName("GCAPS-CNN", "graph capsules", "ours", ("GCAPS-CNN",)),
    "dcnn": MethodName("DCNN", "diffusion network", "network", ("DCNN",)),
    "pscn": MethodName("PSCN", "receptive fields", "network", ("PSCN",)),
    "ecc": MethodName("ECC", "edge-conditioned filters", "network", ("ECC",)),
    "dgcnn": MethodName("DGCNN", "sort pooling", "network", ("DGCNN",)),
    "gin": MethodName("GIN", "isomorphism network", "network", ("GIN",)),
    "set": MethodName("Set", "structure-blind", "baseline", ("structure-blind-baseline",)),
    "rw": MethodName("RW", "random walks", "kernel", ("RW",)),
    "sp": MethodName("SP", "shortest paths", "kernel", ("SP",)),
    "gk": MethodName("GK", "graphlets", "kernel", ("GK",)),
    "wl": MethodName("WL", "Weisfeiler–Lehman", "kernel", ("WL",)),
    "wloa": MethodName("WL-OA", "WL optimal assignment", "kernel"),
    "dgk": MethodName("DGK", "deep graph kernel", "kernel", ("DGK",)),
    "mlg": MethodName("MLG", "multiscale Laplacian", "kernel", ("MLG",)),
    "fgsd": MethodName("FGSD", "distances and a forest", "features"),
}


def method_name(method: str) -> MethodName:
    """How a method is called; one that is not known here by its own name."""
    return _KNOWN.get(method) or MethodName(method, "", "other")
