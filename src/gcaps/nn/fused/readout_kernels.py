"""Mean and covariance of node features (Eq. 7) on the blocks of a batch, compiled, forwards and backwards."""

from __future__ import annotations

import numpy as np
from numba import prange

from gcaps.nn.fused.blocks import Array, compiled, over_blocks
from gcaps.nn.fused.rows import add_rows

EPSILON = 1e-4
"""ε of the signed root sign(c)·(√(|c| + ε) − √ε)."""


@compiled
def _nodes(multiplicity: Array, a: int, z: int) -> float:
    """How many nodes the rows a … z − 1 are: row i counts times[i] times, or once where ``times`` is empty."""
    if not len(multiplicity):
        return float(z - a)
    count = 0.0
    for i in range(a, z):
        count += multiplicity[i]
    return count


@compiled
def _mean(x: Array, multiplicity: Array, a: int, z: int, total: Array, out: Array) -> None:
    """out[:c] = the mean over the rows a … z − 1 of x [n, c]; ``total`` [c] float64 is for the sums."""
    total[:] = 0
    for i in range(a, z):
        row, m = x[i], np.float64(multiplicity[i]) if len(multiplicity) else 1.0
        for j in range(len(total)):
            total[j] += m * row[j]
    count = max(_nodes(multiplicity, a, z), 1.0)
    for j in range(len(total)):
        out[j] = total[j] / count


@compiled
def _pack(C: Array, scale: float, root: bool, out: Array) -> None:
    """The upper triangle of scale · C, row by row, with ``root`` its signed square root."""
    r, s, epsilon = len(C), C.dtype.type(scale), C.dtype.type(EPSILON)
    least = np.sqrt(epsilon)
    place = 0
    for a in range(r):
        row, to = C[a, a:], out[place : place + r - a]
        for j in range(r - a):
            to[j] = row[j] * s
        if root:
            for j in range(r - a):
                magnitude = np.sqrt(abs(to[j]) + epsilon) - least
                to[j] = magnitude if to[j] >= 0 else -magnitude
        place += r - a


@compiled
def _unpack(grad: Array, found: Array, scale: float, root: bool, S: Array) -> None:
    """S [r, r] = scale · (G + Gᵀ), G the gradient at the triangle; ``found`` is what :func:`_pack` wrote."""
    r, s = len(S), S.dtype.type(scale)
    half, least = S.dtype.type(0.5), np.sqrt(S.dtype.type(EPSILON))
    place = 0
    for a in range(r):
        row, given, value = S[a, a:], grad[place : place + r - a], found[place : place + r - a]
        for j in range(r - a):
            row[j] = given[j] * s
        if root:
            for j in range(r - a):
                row[j] *= half / (abs(value[j]) + least)
        row[0] += row[0]
        for j in range(1, r - a):
            S[a + j, a] = row[j]
        place += r - a


@over_blocks
def forward(
    graphs: Array,
    ptr: Array,
    multiplicity: Array,
    x: Array,
    projection: Array,
    total: bool,
    root: bool,
    centred: Array,
    out: Array,
) -> None:
    """out [B, D + r(r+1)/2 (+ 1)] and the centred columns [n, r] of the covariance, times √m where rows count m times.

    Args:
        graphs: [C+1] where blocks begin.
        ptr: [B+1] where graphs begin.
        times: [n] how often each row counts; empty where each counts once.
        x: [n, D].
        projection: [r, D], or with no rows where all columns are taken as they are.
        total: sums in the place of means.
        root: the signed root of the covariance.
        centred: written.
        out: written but for what comes after the triangle.
    """
    D, r = x.shape[1], centred.shape[1]
    for b in prange(len(graphs) - 1):
        C, middle = np.empty((r, r), x.dtype), np.empty(r, x.dtype)
        wide, narrow = np.empty(D), np.empty(r)
        begin, end = ptr[graphs[b]], ptr[graphs[b + 1]]
        if len(projection):
            np.dot(x[begin:end], projection.T, centred[begin:end])
        else:
            centred[begin:end] = x[begin:end]
        for g in range(graphs[b], graphs[b + 1]):
            a, z = ptr[g], ptr[g + 1]
            nodes = _nodes(multiplicity, a, z)
            _mean(x, multiplicity, a, z, wide, out[g])
            if total:
                for j in range(D):
                    out[g, j] *= nodes
            _mean(centred, multiplicity, a, z, narrow, middle)
            for i in range(a, z):
                row = centred[i]
                for j in range(r):
                    row[j] -= middle[j]
                if len(multiplicity):
                    m = np.sqrt(multiplicity[i])
                    for j in range(r):
                        row[j] *= m
            np.dot(centred[a:z].T, centred[a:z], C)
            _pack(C, 1.0 if total else 1.0 / max(nodes, 1.0), root, out[g, D:])


@over_blocks
def backward(
    graphs: Array,
    ptr: Array,
    multiplicity: Array,
    x: Array,
    projection: Array,
    total: bool,
    root: bool,
    centred: Array,
    out: Array,
    grad: Array,
    grad_x: Array,
    grad_projection: Array,
) -> None:
    """The gradients at x [n, D] and, by share of blocks, at the projection [S, r, D], from that at ``out``.

    The covariance's is (1/N) (Z − μ)(G + Gᵀ), m times that for a row that counts m times; nothing flows through μ,
    since centred rows add up to 0.
    """
    D, r = x.shape[1], centred.shape[1]
    blocks, shares = len(graphs) - 1, len(grad_projection)
    for s in prange(shares):
        S, product = np.empty((r, r), x.dtype), np.empty((len(projection), D), x.dtype)
        for b in range(s * blocks // shares, (s + 1) * blocks // shares):
            begin, end = ptr[graphs[b]], ptr[graphs[b + 1]]
            rows = np.empty((end - begin, r), x.dtype)
            for g in range(graphs[b], graphs[b + 1]):
                a, z = ptr[g], ptr[g + 1]
                scale = 1.0 if total else 1.0 / max(_nodes(multiplicity, a, z), 1.0)
                _unpack(grad[g, D:], out[g, D:], scale, root, S)
                np.dot(centred[a:z], S, rows[a - begin : z - begin])
            if len(multiplicity):
                for i in range(begin, end):
                    rows[i - begin] *= np.sqrt(multiplicity[i])
            if not len(projection):
                grad_x[begin:end] = rows
            else:
                np.dot(rows, projection, grad_x[begin:end])
                if b == s * blocks // shares:
                    np.dot(rows.T, x[begin:end], grad_projection[s])
                else:
                    np.dot(rows.T, x[begin:end], product)
                    add_rows(product, grad_projection[s])
            for g in range(graphs[b], graphs[b + 1]):
                a, z = ptr[g], ptr[g + 1]
                mean = grad[g, :D] / grad.dtype.type(1.0 if total else max(_nodes(multiplicity, a, z), 1.0))
                share = mean.copy()
                for i in range(a, z):
                    if len(multiplicity):
                        for j in range(D):
                            share[j] = multiplicity[i] * mean[j]
                    to = grad_x[i]
                    for j in range(D):
                        to[j] += share[j]
