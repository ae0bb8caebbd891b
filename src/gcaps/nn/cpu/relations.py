"""Compiled filters of several relations, or with gates, for the passes of :mod:`gcaps.nn.cpu.layers`.

Relation r reads and writes only nodes with an edge of that relation, so its products run over the rows (i, r) of such
nodes i and over no others: an atom has two or three bonds, where a set of molecules has a dozen kinds of bonds. The
rows of a block stand relation by relation, each in one piece, so that a relation is one matrix product. V and H
[m, K·h] hold the orders 1 … K of a row side by side.
"""

from __future__ import annotations

import numpy as np

from gcaps.nn.cpu.blocks import Array, compiled
from gcaps.nn.cpu.state import Layer, Nodes, Relations


def no_relations(dtype: np.dtype[np.floating]) -> Relations:
    """Return what stands for one relation without gates."""
    none, values = np.empty(0, np.int64), np.empty(0, dtype)
    return Relations(np.empty((0, 0), np.int64), none, values, none, none, none, none, none, values)


def relation_rows(cuts: Array, nodes: Nodes, relation: Array, shares: Array, R: int) -> Relations:
    """Return the rows of a batch and the entries of its filters.

    Args:
        cuts: [C+1] first node of each block, and n.
        nodes: with the filter.
        relation: [e] relation of each entry, −1 if it is not known.
        shares: [n, R] diagonals of the filters; empty if they are zero.
        R: number of relations.
    """
    number = np.full((len(nodes.rowptr) - 1, R), -1, np.int64)
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
    target: Array = np.repeat(np.arange(len(rowptr) - 1), np.diff(rowptr))
    of, part = relation.astype(np.int64, copy=False), np.empty(0, rows.share.dtype)
    unknown = of < 0
    if unknown.any():  # every relation has a part of the edge
        times = np.where(unknown, R, 1)
        entry = np.repeat(entry, times)
        within = np.arange(len(entry)) - np.repeat(np.cumsum(times) - times, times)
        part = np.where(unknown, 1 / R, 1.0)[entry].astype(rows.share.dtype)
        of = np.where(unknown[entry], within, of[entry])
        rowptr = np.append(0, np.cumsum(times))[rowptr]
        col, target = col[entry], target[entry]
    return rows._replace(
        rowptr=rowptr, entry=entry, col=col, source=number[col, of], target=number[target, of], part=part
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


@compiled
def value_of(q: int, p: int, nodes: Nodes, rows: Relations, one: float) -> float:
    """Value of entry q for component p: its gate, its value or one, or the relation's part of it."""
    e = rows.entry[q]
    value = one
    if len(nodes.gated):
        value = nodes.gated[p, e]
    elif len(nodes.value):
        value = nodes.value[e]
    return value * rows.part[q] if len(rows.part) else value


@compiled
def gather(b: int, rows: Relations, values: Array, out: Array) -> None:
    """out = values of the node of each row of block b."""
    first = rows.ptr[b, 0]
    for row in range(len(out)):
        to, own = out[row], values[rows.node[first + row]]
        for j in range(len(to)):
            to[j] = own[j]


@compiled
def filter_rows(b: int, p: int, nodes: Nodes, rows: Relations, V: Array, read: int, write: int, h: int) -> None:
    """V[:, write : write + h] += M_r V[:, read : read + h] for the rows of block b."""
    first, one = rows.ptr[b, 0], V.dtype.type(1)
    for q in range(rows.rowptr[nodes.cuts[b]], rows.rowptr[nodes.cuts[b + 1]]):
        v = value_of(q, p, nodes, rows, one)
        out = V[rows.target[q] - first, write : write + h]
        own = V[rows.source[q] - first, read : read + h]
        for j in range(h):
            out[j] += v * own[j]
    if len(rows.share):
        for row in range(len(V)):
            out, own = V[row, write : write + h], V[row, read : read + h]
            for j in range(h):
                out[j] += rows.share[first + row] * own[j]


@compiled
def add_relations(b: int, nodes: Nodes, rows: Relations, one_hot_index: Array, layer: Layer, U: Array) -> None:
    """U [P, b, h] += Σ_r Σ_k M_r^k F^⊙p W_prk for the nodes of block b; writes ``layer.mixed``.

    ``one_hot_index`` [n, ·] are the columns of the input of the first layer that are one.
    """
    weight, table, powers, mixed = layer.relation_weight, layer.relation_table, layer.powers, layer.mixed
    a, z = nodes.cuts[b], nodes.cuts[b + 1]
    first, last = rows.ptr[b, 0], rows.ptr[b, -1]
    P, R, c, width = weight.shape
    if width == 0:
        return
    h, one = layer.hidden, U.dtype.type(1)
    X, V = np.empty((last - first, c), U.dtype), np.zeros((last - first, width), U.dtype)
    for p in range(P):
        if c:
            gather(b, rows, powers[p], X)
        else:
            V[:] = 0
        for r in range(R):
            s, t = rows.ptr[b, r] - first, rows.ptr[b, r + 1] - first
            if c and s < t:
                np.dot(X[s:t], weight[p, r], V[s:t])
            if table.shape[2]:
                for row in range(s, t):
                    out = V[row]
                    for column in one_hot_index[rows.node[first + row]]:
                        if column >= 0:
                            own = table[p, r, column]
                            for j in range(width):
                                out[j] += own[j]
        for read in range(width - h, 0, -h):  # V_(k−1) += M_r V_k
            filter_rows(b, p, nodes, rows, V, read, read - h, h)
        if len(mixed):
            mixed[p, first:last] = V
        for i in range(a, z):
            out = U[p, i - a]
            for q in range(rows.rowptr[i], rows.rowptr[i + 1]):
                v, own = value_of(q, p, nodes, rows, one), V[rows.source[q] - first]
                for j in range(h):
                    out[j] += v * own[j]
        if len(rows.share):
            for row in range(last - first):
                out, own = U[p, rows.node[first + row] - a], V[row]
                for j in range(h):
                    out[j] += rows.share[first + row] * own[j]


@compiled
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
    through: Array,
) -> None:
    """Backward pass of :func:`add_relations`.

    Args:
        b: number of the block.
        nodes: with the transposed filter.
        rows: with the transposed filters.
        one_hot_index: [n, ·] columns of the input of the first layer that are one.
        layer: the layer.
        G: [P, b, h] gradient at U.
        weight_grad: gradient of ``layer.relation_weight`` is added.
        table_grad: gradient of ``layer.relation_table`` is added.
        gate_grad: [P, e] gradient of the values of the transposed filter is added; empty if there are no gates.
        through: [P, b, c] gradient at the powers is added; empty in the first layer.
    """
    weight, powers, mixed = layer.relation_weight, layer.powers, layer.mixed
    a, z = nodes.cuts[b], nodes.cuts[b + 1]
    first, last = rows.ptr[b, 0], rows.ptr[b, -1]
    P, R, c, width = weight.shape
    if width == 0:
        return
    h, one, zero = layer.hidden, G.dtype.type(1), G.dtype.type(0)
    X, Y = np.empty((last - first, c), G.dtype), np.empty((last - first, c), G.dtype)
    H, product = np.empty((last - first, width), G.dtype), np.empty((c, width), G.dtype)
    for p in range(P):
        H[:] = 0
        for i in range(a, z):  # H_1 = M_rᵀ G
            for q in range(rows.rowptr[i], rows.rowptr[i + 1]):
                v = value_of(q, p, nodes, rows, one)
                out, own = H[rows.target[q] - first], G[p, rows.col[q] - a]
                for j in range(h):
                    out[j] += v * own[j]
        if len(rows.share):
            for row in range(last - first):
                out, own = H[row], G[p, rows.node[first + row] - a]
                for j in range(h):
                    out[j] += rows.share[first + row] * own[j]
        for write in range(h, width, h):  # H_k = M_rᵀ H_(k−1)
            filter_rows(b, p, nodes, rows, H, write - h, write, h)
        if len(gate_grad):  # at entry (i, j) of M_r, Σ_k ⟨H_(k−1) of i, V_k of j⟩ with H_0 = G; j is the target here
            for q in range(rows.rowptr[a], rows.rowptr[z]):
                own, total = mixed[p, rows.target[q]], zero
                for j in range(h):
                    total += G[p, rows.col[q] - a, j] * own[j]
                before = H[rows.source[q] - first]
                for j in range(width - h):
                    total += before[j] * own[j + h]
                gate_grad[p, rows.entry[q]] += total * rows.part[q] if len(rows.part) else total
        if c:
            gather(b, rows, powers[p], X)
        for r in range(R):
            s, t = rows.ptr[b, r] - first, rows.ptr[b, r + 1] - first
            if c and s < t:
                np.dot(X[s:t].T, H[s:t], product)
                total_rows = weight_grad[p, r]
                for i in range(c):
                    out, own = total_rows[i], product[i]
                    for j in range(width):
                        out[j] += own[j]
                if len(through):
                    np.dot(H[s:t], weight[p, r].T, Y[s:t])
            if table_grad.shape[2]:
                for row in range(s, t):
                    own = H[row]
                    for column in one_hot_index[rows.node[first + row]]:
                        if column >= 0:
                            out = table_grad[p, r, column]
                            for j in range(width):
                                out[j] += own[j]
        if len(through):
            for row in range(last - first):
                out, own = through[p, rows.node[first + row] - a], Y[row]
                for j in range(c):
                    out[j] += own[j]
