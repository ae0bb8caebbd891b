"""Exported networks: size of the file, and time in ONNX Runtime against the model in torch.

    python benchmarks/export.py [NAME …] [--repeats 100]

Networks of the default size (trained for one epoch: weights do not matter for time) predict one graph at a time and a
batch of 128 from arrays that are ready: encoded features for torch, raw arrays for ONNX Runtime, which encodes them
itself. One thread each; medians of the processor time of runs that alternate, to which other processes add little.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import onnxruntime
import torch

import gcaps
from gcaps.batching import BatchSource
from gcaps.exporting import arrays_of
from gcaps.models.losses import scores_of


def medians(runs: list[Callable[[], Any]], repeats: int) -> list[float]:
    """Median of the processor seconds of each function, in turns."""
    seconds: list[list[float]] = [[] for _ in runs]
    for number in range(repeats + 2):
        for run, found in zip(runs, seconds, strict=True):
            began = time.process_time()
            run()
            if number >= 2:  # the first are a warm-up
                found.append(time.process_time() - began)
    return [float(np.median(found)) for found in seconds]


def main() -> None:
    parser = argparse.ArgumentParser(description="Exported networks: size, and time against torch.")
    parser.add_argument("names", nargs="*", default=["MUTAG"])
    parser.add_argument("--repeats", type=int, default=100)
    given = parser.parse_args()
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    head = ("data set", "network", "arrays of the model, KiB", "ONNX file, KiB", "largest difference")
    head += ("1 graph, ms", "in torch, ms", "ratio", "128 graphs, ms", "in torch, ms", "ratio")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for name in given.names:
        graphs = gcaps.load(name)
        for title, settings in {"one network": {"with_svm": False}, "with the SVM": {"with_svm": True}}.items():
            model = gcaps.GraphCapsuleClassifier(epochs=1, ensemble_size=1, **settings).fit(graphs)
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model.onnx"
                model.save(Path(folder) / "model")
                found = gcaps.export(model, path, graphs)
                session = onnxruntime.InferenceSession(str(path), options)
                sizes = [(Path(folder) / "model" / "model.safetensors").stat().st_size, path.stat().st_size]
            fitted = model.fitted_
            cells = []
            for count in (1, 128):
                some = graphs.subset(np.arange(count))
                batch = BatchSource(some, fitted.features.encode(some)).take(np.arange(count))
                arrays = arrays_of(some, fitted.features, found.inputs)

                @torch.no_grad()
                def own(network: Any = fitted.network, batch: Any = batch) -> Any:
                    return scores_of(network.task, network(batch))

                def other(session: Any = session, arrays: Any = arrays) -> Any:
                    return session.run(None, arrays)

                torch_seconds, onnx_seconds = medians([own, other], given.repeats)
                times = (1e3 * onnx_seconds, 1e3 * torch_seconds, onnx_seconds / torch_seconds)
                cells += [f"{value:.2f}" for value in times]
            kib = [f"{size / 1024:,.0f}" for size in sizes]
            print(
                f"| {name} | {title} | {' | '.join(kib)} | {found.difference:.0e} | {' | '.join(cells)} |", flush=True
            )


if __name__ == "__main__":
    main()
