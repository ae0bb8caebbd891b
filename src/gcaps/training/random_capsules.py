"""Fit the SVM on random capsules: normalisation statistics, graph vectors, kernel width and penalty."""

from __future__ import annotations

import os
from itertools import count

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from torch import Tensor

from gcaps.batching import BatchSource, shuffled
from gcaps.config import RandomCapsuleConfig
from gcaps.data.arrays import Array, Floats
from gcaps.data.targets import Task
from gcaps.errors import MemoryLimitError
from gcaps.kernels.multi_output import fit_multi_output, random_splits, score_of
from gcaps.kernels.svm import accuracy_of, choose, cut, fit_svm, inner_splits
from gcaps.models.gcaps import GCAPS
from gcaps.models.random_capsules import RandomCapsuleSVM, class_sums
from gcaps.models.registry import random_capsules
from gcaps.nn.cpu.distances import city_block
from gcaps.nn.distributed import without_exchange
from gcaps.training.loop import batches_of, reproducible

STATISTICS_BATCHES = 40
"""Batches from which batch normalisation takes its statistics."""
COPIES = 5
"""Square matrices over the training graphs that are held at the same time, in float32."""


def fit_random_capsule_svm(
    config: RandomCapsuleConfig,
    source: BatchSource,
    indices: Array,
    outputs: int,
    seed: int,
    task: Task = "classification",
    groups: Array | None = None,
) -> RandomCapsuleSVM:
    """Fit on the graphs at ``indices``, with their targets and weights.

    Args:
        config: settings without any ``auto``.
        source: where batches, targets and weights come from.
        indices: the training graphs.
        outputs: number of classes, or of targets.
        seed: decides the capsules' weights and the inner folds.
        task: classification, multilabel or regression.
        groups: [G] groups of all graphs, which the inner folds keep whole.

    Raises:
        MemoryLimitError: before anything is computed, where Gram matrices of so many graphs do not fit in memory.
    """
    require_memory(len(indices))
    assert source.y is not None
    y, weight = source.y[indices], None if source.sample_weight is None else source.sample_weight[indices]
    with without_exchange(), reproducible(int(np.random.SeedSequence([seed, 2]).generate_state(1)[0]), config.threads):
        capsules = random_capsules(config, source.num_features, outputs, source.shape)
        collect_statistics(capsules, source, indices, config.batch_size, seed)
        raw = graph_vectors(capsules, source, indices)
    mean, deviation = raw.mean(0), raw.std(0, correction=0)
    scale = torch.where(deviation > 1e-6 * (1 + mean.abs()), 1 / deviation, 0.0)
    z = ((raw - mean) * scale).numpy()
    distances = city_block(z, z)
    gammas = [width / max(float(distances.mean()), 1e-12) for width in config.gamma]
    own = None if groups is None else groups[indices]
    if task == "classification":
        splits, fit = inner_splits(y, config.inner_folds, seed % 2**32, own), accuracy_of(y, weight)
    else:
        splits, fit = random_splits(len(y), config.inner_folds, seed % 2**32, own), score_of(y, task, weight)
    choice = choose((np.exp(-gamma * distances) for gamma in gammas), fit, config.C, splits)
    gamma = gammas[choice.kernel]
    K = np.exp(-gamma * distances)
    if task == "classification":
        svm = fit_svm(K, y, choice.C, weight)
        present, heat = svm.classes_, temperature(K, y, choice.C, splits, weight)
        machines, support = (svm.coefficients, svm.intercepts), svm.support
    else:
        several = fit_multi_output(K, y, choice.C, task, weight)
        present, heat = np.zeros(0, dtype=np.int64), 1.0
        machines, support = (several.coefficients, several.intercepts), several.support
    sizes = {"vectors": len(support), "classes": len(present)}
    fitted = RandomCapsuleSVM(capsules, outputs, task=task, C=choice.C, inner=choice.score, **sizes)
    fitted.load_state_dict(
        {
            **{f"capsules.{name}": value for name, value in capsules.state_dict().items()},
            "mean": mean,
            "scale": scale,
            "support": torch.from_numpy(z[support]),
            "coefficients": torch.from_numpy(machines[0][:, support]),
            "intercepts": torch.from_numpy(machines[1]),
            "present": torch.from_numpy(present),
            "gamma": torch.tensor(gamma, dtype=torch.float64),
            "temperature": torch.tensor(heat, dtype=torch.float64),
        }
    )
    return fitted.eval()


@torch.no_grad()
def collect_statistics(capsules: GCAPS, source: BatchSource, indices: Array, batch_size: int, seed: int) -> None:
    """Update running statistics on batches of the training graphs, as in training, without any optimiser step."""
    capsules.train()
    rng = np.random.default_rng([seed, 2])
    seen = count(1)
    while True:
        for chosen in shuffled(indices, batch_size, rng):
            capsules.embed(source.take(chosen))
            if next(seen) == STATISTICS_BATCHES:
                return


@torch.no_grad()
def graph_vectors(capsules: GCAPS, source: BatchSource, indices: Array) -> Tensor:
    """[n, ·] graph vectors in evaluation mode."""
    capsules.eval()
    return torch.cat([capsules.embed(batch) for batch in batches_of(source, indices)])


def temperature(
    K: Floats, y: Array, C: float, splits: list[tuple[Array, Array]], weight: Floats | None = None
) -> float:
    """Return the temperature that minimises the log-loss of the softmax on held-out graphs (temperature scaling).

    Every inner fold is predicted by an SVM fitted on the others; the predicted class does not change. Without folds the
    temperature is 1.
    """
    if not splits:
        return 1.0
    sums, truth = [], []
    for learn, check in splits:
        svm = fit_svm(cut(K, learn, learn), y[learn], C, None if weight is None else weight[learn])
        values = torch.from_numpy(svm.pair_values(cut(K, check, learn)))
        pairs = [(int(a), int(b)) for a, b in svm.pairs]
        found = class_sums(values, pairs, len(svm.classes_)).numpy()
        known = np.isin(y[check], svm.classes_)
        full = np.full((len(check), int(y.max()) + 1), -1e3)  # a class without graphs in this fold
        full[:, svm.classes_] = found
        sums.append(full[known])
        truth.append(y[check][known])
    S, t = np.concatenate(sums), np.concatenate(truth)

    def log_loss(logarithm: float) -> float:
        return -float(log_softmax(S / np.exp(logarithm), axis=1)[np.arange(len(t)), t].mean())

    return float(np.exp(minimize_scalar(log_loss, bounds=(-6, 6), method="bounded").x))


def require_memory(graphs: int) -> None:
    """Refuse Gram matrices that would not fit in memory."""
    needed, installed = COPIES * 4 * graphs**2, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > 0.8 * installed:
        raise MemoryLimitError(
            f"an SVM on {graphs:,} graphs needs {needed / 2**30:.1f} GiB for its Gram matrices, this computer has "
            f"{installed / 2**30:.1f}; use method gcaps with with_svm off"
        )
