"""Links of Cora and CiteSeer: autoencoders with capsule and with GCN encoders, and scores of common neighbors.

    python benchmarks/tasks_links.py [--data cora citeseer] [--models …] [--seeds 10] [--search-seeds 1]
                                     [--record results/tasks/links.json] [--folder DATA/node] [--short]

Each seed holds out 5 % of the links for validation and 10 % for test, with as many pairs that are no links, which are
the same for all models; messages pass along the other links only. Both encoders have the same number of configurations,
plain (GAE) and variational (VGAE), each trained on --search-seeds other splits (numbered from 1,000); the one with the
best mean of AUC and AP on their validation links is trained on --seeds splits. Decoder, negatives, Adam with 0.01 and
at most 200 epochs are the same, of which the best on validation links is kept. "time" is the CPU time of one training,
the median.
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
from torch_geometric.nn import GCNConv

from gcaps.config.tasks import LinkConfig
from gcaps.nn.filters import Filter
from gcaps.tasks.encoder import CapsuleEncoder
from gcaps.tasks.link_scores import LINK_SCORES
from gcaps.tasks.link_split import LinkSplit, split_links
from gcaps.tasks.link_training import LinkTraining, link_logits, link_metrics
from gcaps.tasks.sparse_rows import SparseRows
from gcaps.training.loop import reproducible

TRAINING: dict[str, Any] = {"epochs": 200, "lr": 0.01}
PATIENCE = {"GAE": 30, "VGAE": None}
"""The noise of a variational autoencoder can hide progress for tens of epochs."""
SPACES: dict[str, list[dict[str, Any]]] = {
    "capsules": [
        {"degrees": (8,), "weights": "decaying", "embedding": 64},
        {"degrees": (8,), "weights": "decaying", "embedding": 64, "capsule_size": 2},
        {"degrees": (4,), "weights": "shared", "embedding": 64, "capsule_size": 2},
        {"degrees": (1, 1), "weights": "separate", "embedding": 32, "length": None},
    ],
    "gcn": [
        {"hidden": 32, "embedding": 16, "length": None},
        {"hidden": 64, "embedding": 32, "length": None},
        {"hidden": 64, "embedding": 32},
        {"hidden": 128, "embedding": 64},
    ],
}
MODELS = ("capsules", "gcn", *LINK_SCORES)


class GCN(nn.Module):
    """Two layers of PyG's GCNConv, the product with sparse features done beforehand."""

    def __init__(self, size: int, config: LinkConfig, outputs: int, edge_index: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size, config.hidden))
        nn.init.xavier_uniform_(self.weight)
        self.first, self.last = GCNConv(config.hidden, config.hidden), GCNConv(config.hidden, outputs)
        self.first.lin = nn.Identity()
        self.edge_index, self.dropout = edge_index, config.dropout

    def forward(self, x: SparseRows, M: Filter) -> Tensor:
        out = torch.relu(self.first(x.matmul(self.weight), self.edge_index))
        return self.last(nn.functional.dropout(out, self.dropout, self.training), self.edge_index)


def train(split: LinkSplit, model: str, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Train once; return validation and test scores, parameters and time."""
    if model in LINK_SCORES:
        began = time.process_time()
        found = LINK_SCORES[model](split.graph, split.test.both)
        return {**link_metrics(split.test.y, found), "parameters": 0, "seconds": time.process_time() - began}
    patience = PATIENCE["VGAE" if settings["variational"] else "GAE"]
    config = LinkConfig.parse({**TRAINING, "patience": patience, **settings, "device": "cpu"})
    graph, outputs = split.graph, config.embedding * (2 if config.variational else 1)
    size = graph.x.shape[1]
    began = time.process_time()
    with reproducible(seed, 1):
        if model == "capsules":
            shape = config.hidden, config.capsule_size, config.degrees, config.weights
            network: nn.Module = CapsuleEncoder(size, outputs, *shape, config.input_dropout, config.dropout)
        else:
            network = GCN(size, config, outputs, torch.from_numpy(graph.edge_index))
        training = LinkTraining(network, graph, split.validation, config, [])
        curves, epoch = training.fit(seed)
    spent = time.process_time() - began
    scores = link_logits(training.vectors(), torch.from_numpy(split.test.both)).numpy()
    return {
        "validation": max(curves.validation),
        **link_metrics(split.test.y, scores),
        "parameters": sum(p.numel() for p in network.parameters()),
        "epoch": epoch,
        "epochs": len(curves.loss),
        "seconds": spent,
    }


def show(rows: list[dict[str, Any]]) -> None:
    table = Table("data set", "model", "AUC, %", "AP, %", "seeds", "parameters", "time, s", "chosen settings")
    for data, model, part in product(dict.fromkeys(row["data"] for row in rows), MODELS, ("score", "GAE", "VGAE")):
        final = [r for r in rows if (r["data"], r["model"], r["part"]) == (data, model, part)]
        if not final:
            continue
        columns = [in_percent([row[key] for row in final]) for key in ("auc", "ap")]
        chosen = ", ".join(f"{k}={v}" for k, v in final[0]["settings"].items() if k != "variational")
        numbers = f"{final[0]['parameters']:,}", f"{median(r['seconds'] for r in final):.2f}"
        table.add_row(
            data, model + ("" if part == "score" else f" {part}"), *columns, str(len(final)), *numbers, chosen
        )
    Console(width=160).print(table)


def main() -> None:
    options = read_options(__doc__, MODELS, 10)
    if options.short:
        TRAINING.update(epochs=5)
    study = Study(
        options,
        {**TRAINING, "patience": PATIENCE},
        lambda graph, model, settings, seed: train(split_links(graph, seed), model, settings, seed),
        ("auc", "ap"),
    )
    chosen: dict[tuple[str, str, str], dict[str, Any]] = {}
    for data, model in product(study.graphs, options.models):
        if model in LINK_SCORES:
            chosen[data, model, "score"] = {}
            continue
        for part in ("GAE", "VGAE"):
            space = [{**settings, "variational": part == "VGAE"} for settings in SPACES[model]]
            chosen[data, model, part] = study.choose(data, model, space)
    for seed, ((data, model, part), settings) in product(range(options.seeds), chosen.items()):
        study.cell(data, model, part, settings, seed)
    show(study.rows)


if __name__ == "__main__":
    main()
