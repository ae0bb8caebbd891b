"""An estimator on disk: a folder with arrays (safetensors) and a JSON page. Nothing in it can run code."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from gcaps.data.arrays import Array
from gcaps.data.molecules.preparation import MoleculePreparation
from gcaps.data.targets import Target
from gcaps.errors import ConfigError, GcapsError, ModelError
from gcaps.estimators.registry import estimator_named
from gcaps.files import replacing, write_json
from gcaps.version import __version__

if TYPE_CHECKING:
    from gcaps.estimators.base import GraphEstimator

PAGE, ARRAYS, MEMBERS = "model.json", "model.safetensors", "members"
FORMAT = 4


def save(estimator: GraphEstimator, path: str | Path) -> None:
    """Write a fitted estimator to the folder ``path``; a model that was there before is replaced as a whole."""
    goal = Path(path)
    require_goal(goal)
    with replacing(goal) as folder:
        _write(estimator, folder)


def require_goal(goal: Path) -> None:
    """Check that a model can be written to a path, before a long training rather than after it.

    Raises:
        ModelError: something that is no model is there, or the folder cannot be written.
    """
    if (goal.exists() or goal.is_symlink()) and not (goal / PAGE).is_file():
        raise ModelError(f"{goal}: exists and is not a saved model; choose another name")
    parent = goal.parent
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise ModelError(f"{goal}: cannot be written, as {parent} is no folder that you may write to")


def _write(estimator: GraphEstimator, folder: Path) -> None:
    folder.mkdir(parents=True)
    arrays, values = estimator.state()
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, folder / ARRAYS)
    members: list[GraphEstimator] = getattr(estimator, "members", [])
    for number, member in enumerate(members):
        _write(member, folder / MEMBERS / str(number))
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
        "members": len(members),
        "sha256": hashlib.sha256((folder / ARRAYS).read_bytes()).hexdigest(),
    }
    write_json(folder / PAGE, page)


def _parameters(estimator: GraphEstimator) -> dict[str, Any]:
    """Return the constructor's arguments as JSON values; those that have none are left at their default on loading."""
    plain = {}
    for name, value in estimator.get_params(deep=False).items():
        try:
            plain[name] = json.loads(json.dumps(value))
        except TypeError:
            continue
    return plain


def load_model(path: str | Path) -> GraphEstimator:
    """Read the fitted estimator that its ``save`` method or ``gcaps train`` wrote.

    Raises:
        ModelError: the folder is not a saved model, is damaged, or has another format.
    """
    folder = Path(path)
    try:
        return _read(folder)
    except ModelError:
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ModelError(f"{folder}: is not a saved model ({error.filename} is missing)") from error
    except (
        *(OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, RuntimeError),
        *(SafetensorError, ConfigError, GcapsError),
    ) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelError(f"{folder}: is damaged or not a gcaps model ({reason})") from error


def _read(folder: Path) -> GraphEstimator:
    page = json.loads((folder / PAGE).read_text(encoding="utf-8"))
    if page["format"] != FORMAT:
        raise ModelError(f"{folder}: has format {page['format']}, this gcaps reads format {FORMAT}; train it anew")
    if hashlib.sha256((folder / ARRAYS).read_bytes()).hexdigest() != page["sha256"]:
        raise ModelError(f"{folder / ARRAYS}: is not the file that {PAGE} was written with; save the model again")
    kind: Any = estimator_named(page["estimator"])
    parameters = {name: tuple(v) if isinstance(v, list) else v for name, v in page["parameters"].items()}
    estimator: GraphEstimator = kind(**_required(page["estimator"], parameters))
    estimator.target_ = Target.from_dict(page["target"])
    estimator.resolved_, estimator.data_ = dict(page["resolved"]), dict(page["data"])
    prepared = page["preparation"]
    estimator.preparation_ = None if prepared is None else MoleculePreparation.from_dict(prepared)
    estimator.resolution_, estimator.chosen_, estimator.curves_, estimator.epoch_ = [], {}, None, 1
    arrays: dict[str, Array] = dict(load_file(folder / ARRAYS))
    estimator.restore(arrays, page["state"])
    if page["members"]:
        estimator.estimators_ = [_read(folder / MEMBERS / str(n)) for n in range(int(page["members"]))]
    return estimator


def _required(class_name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Add the required argument ``kernel`` of KernelSVC and KernelSVR; the fitted kernel is part of the state."""
    return {"kernel": (), **parameters} if class_name in ("KernelSVC", "KernelSVR") else parameters
