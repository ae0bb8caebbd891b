import numpy as np
import pytest

import gcaps
from gcaps.data.graphset import GraphSet


@pytest.fixture(scope="session")
def small() -> GraphSet:
    """Sixteen graphs of each of two families."""
    graphs = gcaps.load("families")
    return graphs.subset(np.concatenate([np.flatnonzero(graphs.y == kind)[:16] for kind in np.unique(graphs.y)[:2]]))
