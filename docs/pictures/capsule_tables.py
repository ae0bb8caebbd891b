"""The numbers of docs/capsules.md as plain tables, computed by gcaps itself; make_capsules.py --print shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcaps import theory
from gcaps.nn import (
    CAPSULES,
    Filter,
    GraphCapsuleConv,
    MaxSortPool,
    MeanCovariance,
    central_moments,
    edge_filter,
    moments,
)
from gcaps.nn.capsules import Density, Polynomial

Neighborhood = tuple[float, ...]
"""The node's own value, then its neighbors'."""

A: Neighborhood = (-1, 0, 1, 2)
B: Neighborhood = (-1, -1, 2, 2)
"""Same mean, maximum and sum, with and without the node itself."""

PAIRS: tuple[tuple[Neighborhood, Neighborhood], ...] = (
    ((1, 2), (1, 1, 2, 2)),
    ((2, 1, 3), (2, 2, 2)),
    ((0, 1, 2), (0, 2, 2)),
    (A, B),
    ((6, 0, 4, 5), (6, 1, 2, 6)),
)

SIZES = (2, 3, 4, 6, 8, 12, 16)
"""Sizes of neighborhoods that the decoders are measured on."""


def star(values: Neighborhood) -> tuple[Tensor, Tensor]:
    """(x, edge_index) of a star whose centre, node 0, has these values as its closed neighborhood."""
    x = torch.tensor(values, dtype=torch.float64).unsqueeze(1)
    leaves = torch.arange(1, len(values))
    arcs = torch.stack([leaves, torch.zeros_like(leaves)])
    return x, torch.cat([arcs, arcs.flip(0)], dim=1)


def density(capsule_size: int) -> Density:
    """The density capsule as it begins, in float64."""
    return Density(1, capsule_size).double()


def _filtered(name: str, x: Tensor, P: int, edge_index: Tensor) -> list[Tensor]:
    return [edge_filter(name, edge_index, None, x).matmul(power) for power in moments(x, P)]


def _of_neighborhood(function: Callable[[Tensor, int, Filter], Sequence[Tensor] | Tensor]) -> Capsule:
    def capsule(x: Tensor, P: int, edge_index: Tensor) -> Sequence[Tensor] | Tensor:
        return function(x, P, edge_filter("mean", edge_index, None, x))

    return capsule


Capsule = Callable[[Tensor, int, Tensor], Sequence[Tensor] | Tensor]

CAPSULE_FUNCTIONS: dict[str, Capsule] = {
    "moments, means": partial(_filtered, "mean"),
    "moments, sums": partial(_filtered, "adjacency"),
    "central": _of_neighborhood(central_moments),
    "polynomial": _of_neighborhood(lambda x, P, M: Polynomial(1, P)(x, M)),
    "density": _of_neighborhood(lambda x, P, M: density(P)(x, M)),
}
"""What each capsule function gathers before weights mix it. Sums are over the neighbors, the rest over N(i) ∪ {i}."""

AGGREGATES: dict[str, Callable[[Neighborhood], float]] = {"mean": lambda v: sum(v) / len(v), "max": max, "sum": sum}


def components(name: str, values: Neighborhood, capsule_size: int = 4) -> NDArray[np.float64]:
    """[P] what the capsule function computes at the centre of a star with these values."""
    x, edge_index = star(values)
    with torch.no_grad():
        found = CAPSULE_FUNCTIONS[name](x, capsule_size, edge_index)
    return np.array([float(part[0, 0]) for part in found])


def neighborhood() -> str:
    """Every aggregate and capsule function on the neighborhoods A and B."""
    lines = [f"{'':16}{'A: ' + _spoken(A):38}B: {_spoken(B)}"]
    lines += [f"{name:16}{f(A):7.3f}{'':31}{f(B):7.3f}" for name, f in AGGREGATES.items()]
    for name in CAPSULE_FUNCTIONS:
        lines.append(f"{name:16}{_row(components(name, A)):38}{_row(components(name, B))}")
    return "\n".join(lines)


def pairs() -> str:
    """For each pair, whether an aggregate tells it apart, and from which capsule size on a capsule function does."""
    names = [*AGGREGATES, *CAPSULE_FUNCTIONS]
    widths = [max(len(name), 7) + 2 for name in names]
    lines = [f"{'own':>3}  {'neighbors':16}" + "".join(f"{n:>{w}}" for n, w in zip(names, widths, strict=True))]
    for one, other in PAIRS:
        cells = ["same" if abs(f(one) - f(other)) < 1e-12 else "differs" for f in AGGREGATES.values()]
        cells += [_smallest(name, one, other) for name in CAPSULE_FUNCTIONS]
        both = " | ".join(" ".join(f"{v:g}" for v in values[1:]) for values in (one, other))
        lines.append(f"{one[0]:>3g}  {both:16}" + "".join(f"{c:>{w}}" for c, w in zip(cells, widths, strict=True)))
    return "\n".join(lines)


def decoded() -> str:
    """What the decoders give back of A and B."""
    decoders = {
        "moments, means": theory.neighborhood_from_moments,
        "central": theory.neighborhood_from_central,
        "polynomial": theory.neighborhood_from_polynomial,
    }
    lines = [f"{'from 4 numbers':16}{'A':38}B"]
    for name, decode in decoders.items():
        lines.append(f"{name:16}" + f"{_row(decode(components(name, A), 4)):38}{_row(decode(components(name, B), 4))}")
    lines += ["", f"{'':16}{'neighbors of A':38}neighbors of B"]
    row = [_row(theory.neighbors_from_moments(components("moments, means", v, 3), v[0], 4)) for v in (A, B)]
    lines.append(f"{'own, 3 moments':16}{row[0]:38}{row[1]}")
    return "\n".join(lines)


def figure1() -> str:
    """The counterexamples that the exact form of Figure 1's caption needs."""
    one, other = theory.equal_moments(3)
    (own, neighbors), (own_b, neighbors_b) = theory.UNKNOWN_NODE
    cases: list[tuple[str, Neighborhood, Neighborhood]] = [
        ("two moments are not enough", (0, 4, 5), (1, 2, 6)),
        ("the two of the picture", tuple(one), tuple(other)),
        ("the size is not known", *theory.UNKNOWN_SIZE),
        ("an edge has weight 2", *theory.WEIGHTED),
        ("the node is not known", (own, *neighbors), (own_b, *neighbors_b)),
    ]
    lines = [f"{'':28}{'own, neighbors':24}means of x, x², x³, x⁴"]
    for why, *both in cases:
        for number, values in enumerate(both):
            shown = " ".join(f"{round(float(v), 3) + 0.0:g}" for v in values)
            weights = (1, 2) if why == "an edge has weight 2" else None
            means = np.array([np.average(np.array(values) ** p, weights=weights) for p in range(1, 5)])
            lines.append(f"{'' if number else why:28}{shown:24}{_row(means, 9)}")
    return "\n".join(lines)


def decoder_errors() -> dict[str, NDArray[np.float64]]:
    """The median error of each decoder by size, over 200 neighborhoods of normal values with mean 0 or 10."""
    settings = (
        ("polynomial", 0.0, "polynomial", theory.neighborhood_from_polynomial),
        ("moments", 0.0, "moments, means", theory.neighborhood_from_moments),
        ("moments, values near 10", 10.0, "moments, means", theory.neighborhood_from_moments),
        ("central, values near 10", 10.0, "central", theory.neighborhood_from_central),
    )
    found: dict[str, NDArray[np.float64]] = {}
    for label, shift, name, decode in settings:
        medians = []
        for m in SIZES:
            # columns are features: one star serves all 200 neighborhoods
            values = np.random.default_rng(m).standard_normal((m, 200)) + shift
            edge_index = star(tuple(values[:, 0]))[1]
            with torch.no_grad():
                capsule = CAPSULE_FUNCTIONS[name](torch.from_numpy(values), m, edge_index)
            back = decode(np.stack([part[0].numpy() for part in capsule]), m)
            medians.append(np.median(np.abs(back - np.sort(values, axis=0)).max(axis=0)))
        found[label] = np.array(medians)
    return found


def errors() -> str:
    """The table of :func:`decoder_errors`."""
    lines = [f"{'m':26}" + "".join(f"{m:>8}" for m in SIZES)]
    lines += [f"{label:26}" + "".join(f"{v:8.0e}" for v in row) for label, row in decoder_errors().items()]
    return "\n".join(lines)


def network(edge_index: Tensor, degree: int, layers: int, capsule: str, filter_name: str) -> Callable[[Tensor], Tensor]:
    """x [n, 1] ↦ the output of that many capsule layers with seeded weights, in float64."""
    torch.manual_seed(0)
    convs: list[GraphCapsuleConv] = []
    for _ in range(layers):
        width = convs[-1].width if convs else 1
        conv = GraphCapsuleConv(width, 3, 3, degree, capsule, filter_name, bound=2.0, activation="tanh").double()
        torch.nn.init.uniform_(conv.weight, -0.3, 0.3)  # small, so that tanh does not saturate
        convs.append(conv)

    def outputs(x: Tensor) -> Tensor:
        for conv in convs:
            x = conv(x, edge_index)
        return x

    return outputs


def theorem1() -> str:
    """The farthest node that the middle of a path of 31 nodes sees, and whether it sees all nearer ones."""
    n, middle = 31, 15
    i = torch.arange(n - 1)
    edge_index = torch.cat([torch.stack([i, i + 1]), torch.stack([i + 1, i])], dim=1)
    distance = theory.hops(edge_index, n, middle)
    x = torch.randn(n, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    lines = [f"{'filter':10}{'K':>3}{'layers':>8}{'K·layers':>10}" + "".join(f"{name:>12}" for name in CAPSULES)]
    for name, degree, layers in [("mean", K, count) for K in (1, 2, 3) for count in (1, 2)] + [("cayley", 1, 1)]:
        cells = []
        for capsule in CAPSULES:
            if name == "cayley" and capsule not in ("moments", "routing"):
                cells.append("")  # with K = 1 the filter does not act on a statistic
                continue
            seen = theory.receptive_field(network(edge_index, degree, layers, capsule, name), x, middle)
            reach = int(distance[seen].max())
            cells.append(str(reach) if torch.equal(seen, distance <= reach) else f"{reach} (holes)")
        lines.append(f"{name:10}{degree:>3}{layers:>8}{degree * layers:>10}" + "".join(f"{c:>12}" for c in cells))
    return "\n".join(lines)


def propositions() -> str:
    """What each position of both readouts reads on the example pair, and its value."""
    pair, lines = theory.example_pair(), []
    for title, readout, result in (
        ("max-sort, k = 3", MaxSortPool(3), theory.proposition1(pair)),
        ("mean and covariance", MeanCovariance(2), theory.proposition2(pair)),
    ):
        lines.append(f"{title:22}{'in G1':40}in G2")
        values = zip(readout(pair.z1)[0].tolist(), readout(pair.z2)[0].tolist(), strict=True)
        for number, (u, v) in enumerate(values):
            one, other = f"{u:7.3f}  {result.first[number]}", f"{v:7.3f}  {result.second[number]}"
            lines.append(f"  position {number:<9}{one:40}{other}")
        lines += [f"{'passes' if result.passed else 'fails'}: {result.explanation}", ""]
    return "\n".join(lines[:-1])


TABLES: dict[str, Callable[[], str]] = {
    "neighborhood": neighborhood,
    "pairs": pairs,
    "decoded": decoded,
    "figure1": figure1,
    "errors": errors,
    "theorem1": theorem1,
    "propositions": propositions,
}
"""By the name that --print takes."""


def _spoken(values: Neighborhood) -> str:
    return f"own {values[0]:g}, neighbors {' '.join(f'{v:g}' for v in values[1:])}"


def _row(values: NDArray[np.float64], width: int = 7) -> str:
    return " ".join(f"{round(float(v), 3) + 0.0:{width}.3f}" for v in values)


def _smallest(name: str, one: Neighborhood, other: Neighborhood) -> str:
    """The first capsule size up to 8 that tells two neighborhoods apart."""
    for P in range(1, 9):
        if np.abs(components(name, one, P) - components(name, other, P)).max() > 1e-6:
            return f"P={P}"
    return "never"
