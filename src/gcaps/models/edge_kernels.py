"""The loops of a convolution with a matrix for each edge."""

from __future__ import annotations

from numba import njit

from gcaps.data.arrays import Array


@njit(cache=True, fastmath={"reassoc", "contract"})
def mix(rowptr: Array, col: Array, values: Array, Y: Array, out: Array) -> None:
    """out_i = Σ_{arcs (i, j)} Σ_h values_h Y_jh, for Y [n, H, c] and values [e, H]; out [n, c] is zero before."""
    _, H, c = Y.shape
    for i in range(len(rowptr) - 1):
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            for h in range(H):
                value = values[e, h]
                if value != 0:
                    for k in range(c):
                        out[i, k] += value * Y[j, h, k]


@njit(cache=True, fastmath={"reassoc", "contract"})
def mix_backward(
    rowptr: Array, col: Array, values: Array, Y: Array, grad: Array, to_values: Array, to_Y: Array
) -> None:
    """The gradients of :func:`mix` with respect to values, and to Y where that is zero before."""
    _, H, c = Y.shape
    zero = grad.dtype.type(0)
    for i in range(len(rowptr) - 1):
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            for h in range(H):
                value = values[e, h]
                # ReLU is flat where its value is zero, so nothing is asked for there
                if value != 0:
                    total = zero
                    for k in range(c):
                        to_Y[j, h, k] += value * grad[i, k]
                        total += grad[i, k] * Y[j, h, k]
                    to_values[e, h] = total
