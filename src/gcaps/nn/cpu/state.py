"""Arrays of a batch, of a layer and of their gradients that the compiled passes share."""

from __future__ import annotations

from typing import NamedTuple

from gcaps.nn.cpu.blocks import Array


class Nodes(NamedTuple):
    """The nodes of a batch, and the filter M; in backward passes its transpose."""

    cuts: Array
    """[C+1] first node of each block, and n."""
    multiplicity: Array
    """[n] number of nodes that each row represents; empty if each row is one node."""
    rowptr: Array
    """[n+1]"""
    col: Array
    """[e]"""
    value: Array
    """[e]; empty if all values are one."""
    diagonal: Array
    """[n]; empty if it is zero."""


class Relations(NamedTuple):
    """Rows (i, r) of nodes i with edges of relation r, and the entries of the filters M_r between them."""

    ptr: Array
    """[C, R+1] first row of each relation in each block, and the last row plus one; [0, 0] if there is one relation and
    no gates."""
    node: Array
    """[m] node of each row."""
    share: Array
    """[m] diagonal of M_r; empty if it is zero."""
    rowptr: Array
    """[n+1] first entry of each node."""
    entry: Array
    """[E] position of each entry in the values of the filter."""
    row: Array
    """[E] node i of the entry ij."""
    col: Array
    """[E] node j of the entry ij."""
    source: Array
    """[E] row (j, r)."""
    target: Array
    """[E] row (i, r)."""
    part: Array
    """[E] factor of the value: 1, or 1/R if the edge's relation is not known; empty if all are known."""


class Stack(NamedTuple):
    """All layers of a network, and what their forward pass keeps for the backward pass.

    Every layer has P components of width h, w = P·h. The first reads ``x`` and one-hot columns, which come first, the
    others read the output of the layer before.
    """

    layers: int
    """Number of layers L."""
    size: int
    """P."""
    matrices: int
    """Matrices of each component: K + 1 for one relation, 1 + R·K for several."""
    hidden: int
    """h."""
    one_hot: int
    """Number of one-hot columns."""
    weights: Array
    """Weights [P, c, matrices, h], γ [w] and β [w] of each layer, laid end to end."""
    gates: Array
    """[L, P, e] values for each component, which replace those of the filter; empty if there are no gates."""
    ones: Array
    """[P] powers of a one: 1, bounded(1)², …"""
    options: Array
    """[L, 4] float64: 1/bound of :func:`gcaps.nn.bounded` or 0, momentum, ε, and 1 in training."""
    running: Array
    """[L, 2, w] running mean and variance."""
    x: Array
    """[n, ·] dense input."""
    Z: Array
    """[n, L·w] outputs of all layers."""
    first_powers: Array
    """[P−1, n, ·] second to P-th powers of the dense input."""
    powers: Array
    """[L−1, P−1, n, w] of the inputs of the other layers; [1, …] for all where no backward pass follows."""
    pre: Array
    """[L, n, w] arguments of the normalisations; [2, …] for all in turns where no backward pass follows."""
    moments: Array
    """[L, 2, w] mean of ``pre`` and 1/√(variance + ε)."""
    mixed: Array
    """[L, P, m, K·h] of each row of relations, which the gradients of gates need; empty if there are no gates."""


class Layer(NamedTuple):
    """A capsule layer."""

    weight: Array
    """[P, c, (K+1)·h], with relations or gates [P, c, h]; in the first layer only the rows of dense columns."""
    table: Array
    """[P, ·, (K+1)·h] or [P, ·, h] the same of one-hot columns, times the powers of one."""
    relation_weight: Array
    """[P, R, c, K·h] weights of relations on dense columns; empty if there is only one and no gates."""
    relation_table: Array
    """[P, R, ·, K·h] the same on one-hot columns, times the powers of one."""
    hidden: int
    """h."""
    inverse_bound: float
    """1/bound of :func:`gcaps.nn.bounded`, or 0."""
    input: Array
    """[n, ·] what the layer reads: the dense input of the network, or Z."""
    read: int
    """First column that it reads."""
    powers: Array
    """[P−1, n, c] second to P-th powers of these columns."""
    gated: Array
    """[P, e] values for each component, which replace those of the filter; empty if there are no gates."""
    mixed: Array
    """[P, m, K·h] of each row of relations; empty if there are no gates."""


class Norm(NamedTuple):
    """The normalisation of a layer."""

    pre: Array
    """[n, w] its argument."""
    mean: Array
    """[w] mean of ``pre``."""
    inverse: Array
    """[w] 1/√(variance + ε)."""
    gamma: Array
    beta: Array
    column: int
    """First column of the layer's output in Z."""


class Output(NamedTuple):
    """The outputs of all layers."""

    Z: Array
    """[n, Σ P·h]"""
    grad: Array
    """Gradient at Z."""
