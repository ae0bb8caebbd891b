"""The paper's claims as programs: decoding of capsules, receptive fields, and comparability of readouts."""

from gcaps.theory.ambiguity import UNKNOWN_NODE, UNKNOWN_SIZE, WEIGHTED, equal_moments
from gcaps.theory.decoders import (
    neighborhood_from_central,
    neighborhood_from_moments,
    neighborhood_from_polynomial,
    neighbors_from_moments,
)
from gcaps.theory.isomorphism import (
    FeatureTest,
    Reading,
    SubgraphPair,
    example_pair,
    proposition1,
    proposition2,
    random_pair,
    readings,
    subgraph_feature_test,
)
from gcaps.theory.receptive_field import hops, input_influence, receptive_field
from gcaps.theory.symmetry import equivariance_error, invariance_error

__all__ = [
    "UNKNOWN_NODE",
    "UNKNOWN_SIZE",
    "WEIGHTED",
    "FeatureTest",
    "Reading",
    "SubgraphPair",
    "equal_moments",
    "equivariance_error",
    "example_pair",
    "hops",
    "input_influence",
    "invariance_error",
    "neighborhood_from_central",
    "neighborhood_from_moments",
    "neighborhood_from_polynomial",
    "neighbors_from_moments",
    "proposition1",
    "proposition2",
    "random_pair",
    "readings",
    "receptive_field",
    "subgraph_feature_test",
]
