"""Facts about a data set, among them duplicates that would spoil a fair comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from gcaps.data.arrays import Array, Ints
from gcaps.data.graphset import GraphSet, Skipped
from gcaps.data.hashing import neighbors_of_set, stored_hashes, wl_hashes
from gcaps.data.prepared import PreparedSet
from gcaps.data.targets import infer_task, missing
from gcaps.errors import DataError

if TYPE_CHECKING:
    from gcaps.data.molecules.audit import MoleculeFacts
    from gcaps.data.molecules.keys import MoleculeKeys

_NOTES = {
    "duplicate_arcs": "edge rows that repeat another, dropped",
    "conflicting_duplicates": "of these with another label or attribute than the first, which counts",
    "one_way_arcs": "edges given in one direction only, completed",
    "parallel_edges": "parallel edges, merged",
    "guessed_sizes": "graphs whose number of nodes is guessed from their edges",
}


@dataclass(frozen=True)
class Duplicates:
    """Graphs that occur more than once."""

    groups: int
    """Groups of two or more equal graphs."""
    graphs: int
    """Graphs in these groups."""
    conflicting_groups: int
    """Groups with different targets: no method that takes their graphs for equal predicts all of them correctly."""
    conflicting_graphs: int
    """Graphs in conflicting groups."""


@dataclass(frozen=True)
class TargetFacts:
    """One column of ``y``."""

    name: str
    known: int
    """Graphs that have a value."""
    counts: Mapping[Any, int]
    """Number of graphs of each value; empty for real numbers."""
    quartiles: tuple[float, ...] = ()
    """Minimum, quartiles and maximum of real numbers."""


@dataclass(frozen=True)
class Facts:
    """A data set in numbers."""

    name: str
    graphs: int
    task: str
    """The task that ``y`` poses and why; empty without ``y``."""
    targets: tuple[TargetFacts, ...]
    classes: Mapping[Any, int]
    """Number of graphs of each class, by its value in ``y``; empty without ``y`` and for other tasks."""
    nodes_min: int
    nodes_mean: float
    nodes_max: int
    edges_mean: float
    """Mean number of undirected edges of a graph, without self-loops."""
    node_labels: tuple[int, ...]
    """Number of distinct values in each column."""
    node_attributes: int
    """Number of columns."""
    edge_labels: tuple[int, ...]
    edge_attributes: int
    weighted: bool
    self_loops: int
    disconnected: int
    """Graphs with more than one component."""
    edgeless: int
    """Graphs without edges."""
    identical: Duplicates
    """Graphs that are stored identically; of molecules, those with the same canonical SMILES including stereo."""
    without_stereo: Duplicates | None
    """Molecules with the same canonical SMILES without stereochemistry; None for other graphs."""
    look_alikes: Duplicates
    """Graphs that Weisfeiler-Lehman refinement does not distinguish. All isomorphic graphs are among them, and possibly
    others, so these are upper bounds."""
    notes: Mapping[str, int]
    """Changes by the reader."""
    skipped: tuple[Skipped, ...]
    """Rows of the source that could not be made a graph."""
    molecules: MoleculeFacts | str | None = None
    """Scaffolds and activity cliffs; why they were not found; None for graphs that are not molecules."""


def facts(graphs: GraphSet | PreparedSet) -> Facts:
    """Count everything in :class:`Facts`; takes seconds for tens of millions of edges."""
    prepared = PreparedSet.of(graphs)
    graphs = prepared.graphs
    sizes = graphs.sizes
    targets = _targets(graphs)
    codes = _codes(graphs.y)
    task = "" if graphs.y is None or not any(one.known for one in targets) else infer_task(graphs.y)
    keys = _molecule_keys(prepared)
    same, flat = (stored_hashes(graphs), None) if keys is None or isinstance(keys, str) else (keys.smiles, keys.flat)
    return Facts(
        name=graphs.name,
        graphs=len(graphs),
        task=task if isinstance(task, str) else f"{task.task} ({task.reason})",
        targets=targets,
        classes=targets[0].counts if len(targets) == 1 else {},
        nodes_min=int(sizes.min(initial=graphs.num_nodes)),
        nodes_mean=graphs.num_nodes / max(len(graphs), 1),
        nodes_max=int(sizes.max(initial=0)),
        edges_mean=graphs.num_edges / max(len(graphs), 1),
        node_labels=_distinct(graphs.node_labels),
        node_attributes=0 if graphs.x is None else graphs.x.shape[1],
        edge_labels=_distinct(graphs.edge_labels),
        edge_attributes=0 if graphs.edge_attr is None else graphs.edge_attr.shape[1],
        weighted=graphs.edge_weight is not None,
        self_loops=0 if graphs.loops is None else len(graphs.loops.node),
        disconnected=int((_components(graphs) > 1).sum()),
        edgeless=int((graphs.arc_counts == 0).sum()),
        identical=_duplicates(same, codes),
        without_stereo=None if flat is None else _duplicates(flat, codes),
        look_alikes=_duplicates(wl_hashes(graphs), codes),
        notes=dict(graphs.notes),
        skipped=graphs.skipped,
        molecules=keys if keys is None or isinstance(keys, str) else _molecule_facts(graphs, keys),
    )


def _molecule_facts(graphs: GraphSet, keys: MoleculeKeys) -> MoleculeFacts:
    from gcaps.data.molecules.audit import molecule_facts  # compiled code is imported only where there are molecules

    return molecule_facts(graphs, keys)


def _molecule_keys(prepared: PreparedSet) -> MoleculeKeys | str | None:
    """Return what compares molecules; why that cannot be found; None for graphs that are not molecules."""
    if "smiles" not in prepared.graphs.columns or not len(prepared.graphs):
        return None
    from gcaps.data.molecules.keys import molecule_keys

    try:
        return molecule_keys(prepared)
    except DataError as error:
        return str(error)


def _targets(graphs: GraphSet) -> tuple[TargetFacts, ...]:
    if graphs.y is None:
        return ()
    table = graphs.y[:, None] if graphs.y.ndim == 1 else graphs.y
    named = graphs.target_names if len(graphs.target_names) == table.shape[1] else None
    titles = named or (("y",) if table.shape[1] == 1 else tuple(f"y{i}" for i in range(table.shape[1])))
    return tuple(_target(name, column) for name, column in zip(titles, table.T, strict=True))


def _target(name: str, column: Array) -> TargetFacts:
    known = column[~missing(column)]
    if len(known) and infer_task(known).task == "regression":
        return TargetFacts(name, len(known), {}, tuple(np.percentile(known, (0, 25, 50, 75, 100)).tolist()))
    whole = known.astype(np.int64) if known.dtype.kind == "f" else known  # integers of which some are missing
    values, counts = np.unique(whole, return_counts=True)
    return TargetFacts(name, len(known), dict(zip(values.tolist(), counts.tolist(), strict=True)))


def _codes(y: Array | None) -> Ints | None:
    """[G, T] number of each value, −1 where it is missing."""
    if y is None:
        return None
    table = y[:, None] if y.ndim == 1 else y
    codes = np.full(table.shape, -1, dtype=np.int64)
    for t, column in enumerate(table.T):
        known = ~missing(column)
        codes[known, t] = np.unique(column[known], return_inverse=True)[1]
    return codes


def _distinct(labels: Ints | None) -> tuple[int, ...]:
    return () if labels is None else tuple(len(np.unique(column)) for column in labels.T)


def describe(found: Facts) -> dict[str, str]:
    """Return the facts in words, by topic; what is absent and harmless is left out."""
    rows = {
        "graphs": f"{found.graphs:,}",
        **_described_targets(found),
        "nodes": f"{found.nodes_min:,} to {found.nodes_max:,}, {found.nodes_mean:.2f} on average",
        "edges": f"{found.edges_mean:.2f} on average",
        "node labels": _columns(found.node_labels),
        "edge labels": _columns(found.edge_labels),
        "attributes": f"{found.node_attributes or 'none'} on nodes, {found.edge_attributes or 'none'} on edges",
        "weights": "yes" if found.weighted else "",
        "self-loops": f"{found.self_loops:,} (kept apart; no formula uses them)" if found.self_loops else "",
        "in several pieces": _share(found.disconnected, found.graphs),
        "without edges": _share(found.edgeless, found.graphs) if found.edgeless else "",
        "stored twice": _repeated(found.identical, found.graphs),
        "without stereo": "" if found.without_stereo is None else _repeated(found.without_stereo, found.graphs),
        "look-alikes": _repeated(found.look_alikes, found.graphs),
    }
    if found.look_alikes.groups:
        rows["look-alikes"] += " (by Weisfeiler-Lehman hash: an upper bound on graphs isomorphic to another)"
    if isinstance(found.molecules, str):
        rows["scaffolds"] = f"not found: {found.molecules}"
    elif found.molecules is not None:
        from gcaps.data.molecules.audit import describe_molecules

        rows |= describe_molecules(found.molecules, found.graphs)
    notes = {key: count for key, count in found.notes.items() if count and key not in ("rows", "self_loops")}
    rows["on reading"] = "; ".join(f"{n:,} {_NOTES.get(key, key.replace('_', ' '))}" for key, n in notes.items())
    if found.skipped:
        shown = "; ".join(f"row {one.row + 1} ({one.id}): {one.reason}" for one in found.skipped[:3])
        more = "" if len(found.skipped) <= 3 else f"; and {len(found.skipped) - 3:,} more"
        rows["left out"] = f"{len(found.skipped):,} rows: {shown}{more}"
    return {topic: text for topic, text in rows.items() if text}


def _described_targets(found: Facts) -> dict[str, str]:
    if not found.targets:
        return {"classes": "no graph labels"}
    rows = {"task": found.task}
    if len(found.targets) == 1:
        (one,) = found.targets
        rows |= {"target": one.name if one.name != "y" else "", "classes": str(len(one.counts)) if one.counts else ""}
        if one.quartiles:
            low, first, median, third, high = one.quartiles
            rows["values"] = f"{low:g} to {high:g}, median {median:g}, half of them from {first:g} to {third:g}"
    else:
        rows["targets"] = str(len(found.targets))
    lacking = [(one.name, found.graphs - one.known) for one in found.targets if one.known < found.graphs]
    if lacking:
        total = found.graphs * len(found.targets)
        count = sum(number for _, number in lacking)
        rows["missing values"] = f"{count:,} of {total:,}"
    return rows


def _share(count: int, total: int) -> str:
    return f"{count:,} of {total:,} graphs" if count else "none"


def _repeated(found: Duplicates, total: int) -> str:
    groups = f", in {found.groups:,} groups" if found.groups else ""
    mixed = found.conflicting_graphs
    conflicts = f"; {mixed:,} of them in groups with different targets" if mixed else ""
    return _share(found.graphs, total) + groups + conflicts


def _columns(distinct: tuple[int, ...]) -> str:
    if not distinct:
        return "none"
    if len(distinct) == 1:
        return f"{distinct[0]:,} different"
    return f"{len(distinct)} columns with {', '.join(map(str, distinct))} different"


def _components(graphs: GraphSet) -> Ints:
    """[G] number of connected components of each graph, from one search over the whole set."""
    col = neighbors_of_set(graphs)
    index = np.int32 if max(len(col), graphs.num_nodes) < 2**31 else np.int64
    A = csr_array(
        (np.ones(len(col), dtype=np.float64), col.astype(index), graphs.rowptr.astype(index)),
        shape=(graphs.num_nodes, graphs.num_nodes),
    )
    count, component = connected_components(A, directed=False)
    graph_of_node = np.repeat(np.arange(len(graphs)), graphs.sizes)
    graph_of_component = np.zeros(count, dtype=np.int64)
    graph_of_component[component] = graph_of_node
    return np.bincount(graph_of_component, minlength=len(graphs))


def _duplicates(hashes: Array, codes: Ints | None) -> Duplicates:
    """Count equal ``hashes`` [G], and groups whose targets ``codes`` [G, T] differ; missing ones (−1) never do."""
    _, group, size = np.unique(hashes, return_inverse=True, return_counts=True)
    several = size > 1
    conflict = np.zeros(len(size), dtype=bool)
    for column in () if codes is None else codes.T:
        known = column >= 0
        lowest, highest = np.full(len(size), np.iinfo(np.int64).max), np.full(len(size), -1)
        np.minimum.at(lowest, group[known], column[known])
        np.maximum.at(highest, group[known], column[known])
        conflict |= lowest < highest
    return Duplicates(int(several.sum()), int(size[several].sum()), int(conflict.sum()), int(size[conflict].sum()))
