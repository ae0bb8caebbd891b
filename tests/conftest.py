import os
from pathlib import Path

import numpy as np
import pytest
import torch

from gcaps.batching import BatchSource
from gcaps.data.graphset import GraphSet
from gcaps.testing import hostile_graphs


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)
    torch.set_num_threads(1)


@pytest.fixture(params=[False, True], ids=["unweighted", "weighted"])
def hostile(request) -> GraphSet:
    return hostile_graphs(24, seed=1, weighted=request.param)


@pytest.fixture
def data_folder() -> Path:
    """The folder of real data sets that GCAPS_DATA names; tests that need it are skipped where it is not set."""
    folder = os.environ.get("GCAPS_DATA")
    if not folder:
        pytest.skip("needs the paper's data sets: set GCAPS_DATA to their folder")
    return Path(folder)


def whole_batch(graphs: GraphSet, x: np.ndarray, dtype: torch.dtype = torch.float64, y: np.ndarray | None = None):
    return BatchSource(graphs, x, dtype, y=y).take(np.arange(len(graphs)))
