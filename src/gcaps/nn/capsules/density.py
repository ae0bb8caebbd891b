"""Kernel density of the neighborhood: a histogram that one can differentiate (the paper's future work)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from gcaps.nn.capsules.function import CapsuleFunction
from gcaps.nn.filters import Filter
from gcaps.nn.neighborhood import closed_mean


class Density(CapsuleFunction):
    r"""The density of the closed neighborhood's values at P learned places, by Gaussian kernels.

    .. math::
        S_p(i) = \frac{1}{\sum_k a_{ik}} \sum_{k \in \mathcal{N}(i) \cup \{i\}} a_{ik}
                 \exp\Big(-\tfrac12 \big((x_k - c_p)/w_p\big)^2\Big)

    Each input channel has P centres c and widths w of its own; they begin evenly spread over ±2 (inputs come
    normalised) and as wide as they are apart. All values lie in [0, 1]. Narrow kernels make it the histogram that the
    paper wishes for, "not a continuous differentiable function".
    """

    def __init__(self, in_channels: int, capsule_size: int, bound: float | None = None) -> None:
        super().__init__(in_channels, capsule_size, bound)
        self.center = nn.Parameter(torch.empty(capsule_size, in_channels))
        self.log_width = nn.Parameter(torch.empty(capsule_size, in_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Centres evenly over ±2, widths as their distance."""
        spread = torch.linspace(-2, 2, self.capsule_size) if self.capsule_size > 1 else torch.zeros(1)
        with torch.no_grad():
            self.center.copy_(spread.unsqueeze(1).expand_as(self.center))
            self.log_width.fill_(math.log(4 / max(self.capsule_size - 1, 2)))

    def forward(self, x: Tensor, M: Filter) -> list[Tensor]:
        """P densities [n, c]."""
        inverse = torch.exp(-self.log_width)
        kernels = [torch.exp(-0.5 * ((x - self.center[p]) * inverse[p]).square()) for p in range(self.capsule_size)]
        means = closed_mean(torch.cat(kernels, dim=1), M)
        return list(means.view(-1, self.capsule_size, self.in_channels).unbind(1))
