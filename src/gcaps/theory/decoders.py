"""Decoders: from the instantiation parameters of a capsule back to the values of its neighborhood.

The paper judges a capsule by whether the neighborhood can be decoded from it (section 3.1). What holds exactly, for a
closed neighborhood N(i) ∪ {i} of m values, unit edge weights and m known:

**m moments are enough.** Σ x, Σ x², …, Σ x^m give e_1, …, e_m by Newton's identities

    j e_j = Σ_{i=1..j} (−1)^(i−1) e_{j−i} Σ x^i,

these are (up to sign) the coefficients of Π (t − x_k), and a polynomial has one multiset of roots. So m moments, or all
m coefficients of Eq. 6, determine the values up to order.

**m − 1 moments are not**: they determine no neighborhood of m different values, for any m; nor would any other m − 1
continuous statistics do for all neighborhoods. See :mod:`gcaps.theory.ambiguity`.

**Figure 1's caption**, "when a node has no more than two neighbors then it is possible to recover back the input node
neighbors values from the very first three statistical moments", is therefore right under conditions it does not state:

- The number of neighbors is known. Moments are means, and means forget how many values there were: the three moments of
  {−√⅔, √⅔} (one neighbor) are those of {−1, 0, 1} (two). A fourth moment tells these apart.
- Edges have weight one. Weighted means of m values may need more than m moments, though the weights are known.
- What comes back is {x_0, x_1, x_2} up to order: not which of the three is the node itself. Where x_0 is known as well
  (a layer reads it through W_p0) two moments give two neighbors already, and three moments give *three*: more than the
  caption claims, and just the node that the figure draws.
- Mean, variance and skewness, as in the figure, say the same as the three raw moments. Where the variance is 0 the
  skewness is undefined, but then the mean alone says everything.

**In numbers.** Everything is float64. Roots are ill-conditioned in coefficients. Normally distributed values come back,
in the median, to 1e-15 for m = 3; for m = 16 to 1e-11 from E and to 1e-7 from moments, whose way leads over Newton's
identities. A value that stands k times comes back to about ε^(1/k). Values that are close together compared with their
distance from 0 lose digits fast (around 10 with spread 1, eight raw moments leave four digits): not in the decoder but
in the moments. Central moments do not have that fault, and :func:`neighborhood_from_central` keeps clear of it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import comb

from gcaps.nn.capsules import FLAT, TINY

Floats = NDArray[np.float64]


def neighborhood_from_polynomial(E: ArrayLike, m: int) -> Floats:
    """The m values whose normalised elementary symmetric polynomials E_j = e_j / C(m, j) are given, in ascending order.

    The roots of Π (t − x_k) = Σ_j (−1)^j C(m, j) E_j t^(m−j), as eigenvalues of its companion matrix; where rounding
    has made a pair of roots complex, their real part.

    Args:
        E: [P, …] with P ≥ m, what the capsule function ``polynomial`` gives with ``capsule_size`` P; beyond m it is 0.
        m: how many values: the node and its neighbors.

    Returns:
        [m, …].
    """
    E = _first(E, m, "symmetric means")
    order = np.arange(1, m + 1)
    coefficients = np.moveaxis(E, 0, -1) * (-1.0) ** order * comb(m, order)
    companion = np.zeros((*coefficients.shape, m))
    companion[..., 0, :] = -coefficients
    companion[..., order[1:] - 1, order[1:] - 2] = 1
    roots = np.linalg.eigvals(companion).real
    return np.moveaxis(np.sort(roots, axis=-1), -1, 0)


def neighborhood_from_moments(moments: ArrayLike, m: int) -> Floats:
    """The m values with these means of x, x², …, x^m (Eq. 4 with unit weights), in ascending order.

    Newton's identities, then :func:`neighborhood_from_polynomial`.

    Args:
        moments: [P, …] with P ≥ m.
        m: how many values.

    Returns:
        [m, …].
    """
    moments = _first(moments, m, "moments")
    e = [np.ones(moments.shape[1:])]
    for j in range(1, m + 1):
        terms = [(-1) ** (i - 1) * e[j - i] * m * moments[i - 1] for i in range(1, j + 1)]
        e.append(np.sum(terms, axis=0) / j)
    return neighborhood_from_polynomial(np.stack([e[j] / comb(m, j) for j in range(1, m + 1)]), m)


def neighborhood_from_central(central: ArrayLike, m: int) -> Floats:
    """The m values with this mean, variance, skewness, … (Figure 1), in ascending order.

    Args:
        central: [P, …] with P ≥ m, what :func:`gcaps.nn.central_moments` gives for unit weights; its guard against a
            variance of 0 is undone, since mean and variance say what it was.
        m: how many values.

    Returns:
        [m, …].
    """
    central = _first(central, m, "central moments")
    if m == 1:
        return central
    mean, variance = central[0], central[1]
    guarded = variance + FLAT * (variance + mean**2) + TINY
    standardised = np.concatenate([[np.zeros_like(mean), variance / guarded], central[2:]])
    values: Floats = mean + np.sqrt(guarded) * neighborhood_from_moments(standardised, m)
    return values


def neighbors_from_moments(moments: ArrayLike, own: ArrayLike, m: int) -> Floats:
    """The m − 1 values beside ``own`` in a closed neighborhood of m values, in ascending order.

    Knowing the node's own value saves one moment: Σ x^p − own^p are the power sums of the neighbors alone.

    Args:
        moments: [P, …] means over all m values, P ≥ m − 1.
        own: […] the node's value x_0.
        m: how many values, the node's own included.

    Returns:
        [m − 1, …].
    """
    own = np.asarray(own, dtype=np.float64)
    if m == 1:
        return np.zeros((0, *own.shape))
    moments = _first(moments, m - 1, "moments")
    power = np.arange(1, m).reshape(-1, *[1] * own.ndim)
    return neighborhood_from_moments((m * moments - own**power) / (m - 1), m - 1)


def _first(statistics: ArrayLike, count: int, what: str) -> Floats:
    """The first ``count`` rows, in float64."""
    if count < 1:
        raise ValueError("a closed neighborhood has at least one value, the node's own")
    rows = np.asarray(statistics, dtype=np.float64)
    if rows.ndim == 0 or len(rows) < count:
        raise ValueError(f"{count} values need {count} {what}, {rows.shape[0] if rows.ndim else 0} are given")
    return rows[:count]
