"""A model on disk: a folder of weights (safetensors) and one JSON page. Nothing in it can run code."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from gcaps.errors import ConfigError, ModelError
from gcaps.features import NodeFeatures
from gcaps.files import replacing, write_json
from gcaps.models.config import CONFIGS
from gcaps.models.registry import restore_network
from gcaps.training.fitted import Fitted
from gcaps.version import __version__

PAGE, WEIGHTS = "model.json", "model.safetensors"
FORMAT = 1


def save(model: Fitted, path: str | Path) -> None:
    """Write the model to the folder ``path``; a model that stood there before is replaced as a whole."""
    goal = Path(path)
    if goal.exists() and not (goal / PAGE).is_file():
        raise ModelError(f"{goal}: exists and is not a saved model; choose another name")
    with replacing(goal) as folder:
        folder.mkdir()
        weights = {key: value.contiguous() for key, value in model.network.state_dict().items()}
        save_file(weights, folder / WEIGHTS)
        page = {
            "format": FORMAT,
            "gcaps": __version__,
            "method": model.config.method,
            "config": model.config.to_dict(),
            "features": model.features.state(),
            "in_channels": model.network.in_channels,
            "measured": model.network.measured,
            "classes": model.classes.tolist(),
            "seed": model.seed,
            "data": model.data,
            "sha256": hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest(),
        }
        write_json(folder / PAGE, page)


def load(path: str | Path) -> Fitted:
    """The model that :func:`save` wrote.

    Raises:
        ModelError: where the folder is not one, is damaged, or is of another format.
    """
    folder = Path(path)
    try:
        page = json.loads((folder / PAGE).read_text(encoding="utf-8"))
        if page["format"] != FORMAT:
            raise ModelError(f"{folder}: has format {page['format']}, this gcaps reads format {FORMAT}; train it anew")
        if hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest() != page["sha256"]:
            raise ModelError(f"{folder / WEIGHTS}: is not the file that {PAGE} was written with; save the model again")
        config = CONFIGS[page["method"]].parse(page["config"])
        classes = np.asarray(page["classes"], dtype=np.int64)
        network = restore_network(config, int(page["in_channels"]), len(classes), page["measured"])
        network.load_state_dict(load_file(folder / WEIGHTS))
        features = NodeFeatures.from_state(page["features"])
        return Fitted(config, features, network.eval(), classes, int(page["seed"]), dict(page["data"]))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ModelError(f"{folder}: is not a saved model ({error.filename} is missing)") from error
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RuntimeError,
        SafetensorError,
        ConfigError,
    ) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelError(f"{folder}: is damaged or not a gcaps model ({reason})") from error
