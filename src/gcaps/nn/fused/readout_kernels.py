"""Loops over graphs and their nodes, compiled: mean and covariance of node features (Eq. 7), forwards and backwards."""

from __future__ import annotations

import numpy as np

from gcaps.nn.fused.kernels import Array, compiled

EPSILON = 1e-4
"""ε of the signed root sign(c)·(√(|c| + ε) − √ε)."""


@compiled
def means(x: Array, ptr: Array, out: Array) -> None:
    """out[:, :c]: the mean of each graph's rows of x [n, c]; sums in float64."""
    total = np.zeros(x.shape[1])
    for g in range(len(ptr) - 1):
        total[:] = 0
        for i in range(ptr[g], ptr[g + 1]):
            row = x[i]
            for j in range(len(total)):
                total[j] += row[j]
        size = max(ptr[g + 1] - ptr[g], 1)
        for j in range(len(total)):
            out[g, j] = total[j] / size


@compiled
def centre(y: Array, ptr: Array, mean: Array) -> None:
    """y −= mean of its graph, in place."""
    for g in range(len(ptr) - 1):
        middle = mean[g]
        for i in range(ptr[g], ptr[g + 1]):
            row = y[i]
            for j in range(len(row)):
                row[j] -= middle[j]


@compiled
def outer_sums(centred: Array, ptr: Array, C: Array) -> None:
    """C [B, r, r] = Σ_i c_i c_iᵀ over each graph's rows."""
    r = centred.shape[1]
    for g in range(len(ptr) - 1):
        C[g] = 0
        for i in range(ptr[g], ptr[g + 1]):
            c = centred[i]
            for a in range(r):
                to, factor = C[g, a], c[a]
                for j in range(r):
                    to[j] += factor * c[j]


@compiled
def products(S: Array, centred: Array, ptr: Array, out: Array) -> None:
    """out_i = S_g c_i for symmetric S [B, r, r]."""
    r = centred.shape[1]
    for g in range(len(ptr) - 1):
        for i in range(ptr[g], ptr[g + 1]):
            to, c = out[i], centred[i]
            to[:] = 0
            for a in range(r):
                row, factor = S[g, a], c[a]
                for j in range(r):
                    to[j] += factor * row[j]


@compiled
def pad(rows: Array, ptr: Array, graphs: Array, out: Array) -> None:
    """out [b, width, r]: the rows of some graphs, zeros below."""
    for k in range(len(graphs)):
        first, size = ptr[graphs[k]], ptr[graphs[k] + 1] - ptr[graphs[k]]
        out[k, :size] = rows[first : first + size]
        out[k, size:] = 0


@compiled
def cut(padded: Array, ptr: Array, graphs: Array, out: Array) -> None:
    """The rows of some graphs back to where they belong."""
    for k in range(len(graphs)):
        first, size = ptr[graphs[k]], ptr[graphs[k] + 1] - ptr[graphs[k]]
        out[first : first + size] = padded[k, :size]


@compiled
def pack(C: Array, graphs: Array, scale: Array, root: bool, first: int, out: Array) -> None:
    """out[graphs, first:]: upper triangles of scale · C, row by row, with ``root`` their signed square roots."""
    r = C.shape[1]
    epsilon = C.dtype.type(EPSILON)
    least = np.sqrt(epsilon)
    for k in range(len(graphs)):
        g, place = graphs[k], first
        for a in range(r):
            row, to = C[k, a, a:], out[g, place : place + r - a]
            for j in range(r - a):
                to[j] = row[j] * scale[g]
            if root:
                for j in range(r - a):
                    magnitude = np.sqrt(abs(to[j]) + epsilon) - least
                    to[j] = magnitude if to[j] >= 0 else -magnitude
            place += r - a


@compiled
def unpack(grad: Array, out: Array, graphs: Array, scale: Array, root: bool, first: int, S: Array) -> None:
    """S [b, r, r] = scale · (G + Gᵀ), G the gradient at the triangles; out is what :func:`pack` wrote."""
    r = S.shape[1]
    half, least = S.dtype.type(0.5), np.sqrt(S.dtype.type(EPSILON))
    for k in range(len(graphs)):
        g, place = graphs[k], first
        for a in range(r):
            row, given, found = S[k, a, a:], grad[g, place : place + r - a], out[g, place : place + r - a]
            for j in range(r - a):
                row[j] = given[j] * scale[g]
            if root:
                for j in range(r - a):
                    row[j] *= half / (abs(found[j]) + least)
            row[0] += row[0]
            for j in range(1, r - a):
                S[k, a + j, a] = row[j]
            place += r - a


@compiled
def add_means_backward(grad: Array, ptr: Array, total: bool, out: Array) -> None:
    """out_i += grad_g[:c] / N for every node i of graph g, without the division if sums were taken."""
    for g in range(len(ptr) - 1):
        row = grad[g, : out.shape[1]] / grad.dtype.type(1 if total else max(ptr[g + 1] - ptr[g], 1))
        for i in range(ptr[g], ptr[g + 1]):
            to = out[i]
            for j in range(len(row)):
                to[j] += row[j]
