"""City-block distances between graph vectors, as the SVM on random capsules needs them, against three libraries.

    python benchmarks/distances.py [--rows 1000] [--columns 2593] [--repeats 3]

The libraries are scikit-learn, SciPy and torch. One thread each, fastest of several runs; the distances are compared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances

from gcaps.nn.cpu.distances import city_block


def best(compute: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Seconds of the fastest of several runs after a warm-up, and the result."""
    found, seconds = compute(), []
    for _ in range(repeats):
        began = time.perf_counter()
        found = compute()
        seconds.append(time.perf_counter() - began)
    return min(seconds), found


def main() -> None:
    parser = argparse.ArgumentParser(description="City-block distances against scikit-learn, SciPy and torch.")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--columns", type=int, default=2593, help="entries of a graph vector")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    z = np.random.default_rng(0).standard_normal((given.rows, given.columns)).astype(np.float32)
    tensor = torch.from_numpy(z)
    own, expected = best(lambda: city_block(z, z), given.repeats)
    print(f"{given.rows:,} rows of {given.columns:,} entries: gcaps {own:.2f} s")
    for name, compute in {
        "scikit-learn": lambda: manhattan_distances(z, z),
        "SciPy": lambda: cdist(z, z, "cityblock"),
        "torch": lambda: torch.cdist(tensor, tensor, p=1).numpy(),
    }.items():
        seconds, found = best(compute, given.repeats)
        apart = float(np.abs(found - expected).max() / expected.max())
        print(f"{name:>14}  {seconds:.2f} s, {seconds / own:.1f} times as long; largest difference {apart:.0e}")


if __name__ == "__main__":
    main()
