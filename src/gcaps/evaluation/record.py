"""Records: a comparison, or a single result, in two files.

``NAME.json`` is for people and for tables: data sets, rows with their settings, and for each row, data set and seed the
headline metric of every fold under every protocol, all other metrics, what was chosen and resolved, the command and the
versions. ``NAME.npz`` holds what verification and reports need besides: test graphs, predictions, probabilities rounded
to four decimals, learning curves in single precision, and embeddings.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from gcaps.data.arrays import Array
from gcaps.errors import ConfigError, GcapsError
from gcaps.evaluation.comparison import Comparison
from gcaps.evaluation.outcome import Cell, Key, Outcome
from gcaps.evaluation.plan import Plan, data_folders
from gcaps.evaluation.protocols import summarise
from gcaps.evaluation.result import FoldResult, Summary, as_lists
from gcaps.files import replacing, write_text

FORMAT = 4
READABLE = (3, 4)
"""Formats that :func:`read_record` reads; 3 has only classification, and no metrics but accuracy."""
KIND = "gcaps record"
SCORE_UNIT = 1e-4
"""Scores are stored as whole multiples of this."""
CURVES = ("train_loss", "train_score", "test_score", "validation_score")


def write_record(comparison: Comparison, path: str | Path) -> None:
    """Write ``NAME.npz`` and then ``NAME.json``, each atomically."""
    goal = Path(path)
    if goal.suffix != ".json":
        raise ConfigError(f"{goal}: a record's name ends in .json")
    plan = comparison.plan
    groups: dict[tuple[str, str, int], list[Outcome]] = {}
    for outcome in comparison.outcomes:
        groups.setdefault((outcome.data, outcome.label, outcome.seed), []).append(outcome)
    arrays = _data_arrays(comparison)
    rows = []
    for number, outcomes in enumerate(groups.values()):
        rows.append(_row(plan, outcomes))
        arrays |= {f"{number}/{name}": array for name, array in _row_arrays(outcomes).items()}
    with replacing(goal.with_suffix(".npz")) as draft:
        with draft.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # numpy's stub takes a flag for an array
        sha256 = hashlib.sha256(draft.read_bytes()).hexdigest()
    data = [asdict(replace(d, path=None, copied=False, splits=_portable(d.splits))) for d in plan.data]
    for entry in data:
        del entry["path"], entry["copied"]
        entry["source"] = _portable(entry["source"])
    page = {
        "kind": KIND,
        "format": FORMAT,
        "name": plan.name,
        "command": plan.command,
        "created": plan.created,
        "versions": plan.versions,
        "limits": asdict(plan.limits),
        "data": data,
        "entries": [asdict(entry) for entry in plan.entries],
        "results": rows,
        "arrays": sha256,
    }
    write_text(goal, _dumps(page))


def _portable(path: str | None) -> str | None:
    """A path without the part that only this machine has: relative to a data folder or to the working directory."""
    if path is not None and Path(path).is_absolute():
        for folder in (*data_folders(), Path.cwd()):
            if Path(path).is_relative_to(folder.resolve()):
                return Path(path).relative_to(folder.resolve()).as_posix()
    return path


def _dumps(value: Any) -> str:
    """Indented JSON in which short lists and objects take one line each."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    # line breaks are between values only: strings have theirs escaped
    return re.sub(r"([\[{])\n\s*([^\[\]{}]{0,110}?)\n\s*([\]}])", _one_line, text) + "\n"


def _one_line(found: re.Match[str]) -> str:
    return found[1] + re.sub(r"\n\s*", " ", found[2]) + found[3]


def _row(plan: Plan, outcomes: list[Outcome]) -> dict[str, Any]:
    """What the JSON file says of one row, data set and seed."""
    first = outcomes[0]
    done = [o.result for o in outcomes if o.result is not None]
    resolved = done[0].resolved if done else {}
    entry = plan.entry(first.data, first.label)
    config = None if entry is None or len(entry.configs) != 1 else entry.configs[0]
    row: dict[str, Any] = {"data": first.data, "label": first.label, "seed": first.seed}
    if first.command not in (None, plan.command):
        row["command"] = first.command
    if first.versions != plan.versions:
        row["versions"] = first.versions
    row["created"] = max(o.created for o in outcomes)
    if done:
        row["protocols"] = {
            name: _summary(found) for name, found in summarise([done], plan.of(first.data).metric).items()
        }
    if resolved:
        row["resolved"] = resolved
    row["folds"] = [_fold(o, config, resolved) for o in outcomes]
    return row


def _summary(summary: Summary) -> dict[str, Any]:
    """A summary as JSON, which has no NaN."""
    found = {name: value for name, value in asdict(summary).items() if name != "repetitions"}
    return found if summary.folds else found | {"mean": None, "std": None}


def _fold(outcome: Outcome, config: dict[str, Any] | None, resolved: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"fold": outcome.fold, "status": outcome.status, "seconds": round(outcome.seconds, 4)}
    result = outcome.result
    if outcome.error is not None:
        found["error"] = outcome.error
    if outcome.peak_mib is not None:
        found["peak_mib"] = outcome.peak_mib
    if outcome.config != config:
        found["config"] = outcome.config
    if outcome.candidates:
        found["candidates"] = outcome.candidates
    if result is not None:
        found |= {"epoch": result.epoch, "fit_seconds": round(result.seconds, 4)}
        found |= {"chosen": result.chosen} if result.chosen else {}
        found |= {"resolved": result.resolved} if result.resolved != resolved else {}
        found |= {"resolution": result.resolution} if result.resolution else {}
        found |= {"train_size": result.train_size} if result.train_size is not None else {}
        found |= {"metrics": result.metrics} if result.metrics else {}
        found |= {"targets": result.targets} if result.targets else {}
    return found


def _data_arrays(comparison: Comparison) -> dict[str, Array]:
    """For each data set the target of each tested graph, and for each of its seeds the test graphs of its folds."""
    arrays: dict[str, Array] = {}
    for number, data in enumerate(comparison.plan.data):
        y: Array = np.full(data.graphs, -1, dtype=np.int32)
        if data.task != "classification":
            one = data.task == "regression" and len(data.targets) == 1
            y = np.full(data.graphs if one else (data.graphs, len(data.targets)), np.nan)
        tests: dict[tuple[int, int], list[int]] = {}
        for outcome in comparison.outcomes:
            if outcome.data == data.name and outcome.result is not None:
                y[outcome.result.test] = np.array(outcome.result.y, dtype=y.dtype)
                tests[outcome.seed, outcome.fold] = outcome.result.test
        arrays[f"data{number}/y"] = y
        for seed in sorted({seed for seed, _ in tests}):
            own = [(fold, test) for (other, fold), test in sorted(tests.items()) if other == seed]
            arrays[f"data{number}/seed{seed}/folds"] = np.array([(fold, len(test)) for fold, test in own], np.int32)
            arrays[f"data{number}/seed{seed}/test"] = np.concatenate([np.array(test, np.int32) for _, test in own])
    return arrays


def _row_arrays(outcomes: list[Outcome]) -> dict[str, Array]:
    done = [o.result for o in outcomes if o.result is not None]
    if not done:
        return {}
    kind = {"classification": np.uint16, "multilabel": np.uint8, "regression": np.float64}[done[0].task]
    arrays: dict[str, Array] = {
        "predictions": np.concatenate([np.array(fold.predictions, dtype=kind) for fold in done])
    }
    if all(len(fold.scores) == len(fold.test) > 0 for fold in done):
        scores = np.concatenate([np.array(fold.scores, np.float64) for fold in done])
        arrays["scores"] = np.clip(np.rint(scores / SCORE_UNIT), 0, 65535).astype(np.uint16)
    for name in CURVES:
        arrays[f"{name}.lengths"] = np.array([len(getattr(fold, name)) for fold in done], np.int32)
        arrays[name] = np.concatenate([np.array(getattr(fold, name), np.float32) for fold in done])
    embeddings = [o.embedding for o in outcomes if o.embedding is not None]
    if embeddings:
        arrays["embedding"] = np.array(embeddings[0], np.float32)
    return {name: array for name, array in arrays.items() if array.size}


def is_record(path: Path) -> bool:
    """Whether a JSON file is a record."""
    with path.open(encoding="utf-8") as file:
        return f'"kind": "{KIND}"' in file.read(200)


def read_record(path: Path) -> Comparison:
    """Read the comparison that :func:`write_record` wrote."""
    try:
        page = json.loads(path.read_text(encoding="utf-8"))
        if page.get("kind") != KIND:
            raise GcapsError(
                f"{path}: is not a record of gcaps; gcaps evaluate -o and gcaps compare --record write one"
            )
        if page["format"] not in READABLE:
            raise GcapsError(f"{path}: has format {page['format']}, this gcaps reads format {FORMAT}")
        beside = path.with_suffix(".npz")
        if not beside.exists():
            raise GcapsError(f"{beside}: is missing; it belongs to {path.name}")
        if hashlib.sha256(beside.read_bytes()).hexdigest() != page["arrays"]:
            raise GcapsError(f"{beside}: does not belong to {path.name}; write the record again")
        rows = page.pop("results")
        fields = {name: value for name, value in page.items() if name not in ("kind", "format", "arrays")}
        plan = Plan.from_dict(fields | {"data": [{"path": None, **data} for data in page["data"]]})
        with np.load(beside, allow_pickle=False) as file:
            arrays = {name.replace("_accuracy", "_score"): file[name] for name in file.files}  # as in format 3
        cells = {cell.key: cell for cell in plan.cells()}
        outcomes = {o.key: o for i, row in enumerate(rows) for o in _outcomes(plan, cells, row, arrays, f"{i}/")}
        return Comparison(plan, [outcomes[key] for key in cells if key in outcomes])
    except GcapsError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, zipfile.BadZipFile) as error:
        raise GcapsError(f"{path}: is not a record of gcaps ({type(error).__name__}: {error})") from error


def _outcomes(
    plan: Plan, cells: dict[Key, Cell], row: dict[str, Any], arrays: dict[str, Array], prefix: str
) -> list[Outcome]:
    data, seed = plan.of(row["data"]), int(row["seed"])
    where = f"data{plan.data.index(data)}"
    entry = plan.entry(data.name, row["label"])
    assert entry is not None
    tests = _pieces(arrays.get(f"{where}/seed{seed}/test"), arrays.get(f"{where}/seed{seed}/folds"))
    y = arrays[f"{where}/y"]
    done = [fold for fold in row["folds"] if fold["status"] == "done"]
    ends = np.cumsum([0, *(len(tests[fold["fold"]]) for fold in done)])
    curves = {name: _curves(arrays, prefix + name, len(done)) for name in CURVES}
    predictions, scores = arrays.get(f"{prefix}predictions"), arrays.get(f"{prefix}scores")
    outcomes = []
    for fold in row["folds"]:
        result = None
        if fold["status"] == "done":
            at = done.index(fold)
            part, test = slice(int(ends[at]), int(ends[at + 1])), tests[fold["fold"]]
            assert predictions is not None
            watched = curves["test_score"][at]
            if data.task == "classification":
                watched = np.rint(watched * len(test)) / len(test)  # exact again
            result = FoldResult(
                fold=fold["fold"],
                test=test.tolist(),
                y=as_lists(y[test]),
                predictions=predictions[part].tolist(),
                scores=[] if scores is None else np.round(scores[part] * SCORE_UNIT, 4).tolist(),
                epoch=fold["epoch"],
                train_loss=curves["train_loss"][at].tolist(),
                train_score=curves["train_score"][at].tolist(),
                test_score=watched.tolist(),
                validation_score=curves["validation_score"][at].tolist(),
                seconds=fold["fit_seconds"],
                chosen=fold.get("chosen", {}),
                resolved=fold.get("resolved", row.get("resolved", {})),
                resolution=fold.get("resolution", []),
                task=data.task,
                train_size=fold.get("train_size"),
                metrics=fold.get("metrics", {}),
                targets=fold.get("targets", []),
            )
        embedding = arrays.get(f"{prefix}embedding") if fold["fold"] == 0 else None
        cell = cells[Key(data.name, entry.label, seed, fold["fold"])]
        outcomes.append(
            Outcome(
                data=data.name,
                label=entry.label,
                method=entry.method,
                seed=seed,
                fold=fold["fold"],
                fingerprint=cell.fingerprint,
                status=fold["status"],
                config=fold.get("config", entry.configs[0] if len(entry.configs) == 1 else None),
                result=result,
                error=fold.get("error"),
                seconds=fold["seconds"],
                peak_mib=fold.get("peak_mib"),
                candidates=fold.get("candidates", []),
                embedding=None if embedding is None else np.round(embedding.astype(np.float64), 4).tolist(),
                versions=row.get("versions", plan.versions),
                created=row["created"],
                command=row.get("command"),
            )
        )
    return outcomes


def _pieces(values: Array | None, folds: Array | None) -> dict[int, Array]:
    """The test graphs of each fold."""
    if values is None or folds is None:
        return {}
    parts = np.split(values, np.cumsum(folds[:, 1])[:-1])
    return {int(number): part for number, part in zip(folds[:, 0], parts, strict=True)}


def _curves(arrays: dict[str, Array], name: str, folds: int) -> list[Array]:
    if name not in arrays:
        return [np.zeros(0)] * folds
    return np.split(arrays[name].astype(np.float64), np.cumsum(arrays[f"{name}.lengths"])[:-1])
