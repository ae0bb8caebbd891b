"""Matrix products of parts of arrays in compiled code, with and without adding to what is there.

Compiled ``np.dot`` takes whole contiguous matrices and overwrites its output. This calls the same BLAS function with the
distances between rows, so that columns of a wider matrix are read and written in place.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from gcaps.nn.cpu.blocks import Array

_size, _char = ir.IntType(64), ir.IntType(8)
_pointer = _char.as_pointer()


def _multiply(
    typing: Any, m: Any, n: Any, k: Any, A: Any, a: Any, lda: Any, B: Any, b: Any, ldb: Any, C: Any, c: Any, *rest: Any
) -> Any:
    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        m, n, k, A, a, lda, B, b, ldb, C, c, ldc, transposed_a, transposed_b, add = given
        dtype = signature.args[3].dtype
        value = context.get_value_type(dtype)

        def place(number: int, array: Any, first: Any) -> Any:
            data = context.make_array(signature.args[number])(context, builder, array).data
            return builder.bitcast(builder.gep(data, [first]), _pointer)

        def letter(flag: Any) -> Any:
            return builder.select(flag, ir.Constant(_char, ord("t")), ir.Constant(_char, ord("n")))

        def number(x: Any) -> Any:
            slot = cgutils.alloca_once(builder, value)
            builder.store(x, slot)
            return builder.bitcast(slot, _pointer)

        one, zero = ir.Constant(value, 1.0), ir.Constant(value, 0.0)
        form = [_char] * 3 + [_size] * 3 + [_pointer] * 2 + [_size, _pointer, _size] + [_pointer] * 2 + [_size]
        gemm = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.IntType(32), form), "numba_xxgemm")
        kind = ir.Constant(_char, ord("d" if dtype is types.float64 else "s"))
        # BLAS reads by columns: Cᵀ = Bᵀ Aᵀ
        operands = (place(6, B, b), ldb, place(3, A, a), lda, number(builder.select(add, one, zero)), place(9, C, c), ldc)
        builder.call(gemm, (kind, letter(transposed_b), letter(transposed_a), n, m, k, number(one), *operands))
        return context.get_dummy_value()

    sizes = [types.intp] * 3
    arrays = [part for array in (A, B, C) for part in (array, types.intp, types.intp)]
    return types.void(*sizes, *arrays, types.boolean, types.boolean, types.boolean), code


@intrinsic
def multiply(
    typing: Any,
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
    transposed_a: bool,
    transposed_b: bool,
    add: bool,
) -> Any:
    """C = A B, or C += A B with ``add``, for an m × k and a k × n matrix that are parts of contiguous arrays.

    Args:
        typing: numba's.
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.
        A: array that holds the first matrix, from its element ``a`` on, with rows ``lda`` elements apart.
        a: see ``A``.
        lda: see ``A``.
        B: likewise, the second matrix.
        b: see ``B``.
        ldb: see ``B``.
        C: likewise, the output.
        c: see ``C``.
        ldc: see ``C``.
        transposed_a: the transpose of A is stored.
        transposed_b: the transpose of B is stored.
        add: add to C.
    """
    return _multiply(typing, m, n, k, A, a, lda, B, b, ldb, C, c, ldc, transposed_a, transposed_b, add)
