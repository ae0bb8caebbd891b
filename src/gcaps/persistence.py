"""An estimator on disk: a folder with arrays (safetensors) and a JSON page. Nothing in it can run code.

``model.json`` ends with a checksum of itself, of the arrays and of the members of an ensemble. A model that was
altered or damaged is refused; one that someone made on purpose is checked like any input from outside: types, shapes,
finite numbers, and that everything the model computes with lies within its arrays.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import Field
from safetensors import SafetensorError
from safetensors.numpy import load, save_file

from gcaps.config import CONFIGS, TrainingConfig
from gcaps.data.arrays import Array
from gcaps.data.molecules.preparation import MoleculePreparation
from gcaps.data.targets import Target
from gcaps.documents import Count, Digest, Name, Page, parse_json, read_json, validated
from gcaps.errors import ConfigError, DataError, GcapsError, ModelError
from gcaps.estimators.registry import METHODS, estimator_named
from gcaps.files import MAX_PARSED_BYTES, exists, is_file, read_bytes, replacing, write_json
from gcaps.version import __version__

if TYPE_CHECKING:
    from gcaps.estimators.base import GraphEstimator
    from gcaps.estimators.predictor import NetworkPredictor
    from gcaps.tasks.base import TaskModel

PAGE, ARRAYS, MEMBERS = "model.json", "model.safetensors", "members"
MEASURED = "uncertainty."
"""Begins the names of arrays that belong to the calibration of a model."""
FORMAT = 5
MAX_MEMBERS = 64
MAX_NESTING = 3
"""Ensembles within ensembles."""


class DataFacts(Page):
    """Facts about the training graphs of a model."""

    name: Name
    fingerprint: Digest
    graphs: Count


class Manifest(Page):
    """The page of a saved model."""

    format: Literal[5]
    gcaps: Name
    estimator: Name
    """Name of its class."""
    method: Name
    parameters: dict[Name, Any]
    """The constructor's arguments; settings are validated by those of the method."""
    resolved: dict[Name, Any]
    """The settings of the fit, without any ``auto``."""
    resolution: list[str]
    target: dict[Name, Any]
    """See :class:`gcaps.data.targets.TargetState`."""
    data: DataFacts | dict[Name, Any]
    preparation: MoleculePreparation | None
    state: dict[Name, Any]
    """JSON values of the fitted estimator, each validated by its class."""
    uncertainty: dict[Name, Any] | None = None
    """See :class:`gcaps.estimators.uncertainty.UncertaintyState`."""
    members: Annotated[list[Digest], Field(max_length=MAX_MEMBERS)]
    """Checksums of the members of an ensemble."""
    arrays: Digest
    """Checksum of ``model.safetensors``."""
    sha256: Digest
    """Checksum of all other fields of this page."""


class TaskManifest(Page):
    """The page of a saved model of :mod:`gcaps.tasks`."""

    format: Literal[5]
    gcaps: Name
    task_model: Name
    """Name of its class in ``gcaps.tasks``."""
    parameters: dict[Name, Any]
    """The constructor's arguments."""
    epoch: Count
    """The epoch that its weights come from."""
    state: dict[Name, Any]
    """JSON values of the fitted model, each validated by its class."""
    arrays: Digest
    """Checksum of ``model.safetensors``."""
    sha256: Digest
    """Checksum of all other fields of this page."""


M = TypeVar("M", Manifest, TaskManifest)


def save(estimator: GraphEstimator | TaskModel[Any], path: str | Path) -> None:
    """Write a fitted estimator to the folder ``path``; a model that was there before is replaced as a whole."""
    goal = Path(path)
    require_goal(goal)
    with replacing(goal) as folder:
        if isinstance(estimator, _task_models().TaskModel):
            _write_task_model(estimator, folder)
        else:
            _write(estimator, folder)


def require_goal(goal: Path) -> None:
    """Check that a model can be written to a path, before a long training rather than after it.

    Raises:
        ModelError: something that is no model is there, or the folder cannot be written.
    """
    try:
        if exists(goal) and not is_file(goal / PAGE):
            raise ModelError(f"{goal}: exists and is not a saved model; choose another name")
    except DataError as error:
        raise ModelError(str(error)) from error
    parent = goal.parent
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise ModelError(f"{goal}: cannot be written, as {parent} is no folder that you may write to")


def _write(estimator: GraphEstimator, folder: Path) -> str:
    """Write a model and its members; return its checksum."""
    arrays, values = estimator.state()
    uncertainty = getattr(estimator, "uncertainty_", None)
    errors, measured = ({}, None) if uncertainty is None else uncertainty.state()
    arrays = arrays | {MEASURED + name: array for name, array in errors.items()}
    members: list[GraphEstimator] = getattr(estimator, "members", [])
    page = {
        "format": FORMAT,
        "gcaps": __version__,
        "estimator": type(estimator).__name__,
        "method": estimator.method,
        "parameters": _parameters(estimator),
        "resolved": estimator.resolved_,
        "resolution": [str(entry) for entry in estimator.resolution_],
        "target": estimator.target_.to_dict(),
        "data": getattr(estimator, "data_", {}),
        "preparation": None if estimator.preparation_ is None else estimator.preparation_.to_dict(),
        "state": values,
        "uncertainty": measured,
        "members": [_write(member, folder / MEMBERS / str(number)) for number, member in enumerate(members)],
    }
    return _write_parts(page, arrays, folder)


def _write_task_model(model: TaskModel[Any], folder: Path) -> None:
    """Write a model of a task."""
    arrays, values = model.state()
    page = {
        "format": FORMAT,
        "gcaps": __version__,
        "task_model": type(model).__name__,
        "parameters": _parameters(model),
        "epoch": model.epoch_,
        "state": values,
    }
    _write_parts(page, arrays, folder)


def _write_parts(page: dict[str, Any], arrays: dict[str, Array], folder: Path) -> str:
    """Write the arrays and the page of a model, with their checksums; return that of the page."""
    _require_finite(arrays, "the model cannot be saved: it")
    folder.mkdir(parents=True, exist_ok=True)  # that of an ensemble holds its members already
    save_file({name: np.asarray(array, order="C") for name, array in arrays.items()}, folder / ARRAYS)
    page["arrays"] = hashlib.sha256((folder / ARRAYS).read_bytes()).hexdigest()
    page["sha256"] = _digest(page)
    write_json(folder / PAGE, page)
    return str(page["sha256"])


def _task_models() -> ModuleType:
    """Return the module of the base class of the models of tasks, which loads torch."""
    return importlib.import_module("gcaps.tasks.base")


def _digest(page: dict[str, Any]) -> str:
    """SHA-256 of all fields but the checksum itself."""
    others = {name: value for name, value in page.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(others, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _parameters(estimator: GraphEstimator | TaskModel[Any]) -> dict[str, Any]:
    """Return the constructor's arguments as JSON values; those that have none are left at their default on loading."""
    plain = {}
    for name, value in estimator.get_params(deep=False).items():
        try:
            plain[name] = json.loads(json.dumps(value))
        except TypeError:
            continue
    return plain


def load_model(path: str | Path) -> GraphEstimator | TaskModel[Any]:
    """Read the fitted estimator, or the model of a task, that its ``save`` method or ``gcaps`` wrote.

    Raises:
        ModelError: the folder is not a saved model, is damaged, or has another format.
    """
    folder = Path(path)
    with _refusing(folder):
        return _read_task_model(folder) if _is_task_model(folder) else _read(folder)


def load_estimator(path: str | Path) -> GraphEstimator:
    """Read a fitted estimator on graphs.

    Raises:
        ModelError: see :func:`load_model`; or the folder holds a model of another task.
    """
    folder = Path(path)
    with _refusing(folder):
        if _is_task_model(folder):
            raise ModelError(f"{folder}: is a model of gcaps.tasks, not of graphs; gcaps tasks predict uses it")
        return _read(folder)


def _is_task_model(folder: Path) -> bool:
    """Whether a folder holds a model of :mod:`gcaps.tasks`."""
    page = read_json(folder / PAGE) if is_file(folder / PAGE) else None
    return isinstance(page, dict) and "task_model" in page


def _read_task_model(folder: Path) -> TaskModel[Any]:
    """Read a model of :mod:`gcaps.tasks`."""
    page, arrays = _content(folder, TaskManifest)
    tasks, base = importlib.import_module("gcaps.tasks"), _task_models().TaskModel
    kind: Any = getattr(tasks, page.task_model) if page.task_model in tasks.__all__ else None
    if not isinstance(kind, type) or not issubclass(kind, base):
        raise ModelError(f"{folder / PAGE}: is damaged (there is no model {page.task_model!r} in gcaps.tasks)")
    model: TaskModel[Any] = kind(**{n: tuple(v) if isinstance(v, list) else v for n, v in page.parameters.items()})
    model.restore(arrays, page.state)
    model.epoch_ = page.epoch
    return model


def load_predictor(path: str | Path) -> GraphEstimator | NetworkPredictor:
    """Read a fitted estimator for prediction only; a network without scikit-learn's part, in a fraction of the time.

    Raises:
        ModelError: see :func:`load_model`.
    """
    folder = Path(path)
    with _refusing(folder):
        if _is_task_model(folder):
            return load_estimator(folder)  # which refuses it
        page, arrays = _content(folder, Manifest)
        method = METHODS.get(page.method)
        kind = CONFIGS.get(page.method)
        names = () if method is None else (method.estimator, method.regressor)
        if page.estimator not in names or kind is None or not issubclass(kind, TrainingConfig) or page.members:
            return _read(folder)
        from gcaps.estimators.predictor import NetworkPredictor, restored

        own = {name: array for name, array in arrays.items() if not name.startswith(MEASURED)}
        target = Target.from_dict(page.target)
        fitted, _ = restored(page.method, dict(page.resolved), target, own, page.state)
        return NetworkPredictor(fitted, target, page.preparation)


@contextmanager
def _refusing(folder: Path) -> Iterator[None]:
    """Turn any exception while reading a model into a ModelError that names its folder."""
    try:
        yield
    except ModelError as error:
        raise error if str(error).startswith(str(folder)) else ModelError(f"{folder}: {error}") from error
    except (
        *(OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, RuntimeError, OverflowError),
        *(MemoryError, AssertionError, SafetensorError, ConfigError, GcapsError),
    ) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelError(f"{folder}: is damaged or not a gcaps model ({reason[:300]})") from error


def _content(folder: Path, kind: type[M], expected: str | None = None) -> tuple[M, dict[str, Array]]:
    """Return the page and the arrays of a model whose checksum is ``expected``, where that is known."""
    for name in (PAGE, ARRAYS):
        if not is_file(folder / name):
            raise ModelError(f"{folder}: is not a saved model ({folder / name} is missing)")
    raw = read_json(folder / PAGE)
    found = raw.get("format") if isinstance(raw, dict) else None
    if isinstance(found, int) and found != FORMAT:
        raise ModelError(f"{folder}: has format {found}, this gcaps reads format {FORMAT}; train it anew")
    page = validated(kind, raw, f"{folder / PAGE}: is damaged", ModelError)
    if _digest(raw) != page.sha256 or (expected is not None and expected != page.sha256):
        raise ModelError(f"{folder / PAGE}: was changed after the model was saved; save it again")
    content = read_bytes(folder / ARRAYS, MAX_PARSED_BYTES)
    if hashlib.sha256(content).hexdigest() != page.arrays:
        raise ModelError(f"{folder / ARRAYS}: is not the file that {PAGE} was written with; save the model again")
    return page, _arrays(content, folder / ARRAYS)


def _read(folder: Path, expected: str | None = None, depth: int = 0) -> GraphEstimator:
    """Read a model whose checksum is ``expected``, where that is known."""
    if depth > MAX_NESTING:
        raise ModelError(f"{folder}: has ensembles within ensembles; refused")
    page, arrays = _content(folder, Manifest, expected)
    kind: Any = estimator_named(page.estimator)
    parameters = {name: tuple(v) if isinstance(v, list) else v for name, v in page.parameters.items()}
    estimator: GraphEstimator = kind(**_required(page.estimator, parameters))
    if estimator.method != page.method:
        raise ModelError(f"{folder / PAGE}: is damaged (a {page.estimator} is not of method {page.method!r})")
    estimator.target_ = Target.from_dict(page.target)
    estimator.resolved_ = dict(page.resolved)
    estimator.data_ = page.data.model_dump() if isinstance(page.data, DataFacts) else dict(page.data)
    estimator.preparation_ = page.preparation
    estimator.resolution_, estimator.chosen_, estimator.curves_, estimator.epoch_ = [], {}, None, 1
    errors = {name.removeprefix(MEASURED): arrays.pop(name) for name in list(arrays) if name.startswith(MEASURED)}
    estimator.restore(arrays, page.state)
    estimator.uncertainty_ = None
    if page.uncertainty is not None:
        from gcaps.estimators.uncertainty import Uncertainty

        estimator.uncertainty_ = Uncertainty.restored(estimator.target_, errors, page.uncertainty)
    if page.members:
        estimator.estimators_ = [
            _read(folder / MEMBERS / str(number), digest, depth + 1) for number, digest in enumerate(page.members)
        ]
        if any(_predicts_otherwise(member.target_, estimator.target_) for member in estimator.estimators_):
            raise ModelError(f"{folder}: is damaged (its members predict other targets)")
    return estimator


def _predicts_otherwise(one: Target, other: Target) -> bool:
    return (one.task, one.names) != (other.task, other.names) or not np.array_equal(
        np.zeros(0) if one.classes is None else one.classes, np.zeros(0) if other.classes is None else other.classes
    )


def _arrays(content: bytes, file: Path) -> dict[str, Array]:
    """Return the arrays of a safetensors file, of the size that its header says, with finite numbers."""
    length = int.from_bytes(content[:8], "little")
    header = parse_json(content[8 : 8 + length], str(file)) if length <= len(content) - 8 else None
    facts = validated(dict[str, TensorFacts], header, f"{file}: is damaged", ModelError)
    if max((tensor.data_offsets[1] for tensor in facts.values()), default=0) != len(content) - 8 - length:
        raise ModelError(f"{file}: is damaged (its header does not fit its size)")
    arrays: dict[str, Array] = dict(load(content))
    _require_finite(arrays, f"{file}:")
    for name, array in arrays.items():
        if array.dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
            raise ModelError(f"{file}: is damaged ({name} holds no booleans)")
    return arrays


def _require_finite(arrays: dict[str, Array], subject: str) -> None:
    """Raise a ModelError if an array holds NaN or ∞: no model that is written may be refused when it is read."""
    for name, array in arrays.items():
        if np.asarray(array).dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelError(f"{subject} holds numbers that are not finite ({name}); train the model again")


class TensorFacts(Page):
    """Entry of an array in the header of a safetensors file."""

    dtype: Literal["F16", "F32", "F64", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "BOOL"]
    shape: Annotated[list[Count], Field(max_length=8)]
    data_offsets: tuple[Count, Count]


def _required(class_name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Add the required argument ``kernel`` of KernelSVC and KernelSVR; the fitted kernel is part of the state."""
    return {"kernel": (), **parameters} if class_name in ("KernelSVC", "KernelSVR") else parameters
