"""Several processes that share every batch compute what one computes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gcaps.training.checkpoint import read_checkpoint, write_checkpoint

TRAIN = """
import json, sys
from dataclasses import replace
import numpy as np, torch
from gcaps.batching import BatchSource
from gcaps.config import Config, FeatureConfig
from gcaps.features import NodeFeatures
from gcaps.models import GCAPS
from gcaps.nn.distributed import is_first_process
from gcaps.testing import hostile_graphs
from gcaps.training.loop import TrainingRun, reproducible
from gcaps.nn import distributed
from gcaps.training.distributed import joined

settings = json.loads(sys.argv[1])
graph_dim = settings.pop("graph_dim", 0)
if settings.pop("through_sockets", False):
    distributed.supports_shared_memory = lambda: False
with joined("start again"):
    graphs = hostile_graphs(45, seed=6, largest=12)
    concrete = dict(epochs=3, layers=2, reduce="mean", dropout=0.5, weight_decay=1e-3)
    concrete |= dict(ensemble_size=1, with_svm=False)
    config = Config(hidden=6, rank=5, fc=7, batch_size=16, **concrete, **settings)
    features = NodeFeatures.fit(FeatureConfig(features=("labels", "attributes")), graphs)
    with reproducible(0, 1):
        extra = np.random.default_rng(0).random((45, graph_dim)) if graph_dim else None
        source = BatchSource(graphs, replace(features.encode(graphs), graphs=extra), torch.float64, y=graphs.y)
        network = GCAPS(source.num_features, 2, config, **source.shape).double()
        run = TrainingRun(network, source, np.arange(45), config, seed=3)
        losses = [run.epoch().loss for _ in range(3)]
    if is_first_process():
        first = run.network.convs[0].norm.running_var.tolist()
        print(json.dumps({"losses": losses, "variance": first, "weights": run.optimizer.flat.tolist()}))
"""

SVM = """
import json
from gcaps.nn.distributed import is_first_process
from gcaps.testing import hostile_graphs
from gcaps import GraphCapsuleClassifier
from gcaps.training.distributed import joined

with joined("start again"):
    graphs = hostile_graphs(45, seed=6, largest=12)
    settings = dict(hidden=6, layers=2, rank=5, fc=7, with_svm=True, epochs=1)
    model = GraphCapsuleClassifier(**settings, random_state=3).fit(graphs).fitted_
    if is_first_process():
        support, deviations = (getattr(model.network.networks[1], name).tolist() for name in ("support", "scale"))
        print(json.dumps({"support": support, "scale": deviations, "scores": model.scores(graphs).tolist()}))
"""


def torchrun(processes, *arguments, **options):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def environment():
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"through_sockets": True, "graph_dim": 3},
        pytest.param({"capsule": "central", "capsule_size": 3}, marks=pytest.mark.slow),
    ],
)
def test_two_processes_give_the_losses_and_weights_of_one(tmp_path, settings):
    """Batches of 15 do not divide by two; dropout, batch statistics and running statistics are those of the whole."""
    one, two = printed_by_one_and_by_two(tmp_path, TRAIN, json.dumps(settings))
    for key in one:
        np.testing.assert_allclose(two[key], one[key], rtol=1e-7, atol=1e-9)


def test_two_processes_fit_the_svm_of_one(tmp_path):
    one, two = printed_by_one_and_by_two(tmp_path, SVM)
    assert (two["support"], two["scale"]) == (one["support"], one["scale"])
    np.testing.assert_allclose(two["scores"], one["scores"], atol=1e-4)


def printed_by_one_and_by_two(folder, text, *arguments):
    """What a script prints as JSON, run by one process and by two."""
    script = folder / "share.py"
    script.write_text(text)
    for processes in (1, 2):
        job = torchrun(processes, "--standalone", str(script), *arguments, env=environment())
        out, err = job.communicate(timeout=600)
        assert job.returncode == 0, err
        yield json.loads(out)


@pytest.mark.slow
def test_a_killed_process_ends_the_job_and_the_checkpoint_is_resumed(tmp_path):
    model = tmp_path / "model"
    command = ["--standalone", "-m", "gcaps", "train", "MUTAG", "-o", str(model), "--epochs", "3000"]
    job = torchrun(2, *command, env=environment() | {"GCAPS_CHECKPOINT_SECONDS": "1"}, cwd=tmp_path)
    page = tmp_path / "model.checkpoint" / "checkpoint.state"
    deadline = time.monotonic() + 600
    while not page.exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    workers = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and _is_worker(p, str(model))]
    os.kill(max(workers), signal.SIGKILL)
    _, err = job.communicate(timeout=600)
    assert job.returncode != 0
    assert "another process of this training has ended; run the same command again" in err
    saved, tensors = read_checkpoint(page.parent)
    done = saved["number"]
    assert done > 0
    assert not model.exists()
    saved["identity"]["config"]["epochs"] = done + 2  # a shorter way to the end
    write_checkpoint(page.parent, saved, tensors)
    again = torchrun(2, *command[:-1], str(done + 2), env=environment(), cwd=tmp_path)
    out, err = again.communicate(timeout=600)
    assert again.returncode == 0, err
    assert f"epoch {done + 2}," in out
    assert model.exists()
    assert not page.exists()


def _is_worker(process, model):
    try:
        line = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return model.encode() in line and b"torch.distributed.run" not in line
