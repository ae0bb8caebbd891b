"""Memory that is freed inside is used again, and given back at the end."""

import platform
import resource
import subprocess
import sys

import numpy as np
import pytest

from gcaps.allocation import freed_memory_kept

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to keep freed memory")
SIZE = 64 << 20


IN_A_NEW_PROCESS = f"""
import resource, torch
from gcaps.allocation import freed_memory_kept

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones({SIZE} // 4)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

with freed_memory_kept():
    torch.ones({SIZE} // 2)  # room for one of half the size, whatever small blocks come to lie behind it
    inside = min(faults() for _ in range(5))
print(inside, faults())
"""


@glibc
def test_freed_memory_is_used_again_inside_and_given_back_outside():
    pages = SIZE // resource.getpagesize()
    run = subprocess.run([sys.executable, "-c", IN_A_NEW_PROCESS], capture_output=True, text=True, check=True)
    inside, outside = map(int, run.stdout.split())
    assert inside < pages / 10
    assert outside > pages / 2


def test_elsewhere_nothing_happens(monkeypatch):
    monkeypatch.setattr("gcaps.allocation._glibc", lambda: None)
    with freed_memory_kept():
        assert np.ones(3).sum() == 3
