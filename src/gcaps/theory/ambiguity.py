"""Neighborhoods that a number of moments cannot tell apart: why each condition of the decoders is needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

UNKNOWN_SIZE = ((-np.sqrt(2 / 3), np.sqrt(2 / 3)), (-1.0, 0.0, 1.0))
"""Two and three values with the same first three moments 0, ⅔, 0: without the number of neighbors, Figure 1's three
moments do not determine "no more than two" of them.

There is no other such pair, up to shift and scale. Two values have skewness 0; three values with skewness 0 are
μ − t, μ, μ + t; equal variances make the two μ ± t √⅔. The fourth moments then differ (t⁴ 4/9 and t⁴ 2/3 about the
mean), so four moments do determine up to three values, except how often a constant neighborhood repeats its value.
"""

UNKNOWN_NODE = ((1.0, (2.0, 3.0)), (2.0, (1.0, 3.0)))
"""(x_0, neighbors) twice, the same closed neighborhood {1, 2, 3}: no symmetric function tells which value is the
node's."""

WEIGHTED = ((3.0, 0.0), (-1.0, 2.0))
"""(x_0, x_1) twice, one neighbor by an edge of weight 2: x_0 + 2 x_1 = 3 and x_0² + 2 x_1² = 9 both times. Two values
with two weighted moments in common, though the weights are known."""


def equal_moments(m: int, first: float = 0.5, second: float = 0.8) -> tuple[Floats, Floats]:
    """Two multisets of m values each whose first m − 1 moments are equal and whose m-th are not.

    cos((θ + 2πk)/m), k = 0..m−1, are the roots of T_m(t) = cos θ, T_m the Chebyshev polynomial. θ stands in the
    constant coefficient alone, so e_1, …, e_{m−1} do not depend on it, and by Newton's identities neither do the first
    m − 1 moments. (Any polynomial with m different real roots serves: shift its constant coefficient a little. That is
    why m − 1 moments determine *no* neighborhood of m different values. And no m − 1 continuous statistics of another
    kind can do it, since m-dimensional space has no continuous injection into one of m − 1 dimensions.)

    With whole numbers the question is Prouhet, Tarry and Escott's: {0, 4, 5} and {1, 2, 6} for m = 3.

    Args:
        m: how many values.
        first: θ/π of the first multiset, between 0 and 1.
        second: θ/π of the second.

    Returns:
        Two arrays [m] in ascending order.
    """
    if m < 1 or not (0 <= first <= 1 and 0 <= second <= 1) or first == second:
        raise ValueError("m starts at 1, and the two angles are different numbers between 0 and 1")
    turns = 2 * np.arange(m)
    one, other = (np.sort(np.cos(np.pi * (angle + turns) / m)) for angle in (first, second))
    return one, other
