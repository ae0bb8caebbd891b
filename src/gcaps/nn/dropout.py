"""Dropout whose masks cost a byte of randomness a number."""

from __future__ import annotations

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
        share = current_share() or Share(0, len(x), len(x))  # all processes draw the same masks, and take their rows
        row = x[0].numel()
        words = torch.empty(-(-share.total * row // 4), dtype=torch.int64).random_(-(2**63), None)
        level = round(self.p * 2**16) - 2**15
        kept = words.view(torch.int16)[share.first * row : share.last * row].view_as(x) >= level
        return x * (kept * (2**16 / (2**15 - level)))
