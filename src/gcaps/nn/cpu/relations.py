"""Compiled filters of several relations, or with gates, for the passes of :mod:`gcaps.nn.cpu.stages`.

Relation r reads and writes only nodes with an edge of that relation, so its products run over the rows (i, r) of such
nodes i and over no others: an atom has two or three bonds, where a set of molecules has a dozen kinds of bonds. The
rows of a block stand relation by relation, each in one piece, so that a relation is one matrix product. V and H
[m, K·h] hold the orders 1 … K of a row side by side. Loops over entries call no functions and take no slices: compiled
code counts references to every array that it passes or slices, which took a third of the time.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gcaps.nn.cpu.blocks import Array, compiled, compiled_part
from gcaps.nn.cpu.state import Layer, Nodes, Relations


@cache
def no_relations(dtype: np.dtype[np.floating]) -> Relations:
    """Return what stands for one relation without gates."""
    none, values = np.empty(0, np.int64), np.empty(0, dtype)
    return Relations(np.empty((0, 0), np.int64), none, values, none, none, none, none, none, none, values)


def relation_rows(nodes: Nodes, relation: Array, shares: Array, R: int) -> Relations:
    """Return the rows of a batch and the entries of its filters.

    Args:
        nodes: with the filter.
        relation: [e] relation of each entry, −1 if it is not known.
        shares: [n, R] diagonals of the filters; empty if they are zero.
        R: number of relations.
    """
    cuts, number = nodes.cuts, np.full((len(nodes.rowptr) - 1, R), -1, np.int64)
    ptr, node = np.empty((len(cuts) - 1, R + 1), np.int64), np.empty(number.size, np.int64)
    node = node[: _number_rows(cuts, nodes.rowptr, nodes.col, relation, shares, number, ptr, node)]
    share = np.empty(len(node) if len(shares) else 0, shares.dtype)
    if len(shares):
        i, r = np.nonzero(number >= 0)
        share[number[i, r]] = shares[i, r]
    rows = no_relations(shares.dtype)._replace(ptr=ptr, node=node, share=share)
    return _with_entries(rows, number, nodes, relation)


def transposed_relations(forward: Relations, nodes: Nodes, relation: Array) -> Relations:
    """Return the same rows with the entries of the transposed filters.

    Args:
        forward: rows of the filters.
        nodes: with the transposed filter.
        relation: [e] relations of its entries.
    """
    R = forward.ptr.shape[1] - 1
    number = np.full((len(nodes.rowptr) - 1, R), -1, np.int64)
    of = np.repeat(np.tile(np.arange(R), len(forward.ptr)), np.diff(forward.ptr, axis=1).ravel())
    number[forward.node, of] = np.arange(len(forward.node))
    return _with_entries(forward, number, nodes, relation)


def _with_entries(rows: Relations, number: Array, nodes: Nodes, relation: Array) -> Relations:
    """Return ``rows`` with the entries of a filter; ``number`` [n, R] is the row of each node and relation."""
    R, entry, rowptr, col = number.shape[1], np.arange(len(nodes.col)), nodes.rowptr, nodes.col
    row: Array = np.repeat(np.arange(len(rowptr) - 1), np.diff(rowptr))
    of, part = relation.astype(np.int64, copy=False), np.empty(0, rows.share.dtype)
    unknown = of < 0
    if unknown.any():  # every relation has a part of the edge
        times = np.where(unknown, R, 1)
        entry = np.repeat(entry, times)
        within = np.arange(len(entry)) - np.repeat(np.cumsum(times) - times, times)
        part = np.where(unknown, 1 / R, 1.0)[entry].astype(rows.share.dtype)
        of = np.where(unknown[entry], within, of[entry])
        rowptr = np.append(0, np.cumsum(times))[rowptr]
        row, col = row[entry], col[entry]
    return rows._replace(
        rowptr=rowptr, entry=entry, row=row, col=col, source=number[col, of], target=number[row, of], part=part
    )


@compiled
def _number_rows(
    cuts: Array, rowptr: Array, col: Array, relation: Array, shares: Array, number: Array, ptr: Array, node: Array
) -> int:
    """Number the rows block by block, relation by relation; return how many there are."""
    R = number.shape[1]
    for i in range(len(number)):
        for e in range(rowptr[i], rowptr[i + 1]):
            for r in range(max(relation[e], 0), R if relation[e] < 0 else relation[e] + 1):
                number[i, r] = number[col[e], r] = 0
        if len(shares):
            for r in range(R):
                if shares[i, r] != 0:
                    number[i, r] = 0
    count = 0
    for b in range(len(cuts) - 1):
        for r in range(R):
            ptr[b, r] = count
            for i in range(cuts[b], cuts[b + 1]):
                if number[i, r] == 0:
                    number[i, r] = count
                    node[count] = i
                    count += 1
        ptr[b, R] = count
    return count


@compiled_part
def entry_values(p: int, nodes: Nodes, rows: Relations, gated: Array, begin: int, out: Array) -> None:
    """out = values of the entries from ``begin`` on for component p: gates, values or ones, times the parts."""
    entry, part, value = rows.entry, rows.part, nodes.value
    for q in range(len(out)):
        v = out.dtype.type(1)
        if len(gated):
            v = gated[p, entry[begin + q]]
        elif len(value):
            v = value[entry[begin + q]]
        out[q] = v * part[begin + q] if len(part) else v


@compiled_part
def gather(node: Array, layer: Layer, p: int, out: Array) -> None:
    """Rows of the power p + 1 of the dense input of a layer for some nodes."""
    given, powers, read = layer.input, layer.powers, layer.read
    for row in range(len(out)):
        i = node[row]
        if p == 0:
            for j in range(out.shape[1]):
                out[row, j] = given[i, read + j]
        else:
            for j in range(out.shape[1]):
                out[row, j] = powers[p - 1, i, j]


@compiled_part
def add_entries(
    values: Array,
    target: Array,
    first: int,
    out: Array,
    write: int,
    source: Array,
    origin: int,
    V: Array,
    read: int,
    h: int,
) -> None:
    """out[t − first, write : write + h] += v · V[s − origin, read : read + h] for v, t, s of values, target, source."""
    for q in range(len(values)):
        v, t, s = values[q], target[q] - first, source[q] - origin
        for j in range(h):
            out[t, write + j] += v * V[s, read + j]


@compiled_part
def add_one_hot(node: Array, one_hot_index: Array, table: Array, out: Array) -> None:
    """out += the rows of the table for the one-hot columns of each node."""
    for row in range(len(out)):
        i = node[row]
        for c in range(one_hot_index.shape[1]):
            column = one_hot_index[i, c]
            if column >= 0:
                for j in range(out.shape[1]):
                    out[row, j] += table[column, j]


@compiled_part
def add_to_table(node: Array, one_hot_index: Array, rows: Array, table: Array) -> None:
    """Add each row to the rows of the table for the one-hot columns of its node."""
    for row in range(len(rows)):
        i = node[row]
        for c in range(one_hot_index.shape[1]):
            column = one_hot_index[i, c]
            if column >= 0:
                for j in range(rows.shape[1]):
                    table[column, j] += rows[row, j]


@compiled_part
def add_relations(b: int, nodes: Nodes, rows: Relations, one_hot_index: Array, layer: Layer, U: Array) -> None:
    """U [b, P·h] += Σ_r Σ_k M_r^k F^⊙p W_prk for the nodes of block b; writes ``layer.mixed``.

    ``one_hot_index`` [n, ·] are the columns of the input of the first layer that are one.
    """
    weight, table, mixed, h = layer.relation_weight, layer.relation_table, layer.mixed, layer.hidden
    P, R, c, width = weight.shape
    if width == 0:
        return
    a, begin, end = nodes.cuts[b], rows.rowptr[nodes.cuts[b]], rows.rowptr[nodes.cuts[b + 1]]
    first, last = rows.ptr[b, 0], rows.ptr[b, -1]
    node, share, own = rows.node[first:last], rows.share[first:last], np.arange(last - first)
    row, source, target = rows.row[begin:end], rows.source[begin:end], rows.target[begin:end]
    X, V = np.empty((last - first, c), U.dtype), np.empty((last - first, width), U.dtype)
    values = np.empty(end - begin, U.dtype)
    for p in range(P):
        if c:
            gather(node, layer, p, X)
        else:
            V[:] = 0
        for r in range(R):
            s, t = rows.ptr[b, r] - first, rows.ptr[b, r + 1] - first
            if c and s < t:
                np.dot(X[s:t], weight[p, r], V[s:t])
            if table.shape[2] and s < t:
                add_one_hot(node[s:t], one_hot_index, table[p, r], V[s:t])
        entry_values(p, nodes, rows, layer.gated, begin, values)
        for read in range(width - h, 0, -h):  # V_(k−1) += M_r V_k
            add_entries(values, target, first, V, read - h, source, first, V, read, h)
            add_entries(share, own, 0, V, read - h, own, 0, V, read, h)
        if len(mixed):
            for m in range(last - first):
                for j in range(width):
                    mixed[p, first + m, j] = V[m, j]
        add_entries(values, row, a, U, p * h, source, first, V, 0, h)
        add_entries(share, node, a, U, p * h, own, 0, V, 0, h)


@compiled_part
def relations_backward(
    b: int,
    nodes: Nodes,
    rows: Relations,
    one_hot_index: Array,
    layer: Layer,
    G: Array,
    weight_grad: Array,
    table_grad: Array,
    gate_grad: Array,
    grad_before: Array,
    through: Array,
) -> None:
    """Backward pass of :func:`add_relations`.

    Args:
        b: number of the block.
        nodes: with the transposed filter.
        rows: with the transposed filters.
        one_hot_index: [n, ·] columns of the input of the first layer that are one.
        layer: the layer.
        G: [b, P·h] gradient at U.
        weight_grad: gradient of ``layer.relation_weight`` is added.
        table_grad: gradient of ``layer.relation_table`` is added.
        gate_grad: [P, e] gradient of the values of the transposed filter is added; empty if there are no gates.
        grad_before: [n, c] gradient at the dense input is added; empty in the first layer.
        through: [P−1, b, c] gradient at its powers is added.
    """
    weight, h = layer.relation_weight, layer.hidden
    P, R, c, width = weight.shape
    if width == 0:
        return
    a, begin, end = nodes.cuts[b], rows.rowptr[nodes.cuts[b]], rows.rowptr[nodes.cuts[b + 1]]
    first, last = rows.ptr[b, 0], rows.ptr[b, -1]
    node, share, own = rows.node[first:last], rows.share[first:last], np.arange(last - first)
    col, source, target = rows.col[begin:end], rows.source[begin:end], rows.target[begin:end]
    X, Y = np.empty((last - first, c), G.dtype), np.empty((last - first, c), G.dtype)
    H, product = np.empty((last - first, width), G.dtype), np.empty((c, width), G.dtype)
    values, ones = np.empty(end - begin, G.dtype), np.ones(last - first, G.dtype)
    for p in range(P):
        H[:] = 0
        entry_values(p, nodes, rows, layer.gated, begin, values)
        add_entries(values, target, first, H, 0, col, a, G, p * h, h)  # H_1 = M_rᵀ G
        add_entries(share, own, 0, H, 0, node, a, G, p * h, h)
        for write in range(h, width, h):  # H_k = M_rᵀ H_(k−1)
            add_entries(values, target, first, H, write, source, first, H, write - h, h)
            add_entries(share, own, 0, H, write, own, 0, H, write - h, h)
        if len(gate_grad):
            gates_backward(rows, begin, end, a, first, G, p * h, h, H, layer.mixed[p], gate_grad[p])
        if c:
            gather(node, layer, p, X)
        for r in range(R):
            s, t = rows.ptr[b, r] - first, rows.ptr[b, r + 1] - first
            if c and s < t:
                np.dot(X[s:t].T, H[s:t], product)
                total = weight_grad[p, r]
                for i in range(c):
                    for j in range(width):
                        total[i, j] += product[i, j]
                if len(grad_before):
                    np.dot(H[s:t], weight[p, r].T, Y[s:t])
            if table_grad.shape[2] and s < t:
                add_to_table(node[s:t], one_hot_index, H[s:t], table_grad[p, r])
        if len(grad_before) and p == 0:
            add_entries(ones, node, 0, grad_before, 0, own, 0, Y, 0, c)
        elif len(grad_before):
            add_entries(ones, node, a, through[p - 1], 0, own, 0, Y, 0, c)


@compiled_part
def gates_backward(
    rows: Relations,
    begin: int,
    end: int,
    a: int,
    first: int,
    G: Array,
    read: int,
    h: int,
    H: Array,
    mixed: Array,
    gate_grad: Array,
) -> None:
    """Add the gradient of the values: at entry (i, j) of M_r, Σ_k ⟨H_(k−1) of i, V_k of j⟩.

    H_0 are the h columns of G from ``read`` on. The entries are those of the transposed filters, so j is the target.
    """
    entry, col, source, target, part = rows.entry, rows.col, rows.source, rows.target, rows.part
    rest = H.shape[1] - h
    for q in range(begin, end):
        total = G.dtype.type(0)
        for j in range(h):
            total += G[col[q] - a, read + j] * mixed[target[q], j]
        for j in range(rest):
            total += H[source[q] - first, j] * mixed[target[q], h + j]
        gate_grad[entry[q]] += total * part[q] if len(part) else total
