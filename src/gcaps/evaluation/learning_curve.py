"""Learning curves: the same folds with nested parts of their training graphs, against which a metric is drawn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gcaps.data.arrays import Array, Ints
from gcaps.errors import ConfigError
from gcaps.evaluation.splits import Fold

LEAST = 2
"""Training graphs that every method needs."""


MAX_POINTS = 64
"""Points of the longest learning curve: each has half as many graphs as the next."""


def curve_sizes(given: int | Sequence[int], train: int) -> list[int]:
    """Return the sizes of the parts of ``train`` training graphs, ascending; all of them are not among the sizes.

    Args:
        given: the sizes; or the number of points of the curve, each with half as many graphs as the next and the last
            one with all of them.
        train: number of training graphs of the smallest fold.

    Raises:
        ConfigError: a size is too small or too large, or is given twice.
    """
    if isinstance(given, int):
        if not 2 <= given <= MAX_POINTS:
            raise ConfigError(f"a learning curve has 2 points or more, up to {MAX_POINTS}, not {given}")
        return sorted({train // 2**k for k in range(1, given) if train // 2**k >= LEAST})
    sizes = sorted(given)
    if len(set(sizes)) < len(sizes):
        raise ConfigError(f"a size is given twice in {', '.join(map(str, sizes))}")
    if sizes and not LEAST <= sizes[0] <= sizes[-1] < train:
        raise ConfigError(
            f"the sizes of a learning curve are at least {LEAST} and less than the {train} training graphs of a fold, "
            f"which are its last point; given {', '.join(map(str, sizes))}"
        )
    return sizes


def nested_order(y: Array, seed: int) -> Ints:
    """[n] positions in an order whose beginnings are the parts of a learning curve.

    Each beginning has about the class proportions of ``y``, and every class is among its first graphs; targets [n, T]
    are in random order.

    Args:
        y: [n] class numbers, or [n, T] targets.
        seed: decides the order.
    """
    order = np.random.default_rng([seed, 3]).permutation(len(y))
    if y.ndim == 2 or y.dtype.kind == "f":
        return order
    codes = np.unique(y[order], return_inverse=True)[1]
    by_class = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    starts = np.cumsum(counts) - counts
    share = np.empty(len(y))  # how much of its class comes before each graph
    share[by_class] = (np.arange(len(y)) - starts[codes[by_class]]) / counts[codes[by_class]]
    nested: Ints = order[np.argsort(share, kind="stable")]
    return nested


def nested_fold(fold: Fold, y: Array, size: int, seed: int) -> Fold:
    """Return the fold with ``size`` of its training graphs, which contain those of every smaller size.

    Args:
        fold: the fold; those of its validation graphs that are chosen remain validation graphs.
        y: class numbers [G] or targets [G, T] of all graphs.
        size: number of training graphs.
        seed: decides which are chosen.
    """
    train = np.sort(fold.train[nested_order(y[fold.train], seed)[:size]])
    held = np.zeros(0, dtype=np.int64) if fold.validation is None else train[np.isin(train, fold.validation)]
    return Fold(train, fold.test, held if 0 < len(held) < len(train) else None)
