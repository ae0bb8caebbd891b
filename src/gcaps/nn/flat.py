"""Parameters of a network, and their gradients, as two vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from gcaps.data.arrays import Array


class FlatParameters(NamedTuple):
    """Two vectors that the parameters of a network, in their order, and their gradients are views of."""

    values: Tensor
    gradient: Tensor

    @staticmethod
    def of(network: nn.Module) -> FlatParameters:
        """Return the vectors of a network or of a part of one; lay its parameters end to end if they are not.

        They must share a type and a device.
        """
        params = list(network.parameters())
        values, gradient = end_to_end([p.detach() for p in params]), end_to_end([p.grad for p in params])
        if values is not None and gradient is not None:
            return FlatParameters(values, gradient)
        values = torch.cat([p.detach().reshape(-1) for p in params])
        gradient = torch.zeros_like(values)
        first = 0
        for p in params:
            last = first + p.numel()
            p.data, p.grad = values[first:last].view_as(p), gradient[first:last].view_as(p)
            first = last
        return FlatParameters(values, gradient)


def end_to_end(tensors: Sequence[Tensor | None]) -> Tensor | None:
    """The vector that tensors are consecutive parts of; None if there is no such vector."""
    parts = [t for t in tensors if t is not None and t.is_contiguous()]
    if len(parts) < len(tensors):
        return None
    storage, first, last = parts[0].untyped_storage(), parts[0].storage_offset(), parts[0].storage_offset()
    for part in parts:
        if part.untyped_storage().data_ptr() != storage.data_ptr() or part.storage_offset() != last:
            return None
        last += part.numel()
    return parts[0].as_strided((last - first,), (1,), first)


def in_shapes(vector: Array, shapes: Sequence[torch.Size]) -> list[Tensor]:
    """Consecutive parts of a vector as tensors of these shapes."""
    parts = np.split(vector, np.cumsum([shape.numel() for shape in shapes])[:-1])
    return [torch.from_numpy(part).view(shape) for part, shape in zip(parts, shapes, strict=True)]
