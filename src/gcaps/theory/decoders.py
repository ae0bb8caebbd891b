"""Decoders: from the instantiation parameters of a capsule back to the values of its neighborhood.

The paper judges a capsule by whether the neighborhood can be decoded from it (section 3.1). For a closed neighborhood
N(i) ∪ {i} of m values with unit edge weights and known m, the following holds exactly:

**m moments are enough.** Σ x, Σ x², …, Σ x^m give e_1, …, e_m by Newton's identities

    j e_j = Σ_{i=1..j} (−1)^(i−1) e_{j−i} Σ x^i,

which are (up to sign) the coefficients of Π (t − x_k), and a polynomial has one multiset of roots. So m moments, or all
m coefficients of Eq. 6, determine the values up to order.

**m − 1 moments are not enough**: they determine no neighborhood of m different values, for any m, and no other m − 1
continuous statistics determine all neighborhoods. See :mod:`gcaps.theory.ambiguity`.

**Figure 1's caption**, "when a node has no more than two neighbors then it is possible to recover back the input node
neighbors values from the very first three statistical moments", is therefore right under conditions it does not state:

- The number of neighbors is known. Moments are means, which do not depend on the number of values: the three moments of
  {−√⅔, √⅔} (one neighbor) are those of {−1, 0, 1} (two). A fourth moment tells these apart.
- Edges have weight one. Weighted means of m values may need more than m moments, even if the weights are known.
- The result is {x_0, x_1, x_2} up to order: it is not known which of the three is the node itself. If x_0 is known as
  well (a layer reads it through W_p0), two moments give two neighbors, and three moments give *three*: more than the
  caption claims, and as many as the node in the figure has.
- Mean, variance and skewness, as in the figure, are equivalent to the three raw moments. If the variance is 0 the
  skewness is undefined, but then the mean determines all values.

**Precision.** All computations are in float64. Roots are ill-conditioned in the coefficients. The median error of
decoded normally distributed values is 1e-15 for m = 3; for m = 16 it is 1e-11 from E and 1e-7 from moments, because of
Newton's identities. A value of multiplicity k is decoded with an error of about ε^(1/k). For values that are close
together compared with their distance from 0, raw moments lose digits (values around 10 with spread 1 keep four digits
in eight raw moments). Central moments do not, and :func:`neighborhood_from_central` avoids raw ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import comb

from gcaps.nn.capsules import FLAT, TINY

Floats = NDArray[np.float64]


def neighborhood_from_polynomial(E: ArrayLike, m: int) -> Floats:
    """The m values with given normalised elementary symmetric polynomials E_j = e_j / C(m, j), in ascending order.

    They are the roots of Π (t − x_k) = Σ_j (−1)^j C(m, j) E_j t^(m−j), computed as eigenvalues of its companion matrix;
    of pairs that are complex because of rounding, the real part is taken.

    Args:
        E: [P, …] with P ≥ m, the output of the capsule function ``polynomial`` with ``capsule_size`` P; 0 beyond m.
        m: number of values: the node and its neighbors.

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
        m: number of values.

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
        central: [P, …] with P ≥ m, the output of :func:`gcaps.nn.central_moments` for unit weights; its guard against a
            variance of 0 is undone, since it is a function of mean and variance.
        m: number of values.

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
    """The m − 1 values other than ``own`` in a closed neighborhood of m values, in ascending order.

    If the value of the node is known, one moment fewer is needed: Σ x^p − own^p are the power sums of the neighbors.

    Args:
        moments: [P, …] means over all m values, P ≥ m − 1.
        own: […] value x_0 of the node.
        m: number of values, including that of the node.

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
    """First ``count`` rows in float64."""
    if count < 1:
        raise ValueError("a closed neighborhood has at least one value, that of the node")
    rows = np.asarray(statistics, dtype=np.float64)
    if rows.ndim == 0 or len(rows) < count:
        raise ValueError(f"{count} values need {count} {what}, {rows.shape[0] if rows.ndim else 0} are given")
    return rows[:count]
