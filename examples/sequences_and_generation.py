"""Forecasts of values on a graph, and new graphs like those of a set.

    python examples/sequences_and_generation.py

Waves travel around a ring of twelve stations; what comes next is forecast for each. Then a generator learns from small
graphs of two communities, and its graphs are compared with random ones of the same sizes and densities.
"""

from __future__ import annotations

import numpy as np

from gcaps.data.sequence import Edges, GraphSequence
from gcaps.tasks import CapsuleForecaster, CapsuleGraphGenerator
from gcaps.tasks.generation_quality import distances_to, variety
from gcaps.tasks.random_graphs import communities, erdos_renyi


def waves(steps: int = 120, stations: int = 12, seed: int = 0) -> GraphSequence:
    """Return values that each station passes on to the next one, with noise."""
    rng = np.random.default_rng(seed)
    values = np.zeros((steps, stations))
    values[0] = rng.standard_normal(stations)
    for t in range(1, steps):
        values[t] = 0.9 * np.roll(values[t - 1], 1) + 0.4 * rng.standard_normal(stations)
    station = np.arange(stations)
    return GraphSequence("waves", values, (Edges(np.stack([station, (station + 1) % stations])),))


def main(epochs: int = 100, updates: int = 20) -> dict[str, float]:
    """Print what both models find; return it."""
    sequence = waves()
    past = sequence.until(96)
    found = {}
    for convolution in ("capsule", "gcn"):
        model = CapsuleForecaster(convolution, horizons=2, epochs=epochs, base="mean").fit(past, validation=24)
        found[convolution] = model.score(sequence, steps=24)
        print(f"{convolution:>8} cells explain {found[convolution]:.0%} of the variance of the last 24 steps")
    graphs = communities(120)
    train, test = graphs[:80], graphs[80:]
    generator = CapsuleGraphGenerator(epochs=4, updates=updates, chains=64, batch_size=32, sampling_steps=400).fit(
        train
    )
    made = generator.sample(len(test))
    for name, some in (("generated", made), ("random", erdos_renyi(train, len(test)))):
        far = distances_to(some, test)
        print(f"{name:>9} graphs: {', '.join(f'{what} {value:.3f}' for what, value in far.items())}")
        found[name] = far["spectrum"]
    print(f"{variety(made, train).unique:.0%} of the generated graphs are different")
    return found


if __name__ == "__main__":
    main()
