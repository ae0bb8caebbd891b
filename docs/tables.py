"""Fill the tables of the documentation from the records in results/.

    python docs/tables.py [--check]

Rewrites what is between `<!-- table NAME -->` and `<!-- end -->` in README.md and below docs/; with `--check` it writes
nothing and names the tables that differ from the records.
"""

from __future__ import annotations

import argparse
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import numpy as np

from gcaps.evaluation import Comparison
from gcaps.evaluation.published import best_known, published

ROOT = Path(__file__).parents[1]
DATA = (
    *("MUTAG", "PTC", "ENZYMES", "IMDB-BINARY", "IMDB-MULTI", "PROTEINS"),
    *("NCI1", "NCI109", "COLLAB", "REDDIT-BINARY", "DD", "REDDIT-MULTI-5K"),
)
LABELS = {
    "default": "gcaps",
    "own": "gcaps, own settings",
    "plain": "gcaps, plain",
    "untrained": "capsule-svm",
    "single": "gcaps, one network",
    "attributes": "gcaps, attributes",
    "fair": "gcaps",
    "without-svm": "gcaps, without an SVM",
}
"""The row of each experiment with GCAPS-CNN."""
FOLDS = 10
KERNELS = ("sp", "wl", "gk", "wloa", "rw", "dgk", "mlg")
PAPER = tuple(name for name in DATA if name != "MUTAG")
"""The sets of the paper."""
NETWORKS = ("deepsets", "dcnn", "gin", "dgcnn", "pscn", "ecc")
SYSTEMS = (*NETWORKS, *KERNELS, "wwl", "retgk", "fgsd", "ltp")
"""What GCAPS-CNN is compared with: the ten systems of the paper, and six more."""
FAIR = {"gin": "GIN", "dgcnn": "DGCNN", "ecc": "ECC", "deepsets": "structure-blind-baseline"}
"""Our names and the fair comparison's."""
PLAIN = "capsule moments, size 2"
"""The ablation's row without a change."""
MARKED = re.compile(r"<!-- table (?P<name>[^>]+) -->\n(?P<text>(?:\|.*\n)*)<!-- end -->")

Row = dict[str, Any]


@cache
def record(name: str) -> dict[tuple[str, str, int], Row]:
    """The results of results/NAME.json, by data set, label and seed."""
    page = json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return {(row["data"], row["label"], row["seed"]): row for row in page["results"]}


def row_of(experiment: str, data: str, label: str | None = None, seed: int = 0) -> Row | None:
    return record(experiment).get((data, label or LABELS[experiment], seed))


def percent(mean: float | None, std: float | None = None) -> str:
    if mean is None:
        return "–"
    return f"{100 * mean:.1f}" if std is None else f"{100 * mean:.1f} ± {100 * std:.1f}"


def accuracy_of(row: Row | None, rule: str = "honest", folds: int = FOLDS) -> str:
    """Mean and deviation under a protocol; says where there are fewer folds than ``folds``."""
    if row is None:
        return "–"
    found = row["protocols"][rule]
    text = percent(found["mean"], found["std"])
    return text if len(found["folds"]) >= folds else f"{text} ({len(found['folds'])} folds)"


def reported(data: str, method: str, source: str = "paper") -> str:
    """What a source reports, under its name of the method."""
    for row in published(data):
        if row.source == source and row.method == method:
            return row.status or percent(row.mean, row.std)
    return "–"


def _best(data: str) -> str:
    """The best honest number known and its method."""
    row = best_known(data)
    return "–" if row is None else f"{percent(row.mean)} ({row.method})"


def minutes(row: Row | None) -> str:
    if row is None:
        return "–"
    seconds = sum(fold["fit_seconds"] for fold in row["folds"])
    return f"{max(seconds / 60, 0.1):.{0 if seconds > 90 else 1}f}"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def accuracy() -> str:
    """For each set the paper's number, ours, the best known, and the minutes that ten folds took."""
    head = ["data set", "paper", "plain", "`capsule-svm`", "default", "tuned", "default, `gin` rule"]
    rows = []
    for name in DATA:
        found = {kind: row_of(kind, name) for kind in ("plain", "untrained", "default", "own")}
        ours = {kind: accuracy_of(row) for kind, row in found.items()}
        spent = " / ".join(minutes(found[kind]) for kind in ("untrained", "default", "own"))
        numbers = [ours["plain"], ours["untrained"], f"**{ours['default']}**", ours["own"]]
        peeking = accuracy_of(found["default"], "gin")
        rows.append([name, reported(name, "GCAPS-CNN"), *numbers, peeking, _best(name), spent])
    return markdown([*head, "best known", "minutes"], rows)


def accuracy_in_short() -> str:
    """The same in fewer columns."""
    head = ["data set", "GCAPS-CNN in the paper", "`capsule-svm`", "default", "tuned per data set"]
    rows = []
    for name in DATA:
        untrained, default, own = (row_of(kind, name) for kind in ("untrained", "default", "own"))
        ours = [accuracy_of(untrained), f"**{accuracy_of(default)}**", accuracy_of(own), accuracy_of(default, "gin")]
        rows.append([name, reported(name, "GCAPS-CNN"), *ours, _best(name)])
    return markdown([*head, "default, optimistic rule", "best known"], rows)


def rules() -> str:
    """The same runs under each of the four protocols."""
    protocols = ("honest", "last", "gin", "best")
    rows = [
        [name, kind, *(accuracy_of(row, rule) for rule in protocols)]
        for name in DATA
        for kind in ("default", "plain")
        if (row := row_of(kind, name)) is not None
    ]
    return markdown(["data set", "settings", *(f"`{rule}`" for rule in protocols)], rows)


def svm_beside_a_network() -> str:
    """What the mean with an SVM's probabilities adds to one network, and whether the other sets would say so."""
    found = {}
    for name in DATA:
        network, svm = recorded_scores("without-svm", name), recorded_scores("untrained", name)
        if network and len(network) == len(svm):
            pairs = zip(network, svm, strict=True)
            each = [
                [fmean(s.argmax(1) == y) for s in (a, b, a + b)] for (a, y), (b, _) in pairs
            ]  # probabilities of both
            found[name] = [fmean(column) for column in zip(*each, strict=True)]
    gains = {name: mean - network for name, (network, _, mean) in found.items()}
    rows = []
    for name, values in found.items():
        others = fmean(gain for other, gain in gains.items() if other != name)
        changes = [f"{100 * change:+.1f}".replace("-", "−") for change in (gains[name], others)]
        rows.append([name, *map(percent, values), *changes])
    return markdown(["data set", "network", "SVM", "their mean", "gain", "mean gain on the other sets"], rows)


def recorded_scores(experiment: str, data: str) -> list[tuple[Any, Any]]:
    """Probabilities and classes of the test graphs of each fold with seed 0."""
    comparison = Comparison.read(ROOT / "results" / f"{experiment}.json")
    found = [o.result for o in comparison.outcomes if (o.data, o.label, o.seed) == (data, LABELS[experiment], 0)]
    return [(np.array(fold.scores), np.array(fold.y)) for fold in found if fold is not None]


def seeds() -> str:
    """Rows that were run with several seeds: their mean, and the deviation between repetitions of the split."""
    titles = {"default": "default", "untrained": "`capsule-svm`", "single": "one network"}
    chosen = [(name, title, kind, LABELS[kind]) for name in ("MUTAG", "PTC") for kind, title in titles.items()]
    chosen += [("ENZYMES", "`dgk`", "kernels", "dgk"), ("DD", "`gk`", "kernels", "gk")]
    rows = []
    for name, title, first, label in chosen:
        found = [row_of(first, name, label), *(row_of("seeds", name, label, seed) for seed in range(1, 5))]
        means = [row["protocols"]["honest"]["mean"] for row in found if row is not None]
        rows.append([name, title, percent(means[0]), f"**{percent(fmean(means), stdev(means))}**", str(len(means))])
    return markdown(["data set", "method or settings", "seed 0", "all seeds", "seeds"], rows)


def attributes() -> str:
    """Labels alone, and with continuous attributes."""
    names = [name for name in DATA if row_of("attributes", name) is not None]
    rows = [[name, accuracy_of(row_of("default", name)), accuracy_of(row_of("attributes", name))] for name in names]
    return markdown(["data set", "labels", "labels and attributes"], rows)


def everything() -> str:
    """The default against attributes and edges left out."""
    brings = {
        **dict.fromkeys(("Letter-high", "Synthie"), "node attributes"),
        **dict.fromkeys(("BZR", "COX2", "DHFR", "ENZYMES", "PROTEINS"), "node labels and attributes"),
        "AIDS": "node labels and attributes, edge labels",
        "Mutagenicity": "node and edge labels",
    }
    rows = []
    for name, what in brings.items():
        default, without = (row_of("everything", name, label) for label in ("default", "left out"))
        if default is None or without is None or len(default["folds"]) != len(without["folds"]):
            continue
        folds = len(default["folds"])
        rows.append([name, what, accuracy_of(without, folds=0), f"**{accuracy_of(default, folds=0)}**", str(folds)])
    return markdown(["data set", "brings", "labels or degrees alone", "default", "folds"], rows)


def molecules() -> str:
    """The evaluation of each table of molecules by its customary metric."""
    rows = []
    for path in sorted((ROOT / "results" / "molecules").glob("*.json")):
        page = json.loads(path.read_text(encoding="utf-8"))
        data, row = page["data"][0], page["results"][0]
        found = row["protocols"]["honest"]
        spread = f" ± {found['std']:.3f}" if len(found["folds"]) > 1 else ""
        graphs, task = f"{data['graphs']:,}", data["task"]
        command = re.sub(r" (--jobs|-o) \S+", "", page["command"])
        rows.append([data["name"], task, graphs, f"{found['mean']:.3f}{spread}", data["metric"], f"`{command}`"])
    return markdown(["table", "task", "molecules", "default", "metric", "command"], rows)


def molecule_benchmark() -> str:
    """Quality beside chemprop and a forest on fingerprints; means over the divisions that all of them have."""
    rows = []
    for (data, split), own in _molecule_cells().items():
        present = {method for method, _ in own} & set(COMPARED)
        seeds = sorted({seed for _, seed in own if all((method, seed) in own for method in present)})
        if not seeds or not {"chemprop", "gcaps"} <= present:
            continue
        metric = own["chemprop", seeds[0]]["metric"]
        sign = 1 if metric == "ROC AUC" else -1
        values = {m: [own[m, seed]["value"] for seed in seeds if (m, seed) in own] for m in COMPARED}
        best = max(sign * fmean(values[method]) for method in ("forest", "chemprop", "gcaps") if values[method])
        texts = [
            _bold(f"{fmean(found):.3f}", sign * fmean(found) >= best) if len(found) == len(seeds) else "–"
            for found in values.values()
        ]
        rows.append([data, split, metric, str(len(seeds)), *texts])
    return markdown(["table", "split", "metric", "divisions", *(MOLECULE_METHODS[m] for m in COMPARED)], rows)


def molecule_ensembles() -> str:
    """Ensembles beside each other, on the divisions for which chemprop was trained five times."""
    methods = ("chemprop", "chemprop-ensemble", "gcaps", "ensemble")
    rows = []
    for (data, split), own in _molecule_cells().items():
        for seed in sorted(seed for method, seed in own if method == "chemprop-ensemble"):
            cells = [own.get((method, seed)) for method in methods]
            known = [cell["value"] for cell in cells if cell is not None]
            metric = own["chemprop-ensemble", seed]["metric"]
            best = max(known) if metric == "ROC AUC" else min(known)
            values = ["–" if c is None else _bold(f"{c['value']:.3f}", c["value"] == best) for c in cells]
            spent = ["–" if c is None else f"{c['train']['cpu']:,.0f}" for c in (cells[1], cells[3])]
            rows.append([data, f"{split}, seed {seed}", metric, *values, *spent])
    names = [MOLECULE_METHODS[method] for method in methods]
    return markdown(["table", "division", "metric", *names, "chemprop × 5, s", "gcaps, ensemble, s"], rows)


def molecule_costs() -> str:
    """Training and prediction times and memory, means over all random divisions that a method has."""
    rows = []
    for (data, split), own in _molecule_cells().items():
        found = {m: [cell for (method, _), cell in own.items() if method == m] for m in COMPARED}
        if split != "random" or not found["chemprop"] or not found["gcaps"]:
            continue
        train, predict = ({m: _mean_cost(found[m], step) for m in COMPARED} for step in ("train", "predict"))
        peak = {m: _largest_peak(cells) for m, cells in found.items()}
        size = fmean(cell["molecules"]["train"] for cell in found["gcaps"])
        ratio = fmean(c["train"]["cpu"] for c in found["chemprop"]) / fmean(c["train"]["cpu"] for c in found["gcaps"])
        own_costs = [costs[m] for costs in (predict, peak) for m in ("chemprop", "gcaps", "ensemble")]
        rows.append([data, f"{size:,.0f}", *train.values(), f"{ratio:.1f}", *own_costs])
    names = {"forest": "forest", "chemprop": "chemprop", "gcaps": "network", "ensemble": "ensemble"}
    header = ["table", "molecules", *(f"training, s: {names[m]}" for m in COMPARED), "chemprop / network"]
    header += [f"{step}: {names[m]}" for step in ("prediction, s", "MiB") for m in ("chemprop", "gcaps", "ensemble")]
    return markdown(header, rows)


MOLECULE_METHODS = {
    "forest": "ECFP4 + forest",
    "chemprop": "chemprop",
    "chemprop-ensemble": "chemprop × 5",
    "gcaps": "gcaps, one network",
    "ensemble": "gcaps, ensemble",
}
"""Methods of the benchmark of molecules, and how tables name them."""
COMPARED = ("forest", "chemprop", "gcaps", "ensemble")
"""Those that are compared on the same divisions."""


def _mean_cost(cells: list[dict[str, Any]], step: str) -> str:
    """Mean processor seconds of a step; a dash without cells."""
    return f"{fmean(cell[step]['cpu'] for cell in cells):,.0f}" if cells else "–"


def _largest_peak(cells: list[dict[str, Any]]) -> str:
    """Largest resident memory of a training in MiB; a dash without cells."""
    return f"{max(cell['train']['peak'] for cell in cells) / 2**20:,.0f}" if cells else "–"


def _molecule_cells() -> dict[tuple[str, str], dict[tuple[str, int], dict[str, Any]]]:
    """Cells by table and split, then by method and seed, in the order of the tables' sizes."""
    cells = json.loads((ROOT / "results" / "times" / "molecules.json").read_text(encoding="utf-8"))
    found: dict[tuple[str, str], dict[tuple[str, int], dict[str, Any]]] = {}
    for cell in sorted(cells, key=lambda c: (c["task"] != "regression", c["molecules"]["train"], c["split"])):
        found.setdefault((cell["data"], cell["split"]), {})[cell["method"], cell["seed"]] = cell
    return found


def _bold(text: str, best: bool) -> str:
    return f"**{text}**" if best else text


def fair_comparison() -> str:
    """The default on our folds and on those of the fair comparison, with the best network of that comparison."""
    rows = []
    for name in DATA:
        if (row := row_of("fair", name)) is not None:
            theirs = [found for found in published(name) if found.source == "fair" and found.mean is not None]
            best = max(theirs, key=lambda found: found.mean or 0, default=None)
            cell = "–" if best is None else f"{percent(best.mean, best.std)} ({best.method})"
            rows.append([name, accuracy_of(row_of("default", name)), f"**{accuracy_of(row)}**", cell])
    return markdown(["data set", "our folds", "its folds", "best network of that comparison"], rows)


def systems() -> str:
    """Every method on every set of the paper, as far as it is recorded; the best of each set is bold."""
    methods = ("gcaps", "capsule-svm", *SYSTEMS)
    found = {(m, d): row_of_system(m, d) for m in methods for d in PAPER}
    means = {key: row["protocols"]["honest"]["mean"] for key, row in found.items() if row is not None}
    best = {d: max(mean for (_, other), mean in means.items() if other == d) for d in PAPER}
    rows = []
    for m in methods:
        cells = [_bold(percent(means.get((m, d))), means.get((m, d)) == best[d]) for d in PAPER]
        rows.append([f"`{m}`", *cells])
    known = [_best(d) for d in PAPER]
    return markdown(["", *PAPER], [*rows, ["best known, honest", *known]])


def row_of_system(method: str, data: str) -> Row | None:
    """The result with the settings of experiments/paper.toml: all ten folds, seed 0."""
    places = {"gcaps": "default", "capsule-svm": "untrained", **dict.fromkeys(NETWORKS, "networks")}
    for experiment in ("paper", places.get(method, "kernels")):
        row = record(experiment).get((data, method, 0))
        if row is not None and sum(fold["status"] == "done" for fold in row["folds"]) == FOLDS:
            return row
    return None


def kernels() -> str:
    """A row for each kernel, in each cell ours and in brackets the paper's."""
    names = ("PTC", "ENZYMES", "PROTEINS", "DD", "NCI1", "NCI109")
    rows = []
    for method in KERNELS:
        cells = [
            (f"**{accuracy_of(row_of('kernels', name, method))}**", reported(name, method.upper())) for name in names
        ]
        rows.append([f"`{method}`", *(f"{ours} ({theirs})" for ours, theirs in cells)])
    return markdown(["", *names], rows)


def networks() -> str:
    return _networks("networks", ("PTC", "ENZYMES", "IMDB-BINARY", "PROTEINS", "NCI1"), ("honest", "gin", "best"))


def fair_folds() -> str:
    return _networks("networks-fair", ("IMDB-BINARY", "PROTEINS", "NCI1"), ("honest",))


def _networks(experiment: str, names: Sequence[str], protocols: Sequence[str]) -> str:
    rows = []
    for name in names:
        for method in NETWORKS:
            if (row := row_of(experiment, name, method)) is not None:
                fair = experiment == "networks-fair"
                theirs = reported(name, FAIR[method], "fair") if fair else reported(name, method.upper())
                rows.append([name, method, *(accuracy_of(row, rule) for rule in protocols), theirs])
    return markdown(["data set", "method", *(f"`{rule}`" for rule in protocols), "published"], rows)


def complete_folds() -> str:
    """What complete folds cost (benchmarks/networks.py)."""
    rows = []
    for row in json.loads((ROOT / "results/times/networks.json").read_text(encoding="utf-8"))["rows"]:
        spent = [f"{row[key]:.1f}" for key in ("prepare", "epoch")]
        spent += [f"{row['training'] / 60:.1f}", f"{row['peak_gib']:.2f}", f"{100 * row['accuracy']:.1f}"]
        rows.append([row["data"], row["method"], str(row["epochs"]), *spent])
    spent = ["prepare, s", "epoch, s", "training, min", "peak, GiB"]
    return markdown(["data set", "method", "epochs", *spent, "accuracy on the fold"], rows)


def ablation() -> str:
    page = tomllib.loads((ROOT / "experiments/ablation.toml").read_text(encoding="utf-8"))
    names = [entry["data"] for entry in page["entries"]]
    rows = []
    for label in page["variants"]:
        found = [row_of("ablation", name, label) for name in names]
        cells = ["–" if row is None else _of_several(row["protocols"]["honest"]) for row in found]
        rows.append([f"{label} (plain)" if label == PLAIN else label, *cells])
    return markdown(["one change", *names], rows)


def _of_several(summary: dict[str, Any]) -> str:
    return percent(summary["mean"], summary["std"] if len(summary["folds"]) > 1 else None)


def uncertainty() -> str:
    """Promised and measured coverage, and calibration before and after."""
    rows = []
    for row in json.loads((ROOT / "results" / "times" / "uncertainty.json").read_text(encoding="utf-8"))["rows"]:
        mean, std = row["mean"], row["std"]
        covered = [percent(mean[f"coverage {c}"], std[f"coverage {c}"]) for c in (0.8, 0.9, 0.95)]
        errors = [percent(mean.get(f"ece {when}")) for when in ("before", "after")]
        rows.append(
            [row["data"], f"`{row['how']}`", *covered, f"{mean['size 0.9']:.2f}", *errors, percent(mean["novel"])]
        )
    head = ["data set", "calibration", "coverage 80", "90", "95", "size at 90", "ECE before", "after", "novel"]
    return markdown(head, rows)


def tuned() -> str:
    """Accuracy with default settings and with settings tuned inside each fold, on the folds that both have."""
    rows = []
    for name in ("MUTAG", "PTC", "BZR", "ENZYMES"):
        for method in ("capsule-svm", "fgsd"):
            folds = []
            for label in (method, f"{method}, tuned"):
                row = row_of("tuned", name, label)
                done = [] if row is None else [fold for fold in row["folds"] if fold["status"] == "done"]
                folds.append({fold["fold"]: fold for fold in done})
            default, found = folds
            both = sorted(default.keys() & found.keys())
            if not both:
                continue
            values = [[fold[number]["metrics"]["accuracy"] for number in both] for fold in (default, found)]
            inner = fmean(max(one["inner"] or 0 for one in found[number]["candidates"]) for number in both)
            gains = [after - before for before, after in zip(*values, strict=True)]
            gain = round(100 * fmean(gains), 1)
            signed = f"{gain:+.1f}".replace("-", "−") if gain else "0.0"
            outcome = f"{sum(g > 0 for g in gains)} / {sum(g == 0 for g in gains)} / {sum(g < 0 for g in gains)}"
            means = [percent(fmean(v), float(np.std(v))) for v in values]
            rows.append([name, f"`{method}`", str(len(both)), *means, signed, outcome, percent(inner)])
    head = ["data set", "method", "folds", "default", "tuned", "gain", "better / equal / worse", "inner"]
    return markdown(head, rows)


NODE_MODELS = {"capsules": "capsules", "gcn": "GCN", "gat": "GAT", "gin": "GIN"}
LINK_MODELS = {
    **{("capsules", part): f"capsules, {part}" for part in ("GAE", "VGAE")},
    **{("gcn", part): f"GCN, {part}" for part in ("GAE", "VGAE")},
    ("common-neighbors", "score"): "common neighbors",
    ("adamic-adar", "score"): "Adamic–Adar",
    ("resource-allocation", "score"): "resource allocation",
}
PLANETOID = {"cora": "Cora", "citeseer": "CiteSeer"}


def node_classification() -> str:
    """Accuracy on the test nodes, by model."""
    rows = []
    for (data, name), (model, title) in product(PLANETOID.items(), NODE_MODELS.items()):
        own = _task_rows("nodes", data, model, "final")
        if own:
            cells = [_over_seeds(own, key) for key in ("validation", "test")]
            rows.append([name, title, *cells, *_costs(own), _chosen(own[0]["settings"])])
    head = ["graph", "model", "validation, %", "test, %", "seeds", "parameters", "time, s", "chosen settings"]
    return markdown(head, rows)


def link_prediction() -> str:
    """ROC AUC and average precision on held-out links, by model."""
    rows = []
    for (data, name), ((model, part), title) in product(PLANETOID.items(), LINK_MODELS.items()):
        own = _task_rows("links", data, model, part)
        if own:
            cells = [_over_seeds(own, key) for key in ("auc", "ap")]
            rows.append([name, title, *cells, *_costs(own), _chosen(own[0]["settings"])])
    head = ["graph", "model", "AUC, %", "AP, %", "splits", "parameters", "time, s", "chosen settings"]
    return markdown(head, rows)


def _task_rows(task: str, data: str, model: str, part: str) -> list[Row]:
    page = json.loads((ROOT / "results" / "tasks" / f"{task}.json").read_text(encoding="utf-8"))
    return [row for row in page["rows"] if (row["data"], row["model"], row["part"]) == (data, model, part)]


def _over_seeds(rows: Sequence[Row], key: str) -> str:
    values = [100 * row[key] for row in rows]
    return f"{fmean(values):.1f} ± {stdev(values):.1f}" if len(values) > 1 else f"{values[0]:.1f}"


def _costs(rows: Sequence[Row]) -> list[str]:
    """Number of seeds, parameters and the median time."""
    return [str(len(rows)), f"{rows[0]['parameters']:,}", f"{median(row['seconds'] for row in rows):.1f}"]


def _chosen(settings: dict[str, Any]) -> str:
    shown = {name: value for name, value in settings.items() if name != "variational"}
    parts = (f"{k} {','.join(map(str, v)) if isinstance(v, list) else v}" for k, v in shown.items())
    return ", ".join(parts).replace("None", "none").replace("_", " ")


TABLES: dict[str, Callable[[], str]] = {
    table.__name__.replace("_", " "): table
    for table in (
        *(systems, accuracy, accuracy_in_short, rules, svm_beside_a_network, seeds, attributes, everything, molecules),
        *(molecule_benchmark, molecule_ensembles, molecule_costs, fair_comparison),
        *(kernels, networks, fair_folds, complete_folds, ablation, uncertainty, tuned),
        *(node_classification, link_prediction),
    )
}


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def renewed(page: str) -> tuple[str, list[str]]:
    """A page with its tables as in the records, and the names of those that were different."""
    different: list[str] = []

    def write(found: re.Match[str]) -> str:
        text = TABLES[found["name"]]() + "\n"
        if text != found["text"]:
            different.append(found["name"])
        return f"<!-- table {found['name']} -->\n{text}<!-- end -->"

    return MARKED.sub(write, page), different


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a table differs")
    check = parser.parse_args().check
    stale = False
    for page in pages():
        text, different = renewed(page.read_text(encoding="utf-8"))
        for name in different:
            print(f"{page}: {name} {'differs from the records' if check else 'rewritten'}")
        stale |= bool(different)
        if different and not check:
            page.write_text(text, encoding="utf-8")
    raise SystemExit(int(check and stale))


if __name__ == "__main__":
    main()
