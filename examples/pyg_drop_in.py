"""Graph capsules in a PyTorch Geometric model: four lines change.

    python examples/pyg_drop_in.py

``GIN`` below is a plain PyTorch Geometric model, ``Capsules`` the same model with another convolution and another
pooling. The difference between the two classes:

    -        self.conv1 = GINConv(MLP([in_channels, 32, 32]))
    -        self.conv2 = GINConv(MLP([32, 32, 32]))
    -        self.pool = global_add_pool
    -        self.head = Linear(32, num_classes)
    +        self.conv1 = GraphCapsuleConv(in_channels, 16, filter="adjacency", normalize=True)
    +        self.conv2 = GraphCapsuleConv(self.conv1.width, 16, filter="adjacency", normalize=True)
    +        self.pool = MeanCovarianceAggregation(self.conv2.width)
    +        self.head = Linear(self.pool.out_channels, num_classes)

Data, loader and training loop stay the same. Both models are trained on MUTAG with one-hot node labels. The test
accuracy on a few graphs only shows that both learn; use ``gcaps compare`` to compare methods.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Linear, Module
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import MLP, GINConv, global_add_pool

import gcaps
from gcaps.nn import GraphCapsuleConv
from gcaps.pyg import MeanCovarianceAggregation


class GIN(Module):
    """Two GIN convolutions, summed over each graph."""

    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.conv1 = GINConv(MLP([in_channels, 32, 32]))
        self.conv2 = GINConv(MLP([32, 32, 32]))
        self.pool = global_add_pool
        self.head = Linear(32, num_classes)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        x = self.conv1(x, edge_index).relu()
        x = self.conv2(x, edge_index).relu()
        return self.head(self.pool(x.flatten(1), batch))


class Capsules(Module):
    """Two graph capsule convolutions, mean and covariance over each graph."""

    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.conv1 = GraphCapsuleConv(in_channels, 16, filter="adjacency", normalize=True)
        self.conv2 = GraphCapsuleConv(self.conv1.width, 16, filter="adjacency", normalize=True)
        self.pool = MeanCovarianceAggregation(self.conv2.width)
        self.head = Linear(self.pool.out_channels, num_classes)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        x = self.conv1(x, edge_index).relu()
        x = self.conv2(x, edge_index).relu()
        return self.head(self.pool(x.flatten(1), batch))


def mutag() -> tuple[list[Data], list[Data]]:
    """Training and test graphs of MUTAG, nine tenths and one tenth, as PyG's ``Data``."""
    graphs = gcaps.load("MUTAG")
    datas = graphs.to_pyg()
    labels = torch.cat([data.node_label for data in datas]).unique()
    classes = np.unique(graphs.y, return_inverse=True)[1]
    for data, y in zip(datas, classes.tolist(), strict=True):
        data.x = (data.node_label == labels).float()
        data.y = torch.tensor([y])
    order = torch.randperm(len(datas), generator=torch.Generator().manual_seed(0)).tolist()
    cut = len(datas) // 10
    return [datas[i] for i in order[cut:]], [datas[i] for i in order[:cut]]


def train(model: Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> float:
    """Train for one epoch and return the mean loss."""
    model.train()
    total = 0.0
    for data in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data.x, data.edge_index, data.batch), data.y)
        loss.backward()
        optimizer.step()
        total += float(loss.detach()) * data.num_graphs
    return total / len(loader.dataset)


@torch.no_grad()
def accuracy(model: Module, loader: DataLoader) -> float:
    """Share of correctly classified graphs."""
    model.eval()
    right = sum(int((model(d.x, d.edge_index, d.batch).argmax(1) == d.y).sum()) for d in loader)
    return right / len(loader.dataset)


def main(epochs: int = 30) -> dict[str, tuple[float, float]]:
    """Train both models; return the last training loss and the test accuracy of each."""
    training, test = mutag()
    found = {}
    for kind in (GIN, Capsules):
        torch.manual_seed(0)
        model = kind(training[0].num_features, 2)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
        loader = DataLoader(training, batch_size=32, shuffle=True)
        for epoch in range(1, epochs + 1):
            loss = train(model, loader, optimizer)
            found[kind.__name__] = loss, accuracy(model, DataLoader(test, batch_size=32))
            if epoch % 10 == 0 or epoch == epochs:
                loss, right = found[kind.__name__]
                print(f"{kind.__name__:8}  epoch {epoch:3}  training loss {loss:.3f}  test accuracy {right:.1%}")
    return found


if __name__ == "__main__":
    main()
