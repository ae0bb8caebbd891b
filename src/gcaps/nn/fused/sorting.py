"""The order of a graph's rows by content, compiled: what max-sort pooling does on CPU."""

from __future__ import annotations

from gcaps.nn.fused.blocks import Array, compiled


@compiled
def comes_after(x: Array, i: int, j: int) -> bool:
    """Whether row i of x is smaller than row j: in the last column, where they tie in the one before, and so on."""
    left, right = x[i], x[j]
    for column in range(x.shape[1] - 1, -1, -1):
        if left[column] != right[column]:
            return bool(left[column] < right[column])
    return False


@compiled
def sort_rows(x: Array, ptr: Array, order: Array, room: Array) -> None:
    """order[ptr[g]:ptr[g+1]] = the rows of graph g, largest first, equal ones as they come (merging, bottom up).

    ``room`` is as long as ``order``.
    """
    for i in range(len(order)):
        order[i] = i
    for g in range(len(ptr) - 1):
        begin, end = ptr[g], ptr[g + 1]
        width = 1
        while width < end - begin:
            for a in range(begin, end, 2 * width):
                m, z = min(a + width, end), min(a + 2 * width, end)
                if m >= z or not comes_after(x, order[m - 1], order[m]):
                    continue  # in order already
                room[a:z] = order[a:z]
                i, j = a, m
                for to in range(a, z):
                    if j >= z or (i < m and not comes_after(x, room[i], room[j])):
                        order[to] = room[i]
                        i += 1
                    else:
                        order[to] = room[j]
                        j += 1
            width *= 2
