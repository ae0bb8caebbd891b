"""Memory that is freed inside is used again, and given back at the end."""

import platform
import resource

import numpy as np
import pytest
import torch

from gcaps.allocation import freed_memory_kept

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to keep freed memory")
SIZE = 64 << 20


def faults_of_a_block() -> int:
    """Pages that the system hands out for a block that was used and freed before."""
    for _ in range(3):  # aligned blocks need a little more room than they free
        torch.ones(SIZE // 4)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(SIZE // 4)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@glibc
def test_freed_memory_is_used_again_inside_and_given_back_outside():
    pages = SIZE // resource.getpagesize()
    with freed_memory_kept():
        assert faults_of_a_block() < pages / 10
    assert faults_of_a_block() > pages / 2


def test_elsewhere_nothing_happens(monkeypatch):
    monkeypatch.setattr("gcaps.allocation._glibc", lambda: None)
    with freed_memory_kept():
        assert np.ones(3).sum() == 3
