"""Names of nodes, beside those of :mod:`gcaps.data.hashing`, that kernels begin with."""

from __future__ import annotations

from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import Hashes as Names
from gcaps.data.hashing import join as join
from gcaps.data.hashing import mix as mix
from gcaps.data.hashing import neighbors_of_set as neighbors_of_set
from gcaps.data.hashing import rows as rows
from gcaps.data.hashing import sums as sums


def node_names(graphs: GraphSet, use_labels: bool) -> Names:
    """[N] the node labels; with ``use_labels`` off, the degrees."""
    if use_labels and graphs.node_labels is not None:
        return rows(graphs.node_labels)
    return mix(graphs.degrees)
