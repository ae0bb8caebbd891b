"""Capsule functions: the instantiation parameters that a capsule keeps of its neighborhood."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gcaps.nn.filters import Filter
from gcaps.nn.neighborhood import closed_mean, from_neighbors, row_sum, to_edges
from gcaps.nn.symmetric_polynomials import closed_symmetric_means, disable_compilation

FLAT = 1e-6
"""Neighborhoods whose variance is below this fraction of their mean square count as constant: in float32 the difference
is rounding error."""
TINY = 1e-20


class CapsuleFunction(nn.Module):
    """Map node features F [n, c] to P matrices of the same shape, whose linear mixtures are the capsules.

    There are two kinds. A *pointwise* function maps each value separately (powers), and the filter aggregates the
    neighborhood:

        Σ_{k=0..K} M^k Y_p W_pk                                  (Eq. 5 with Y_p = F^⊙p)

    Any other function is a statistic S_p of the closed neighborhood N(i) ∪ {i}, one hop wide. The node itself enters
    through W_p0, and the filter spreads the statistic over the remaining K−1 hops:

        F W_p0 + Σ_{k=1..K} M^(k−1) S_p W_pk

    Both see exactly K hops (Theorem 1) and are equivariant to the order of the nodes.

    Args:
        in_channels: c.
        capsule_size: P.
        bound: keeps powers in range, see :func:`bounded`.
    """

    pointwise: ClassVar[bool] = False

    def __init__(self, in_channels: int, capsule_size: int, bound: float | None = None) -> None:
        super().__init__()
        self.in_channels, self.capsule_size, self.bound = in_channels, capsule_size, bound

    def reset_parameters(self) -> None:
        """Reset the parameters, if there are any."""

    def forward(self, x: Tensor, M: Filter) -> list[Tensor]:
        """P matrices [n, c]."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        """Arguments of the constructor."""
        return f"{self.in_channels}, {self.capsule_size}, bound={self.bound}"


def bounded(x: Tensor, bound: float | None) -> Tensor:
    """x / √(1 + (x/bound)²): close to x for |x| well below ``bound``, and always within ±bound.

    Raw powers grow fast: for |x| ~ 10 the fourth is 10⁴. Powers of bounded values stay in range for any input. With
    None, x is returned unchanged, which is Eq. 5 to the letter.
    """
    return x if bound is None else x * torch.rsqrt(1 + (x / bound).square())


def moments(x: Tensor, capsule_size: int, bound: float | None = None) -> list[Tensor]:
    """[F, F⊙F, …]: raw powers 1..P (Eq. 5), whose filtered sums are the moments of the neighborhood (Eq. 4).

    The first power is x itself; higher ones are powers of :func:`bounded` x.
    """
    if capsule_size == 1:
        return [x]
    if torch.compiler.is_compiling():
        return [x, *_powers(bounded(x, bound), capsule_size)[1:]]
    powers: tuple[Tensor, ...] = _HigherPowers.apply(x, capsule_size, bound)  # type: ignore[no-untyped-call]
    return [x, *powers]


def _powers(base: Tensor, highest: int) -> list[Tensor]:
    """Powers 1..highest."""
    powers = [base]
    for _ in range(highest - 1):
        powers.append(powers[-1] * base)
    return powers


class _HigherPowers(torch.autograd.Function):
    """bounded(x)^p for p = 2..P. Written by hand because autograd's version reads memory twice as often."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, capsule_size: int, bound: float | None) -> tuple[Tensor, ...]:
        # bounded(x) = x·r and its derivative is r³, r = (1 + (x/bound)²)^−½
        r = None if bound is None else torch.rsqrt_(1 + x.div(bound).square_())
        base = x if r is None else x * r
        powers = _powers(base, capsule_size)
        ctx.r, ctx.count = r, capsule_size - 1
        ctx.save_for_backward(*powers[:-1])
        return tuple(powers[1:])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        total = torch.mul(grads[0], ctx.saved_tensors[0]).mul_(2)
        for p in range(3, ctx.count + 2):
            total.addcmul_(grads[p - 2], ctx.saved_tensors[p - 2], value=p)
        if ctx.r is not None:
            total.mul_(ctx.r).mul_(ctx.r).mul_(ctx.r)
        return total, None, None


class Moments(CapsuleFunction):
    """Y_p = F^⊙p, p = 1..P (Eq. 5), the paper's capsule; with the mean filter, raw moments of the neighborhood (Eq. 4).

    See :func:`moments`.
    """

    pointwise: ClassVar[bool] = True

    def forward(self, x: Tensor, M: Filter) -> list[Tensor]:
        """P powers [n, c]."""
        return moments(x, self.capsule_size, self.bound)


class Routing(Moments):
    """Moments whose P components are combined into one by routing by agreement (Sabour et al., 2017), at each node.

    The paper mentions this as a second way to limit the size of capsules. With u_p [h] the components of a node's
    capsule and learned prior logits b_p,

        α = softmax(b),   v = Σ_p α_p u_p,   b_p ← b_p + tanh(⟨u_p, v⟩ / √h)      (``iterations`` times)

    and v is the output: h columns instead of h·P.
    """

    def __init__(self, in_channels: int, capsule_size: int, bound: float | None = None, iterations: int = 3) -> None:
        super().__init__(in_channels, capsule_size, bound)
        self.iterations = iterations
        self.prior = nn.Parameter(torch.zeros(capsule_size))

    def reset_parameters(self) -> None:
        """Reset the prior to equal weights."""
        nn.init.zeros_(self.prior)

    def combine(self, capsules: Tensor) -> Tensor:
        """[n, h, 1] from capsules [n, h, P]."""
        logits = self.prior.expand(capsules.size(0), 1, -1)
        share = torch.softmax(logits, dim=2)
        v = (share * capsules).sum(dim=2, keepdim=True)
        for _ in range(self.iterations - 1):
            # tanh keeps the agreement of large capsules from saturating the softmax in one step
            agreement = torch.tanh((capsules * v).sum(dim=1, keepdim=True) / capsules.size(1) ** 0.5)
            logits = logits + agreement
            v = (torch.softmax(logits, dim=2) * capsules).sum(dim=2, keepdim=True)
        return v


def central_moments(x: Tensor, capsule_size: int, M: Filter) -> list[Tensor]:
    """[μ, σ², γ_3, γ_4, …] of each closed neighborhood with weights a_ik, a_ii = 1 (Figure 1).

    μ = Σ a x / Σ a,  σ² = Σ a (x − μ)² / Σ a,  γ_p = Σ a ((x − μ)/σ)^p / Σ a.

    Figure 1 calls the second one "std." but prints a variance; the printed formula is used. Where the variance vanishes
    every γ_p is 0, with a finite gradient: :data:`FLAT` times the mean square of the neighborhood is added to σ².
    """
    mean = closed_mean(x, M)
    if capsule_size == 1:
        return [mean]
    # differences first: E[x²] − μ² loses all digits of a small variance beside a large mean
    own, others = x - mean, from_neighbors(x, M) - to_edges(mean, M)
    weight = None if M.A.value is None else M.A.value.unsqueeze(1)
    total = (1 + M.A.row_sums(x)).unsqueeze(1)

    def closed(at_node: Tensor, at_edges: Tensor) -> Tensor:
        """Weighted mean of a value at the node and values at its edges."""
        return (at_node + row_sum(at_edges if weight is None else weight * at_edges, M)) / total

    variance = closed(own.square(), others.square())
    out = [mean, variance]
    if capsule_size > 2:
        scale = torch.rsqrt(variance + FLAT * closed_mean(x.square(), M) + TINY)
        own, others = own * scale, others * to_edges(scale, M)
        at_node, at_edges = own.square(), others.square()
        for _ in range(3, capsule_size + 1):
            at_node, at_edges = at_node * own, at_edges * others
            out.append(closed(at_node, at_edges))
    return out


class Central(CapsuleFunction):
    """Standardised central moments of the closed neighborhood, see :func:`central_moments`."""

    def forward(self, x: Tensor, M: Filter) -> list[Tensor]:
        """P statistics [n, c]."""
        return central_moments(x, self.capsule_size, M)


class Density(CapsuleFunction):
    r"""Kernel density of the values of the closed neighborhood at P learned points.

    .. math::
        S_p(i) = \frac{1}{\sum_k a_{ik}} \sum_{k \in \mathcal{N}(i) \cup \{i\}} a_{ik}
                 \exp\Big(-\tfrac12 \big((x_k - c_p)/w_p\big)^2\Big)

    Each input channel has its own P centers c and widths w. Centers are initialised evenly over ±2 (inputs are
    normalised), widths to the distance between them. All values lie in [0, 1]. With narrow kernels this is a
    differentiable histogram; the paper leaves histograms to future work because they are "not a continuous
    differentiable function".
    """

    def __init__(self, in_channels: int, capsule_size: int, bound: float | None = None) -> None:
        super().__init__(in_channels, capsule_size, bound)
        self.center = nn.Parameter(torch.empty(capsule_size, in_channels))
        self.log_width = nn.Parameter(torch.empty(capsule_size, in_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset centers to an even spacing over ±2 and widths to their distance."""
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


class Polynomial(CapsuleFunction):
    """Elementary symmetric polynomials of the closed neighborhood (Eq. 6), each divided by its number of terms.

    Values are bounded first, like those of :class:`Moments`; see
    :func:`gcaps.nn.symmetric_polynomials.closed_symmetric_means`.
    """

    def __init__(self, in_channels: int, capsule_size: int, bound: float | None = None) -> None:
        super().__init__(in_channels, capsule_size, bound)
        disable_compilation()

    def forward(self, x: Tensor, M: Filter) -> list[Tensor]:
        """P statistics [n, c]."""
        return list(closed_symmetric_means(bounded(x, self.bound), self.capsule_size, M))


CAPSULES: dict[str, type[CapsuleFunction]] = {
    "moments": Moments,
    "central": Central,
    "polynomial": Polynomial,
    "density": Density,
    "routing": Routing,
}
"""Capsule functions by name."""
