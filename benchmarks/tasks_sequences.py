"""Forecasts on graph sequences: capsule cells against GCN cells, autoregressions and the last value.

    python benchmarks/tasks_sequences.py [SET ...] [--seeds 5] [--bases last autoregression] [--cells gru lstm]
        [--record sequences.json]

The sets (chickenpox, pedalme_london, england_covid) are read from $GCAPS_DATA/temporal. The first 60 % of the steps
train, the next 20 % validate, the last 20 % are the test; horizons are 1 to 4. Values are standardised by the training
steps of each node; errors are root mean squared errors over nodes, test steps and horizons. Lags, penalties and epochs
are chosen on the validation steps; every method is then fitted again on the first 80 %. With --record, finished fits
are kept and an interrupted run continues.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from gcaps.data.arrays import Array
from gcaps.data.sequence import GraphSequence, read_sequence
from gcaps.files import replacing
from gcaps.tasks import CapsuleForecaster
from gcaps.tasks.autoregression import choose_autoregression, squared_errors

SETS = ("chickenpox", "pedalme_london", "england_covid")
HORIZONS = 4
CELLS: dict[str, dict[str, Any]] = {"capsule": {"hidden": 8, "degree": 2}, "gcn": {"hidden": 24}}
"""Cells with about as many parameters; all else is the same."""
BASES = ("last", "autoregression")


class Record:
    """Results by key, written to a file after each."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.found: dict[str, Any] = json.loads(path.read_text()) if path is not None and path.exists() else {}

    def get(self, key: str, compute: Any) -> Any:
        """Return the result of a key, computed if it is not there."""
        if key not in self.found:
            self.found[key] = compute()
            if self.path is not None:
                with replacing(self.path) as draft:
                    draft.write_text(json.dumps(self.found, indent=1))
        return self.found[key]


class Split:
    """A sequence, its three parts, and errors in units of the training part."""

    def __init__(self, sequence: GraphSequence) -> None:
        self.sequence, T = sequence, len(sequence)
        self.train, self.past = int(0.6 * T), int(0.8 * T)
        spread = sequence.values[: self.train].std(axis=0)
        self.mean, self.scale = sequence.values[: self.train].mean(axis=0), np.where(spread > 0, spread, 1.0)
        self.values = (sequence.values - self.mean) / self.scale
        self.targets = np.arange(self.past, T)

    def errors(self, forecasts: Array) -> list[float]:
        """Root mean squared test error of each horizon, and over all."""
        squares = squared_errors(forecasts, self.values, self.targets)
        found = [*squares.mean(axis=(0, 1)), squares.mean()]
        return [float(np.sqrt(error)) for error in found]

    def fit(self, seed: int, convolution: str, **settings: Any) -> dict[str, Any]:
        """Fit a forecaster and return its errors."""
        began = time.process_time()
        model = CapsuleForecaster(convolution=convolution, horizons=HORIZONS, random_state=seed, **settings)
        model.fit(self.sequence.until(self.past), validation=self.past - self.train)
        seconds = time.process_time() - began
        forecasts = (model.predict(self.sequence) - self.mean[:, None]) / self.scale[:, None]
        return {
            "validation": -max(model.curves_.validation),
            "epoch": model.epoch_,
            "parameters": model.num_parameters_,
            "seconds": seconds,
            "test": self.errors(forecasts),
        }


def show(name: str, errors: list[list[float]], parameters: int | str, seconds: float | str) -> None:
    """Print a row of the table: mean and deviation over seeds."""
    mean, deviation = np.mean(errors, axis=0), np.std(errors, axis=0)
    cells = [f"{m:.3f}" if len(errors) == 1 else f"{m:.3f} ± {d:.3f}" for m, d in zip(mean, deviation, strict=True)]
    print(f"| {name} | {' | '.join(cells)} | {parameters} | {seconds} |", flush=True)


def run(split: Split, record: Record, seeds: int, bases: list[str], forms: list[str]) -> None:
    """Print the table of one set."""
    name, values = split.sequence.name, split.values
    print(f"\n{name}: {len(values)} steps, {values.shape[1]} nodes, {len(split.targets)} test steps")
    print("| method | " + " | ".join(f"h = {h}" for h in range(1, HORIZONS + 1)) + " | all | parameters | CPU s |")
    print("|---" * (HORIZONS + 4) + "|")
    show("last value", [split.errors(np.repeat(values[:, :, None], HORIZONS, axis=2))], 0, "")
    validation = np.arange(split.train, split.past)
    for title, share in (("autoregression of each node", False), ("autoregression, shared", True)):
        _, choice = choose_autoregression(values, split.train, validation, HORIZONS, share=share)
        model = choice.fit(values, split.past, HORIZONS)
        show(f"{title} ({choice.lags} lags)", [split.errors(model.predict(values))], model.weight.size, "")
    for base, form, convolution in product(bases, forms, CELLS):
        settings = CELLS[convolution] | {"base": base, "cell": form}
        fits = [
            record.get(
                f"{name} {convolution} {json.dumps(settings)} {seed}",
                lambda s=seed, c=convolution, o=settings: split.fit(s, c, **o),
            )
            for seed in range(seeds)
        ]
        seconds = f"{np.mean([fit['seconds'] for fit in fits]):.1f}"
        title = f"{convolution} {form.upper()}, corrects {'the last value' if base == 'last' else 'the autoregression'}"
        show(title, [fit["test"] for fit in fits], fits[0]["parameters"], seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description="Forecasts on graph sequences.")
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--bases", nargs="*", choices=BASES, default=BASES)
    parser.add_argument("--cells", nargs="*", choices=("gru", "lstm"), default=["gru", "lstm"])
    parser.add_argument("--record", type=Path, help="JSON file of finished fits, made or continued")
    given = parser.parse_args()
    folder = Path(os.environ.get("GCAPS_DATA", ".")) / "temporal"
    record = Record(given.record)
    for name in given.sets:
        run(Split(read_sequence(folder / f"{name}.json")), record, given.seeds, given.bases, given.cells)


if __name__ == "__main__":
    main()
