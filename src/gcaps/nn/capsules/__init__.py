"""Capsule functions by name: what a capsule keeps of its neighborhood, one a file."""

from gcaps.nn.capsules.central import Central, central_moments
from gcaps.nn.capsules.density import Density
from gcaps.nn.capsules.function import CapsuleFunction
from gcaps.nn.capsules.moments import Moments, bounded, moments
from gcaps.nn.capsules.polynomial import Polynomial, closed_symmetric_means, symmetric_means
from gcaps.nn.capsules.routing import Routing

CAPSULES: dict[str, type[CapsuleFunction]] = {
    "moments": Moments,
    "central": Central,
    "polynomial": Polynomial,
    "density": Density,
    "routing": Routing,
}
"""Every capsule function that a layer takes."""

__all__ = [
    "CAPSULES",
    "CapsuleFunction",
    "Central",
    "Density",
    "Moments",
    "Polynomial",
    "Routing",
    "bounded",
    "central_moments",
    "closed_symmetric_means",
    "moments",
    "symmetric_means",
]
