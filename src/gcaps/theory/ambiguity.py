"""Pairs of neighborhoods with equal moments, which show that each condition of the decoders is needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

UNKNOWN_SIZE = ((-np.sqrt(2 / 3), np.sqrt(2 / 3)), (-1.0, 0.0, 1.0))
"""Two and three values with the same first three moments 0, ⅔, 0: if the number of neighbors is unknown, the three
moments of Figure 1 do not determine up to two neighbors.

There is no other such pair, up to shift and scale. Two values have skewness 0; three values with skewness 0 are
μ − t, μ, μ + t; with equal variances the two are μ ± t √⅔. Their fourth moments differ (t⁴ 4/9 and t⁴ 2/3 about the
mean), so four moments determine up to three values, except for the size of a constant neighborhood.
"""

UNKNOWN_NODE = ((1.0, (2.0, 3.0)), (2.0, (1.0, 3.0)))
"""Two pairs (x_0, neighbors) with the same closed neighborhood {1, 2, 3}: no symmetric function tells which of them
belongs to the node."""

WEIGHTED = ((3.0, 0.0), (-1.0, 2.0))
"""Two pairs (x_0, x_1) of a node and its only neighbor, with an edge of weight 2: x_0 + 2 x_1 = 3 and x_0² + 2 x_1² = 9
for both. The pairs have two weighted moments in common, though the weights are known."""


def equal_moments(m: int, first: float = 0.5, second: float = 0.8) -> tuple[Floats, Floats]:
    """Two multisets of m values whose first m − 1 moments are equal and whose m-th moments differ.

    cos((θ + 2πk)/m), k = 0..m−1, are the roots of T_m(t) = cos θ, where T_m is the Chebyshev polynomial. Only the
    constant coefficient depends on θ, so e_1, …, e_{m−1} do not, and by Newton's identities neither do the first m − 1
    moments. (The same works for any polynomial with m different real roots by changing its constant coefficient a
    little. Hence m − 1 moments determine *no* neighborhood of m different values. Nor can m − 1 continuous statistics
    of any other kind, since there is no continuous injection from m-dimensional space into m − 1 dimensions.)

    For integers this is the Prouhet–Tarry–Escott problem: {0, 4, 5} and {1, 2, 6} for m = 3.

    Args:
        m: number of values.
        first: θ/π of the first multiset, between 0 and 1.
        second: θ/π of the second.

    Returns:
        Two arrays [m] in ascending order.
    """
    if m < 1 or not (0 <= first <= 1 and 0 <= second <= 1) or first == second:
        raise ValueError("m must be at least 1, and the two angles must be different numbers between 0 and 1")
    turns = 2 * np.arange(m)
    one, other = (np.sort(np.cos(np.pi * (angle + turns) / m)) for angle in (first, second))
    return one, other
