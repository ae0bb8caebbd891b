"""Batch normalisation and dropout that treat a batch shared by several processes as one batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gcaps.nn.cpu.blocks import is_supported
from gcaps.nn.cpu.norm import normalized
from gcaps.nn.distributed import Share, current_share, is_distributed, merged_statistics, sum_over_processes


class BatchNorm(nn.BatchNorm1d):
    """torch's BatchNorm1d; in distributed training, with the statistics of the rows of all processes.

    torch's SyncBatchNorm does not run on CPU. Rows that represent several nodes count as often in the statistics.

    Args:
        num_features: columns to normalise.
        beside: further columns after these, which are passed on as they are: they are scaled already.
    """

    def __init__(self, num_features: int, beside: int = 0) -> None:
        super().__init__(num_features)
        self.beside = beside

    def forward(self, x: Tensor) -> Tensor:
        """γ (x − mean)/√(variance + ε) + β"""
        if not self.beside:
            return self._normalize(x)
        return torch.cat([self._normalize(x[:, : self.num_features]), x[:, self.num_features :]], dim=1)

    def _normalize(self, x: Tensor) -> Tensor:
        if torch.compiler.is_compiling() or not (self.training and is_distributed()):
            return super().forward(x)
        return self._synchronized(x, None)

    def rectified(self, x: Tensor, multiplicity: Tensor | None = None) -> Tensor:
        """ReLU of the normalised rows of x [n, w], as one operation in training on CPU.

        Args:
            x: [n, w].
            multiplicity: [n] number of nodes that each row represents; None if each is one.
        """
        if not self.training or (multiplicity is None and not is_supported(x)):
            return torch.relu(self._normalize(x))
        if is_distributed() or not is_supported(x):
            return torch.relu(self._synchronized(x, multiplicity))
        if len(x) == 1 and (multiplicity is None or multiplicity.sum() == 1):
            raise ValueError("batch normalisation needs more than one node in training")
        assert self.running_mean is not None
        assert self.running_var is not None
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        state = self.running_mean, self.running_var, self.momentum or 0.0, self.eps
        return normalized(x, self.weight, self.bias, state, multiplicity, relu=True)

    def _synchronized(self, x: Tensor, multiplicity: Tensor | None) -> Tensor:
        out: Tensor = _SynchronizedNorm.apply(x, self.weight, self.bias, self, multiplicity)  # type: ignore[no-untyped-call]
        return out


def rectified(norm: nn.Module, x: Tensor, multiplicity: Tensor | None) -> Tensor:
    """ReLU of the rows of x as normalised by ``norm``; see :meth:`BatchNorm.rectified`."""
    assert isinstance(norm, BatchNorm)
    return norm.rectified(x, multiplicity)


class _SynchronizedNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, gamma: Tensor, beta: Tensor, norm: nn.BatchNorm1d, multiplicity: Tensor | None
    ) -> Tensor:
        values = x.detach().double()
        count = values.new_ones(len(x), 1) if multiplicity is None else multiplicity.double().unsqueeze(1)
        number = int(count.sum())
        own = (count * values).sum(0) / max(number, 1)
        statistics = torch.stack([own, (count * (values - own).square()).sum(0)])
        mean, squares, total = merged_statistics(statistics, number)
        mean, variance = mean.to(x), (squares / total).to(x)
        momentum = norm.momentum or 0.0
        assert norm.running_mean is not None
        assert norm.running_var is not None
        norm.running_mean.lerp_(mean, momentum)
        norm.running_var.lerp_(variance * (total / max(total - 1, 1)), momentum)
        if norm.num_batches_tracked is not None:
            norm.num_batches_tracked.add_(1)
        inverse = (variance + norm.eps).rsqrt()
        scaled = (x - mean) * inverse
        ctx.total, ctx.count = total, None if multiplicity is None else count.to(x)
        ctx.save_for_backward(scaled, gamma, inverse)
        return scaled * gamma + beta

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        scaled, gamma, inverse = ctx.saved_tensors
        own = torch.stack([grad.sum(0), (grad * scaled).sum(0)])
        mean = sum_over_processes(own.double()).to(grad) / ctx.total
        through = mean[0] + scaled * mean[1]
        through = through if ctx.count is None else ctx.count * through
        return gamma * inverse * (grad - through), own[1], own[0], None, None


class Dropout(nn.Dropout):
    """torch's Dropout with masks that do not depend on the number of processes, on CPU.

    All processes of a distributed training draw the mask of the whole batch and take their rows of it. Masks are drawn
    16 bits at a time from 64-bit random numbers, which saves about 2 % of an epoch on NCI1 compared with
    ``nn.Dropout``; recorded results depend on this stream. The fraction that is dropped is p rounded to a multiple of
    2⁻¹⁶.
    """

    def forward(self, x: Tensor) -> Tensor:
        """x / (1 − p) where the mask is one, 0 elsewhere; x itself in evaluation."""
        if not self.training or self.p == 0 or torch.compiler.is_compiling() or x.device.type != "cpu":
            return super().forward(x)
        return x * ((self.draw(x.shape) >= self.level).to(x.dtype) * self.scale)

    def draw(self, shape: Sequence[int]) -> Tensor:
        """Random 16-bit integers; entries with at least :attr:`level` are kept and multiplied by :attr:`scale`."""
        rows, row = shape[0], math.prod(shape[1:])
        share = current_share() or Share(0, rows, rows)
        words = torch.empty(-(-share.total * row // 4), dtype=torch.int64).random_(-(2**63), None)
        return words.view(torch.int16)[share.first * row : share.last * row].view(tuple(shape))

    @property
    def level(self) -> int:
        """The fraction p of all 16-bit integers is smaller."""
        return round(self.p * 2**16) - 2**15

    @property
    def scale(self) -> float:
        """1 / (1 − p), p rounded to a multiple of 2⁻¹⁶."""
        return 2**16 / (2**15 - self.level)
