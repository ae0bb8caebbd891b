"""For PyTorch Geometric: the capsule layer as ``MessagePassing``, the covariance readout as an ``Aggregation``, FGSD as
a transform, and conversions.

No other module of gcaps imports torch_geometric on import, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.aggr import Aggregation
from torch_geometric.transforms import BaseTransform

from gcaps import nn
from gcaps.data.graphset import GraphSet
from gcaps.data.io.pyg import from_pyg, to_pyg
from gcaps.errors import GcapsError
from gcaps.features.fgsd import FGSD
from gcaps.nn.readout import MeanCovariance, num_segments

__all__ = ["AddFGSD", "GraphCapsuleConv", "MeanCovarianceAggregation", "from_pyg", "to_pyg"]


class GraphCapsuleConv(MessagePassing):  # type: ignore[misc]  # torch_geometric is not typed
    """:class:`gcaps.nn.GraphCapsuleConv` as a ``MessagePassing`` module, which ``torch_geometric.explain`` can explain.

    Explainers put an edge mask into every ``MessagePassing`` module. Here it multiplies the edge weights: an edge under
    a mask of 0 does not count, in the degrees of the filter either.

    Args:
        args, options: those of :class:`gcaps.nn.GraphCapsuleConv`.

    Shapes:
        See :class:`gcaps.nn.GraphCapsuleConv`.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__()
        self.conv = nn.GraphCapsuleConv(*args, **options)

    @property
    def width(self) -> int:
        """Columns of the flattened output, which are ``in_channels`` of the next layer."""
        return self.conv.width

    def reset_parameters(self) -> None:
        """Reset the parameters of the layer."""
        self.conv.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        edge_type: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        """Capsules [n, out_channels, capsule_size]."""
        if self.explain and self._edge_mask is not None:
            mask = self._edge_mask.sigmoid() if self._apply_sigmoid else self._edge_mask
            edge_weight = mask.to(x.dtype) if edge_weight is None else edge_weight * mask.to(edge_weight.dtype)
        capsules: Tensor = self.conv(x, edge_index, edge_weight, batch, edge_type, edge_attr)
        return capsules

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.conv.extra_repr()})"


class MeanCovarianceAggregation(Aggregation):  # type: ignore[misc]  # torch_geometric is not typed
    r"""Mean and covariance of the rows of each set (Eq. 7), as PyG's ``Aggregation``.

    .. math::
        f = [\mu, \mathrm{triu}(\mathbf{C})], \qquad
        \mathbf{C} = \frac{1}{N} (\mathbf{Z} - \mu)^\top (\mathbf{Z} - \mu)

    A replacement for ``global_mean_pool`` and the like. Unlike :class:`gcaps.nn.MeanCovariance`, which it wraps, it
    also takes an ``index`` that is not sorted, so it can aggregate messages.

    Args:
        in_channels: columns of the input.
        rank: project to this many learned columns before taking the covariance; by default, all columns are used.
        reduce: ``"mean"`` or ``"sum"``.
        root: take the signed square root of the entries of the covariance.
        count: append log(1 + N).

    Shapes:
        - **input:** features [n, in_channels]; ``index`` [n] or ``ptr`` [B+1].
        - **output:** [B, :attr:`out_channels`].
    """

    def __init__(
        self,
        in_channels: int,
        rank: int | None = None,
        *,
        reduce: str = "mean",
        root: bool = False,
        count: bool = False,
    ) -> None:
        super().__init__()
        self.readout = MeanCovariance(in_channels, rank, reduce=reduce, root=root, count=count)

    @property
    def out_channels(self) -> int:
        """Columns of the output."""
        return self.readout.out_channels

    def reset_parameters(self) -> None:
        """Reset the projection, if there is one."""
        self.readout.reset_parameters()

    def __call__(
        self,
        x: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        dim: int = -2,
        **options: Any,
    ) -> Tensor:
        """See :meth:`forward`."""
        if torch.compiler.is_compiling() and index is not None and ptr is None and dim_size is None:
            dim_size = num_segments(index)  # PyG would make it a constant of the exported program
        out: Tensor = super().__call__(x, index, ptr, dim_size, dim, **options)
        return out

    def forward(
        self,
        x: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        dim: int = -2,
        max_num_elements: int | None = None,
    ) -> Tensor:
        """[μ, triu C] of each set."""
        self.assert_two_dimensional_input(x, dim)
        if (
            not torch.compiler.is_compiling()
            and ptr is None
            and index is not None
            and bool((index[1:] < index[:-1]).any())
        ):
            index, order = torch.sort(index, stable=True)
            x = x[order]
        out: Tensor = self.readout(x, index, ptr, dim_size)
        if dim_size is not None and out.size(0) > dim_size:
            raise ValueError(f"dim_size is {dim_size}, but index has {out.size(0)} sets")
        return out

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.readout.extra_repr()})"


class AddFGSD(BaseTransform):  # type: ignore[misc]  # torch_geometric is not typed
    """Add the histogram of harmonic distances of each node (Eq. 9) as node features.

    The range of the bins comes from the training graphs, so the transform is fitted before it is used::

        transform = AddFGSD(bins=32).fit(train_graphs)
        train_graphs = [transform(data) for data in train_graphs]

    Args:
        bins: number of bins; two more columns count distances beyond them and unreachable nodes.
        attr_name: attribute to store the features in; by default they are appended to ``x``.
        options: other parameters of :class:`gcaps.features.FGSD`, such as ``spacing``, ``soft``, ``f`` and ``method``.
    """

    def __init__(self, bins: int = 32, attr_name: str | None = None, **options: Any) -> None:
        self.bins, self.attr_name = bins, attr_name
        self.fgsd = FGSD(bins, **options)

    def fit(self, graphs: Iterable[Data]) -> Self:
        """Take the range of the bins from these (training) graphs."""
        self.fgsd.fit(_structure(graphs))
        return self

    def forward(self, data: Any) -> Any:
        """``data`` (a ``Data`` or a ``Batch``) with the features."""
        if not hasattr(self.fgsd, "range_"):
            raise GcapsError("AddFGSD is not fitted; call fit with the training graphs first")
        graphs = data.to_data_list() if isinstance(data, Batch) else [data]
        features = torch.from_numpy(self.fgsd.transform(_structure(graphs)))
        x = data.x
        if self.attr_name is not None:
            data[self.attr_name] = features if data.edge_index is None else features.to(data.edge_index.device)
        elif x is None:
            data.x = features if data.edge_index is None else features.to(data.edge_index.device)
        else:
            x = x.view(-1, 1) if x.dim() == 1 else x
            x = x if x.is_floating_point() else x.to(features.dtype)
            data.x = torch.cat([x, features.to(x.device, x.dtype)], dim=1)
        return data

    def __repr__(self) -> str:
        return f"{type(self).__name__}(bins={self.bins})"


def _structure(graphs: Iterable[Data]) -> GraphSet:
    """The graphs with only their edges and weights, since other fields need not be consistent."""
    bare = [
        Data(edge_index=data.edge_index, edge_weight=data.get("edge_weight"), num_nodes=data.num_nodes)
        for data in graphs
    ]
    return from_pyg(bare)
