"""The trials of processes in their short form; what is asserted are outcomes, never seconds."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.clusters import CLUSTERS
from tests.faults.kills import KILLS
from tests.faults.trials import TRIALS

pytestmark = pytest.mark.slow
GROUPS = {
    "kills": KILLS,
    "clusters": CLUSTERS,
    "others": [trial for trial in TRIALS if trial not in (*KILLS, *CLUSTERS)],
}


@pytest.mark.parametrize("group", GROUPS)
def test_nothing_is_lost_and_nothing_stays(group, tmp_path):
    names = [trial.__name__ for trial in GROUPS[group]]
    command = [sys.executable, "-m", "tests.faults", "--short", "--only", ",".join(names), "--to", tmp_path / "trials"]
    found = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert len(found.stdout.splitlines()) == len(names)
