"""Classes of nodes on Cora and CiteSeer: capsules against PyG's GCN, GAT and GIN, with the same training and search.

    python benchmarks/tasks_nodes.py [--data cora citeseer] [--models capsules gcn gat gin] [--seeds 20]
                                     [--search-seeds 1] [--record results/tasks/nodes.json] [--folder DATA/node]
                                     [--short]

Public split: 20 training nodes of each class, 500 validation nodes, 1,000 test nodes. Each model has the same number of
configurations; each is trained with --search-seeds seeds (numbered from 1,000), and the one with the best mean
validation accuracy is trained with --seeds other seeds. Test nodes are looked at only then. Everything else is the same
for all models: Adam with 0.02, L2 regularisation of the first layer, dropout, early stopping on validation, and where a
configuration has it the consistency of two passes under dropout. Layers are PyG's; the product of sparse features with
the weights of the first layer is ours for all of them. "time" is the CPU time of one training, the median.
With --record each training is written as soon as it is done, and those that FILE has are not repeated.
"""

from __future__ import annotations

import time
from itertools import product
from statistics import median
from typing import Any

import torch
from node_studies import Study, in_percent, read_options
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv

from gcaps.config.tasks import NodeConfig
from gcaps.data.targets import Target
from gcaps.nn.filters import Filter
from gcaps.nn.regularization import Dropout
from gcaps.tasks.encoder import CapsuleEncoder
from gcaps.tasks.encoder_model import outputs_of
from gcaps.tasks.graph import NodeGraph
from gcaps.tasks.node_training import NodeTraining
from gcaps.tasks.sparse_rows import SparseRows
from gcaps.training.loop import reproducible

TRAINING = {"epochs": 200, "patience": 30, "lr": 0.02, "weight_decay": 5e-4}
PLAIN = {"passes": 1, "consistency": 0.0}
"""Without the consistency of two passes."""
SPACES: dict[str, list[dict[str, Any]]] = {
    "capsules": [
        {"degrees": (1, 1)},
        {"degrees": (1, 1), "capsule_size": 2},
        {"degrees": (8, 0), "node_dropout": 0.5},
        {"degrees": (8, 0), "node_dropout": 0.5, "capsule_size": 2},
    ],
    "gcn": [{"hidden": 16, **PLAIN}, {"hidden": 64, **PLAIN}, {"hidden": 32}, {"hidden": 64}],
    "gat": [
        {"hidden": 64, "dropout": 0.6, "input_dropout": 0.6, **PLAIN},
        {"hidden": 32, **PLAIN},
        {"hidden": 64, "dropout": 0.6, "input_dropout": 0.6},
        {"hidden": 32},
    ],
    "gin": [{"hidden": 16, **PLAIN}, {"hidden": 64, **PLAIN}, {"hidden": 32}, {"hidden": 64}],
}


class Peer(nn.Module):
    """Two layers of PyG's with dropout as in :class:`gcaps.tasks.encoder.CapsuleEncoder`."""

    def __init__(self, first: nn.Module, middle: nn.Module, last: nn.Module, graph: NodeGraph, config: NodeConfig):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(graph.x.shape[1], config.hidden))
        nn.init.xavier_uniform_(self.weight)
        self.first, self.middle, self.last = first, middle, last
        self.edge_index = torch.from_numpy(graph.edge_index)
        self.input_dropout, self.dropout = Dropout(config.input_dropout), Dropout(config.dropout)
        self.node_dropout = Dropout(config.node_dropout)

    def forward(self, x: SparseRows, M: Filter) -> Tensor:
        x = CapsuleEncoder.thinned(self, x)
        out = self.middle(self.first(x.matmul(self.weight), self.edge_index))
        return self.last(self.dropout(out), self.edge_index)


class Add(nn.Module):
    """Bias of a layer whose product is done."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.bias


def network_of(model: str, graph: NodeGraph, classes: int, config: NodeConfig) -> tuple[nn.Module, Tensor]:
    """Return a network and the weights that are regularised, those of its first layer."""
    h = config.hidden
    if model == "capsules":
        drops = config.input_dropout, config.dropout, config.node_dropout
        shape = config.capsule_size, config.degrees, config.weights
        encoder = CapsuleEncoder(graph.x.shape[1], classes, h, *shape, *drops)
        return encoder, encoder.first_weight
    if model == "gcn":
        first, middle, last = GCNConv(h, h, cached=True), nn.ReLU(), GCNConv(h, classes, cached=True)
        first.lin = nn.Identity()
    elif model == "gat":
        first, middle = GATConv(h, h // 8, heads=8, dropout=0.6), nn.ELU()
        last = GATConv(h, classes, heads=1, dropout=0.6)
        first.lin = nn.Identity()
    else:
        first = GINConv(nn.Sequential(Add(h), nn.ReLU(), nn.Linear(h, h)))
        middle, last = nn.ReLU(), GINConv(nn.Sequential(nn.Linear(h, h), nn.ReLU(), nn.Linear(h, classes)))
    peer = Peer(first, middle, last, graph, config)
    return peer, peer.weight


def train(graph: NodeGraph, model: str, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Train once; return validation and test accuracy, parameters and time."""
    config = NodeConfig.parse({**TRAINING, **settings, "device": "cpu"})
    assert graph.y is not None
    assert graph.train is not None
    assert graph.validation is not None
    assert graph.test is not None
    target = Target.of(graph.y[graph.train], "classification")
    codes = target.encode(graph.y)
    began = time.process_time()
    with reproducible(seed, 1):
        network, weight = network_of(model, graph, target.outputs, config)
        training = NodeTraining(network, graph, codes, graph.train, graph.validation, config, [weight])
        curves, epoch = training.fit(seed)
    spent = time.process_time() - began
    predicted = outputs_of(network, training.inputs).argmax(dim=1).numpy()
    right = predicted == codes
    return {
        "validation": float(right[graph.validation].mean()),
        "test": float(right[graph.test].mean()),
        "parameters": sum(p.numel() for p in network.parameters()),
        "epoch": epoch,
        "epochs": len(curves.loss),
        "seconds": spent,
    }


def show(rows: list[dict[str, Any]]) -> None:
    table = Table("data set", "model", "validation, %", "test, %", "seeds", "parameters", "time, s", "chosen settings")
    for data, model in product(dict.fromkeys(row["data"] for row in rows), SPACES):
        final = [r for r in rows if (r["data"], r["model"], r["part"]) == (data, model, "final")]
        if not final:
            continue
        columns = [in_percent([row[key] for row in final]) for key in ("validation", "test")]
        chosen = ", ".join(f"{k}={v}" for k, v in final[0]["settings"].items())
        seconds = median(r["seconds"] for r in final)
        table.add_row(data, model, *columns, str(len(final)), f"{final[0]['parameters']:,}", f"{seconds:.1f}", chosen)
    Console(width=160).print(table)


def main() -> None:
    options = read_options(__doc__, list(SPACES), 20)
    if options.short:
        TRAINING.update(epochs=5)
    study = Study(options, TRAINING, train, ("test",))
    chosen: dict[tuple[str, str], dict[str, Any]] = {}
    for model, data in product(options.models, study.graphs):
        chosen[data, model] = study.choose(data, model, SPACES[model])
    for seed, ((data, model), settings) in product(range(options.seeds), chosen.items()):
        study.cell(data, model, "final", settings, seed)
    show(study.rows)


if __name__ == "__main__":
    main()
