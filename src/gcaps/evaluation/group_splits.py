"""Divisions of graphs that keep groups whole, such as molecules with the same scaffold: folds, or 80/10/10 parts."""

from __future__ import annotations

import numpy as np

from gcaps.data.arrays import Array, Ints
from gcaps.errors import DataError

TRAIN, VALIDATION, TEST = 0, 1, 2
"""The parts of a single division."""


def group_folds(groups: Array, folds: int, seed: int, what: str = "group") -> Ints:
    """[n] the fold of each graph: ``folds`` folds of about equal size that keep every group [n] whole.

    Groups are put, the largest first, into the fold that has the fewest graphs; ``seed`` decides between equals.

    Raises:
        DataError: there are fewer groups than folds.
    """
    sizes, codes = _sizes(groups)
    if len(sizes) < folds:
        raise DataError(f"there are {len(sizes)} groups, too few for {folds} folds that keep each of them whole", what)
    order = np.random.default_rng(seed).permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    fold_of, filled = np.zeros(len(sizes), dtype=np.int64), np.zeros(folds, dtype=np.int64)
    for group in order:
        fold_of[group] = int(filled.argmin())
        filled[fold_of[group]] += sizes[group]
    return fold_of[codes]


def largest_first_parts(groups: Array) -> Ints:
    """[n] the part of each graph, about 80 % :data:`TRAIN`, 10 % :data:`VALIDATION` and 10 % :data:`TEST`.

    With scaffolds as groups this is MoleculeNet's scaffold split (as in DeepChem): from the largest group to the
    smallest, each is put into the first of training, validation and test that has room for it. There is one such
    division of a set.
    """
    sizes, codes = _sizes(groups)
    first = np.unique(codes, return_index=True)[1]
    limits = [len(codes) * 8 / 10, len(codes) * 9 / 10]
    part_of, filled = np.zeros(len(sizes), dtype=np.int64), [0, 0, 0]
    for group in sorted(range(len(sizes)), key=lambda g: (-sizes[g], -first[g])):
        size = int(sizes[group])
        if filled[TRAIN] + size <= limits[0]:
            part = TRAIN
        else:
            part = VALIDATION if filled[TRAIN] + filled[VALIDATION] + size <= limits[1] else TEST
        filled[part] += size
        part_of[group] = part
    return part_of[codes]


def balanced_parts(groups: Array, seed: int) -> Ints:
    """[n] parts as of :func:`largest_first_parts`, another division for each seed.

    Groups of more graphs than half a test part come first, so that they are trained on; the others follow in random
    order. With scaffolds as groups this is the balanced scaffold split of chemprop.

    Args:
        groups: [n] values that graphs of one group share, such as scaffolds.
        seed: decides the order of the groups.
    """
    codes = np.unique(groups, return_inverse=True)[1]
    first = np.unique(codes, return_index=True)[1]
    codes = np.argsort(np.argsort(first))[codes]  # groups are numbered as they occur
    sizes, count = np.bincount(codes), len(codes)
    order = np.random.default_rng(seed).permutation(len(sizes))
    large = sizes[order] > 0.05 * count
    part_of, filled = np.zeros(len(sizes), dtype=np.int64), [0, 0, 0]
    for group in np.concatenate([order[large], order[~large]]):
        size = int(sizes[group])
        if filled[TRAIN] + size <= 0.8 * count:
            part = TRAIN
        else:
            part = VALIDATION if filled[VALIDATION] + size <= 0.1 * count else TEST
        filled[part] += size
        part_of[group] = part
    return part_of[codes]


def _sizes(groups: Array) -> tuple[Ints, Ints]:
    """Number of graphs of each group, and [n] the number of each graph's group."""
    codes = np.unique(groups, return_inverse=True)[1]
    return np.bincount(codes), codes
