"""Matrix products of parts of arrays in compiled code, with and without adding to what is there.

Compiled ``np.dot`` takes whole contiguous matrices and overwrites its output. This calls the same BLAS function with
the distances between rows, so that columns of a wider matrix are read and written in place.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils as numba_cgutils
from numba.core import types
from numba.extending import intrinsic

from gcaps.nn.cpu.blocks import Array, compiled_part

cgutils: Any = numba_cgutils  # without annotations
_size, _char = ir.IntType(64), ir.IntType(8)
_pointer = _char.as_pointer()

SMALL = 2**19
"""Multiplications of a product up to which BLAS uses kernels for small matrices, without copying the operands. On
processors with AVX-512 these are up to 1.8 times as fast, elsewhere smaller products cost up to 6 %."""
LEAST_ROWS = 32
"""Products are not cut into pieces of fewer rows."""


def _one_call(
    typing: Any,
    m: Any,
    n: Any,
    k: Any,
    A: Any,
    a: Any,
    lda: Any,
    B: Any,
    b: Any,
    ldb: Any,
    C: Any,
    c: Any,
    ldc: Any,
    transposed: Any,
    add: Any,
) -> Any:
    """One call of BLAS; with ``transposed`` the transpose of A is stored."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        m, n, k, A, a, lda, B, b, ldb, C, c, ldc, transposed, add = given
        dtype = signature.args[3].dtype
        value = context.get_value_type(dtype)

        def place(number: int, array: Any, first: Any) -> Any:
            data = context.make_array(signature.args[number])(context, builder, array).data
            return builder.bitcast(builder.gep(data, [first]), _pointer)

        def number(x: Any) -> Any:
            slot = cgutils.alloca_once(builder, value)
            builder.store(x, slot)
            return builder.bitcast(slot, _pointer)

        one, zero = ir.Constant(value, 1.0), ir.Constant(value, 0.0)
        form = [_char] * 3 + [_size] * 3 + [_pointer] * 2 + [_size, _pointer, _size] + [_pointer] * 2 + [_size]
        gemm = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.IntType(32), form), "numba_xxgemm")
        kind = ir.Constant(_char, ord("d" if dtype is types.float64 else "s"))
        plain, form_of_a = ir.Constant(_char, ord("n")), ir.Constant(_char, ord("t"))
        form_of_a = builder.select(transposed, form_of_a, plain)
        # BLAS reads by columns: Cᵀ = Bᵀ Aᵀ
        operands = (
            place(6, B, b),
            ldb,
            place(3, A, a),
            lda,
            number(builder.select(add, one, zero)),
            place(9, C, c),
            ldc,
        )
        builder.call(gemm, (kind, plain, form_of_a, n, m, k, number(one), *operands))
        return context.get_dummy_value()

    sizes = [types.intp] * 3
    arrays = [part for array in (A, B, C) for part in (array, types.intp, types.intp)]
    return types.void(*sizes, *arrays, types.boolean, types.boolean), code


_gemm: Any = intrinsic(_one_call)


@compiled_part
def _tile(rows: int, others: int) -> int:
    """Rows to multiply at once: all where the other two sizes, whose product is given, are not small."""
    tile = SMALL // max(others, 1)
    return tile if tile >= LEAST_ROWS else max(rows, 1)


@compiled_part
def multiply(
    m: int,
    n: int,
    k: int,
    A: Array,
    a: int,
    lda: int,
    B: Array,
    b: int,
    ldb: int,
    C: Array,
    c: int,
    ldc: int,
    add: bool,
) -> None:
    """C = A B, or C += A B with ``add``, for an m × k and a k × n matrix.

    A begins at the element ``a`` of an array and has rows ``lda`` elements apart; B and C likewise.
    """
    tile = _tile(m, n * k)
    for i in range(0, m, tile):
        _gemm(min(tile, m - i), n, k, A, a + i * lda, lda, B, b, ldb, C, c + i * ldc, ldc, False, add)


@compiled_part
def multiply_transposed(
    m: int,
    n: int,
    k: int,
    A: Array,
    a: int,
    lda: int,
    B: Array,
    b: int,
    ldb: int,
    C: Array,
    c: int,
    ldc: int,
    add: bool,
) -> None:
    """C = Aᵀ B, or C += Aᵀ B with ``add``, for a k × m and a k × n matrix; see :func:`multiply`."""
    tile = _tile(k, m * n)
    for i in range(0, max(k, 1), tile):  # without rows, C = 0
        _gemm(m, n, min(tile, k - i), A, a + i * lda, lda, B, b + i * ldb, ldb, C, c, ldc, True, add or i > 0)
