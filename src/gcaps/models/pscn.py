"""PATCHY-SAN: Niepert, Ahmed and Kutzkov, "Learning Convolutional Neural Networks for Graphs" (2016)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gcaps.batching.batch import Batch
from gcaps.config import PSCNConfig
from gcaps.data.graphset import GraphSet
from gcaps.models.fields import ReceptiveFields
from gcaps.models.network import InputLinear, Network
from gcaps.nn.cpu.blocks import is_supported
from gcaps.nn.cpu.rows import chosen_rows
from gcaps.nn.regularization import Dropout

LENGTH = 10
"""Length of the second convolution."""


class PSCN(Network):
    """The first w nodes of a graph, each with its receptive field of k nodes, as a sequence for 1-D convolutions.

    With the field v_1 … v_k of the i-th node (:class:`gcaps.models.fields.ReceptiveFields`), padded with zeros:

        y_i = ReLU(Σ_j W_j x_{v_j} + b),  i = 1..w;   1-D convolution over i of length 10;   dense layer;   dropout

    w is the average number of nodes of the training graphs; larger graphs are cut, smaller ones padded with zeros. The
    first convolution sums the rows of W_j that the one-hot columns of each node of a field choose. Other columns are
    multiplied by every W_j once for each node and then summed over each field.

    Logits do not depend on the order of the nodes if the features are functions of the colors that order the fields
    (labels, degrees). They may depend on it if nodes of the same color differ in their features (attributes, FGSD); the
    authors' canonical labelling does not use features either.

    Args:
        in_channels: columns of the node features.
        num_classes: number of logits.
        config: field size, channels, dropout.
        width: number of fields w of a graph.
    """

    prepared_by = ("field",)

    def __init__(self, in_channels: int, num_classes: int, config: PSCNConfig, *, width: int) -> None:
        super().__init__(in_channels, width=width)
        self.k, self.width = config.field, width
        second = max(config.channels // 2, 1)
        self.first = InputLinear(in_channels, config.field * config.channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(config.channels))
        length = min(LENGTH, width)
        self.second = nn.Sequential(nn.Conv1d(config.channels, second, length), nn.ReLU(), nn.Flatten())
        self.head = nn.Sequential(
            nn.Linear((width - length + 1) * second, config.hidden),
            nn.ReLU(),
            Dropout(config.dropout),
            nn.Linear(config.hidden, num_classes),
        )

    @staticmethod
    def shape_from(config: PSCNConfig, graphs: GraphSet) -> dict[str, Any]:
        """Width w: the setting, or the average number of nodes."""
        return {"width": config.width or max(round(graphs.num_nodes / len(graphs)), 1)}

    @staticmethod
    def prepare(config: PSCNConfig, graphs: GraphSet) -> ReceptiveFields:
        """Receptive fields of all nodes; the network uses the first w of each graph."""
        return ReceptiveFields.of(graphs, config.field)

    def field_channels(self, batch: Batch) -> Tensor:
        """[B, w, channels] output of the first convolution."""
        assert batch.extras is not None
        fields = batch.extras["fields"]
        place = torch.arange(self.width, device=fields.device)
        present = place < batch.ptr.diff()[:, None]
        chosen = fields[(batch.ptr[:-1, None] + place)[present]]
        summed = self._field_sums(batch, chosen)
        sequence = summed.new_zeros(len(present), self.width, summed.size(1))
        sequence[present] = summed
        return torch.relu(sequence + self.bias)

    def _field_sums(self, batch: Batch, chosen: Tensor) -> Tensor:
        """[m, channels] Σ_j W_j x_{v_j} of fields [m, k] of nodes, −1 for none."""
        place = torch.arange(self.k, device=chosen.device)
        if batch.one_hot_index is None or not is_supported(self.first.weight):
            return self._sums_of_products(self.first(batch), chosen, place)
        # one-hot columns choose rows of W, without a product for every node and position
        columns = batch.one_hot_index[chosen]
        at = torch.where((chosen.unsqueeze(2) < 0) | (columns < 0), -1, columns * self.k + place.unsqueeze(1))
        summed = chosen_rows(self.first.weight[: batch.one_hot].reshape(batch.one_hot * self.k, -1), at.flatten(1))
        if not batch.dense.size(1):
            return summed
        return summed + self._sums_of_products(batch.dense @ self.first.weight[batch.one_hot :], chosen, place)

    def _sums_of_products(self, products: Tensor, chosen: Tensor, place: Tensor) -> Tensor:
        """The same from the products [n, k·channels] of all nodes with every W_j."""
        n = len(products)
        products = products.view(n * self.k, -1)
        products = torch.cat([products, products.new_zeros(1, products.size(1))])
        at = torch.where(chosen < 0, n * self.k, chosen * self.k + place)
        return products.index_select(0, at.flatten()).view(*at.shape, -1).sum(1)

    def embed(self, batch: Batch) -> Tensor:
        """[B, ·] output of the second convolution."""
        vectors: Tensor = self.second(self.field_channels(batch).transpose(1, 2))
        return vectors
