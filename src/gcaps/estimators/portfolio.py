"""The methods that join an ensemble by themselves, in the order in which they are tried: a line for each."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """A method that joins an ensemble by itself."""

    name: str
    effort: float
    """Seconds of a fit on a few hundred graphs; only the ratios count, until a member has been timed."""
    most: int
    """Training graphs up to which it joins."""


PAIRS = 10_000
"""Training graphs up to which methods join whose memory or time grows with the number of pairs."""
FEW = 5_000
"""The same for slow kernels."""
ANY = 10**9

PORTFOLIO = (
    Entry("wloa", 1, PAIRS),
    Entry("capsule-svm", 2, PAIRS),
    Entry("retgk", 3, PAIRS),
    Entry("wwl", 2, PAIRS),
    Entry("wl", 1, PAIRS),
    Entry("ltp", 2, ANY),
    Entry("sp", 1, PAIRS),
    Entry("fgsd", 2, ANY),
    Entry("gcaps", 10, ANY),
    Entry("mlg", 15, FEW),
    Entry("dgk", 3, FEW),
    Entry("gk", 3, FEW),
    Entry("gin", 10, ANY),
    Entry("rw", 5, FEW),
    Entry("deepsets", 5, ANY),
)
"""The methods for graphs that are not molecules, cheapest and strongest first."""
EFFORT = {
    **{entry.name: entry.effort for entry in PORTFOLIO},
    **{"ecfp": 2.0, "descriptors": 2.0, "tanimoto": 1.0},
}
"""Of each method, by name."""
OTHER = 5.0
"""Of any other method."""


def names(graphs: int) -> tuple[str, ...]:
    """Return the methods for so many training graphs."""
    return tuple(entry.name for entry in PORTFOLIO if graphs <= entry.most)
