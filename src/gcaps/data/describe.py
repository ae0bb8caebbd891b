"""A data set's facts in words: for the terminal, the demo and the report."""

from __future__ import annotations

from gcaps.data.audit import Duplicates, Facts

_NOTES = {
    "duplicate_arcs": "edge rows that repeat another, dropped",
    "conflicting_duplicates": "of these with another label or attribute than the first, which counts",
    "one_way_arcs": "edges given in one direction only, completed",
    "skipped_rows": "rows of the table that could not be read, left out",
    "guessed_sizes": "graphs whose number of nodes is guessed from their edges",
}


def describe(found: Facts) -> dict[str, str]:
    """What is said about a set, by topic; what is absent and harmless is left out."""
    rows = {
        "graphs": f"{found.graphs:,}",
        "classes": str(len(found.classes)) if found.classes else "no graph labels",
        "nodes": f"{found.nodes_min:,} to {found.nodes_max:,}, {found.nodes_mean:.2f} on average",
        "edges": f"{found.edges_mean:.2f} on average",
        "node labels": _columns(found.node_labels),
        "edge labels": _columns(found.edge_labels),
        "attributes": f"{found.node_attributes or 'none'} on nodes, {found.edge_attributes or 'none'} on edges",
        "weights": "yes" if found.weighted else "",
        "self-loops": f"{found.self_loops:,} (kept apart; no formula uses them)" if found.self_loops else "",
        "in several pieces": _of(found.disconnected, found.graphs),
        "without edges": _of(found.edgeless, found.graphs) if found.edgeless else "",
        "stored twice": _duplicates(found.identical, found.graphs),
        "look-alikes": _duplicates(found.look_alikes, found.graphs),
    }
    if found.look_alikes.groups:
        rows["look-alikes"] += " (to a Weisfeiler-Lehman hash: an upper bound on graphs isomorphic to another)"
    notes = {key: count for key, count in found.notes.items() if count and key not in ("rows", "self_loops")}
    rows["on reading"] = "; ".join(f"{n:,} {_NOTES.get(key, key.replace('_', ' '))}" for key, n in notes.items())
    return {topic: text for topic, text in rows.items() if text}


def _of(count: int, total: int) -> str:
    return f"{count:,} of {total:,} graphs" if count else "none"


def _duplicates(found: Duplicates, total: int) -> str:
    grouped = f", in {found.groups:,} groups" if found.groups else ""
    mixed = found.conflicting_graphs
    return (
        _of(found.graphs, total) + grouped + (f"; {mixed:,} of them in groups of more than one class" if mixed else "")
    )


def _columns(distinct: tuple[int, ...]) -> str:
    if not distinct:
        return "none"
    if len(distinct) == 1:
        return f"{distinct[0]:,} different"
    return f"{len(distinct)} columns with {', '.join(map(str, distinct))} different"
