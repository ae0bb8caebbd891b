"""The plain readouts that mean and covariance are compared with: the mean or the sum of a graph's nodes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gcaps.nn.readout import segment_mean, segments


class MeanPool(nn.Module):
    """[B, c] the mean of each graph's rows; with ``total`` the sum.

    Shapes:
        - **input:** [n, c] with ``index`` (ascending) or ``ptr``; **output:** [B, c].
    """

    def __init__(self, total: bool = False) -> None:
        super().__init__()
        self.total = total

    def forward(self, x: Tensor, index: Tensor | None = None, ptr: Tensor | None = None) -> Tensor:
        """The mean, or the sum."""
        index, ptr = segments(index, ptr, x.size(0))
        mean = segment_mean(x, index, ptr)
        return mean * ptr.diff().unsqueeze(1) if self.total else mean

    def extra_repr(self) -> str:
        """The arguments, as in the constructor."""
        return f"total={self.total}"


class WithCount(nn.Module):
    """A readout and log(1 + N) beside it: what is averaged is blind to size."""

    def __init__(self, readout: nn.Module) -> None:
        super().__init__()
        self.readout = readout

    def forward(self, x: Tensor, index: Tensor | None = None, ptr: Tensor | None = None) -> Tensor:
        """[B, out + 1]"""
        index, ptr = segments(index, ptr, x.size(0))
        return torch.cat([self.readout(x, index, ptr), torch.log1p(ptr.diff().to(x.dtype)).unsqueeze(1)], dim=1)
