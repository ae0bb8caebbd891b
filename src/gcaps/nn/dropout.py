"""Dropout whose masks cost a byte of randomness a number."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gcaps.nn.distributed import Share, current_share
from gcaps.nn.tracing import tracing


class Dropout(nn.Dropout):
    """torch's dropout, with masks drawn from the bytes of 64-bit random numbers: about ten times faster on CPU.

    The share that is dropped is p rounded to a 65,536th.
    """

    def forward(self, x: Tensor) -> Tensor:
        """x / (1 − p) where the mask is one, 0 elsewhere; x itself in evaluation."""
        if not self.training or self.p == 0 or tracing() or x.device.type != "cpu":
            return super().forward(x)
        return x * ((self.draw(x.shape) >= self.level).to(x.dtype) * self.scale)

    def draw(self, shape: Sequence[int]) -> Tensor:
        """Random numbers of 16 bits; those from :attr:`level` on are kept, times :attr:`scale`."""
        rows, row = shape[0], math.prod(shape[1:])
        share = current_share() or Share(0, rows, rows)  # all processes draw the same masks, and take their rows
        words = torch.empty(-(-share.total * row // 4), dtype=torch.int64).random_(-(2**63), None)
        return words.view(torch.int16)[share.first * row : share.last * row].view(tuple(shape))

    @property
    def level(self) -> int:
        """p of the numbers of 16 bits lie below it."""
        return round(self.p * 2**16) - 2**15

    @property
    def scale(self) -> float:
        """1 / (1 − p), p rounded to a 65,536th."""
        return 2**16 / (2**15 - self.level)
