"""From distances to histograms: rounding that no node order changes, bins, and the loops that fill them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gcaps.data.arrays import Array, Floats, Ints, Ints32
from gcaps.features.quotient import compiled

_BITS = 27
"""Low bits of a float64 that carry rounding noise."""
_SHIFT = np.uint64(round(0.6180339887498949 * 2**_BITS))
_MASK = np.uint64(2**64 - 2**_BITS)
_GRID_BITS = 44
_GRID_SHIFT = np.uint64(round(0.6180339887498949 * 2**_GRID_BITS))
GRID = 1 << (64 - _GRID_BITS - 1)
"""Cells of the fixed grid on which quantiles are taken: 256 from each power of two to the next."""
SOFT = 1 << 20
"""Linear binning splits one count into so many parts: whole numbers add up to the same in any order."""


def settle(distance: Floats) -> Floats:
    """Round distances to 26 bits so that the same distance has the same bits whatever the node order was.

    Resistances are rationals, many of them exactly on the edges of round numbers, and computed ones carry noise of
    some 1e-13 that depends on the order of the nodes. Cells of the rounding grid are shifted by the golden ratio, of
    all numbers the farthest from rationals, so that no resistance sits on the edge of a cell. 0 stays 0.
    """
    bits = np.ascontiguousarray(distance, dtype=np.float64).view(np.uint64)
    settled: Floats = ((bits + _SHIFT) & _MASK).view(np.float64)
    return settled


class Bins(NamedTuple):
    """Bins from 0 to ``range``; what lies beyond overflows."""

    range: float
    bins: int
    edges: Floats
    """[bins+1] of quantile bins, on the fixed grid; empty where bins are uniform."""
    soft: bool = False
    """Split each count linearly between the two nearest bin centres."""

    @property
    def columns(self) -> int:
        """The bins, overflow, unreachable."""
        return self.bins + 2

    def lookup(self) -> Array:
        """[GRID] the quantile bin of each cell of the grid; empty where bins are uniform."""
        if not len(self.edges):
            return np.zeros(0, dtype=np.int32)
        last = grid_cell(self.edges[-1:])[0]
        inner = grid_cell(self.edges[1:-1])
        table = np.searchsorted(inner, np.arange(GRID), side="left")
        table[last + 1 :] = self.bins
        return table.astype(np.int32)


def grid_cell(distance: Floats) -> Ints:
    """The cell of the fixed grid, whose borders the golden ratio keeps away from rationals."""
    bits = np.ascontiguousarray(distance, dtype=np.float64).view(np.uint64)
    return ((bits + _GRID_SHIFT) >> np.uint64(_GRID_BITS)).astype(np.int64)


def grid_value(cell: Ints) -> Floats:
    """A distance inside each cell."""
    value: Floats = (np.asarray(cell).astype(np.uint64) << np.uint64(_GRID_BITS)).view(np.float64)
    return value


def quantile_bins(cells: Ints, largest: float, count: int, soft: bool) -> Bins:
    """Bins that hold equal shares of all pairs, given how many pairs [GRID] each cell of the grid has.

    Where many pairs have one distance, some bins stay empty.
    """
    total = np.cumsum(cells)
    goals = np.arange(1, count) * int(total[-1]) / count
    inner = grid_value(np.searchsorted(total, goals, side="left"))
    return Bins(largest, count, np.concatenate([[0.0], inner, [largest]]), soft)


class Piece(NamedTuple):
    """Resistances of some components between rows and columns of each, all in flat arrays."""

    R: Floats
    """Row by row, component by component."""
    start: Ints
    """[c] where in R each component begins."""
    row_ptr: Ints
    """[c+1]"""
    rows: Ints
    """The class of each row."""
    col_ptr: Ints
    """[c+1]"""
    cols: Ints
    """The class of each column."""


@compiled
def settled(distance: float) -> Any:
    """:func:`settle` of one distance."""
    bits = np.float64(max(distance, 0.0)).view(np.uint64)
    return np.uint64((bits + _SHIFT) & _MASK).view(np.float64)


@compiled
def cells_of(row: Floats, shift: Floats, own: float, largest: float, count: int, table: Array, cell: Ints32) -> None:
    """The bin of each distance row + shift + own, settled; ``count`` stands for the overflow."""
    if len(table):
        for j in range(len(row)):
            bits = np.float64(settled(row[j] + own + shift[j])).view(np.uint64)
            cell[j] = table[(bits + _GRID_SHIFT) >> np.uint64(_GRID_BITS)]
        return
    width = largest / count
    for j in range(len(row)):
        distance = settled(row[j] + own + shift[j])
        place = np.int32(distance / width) if distance < largest else np.int32(count)
        # the largest distance itself belongs to the last bin, not to the overflow
        cell[j] = count - 1 if distance == largest else place


@compiled
def soft_share(distance: float, cell: int, largest: float, count: int, edges: Floats) -> tuple[int, int]:
    """The lower of the two bins whose centres are nearest, and the share of the upper one in parts of ``SOFT``."""
    place = distance * count / largest
    if len(edges):
        gap = edges[cell + 1] - edges[cell]
        place = cell + (min(max((distance - edges[cell]) / gap, 0.0), 1.0) if gap > 0 else 0.5)
    place = min(max(place - 0.5, 0.0), count - 1.0)
    return int(place), int(np.rint((place - int(place)) * SOFT))


@compiled
def position(values: Ints, wanted: int) -> int:
    """Where ``wanted`` stands among values, each there once; −1 where it does not."""
    for j in range(len(values)):
        if values[j] == wanted:
            return j
    return -1


@compiled
def count_pairs(
    R: Floats,
    start: Ints,
    row_ptr: Ints,
    rows: Ints,
    col_ptr: Ints,
    cols: Ints,
    size: Ints,
    others: Ints,
    spread: Floats,
    within: Floats,
    largest: float,
    count: int,
    edges: Floats,
    soft: bool,
    table: Array,
    goal: Ints,
    multiplicity: Ints,
    out: Floats,
) -> None:
    """out[goal of a class] += so many times the histogram of one of its nodes."""
    four = np.zeros((4, count + 1), dtype=np.int64)
    twin, twin_cell = np.zeros(1), np.zeros(1, dtype=np.int32)
    for piece in range(len(start)):
        own = cols[col_ptr[piece] : col_ptr[piece + 1]]
        k = len(own)
        mass, shift = size[own], spread[own]
        cell = np.zeros(k, dtype=np.int32)
        for number in range(row_ptr[piece], row_ptr[piece + 1]):
            c = rows[number]
            begin = start[piece] + (number - row_ptr[piece]) * k
            row = R[begin : begin + k]
            four[:] = 0
            cells_of(row, shift, spread[c], largest, count, table, cell)
            twin[0] = within[c]
            cells_of(twin, twin * 0, 0.0, largest, count, table, twin_cell)
            if not soft:
                for j in range(k):
                    four[j & 3, cell[j]] += mass[j]
                four[0, twin_cell[0]] += others[c]
                # the columns may hold the class itself too
                j = number - row_ptr[piece]
                if j >= k or own[j] != c:
                    j = position(own, c)
                if j >= 0:
                    four[j & 3, cell[j]] -= mass[j]
            else:
                for j in range(k + 1):
                    distance = settled(within[c]) if j == k else settled(row[j] + spread[c] + shift[j])
                    weight = others[c] if j == k else 0 if own[j] == c else mass[j]
                    b = twin_cell[0] if j == k else cell[j]
                    if b == count:
                        four[0, b] += weight * SOFT
                        continue
                    low, upper = soft_share(distance, b, largest, count, edges)
                    four[0, low] += weight * (SOFT - upper)
                    if upper:
                        four[0, low + 1] += weight * upper
            line = out[goal[c]]
            unit = 1.0 / SOFT if soft else 1.0
            for b in range(count + 1):
                line[b] += multiplicity[c] * (four[0, b] + four[1, b] + four[2, b] + four[3, b]) * unit


@compiled
def largest_distances(
    R: Floats,
    start: Ints,
    row_ptr: Ints,
    rows: Ints,
    col_ptr: Ints,
    cols: Ints,
    spread: Floats,
    within: Floats,
) -> Floats:
    """[c] of each component, settled; 0 where there is one node."""
    out = np.zeros(len(start))
    for piece in range(len(start)):
        own = cols[col_ptr[piece] : col_ptr[piece + 1]]
        shift = spread[own]
        best = 0.0
        for number in range(row_ptr[piece], row_ptr[piece + 1]):
            c = rows[number]
            begin = start[piece] + (number - row_ptr[piece]) * len(own)
            row = R[begin : begin + len(own)]
            best = max(best, within[c])
            far = 0.0
            for j in range(len(own)):
                if own[j] != c:
                    far = max(far, row[j] + shift[j])
            if far > 0:
                best = max(best, far + spread[c])
        out[piece] = settled(best)
    return out


@compiled
def count_grid(
    R: Floats,
    start: Ints,
    row_ptr: Ints,
    rows: Ints,
    col_ptr: Ints,
    cols: Ints,
    size: Ints,
    others: Ints,
    spread: Floats,
    within: Floats,
    multiplicity: Ints,
) -> Ints:
    """[GRID] ordered pairs of nodes in each cell of the fixed grid."""
    out = np.zeros(GRID, dtype=np.int64)
    for piece in range(len(start)):
        own = cols[col_ptr[piece] : col_ptr[piece + 1]]
        mass, shift = size[own], spread[own]
        for number in range(row_ptr[piece], row_ptr[piece + 1]):
            c = rows[number]
            begin = start[piece] + (number - row_ptr[piece]) * len(own)
            row = R[begin : begin + len(own)]
            for j in range(len(own)):
                if own[j] != c:
                    bits = np.float64(settled(row[j] + spread[c] + shift[j])).view(np.uint64)
                    out[(bits + _GRID_SHIFT) >> np.uint64(_GRID_BITS)] += multiplicity[c] * mass[j]
            bits = np.float64(settled(within[c])).view(np.uint64)
            out[(bits + _GRID_SHIFT) >> np.uint64(_GRID_BITS)] += multiplicity[c] * others[c]
    return out
