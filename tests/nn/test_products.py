"""Compiled products of parts of arrays equal dense products in float64."""

import numba
import numpy as np
import pytest

from gcaps.nn.cpu.products import LEAST_ROWS, SMALL, multiply, multiply_transposed


@numba.njit
def product(transposed, m, n, k, A, a, lda, B, b, ldb, C, c, ldc, add):
    if transposed:
        multiply_transposed(m, n, k, A, a, lda, B, b, ldb, C, c, ldc, add)
    else:
        multiply(m, n, k, A, a, lda, B, b, ldb, C, c, ldc, add)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 7, 300])
@pytest.mark.parametrize("width", [1, 64, 140])
def test_products_of_parts_equal_dense_ones(dtype, transposed, rows, width):
    rng = np.random.default_rng(0)
    A, X = (rng.normal(size=(rows + 2, width + 3)).astype(dtype) for _ in range(2))
    W = rng.normal(size=(width, width)).astype(dtype)
    left = A[1 : rows + 1, 2 : width + 2].astype(np.float64)
    B, first, step = (X, width + 4, width + 3) if transposed else (W, 0, width)
    right = X[1 : rows + 1, 1 : width + 1].astype(np.float64) if transposed else W.astype(np.float64)
    expected = left.T @ right if transposed else left @ right
    m, k = (width, rows) if transposed else (rows, width)
    before = rng.normal(size=(m + 1, width + 5)).astype(dtype)
    for add in (False, True):
        C = before.copy()
        product(transposed, m, width, k, A, width + 5, width + 3, B, first, step, C, width + 9, width + 5, add)
        inside = (slice(1, m + 1), slice(4, width + 4))
        wanted = before.astype(np.float64)
        wanted[inside] = expected + (wanted[inside] if add else 0)
        np.testing.assert_allclose(C, wanted, rtol=0, atol=1e-3 if dtype == "float32" else 1e-10)


def test_some_of_the_tested_products_are_cut_and_others_are_not():
    assert SMALL // (64 * 64) in range(LEAST_ROWS, 300)
    assert SMALL // (140 * 140) < LEAST_ROWS
