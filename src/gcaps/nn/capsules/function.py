"""What every capsule function is: a rule for the instantiation parameters that a capsule keeps of its neighborhood."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from gcaps.nn.filters import Filter


class CapsuleFunction(nn.Module):
    """Turns node features F [n, c] into P matrices of the same shape, whose mixtures are the capsules.

    There are two kinds. A *pointwise* one maps each value by itself (powers); the filter then gathers the neighborhood:

        Σ_{k=0..K} M^k Y_p W_pk                                  (Eq. 5 with Y_p = F^⊙p)

    One that is not pointwise is a statistic of the closed neighborhood N(i) ∪ {i} already, one hop wide; the node
    itself comes in by W_p0, and the filter spreads the statistic by the remaining K−1 hops:

        F W_p0 + Σ_{k=1..K} M^(k−1) S_p W_pk

    Both see exactly K hops (Theorem 1), and both are equivariant under node order.

    Args:
        in_channels: c.
        capsule_size: P.
        bound: keeps powers in range, see :func:`gcaps.nn.bounded`.
    """

    pointwise: ClassVar[bool] = False

    def __init__(self, in_channels: int, capsule_size: int, bound: float | None = None) -> None:
        super().__init__()
        self.in_channels, self.capsule_size, self.bound = in_channels, capsule_size, bound

    def reset_parameters(self) -> None:
        """Fresh parameters; most capsule functions have none."""

    def forward(self, x: Tensor, M: Filter) -> list[Tensor]:
        """P matrices [n, c]."""
        raise TypeError(f"{type(self).__name__} does not say what it computes")

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.in_channels}, {self.capsule_size}, bound={self.bound}"
