"""Slow recurrent cells with capsule gates, in float64. Nothing here shares code with gcaps."""

from __future__ import annotations

import numpy as np


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def convolution(F, M, W, b, bound):
    """[n, h, P] Σ_k M^k F^p W_pk + b_p, written out; W is [P, c, K + 1, h], b [P·h]."""
    P, _, orders, h = W.shape
    out = np.zeros((len(F), h, P))
    for p in range(1, P + 1):
        base = F if p == 1 else F / np.sqrt(1 + (F / bound) ** 2)
        for k in range(orders):
            out[:, :, p - 1] += np.linalg.matrix_power(M, k) @ base**p @ W[p - 1, :, k]
        out[:, :, p - 1] += b.reshape(P, h)[p - 1]
    return out


def flat(state):
    """[n, P·h] capsules component by component."""
    return np.concatenate([state[:, :, p] for p in range(state.shape[2])], axis=1)


def gru(x, H, gates, candidate):
    h = H.shape[1]
    both = sigmoid(gates(np.concatenate([x, flat(H)], axis=1)))
    u, r = both[:, :h], both[:, h:]
    C = np.tanh(candidate(np.concatenate([x, flat(r * H)], axis=1)))
    return u * H + (1 - u) * C


def lstm(x, H, C, gates):
    h = H.shape[1]
    z = gates(np.concatenate([x, flat(H)], axis=1))
    i, f, o, g = (z[:, k * h : (k + 1) * h] for k in range(4))
    C = sigmoid(f) * C + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(C), C
