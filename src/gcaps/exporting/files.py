"""Write a trained network to a file, after what is in the file was compared with the model."""

from __future__ import annotations

import hashlib
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save
from torch.export import Dim, ExportedProgram

from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError
from gcaps.estimators.base import GraphEstimator, load_fitted
from gcaps.exporting.arrays import EDGES, NODES, Input, arrays_of, inputs_of
from gcaps.exporting.arrays import GRAPHS as OF_GRAPHS
from gcaps.exporting.check import GRAPHS, Run, largest_difference, require_close, synthetic_graphs
from gcaps.exporting.program import Program
from gcaps.exporting.support import Format, fitted_network, format_of
from gcaps.features.structural import LabelFeatures
from gcaps.files import replacing
from gcaps.version import __version__

OPSET = 18
TRACED = 12
"""Graphs of the batch that a program is recorded with."""
LARGEST_ONNX = (1 << 31) - (1 << 24)
"""Bytes of weights that fit into one ONNX file."""


@dataclass(frozen=True)
class Exported:
    """Description of a written file."""

    path: Path
    format: Format
    inputs: list[Input]
    """Arrays that the file takes, in their order."""
    output: str
    """Name of what it computes: ``probabilities`` or ``values``."""
    metadata: dict[str, Any]
    """Metadata of the file."""
    difference: float
    """Largest difference from the model on the graphs that it was compared on."""
    graphs: int
    """Number of these graphs."""


def export(
    model: GraphEstimator | str | Path, path: str | Path, check: Any = None, *, weighted: bool | None = None
) -> Exported:
    """Write a trained network to a file that runs without gcaps, for any number of nodes, edges and graphs.

    The file contains the network and the tables of its features: one-hot columns of labels, among them those of rare
    and unknown ones, mean and deviation of attributes, degrees, relations of edges. What is computed by other code is
    an input of the file, and its metadata say so: harmonic distances, return probabilities and fingerprints.

    Before the file appears, what is in it is compared with the model.

    Args:
        model: a fitted network (gcaps, capsule-svm, gin, dgcnn, dcnn or deepsets), or the folder of a saved one.
        path: the file; its name ends with ``.onnx`` or, for a program of :mod:`torch.export`, ``.pt2``.
        check: graphs to compare on, the first :data:`~gcaps.exporting.check.GRAPHS` of them; by default made-up ones.
        weighted: whether edges have weights; by default where those of ``check`` do.

    Raises:
        ConfigError: the model cannot be exported, or packages for it are missing.
        ModelError: the file's predictions differ from the model's by more than 1e-5; nothing was written.
    """
    goal = Path(path)
    kind = format_of(goal)
    estimator = model if isinstance(model, GraphEstimator) else load_fitted(Path(model))
    fitted = fitted_network(estimator)
    given = None if check is None else _first(estimator.loaded(check))
    has_weights = weighted if weighted is not None else given is not None and given.edge_weight is not None
    inputs = inputs_of(fitted.features, weighted=has_weights)
    made_up = synthetic_graphs(estimator, fitted.features, GRAPHS if given is None else TRACED, weighted=has_weights)
    graphs = made_up if given is None else given
    program = Program(fitted.features, fitted.network, estimator.target_).eval()
    output = "values" if estimator.target_.task == "regression" else "probabilities"
    metadata = metadata_of(estimator, inputs, output)
    example = arrays_of(made_up.subset(np.arange(TRACED)), fitted.features, inputs)
    with replacing(goal) as draft:
        with _quiet():
            recorded = record(program, inputs, example)
            if kind == "onnx":
                _write_onnx(recorded, draft, inputs, output, metadata)
            else:
                torch.export.save(recorded, draft, extra_files={"gcaps.json": json.dumps(metadata)})
            run = _onnx_run(draft) if kind == "onnx" else _torch_run(draft)
        worst = largest_difference(run, estimator, fitted.features, inputs, graphs)
        require_close(worst, graphs)
    return Exported(goal, kind, inputs, output, metadata, worst, len(graphs))


def _first(graphs: GraphSet) -> GraphSet:
    return graphs.subset(np.arange(min(len(graphs), GRAPHS)))


def record(program: Program, inputs: list[Input], example: dict[str, Array]) -> ExportedProgram:
    """Record the computation, for any number of nodes, edges and graphs."""
    free = {NODES: Dim(NODES, min=1), EDGES: Dim(EDGES, min=0), OF_GRAPHS: Dim(OF_GRAPHS, min=1)}
    shapes = {
        one.name: {axis: free[length] for axis, length in enumerate(one.shape) if isinstance(length, str)}
        for one in inputs
    }
    with torch.no_grad():
        return torch.export.export(program, (), _tensors(example), dynamic_shapes=shapes)


def _tensors(arrays: dict[str, Array]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def metadata_of(estimator: GraphEstimator, inputs: list[Input], output: str) -> dict[str, Any]:
    """Return the metadata of an exported file, as JSON values."""
    target, features = estimator.target_, fitted_network(estimator).features
    classes = None if target.classes is None else target.classes.tolist()
    labels, relations, fgsd = features.parts.get("labels"), features.edges.relations, features.parts.get("fgsd")
    about = {
        "classification": "probability of each class, in the order of `classes`",
        "multilabel": "probability of the second class, for each target",
        "regression": "each target, in the units of the training graphs",
    }
    found: dict[str, Any] = {
        "gcaps": __version__,
        "method": estimator.method,
        "task": target.task,
        "inputs": [one.to_dict() for one in inputs],
        "output": {"name": output, "about": about[target.task]},
        "targets": list(target.names),
        "classes": classes,
        "node_features": {name: part.num_features for name, part in features.parts.items()},
        "training_graphs": getattr(estimator, "data_", {}),
        "arrays_sha256": _checksum(estimator),
    }
    if isinstance(labels, LabelFeatures):
        found["node_labels"] = [
            {"columns": own.tolist(), "rare": few.tolist()}
            for own, few in zip(labels.frequent, labels.rare_, strict=True)
        ]
    if relations is not None:
        found["edge_labels"] = relations.rows_.tolist()
    if fgsd is not None:
        found["fgsd"] = fgsd.state()
    if estimator.preparation_ is not None:
        found["molecules"] = estimator.preparation_.to_dict()
    return found


def _checksum(estimator: GraphEstimator) -> str:
    """SHA-256 of the model's arrays, which ``model.json`` of the saved model has as ``arrays``."""
    arrays, _ = estimator.state()
    return hashlib.sha256(save({name: np.asarray(array, order="C") for name, array in arrays.items()})).hexdigest()


def _write_onnx(
    recorded: ExportedProgram, file: Path, inputs: list[Input], output: str, metadata: dict[str, Any]
) -> None:
    weights = sum(t.numel() * t.element_size() for t in (*recorded.state_dict.values(), *recorded.constants.values()))
    if weights > LARGEST_ONNX:
        raise ConfigError(
            f"{file.name}: the network has {weights / 2**30:.1f} GiB, more than an ONNX file; export .pt2"
        )
    table = {torch.ops.aten.sort.stable: _stable_sort}
    options: Any = {"opset_version": OPSET, "custom_translation_table": table, "dynamo": True, "verbose": False}
    made: Any = torch.onnx.export(recorded, output_names=[output], **options)
    page = made.model_proto
    _name_dimensions(page, inputs)
    page.producer_name, page.producer_version = "gcaps", __version__
    page.graph.name = metadata["method"]
    for part in (*page.graph.node, *page.functions, *page.graph.value_info, *page.graph.initializer, page.graph):
        del part.metadata_props[:]  # traces of where this machine has its files
        part.doc_string = ""
    del page.metadata_props[:]
    for name, value in metadata.items():
        page.metadata_props.add(key=name, value=json.dumps(value, ensure_ascii=False))
    file.write_bytes(page.SerializeToString())


def _stable_sort(values: Any, stable: bool = True, dim: int = -1, descending: bool = False) -> Any:
    """Sort as torch does, in ONNX, where the first of equal values comes first by definition."""
    from onnxscript import opset18

    op: Any = opset18  # its types know no constants
    return op.TopK(values, op.Gather(op.Shape(values), [dim]), axis=dim, largest=int(descending), sorted=1)


def _name_dimensions(page: Any, inputs: list[Input]) -> None:
    """Call the free dimensions nodes, edges and graphs."""
    names: dict[str, str] = {}
    for given, one in zip(page.graph.input, inputs, strict=True):
        for dim, length in zip(given.type.tensor_type.shape.dim, one.shape, strict=True):
            if isinstance(length, str):
                names[dim.dim_param] = dim.dim_param = length
    del page.graph.value_info[:]  # shapes in terms of the former names
    for made in page.graph.output:
        made.type.tensor_type.shape.dim[0].dim_param = OF_GRAPHS


def _onnx_run(file: Path) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])

    def run(arrays: dict[str, Array]) -> Array:
        found: Array = session.run(None, arrays)[0]
        return found

    return run


def _torch_run(file: Path) -> Run:
    program = torch.export.load(file).module()

    @torch.no_grad()
    def run(arrays: dict[str, Array]) -> Array:
        found: Array = program(**_tensors(arrays)).numpy()
        return found

    return run


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter's notes about its own workings from the user."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
