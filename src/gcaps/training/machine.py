"""Fitting the machine on untrained capsules: statistics, vectors, kernel and penalty, all from the training graphs."""

from __future__ import annotations

import os
from itertools import count

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from torch import Tensor

from gcaps.batching import BatchSource, shuffled
from gcaps.config import Config
from gcaps.data.arrays import Array, Floats
from gcaps.errors import MemoryLimitError
from gcaps.kernels.svm import choose, cut, fit_svm, inner_splits
from gcaps.models.gcaps import GCAPS
from gcaps.models.machine import CapsuleMachine, class_sums
from gcaps.models.registry import untrained_capsules
from gcaps.nn.distances import city_block
from gcaps.nn.distributed import by_itself
from gcaps.training.loop import batches_of, reproducible

LOOKS = 40
"""Batches from which the capsules' normalisation takes its statistics."""
WIDTHS = (0.3, 1.0, 3.0)
"""γ to choose from, by the mean distance of two training graphs."""
PENALTIES = (1.0, 10.0, 100.0)
"""C to choose from."""
FOLDS = 5
"""Of the cross-validation that chooses."""
COPIES = 5
"""Square matrices over the training graphs that are held at the same time, in float32."""


def fit_machine(config: Config, source: BatchSource, indices: Array, seed: int) -> CapsuleMachine:
    """Fit on the graphs at ``indices``; ``seed`` decides the capsules' weights and the folds that choose.

    Raises:
        MemoryLimitError: before anything is computed, where Gram matrices of so many graphs do not fit in memory.
    """
    require_memory(len(indices))
    graphs = source.graphs.subset(indices)
    y = graphs.targets
    with by_itself(), reproducible(int(np.random.SeedSequence([seed, 2]).generate_state(1)[0]), config.threads):
        capsules = untrained_capsules(config, source.num_features, graphs.num_classes, GCAPS.measure(config, graphs))
        settle(capsules, source, indices, config.batch_size, seed)
        raw = vectors(capsules, source, indices)
    mean, deviation = raw.mean(0), raw.std(0, correction=0)
    scale = torch.where(deviation > 1e-6 * (1 + mean.abs()), 1 / deviation, 0.0)
    z = ((raw - mean) * scale).numpy()
    distances = city_block(z, z)
    gammas = [width / max(float(distances.mean()), 1e-12) for width in WIDTHS]
    splits = inner_splits(y, FOLDS, seed % 2**32)
    choice = choose((np.exp(-gamma * distances) for gamma in gammas), y, PENALTIES, splits)
    gamma = gammas[choice.kernel]
    K = np.exp(-gamma * distances)
    machine = fit_svm(K, y, choice.C)
    kept = np.flatnonzero(np.abs(machine.coefficients).max(axis=0, initial=0.0) > 0)
    fitted = CapsuleMachine(
        capsules,
        graphs.num_classes,
        vectors=len(kept),
        classes=len(machine.classes_),
        C=choice.C,
        inner=choice.accuracy,
    )
    fitted.load_state_dict(
        {
            **{f"capsules.{name}": value for name, value in capsules.state_dict().items()},
            "mean": mean,
            "scale": scale,
            "support": torch.from_numpy(z[kept]),
            "coefficients": torch.from_numpy(machine.coefficients[:, kept]),
            "intercepts": torch.from_numpy(machine.intercepts),
            "present": torch.from_numpy(machine.classes_),
            "gamma": torch.tensor(gamma, dtype=torch.float64),
            "temperature": torch.tensor(temperature(K, y, choice.C, splits), dtype=torch.float64),
        }
    )
    return fitted.eval()


@torch.no_grad()
def settle(capsules: GCAPS, source: BatchSource, indices: Array, batch_size: int, seed: int) -> None:
    """Let normalisation see batches of the training graphs, as in training, without any step."""
    capsules.train()
    rng = np.random.default_rng([seed, 2])
    seen = count(1)
    while True:
        for chosen in shuffled(indices, batch_size, rng):
            capsules.embed(source.take(chosen))
            if next(seen) == LOOKS:
                return


@torch.no_grad()
def vectors(capsules: GCAPS, source: BatchSource, indices: Array) -> Tensor:
    """[n, ·] graph vectors."""
    capsules.eval()
    return torch.cat([capsules.embed(batch) for batch in batches_of(source, indices)])


def temperature(K: Floats, y: Array, C: float, splits: list[tuple[Array, Array]]) -> float:
    """What the sums of machines are divided by to make their softmax as likely as can be.

    On graphs that the machines were not fitted on, each in its fold. Which class is the likeliest does not change.
    Without folds it is 1.
    """
    if not splits:
        return 1.0
    sums, truth = [], []
    for learn, check in splits:
        machine = fit_svm(cut(K, learn, learn), y[learn], C)
        values = torch.from_numpy(machine.pair_values(cut(K, check, learn)))
        pairs = [(int(a), int(b)) for a, b in machine.pairs]
        found = class_sums(values, pairs, len(machine.classes_)).numpy()
        known = np.isin(y[check], machine.classes_)
        full = np.full((len(check), int(y.max()) + 1), -1e3)  # a class that this fold does not know
        full[:, machine.classes_] = found
        sums.append(full[known])
        truth.append(y[check][known])
    S, t = np.concatenate(sums), np.concatenate(truth)

    def surprise(logarithm: float) -> float:
        return -float(log_softmax(S / np.exp(logarithm), axis=1)[np.arange(len(t)), t].mean())

    return float(np.exp(minimize_scalar(surprise, bounds=(-6, 6), method="bounded").x))


def require_memory(graphs: int) -> None:
    """Refuse Gram matrices that would not fit."""
    needed, installed = COPIES * 4 * graphs**2, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > 0.8 * installed:
        raise MemoryLimitError(
            f"a machine on {graphs:,} graphs needs {needed / 2**30:.1f} GiB for its Gram matrices, this machine has "
            f"{installed / 2**30:.1f}; set head to layers"
        )
