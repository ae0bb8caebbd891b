"""Batch normalisation that means the whole batch, also where several processes share it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gcaps.nn.distributed import merged_statistics, sum_over_processes, training_together
from gcaps.nn.tracing import tracing


class BatchNorm(nn.BatchNorm1d):
    """torch's batch normalisation; in a training of several processes, by the statistics of all their rows.

    torch's own SyncBatchNorm needs CUDA; this one needs only sums.
    """

    def forward(self, x: Tensor) -> Tensor:
        """γ (x − mean)/√(variance + ε) + β"""
        if tracing() or not (self.training and training_together()):
            return super().forward(x)
        out: Tensor = _Synchronised.apply(x, self.weight, self.bias, self)  # type: ignore[no-untyped-call]
        return out


class _Synchronised(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, gamma: Tensor, beta: Tensor, norm: nn.BatchNorm1d) -> Tensor:
        values = x.detach().double()
        own = values.mean(0) if len(x) else values.new_zeros(x.size(1))
        statistics = torch.stack([own, (values - own).square().sum(0)]).cpu().numpy()
        middle, squares, total = merged_statistics(statistics, len(x))
        mean, variance = torch.from_numpy(middle).to(x), torch.from_numpy(squares / total).to(x)
        momentum = norm.momentum or 0.0
        assert norm.running_mean is not None
        assert norm.running_var is not None
        norm.running_mean.lerp_(mean, momentum)
        norm.running_var.lerp_(variance * (total / max(total - 1, 1)), momentum)
        if norm.num_batches_tracked is not None:
            norm.num_batches_tracked.add_(1)
        inverse = (variance + norm.eps).rsqrt()
        scaled = (x - mean) * inverse
        ctx.total = total
        ctx.save_for_backward(scaled, gamma, inverse)
        return scaled * gamma + beta

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        scaled, gamma, inverse = ctx.saved_tensors
        own = torch.stack([grad.sum(0), (grad * scaled).sum(0)])
        every = torch.from_numpy(sum_over_processes(own.double().cpu().numpy())).to(grad) / ctx.total
        through = gamma * inverse * (grad - every[0] - scaled * every[1])
        return through, own[1], own[0], None
