"""Bins of distances, rounding that does not depend on the node order, and the compiled loops that count."""

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
"""Cells of the fixed grid for quantiles: 256 between successive powers of two."""
SOFT = 1 << 20
"""Parts of one count in linear binning; sums of integers do not depend on the order."""


def quantize(distance: Floats) -> Floats:
    """Round distances to 26 bits, so that they have the same bits for any node order.

    Resistances are rational, and computed ones have an error of about 1e-13 that depends on the node order. The cells
    of the rounding grid are shifted by the golden ratio, the number that is hardest to approximate by rationals, so
    that no resistance lies on the edge of a cell. 0 stays 0.
    """
    bits = np.ascontiguousarray(distance, dtype=np.float64).view(np.uint64)
    rounded: Floats = ((bits + _SHIFT) & _MASK).view(np.float64)
    return rounded


class Bins(NamedTuple):
    """Bins from 0 to ``range``; larger distances are counted as overflow."""

    range: float
    bins: int
    edges: Floats
    """[bins+1] edges of quantile bins, on the fixed grid; empty if bins are uniform."""
    soft: bool = False
    """Split each count linearly between the two nearest bin centres."""

    @property
    def columns(self) -> int:
        """Number of columns: the bins, overflow, unreachable."""
        return self.bins + 2

    def lookup(self) -> Array:
        """[GRID] quantile bin of each cell of the grid; empty if bins are uniform."""
        if not len(self.edges):
            return np.zeros(0, dtype=np.int32)
        last = grid_cell(self.edges[-1:])[0]
        inner = grid_cell(self.edges[1:-1])
        table = np.searchsorted(inner, np.arange(GRID), side="left")
        table[last + 1 :] = self.bins
        return table.astype(np.int32)


def grid_cell(distance: Floats) -> Ints:
    """Cell of the fixed grid, whose edges are shifted by the golden ratio away from rationals."""
    bits = np.ascontiguousarray(distance, dtype=np.float64).view(np.uint64)
    return ((bits + _GRID_SHIFT) >> np.uint64(_GRID_BITS)).astype(np.int64)


def grid_value(cell: Ints) -> Floats:
    """Return a distance inside each cell."""
    value: Floats = (np.asarray(cell).astype(np.uint64) << np.uint64(_GRID_BITS)).view(np.float64)
    return value


def quantile_bins(cells: Ints, largest: float, count: int, soft: bool) -> Bins:
    """Return bins with equal shares of all pairs, from the number of pairs [GRID] in each cell of the grid.

    If many pairs have the same distance, some bins are empty.
    """
    total = np.cumsum(cells)
    goals = np.arange(1, count) * int(total[-1]) / count
    inner = grid_value(np.searchsorted(total, goals, side="left"))
    return Bins(largest, count, np.concatenate([[0.0], inner, [largest]]), soft)


class Piece(NamedTuple):
    """Distances of c components between some rows and columns of each, in flat arrays."""

    R: Floats
    """Row by row, component by component."""
    start: Ints
    """[c] position in R of the first distance of each component."""
    row_ptr: Ints
    """[c+1]"""
    rows: Ints
    """Class of each row."""
    col_ptr: Ints
    """[c+1]"""
    cols: Ints
    """Class of each column."""


@compiled
def quantized(distance: float) -> Any:
    """:func:`quantize` of one distance."""
    bits = np.float64(max(distance, 0.0)).view(np.uint64)
    return np.uint64((bits + _SHIFT) & _MASK).view(np.float64)


@compiled
def cells_of(row: Floats, shift: Floats, own: float, largest: float, count: int, table: Array, cell: Ints32) -> None:
    """Write the bin of each rounded distance row + shift + own to ``cell``; ``count`` is the overflow."""
    if len(table):
        for j in range(len(row)):
            bits = np.float64(quantized(row[j] + own + shift[j])).view(np.uint64)
            cell[j] = table[(bits + _GRID_SHIFT) >> np.uint64(_GRID_BITS)]
        return
    width = largest / count
    for j in range(len(row)):
        distance = quantized(row[j] + own + shift[j])
        place = np.int32(distance / width) if distance < largest else np.int32(count)
        # the largest distance itself belongs to the last bin, not to the overflow
        cell[j] = count - 1 if distance == largest else place


@compiled
def soft_share(distance: float, cell: int, largest: float, count: int, edges: Floats) -> tuple[int, int]:
    """Return the lower of the two bins with the nearest centres, and the share of the upper one in parts of SOFT."""
    place = distance * count / largest
    if len(edges):
        gap = edges[cell + 1] - edges[cell]
        place = cell + (min(max((distance - edges[cell]) / gap, 0.0), 1.0) if gap > 0 else 0.5)
    place = min(max(place - 0.5, 0.0), count - 1.0)
    return int(place), int(np.rint((place - int(place)) * SOFT))


@compiled
def position(values: Ints, wanted: int) -> int:
    """Position of ``wanted`` among distinct values; −1 if it is not there."""
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
    """Add ``multiplicity`` times the histogram of one node of each class to ``out[goal]`` of the class.

    ``size`` [K] is the number of partners in each class, ``others`` [K] the number of twins of a node.
    """
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
                # the columns may contain the class itself
                j = number - row_ptr[piece]
                if j >= k or own[j] != c:
                    j = position(own, c)
                if j >= 0:
                    four[j & 3, cell[j]] -= mass[j]
            else:
                for j in range(k + 1):
                    distance = quantized(within[c]) if j == k else quantized(row[j] + spread[c] + shift[j])
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
    """[c] largest rounded distance of each component; 0 if it has one node."""
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
        out[piece] = quantized(best)
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
    """[GRID] number of ordered pairs of nodes in each cell of the fixed grid."""
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
                    bits = np.float64(quantized(row[j] + spread[c] + shift[j])).view(np.uint64)
                    out[(bits + _GRID_SHIFT) >> np.uint64(_GRID_BITS)] += multiplicity[c] * mass[j]
            bits = np.float64(quantized(within[c])).view(np.uint64)
            out[(bits + _GRID_SHIFT) >> np.uint64(_GRID_BITS)] += multiplicity[c] * others[c]
    return out
