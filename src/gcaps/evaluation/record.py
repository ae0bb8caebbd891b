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
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from gcaps.data.arrays import Array
from gcaps.data.npy import read_npz
from gcaps.documents import Count, Name, Number, Page, read_json, validated
from gcaps.errors import ConfigError, GcapsError
from gcaps.evaluation.comparison import Comparison
from gcaps.evaluation.outcome import Cell, Key, Outcome, Status
from gcaps.evaluation.plan import Plan, data_folders
from gcaps.evaluation.protocols import summarise
from gcaps.evaluation.result import FoldResult, Summary, as_lists
from gcaps.files import exists, opened, read_bytes, replacing, write_text

FORMAT = 4
READABLE = (3, 4)
"""Formats that :func:`read_record` reads; 3 has only classification, and no metrics but accuracy."""
KIND = "gcaps record"
SCORE_UNIT = 1e-4
"""Scores are stored as whole multiples of this."""
CLAIM_TOLERANCE = 1e-6
"""Summaries that are computed again may differ by this much from those that a record states."""
METRIC_TOLERANCE = 1e-2
"""The same for metrics of a fold, whose scores a record has rounded."""
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
    """Return the JSON values of one row, data set and seed."""
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
    with opened(path) as file:
        return f'"kind": "{KIND}"'.encode() in file.read(200)


def read_record(path: Path) -> Comparison:
    """Read the comparison that :func:`write_record` wrote."""
    page = read_json(path)
    if not isinstance(page, dict) or page.get("kind") != KIND:
        raise GcapsError(f"{path}: is not a record of gcaps; gcaps evaluate -o and gcaps compare --record write one")
    if page.get("format") not in READABLE:
        raise GcapsError(f"{path}: has format {page.get('format')}, this gcaps reads format {FORMAT}")
    problem = f"{path}: is not a record of gcaps"
    beside = path.with_suffix(".npz")
    if not exists(beside):
        raise GcapsError(f"{beside}: is missing; it belongs to {path.name}")
    content = read_bytes(beside)
    if hashlib.sha256(content).hexdigest() != page.get("arrays"):
        raise GcapsError(f"{beside}: does not belong to {path.name}; write the record again")
    rows = validated(list[RecordedRow], page.pop("results", None), problem)
    fields = {name: value for name, value in page.items() if name not in ("kind", "format", "arrays")}
    if isinstance(page.get("data"), list):
        fields["data"] = [{"path": None, **data} if isinstance(data, dict) else data for data in page["data"]]
    plan = Plan.from_dict(fields, problem)
    arrays = {name.replace("_accuracy", "_score"): a for name, a in read_npz(content, str(beside)).items()}  # format 3
    cells = {cell.key: cell for cell in plan.cells()}
    outcomes: dict[Key, Outcome] = {}
    try:
        for i, row in enumerate(rows):
            for outcome in _outcomes(plan, cells, row.plain(), arrays, f"{i}/"):
                if outcome.key in outcomes:
                    raise GcapsError(f"{problem} (fold {outcome.fold} of {outcome.label} is there twice)")
                outcomes[outcome.key] = outcome
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, AssertionError, OverflowError) as error:
        if isinstance(error, GcapsError):
            raise
        raise GcapsError(f"{problem} ({type(error).__name__}: {error})") from error
    for outcome in outcomes.values():
        if wrong := outcome.contradiction():
            raise GcapsError(f"{problem} ({outcome.label} on {outcome.data}, fold {outcome.fold}: {wrong})")
    found = Comparison(plan, [outcomes[key] for key in cells if key in outcomes])
    found.require_sound(str(path))
    return found


class RecordedFold(Page):
    """JSON values of a fold in a record."""

    fold: Count
    status: Status
    epoch: Count | None = None
    fit_seconds: Number | None = None
    seconds: Number
    peak_mib: Number | None = None
    honest: Number | None = None
    error: str | None = None
    config: dict[str, Any] | None = None
    candidates: list[dict[str, Any]] | None = None
    chosen: dict[str, Any] | None = None
    resolved: dict[str, Any] | None = None
    resolution: list[str] | None = None
    train_size: Count | None = None
    metrics: dict[Name, Number] | None = None
    targets: list[dict[Name, Number]] | None = None


class RecordedSummary(Page):
    """A summary under a protocol, as it is written."""

    mean: Number | None
    std: Number | None
    folds: list[Number]
    rule: str


class RecordedRow(Page):
    """JSON values of one row, data set and seed in a record."""

    data: Name
    label: Name
    seed: Count
    command: str | None = None
    versions: dict[Name, Name] | None = None
    created: Name
    protocols: dict[Name, RecordedSummary] = Field({})
    resolved: dict[str, Any] = Field({})
    folds: list[RecordedFold]

    def plain(self) -> dict[str, Any]:
        """Return the fields that are there as plain values."""
        return self.model_dump(exclude_unset=True)


def false_claim(path: Path, comparison: Comparison) -> dict[tuple[str, str], str]:
    """Recompute the results of a record from its predictions.

    Returns:
        For each data set and row of which something is not so: what.
    """
    wrong: dict[tuple[str, str], str] = {}
    for row in validated(list[RecordedRow], read_json(path).get("results"), f"{path}: is not a record of gcaps"):
        results = [
            outcome.result
            for outcome in comparison.outcomes
            if (outcome.data, outcome.label, outcome.seed) == (row.data, row.label, row.seed) and outcome.result
        ]
        again = summarise([results], comparison.plan.of(row.data).metric) if results else {}
        for name in again.keys() | row.protocols.keys():
            claimed = row.protocols.get(name)
            computed = None if name not in again else RecordedSummary.model_validate(_summary(again[name]))
            if claimed is None or computed is None or not _close(claimed, computed):
                said = "nothing" if claimed is None else claimed.mean
                wrong[row.data, row.label] = f"it says {said} under {name}, its folds say {computed and computed.mean}"
        for fold in results:
            for name, value in fold.metrics.items():
                computed_value = fold.recomputed(name)
                if computed_value is not None and abs(computed_value - value) > METRIC_TOLERANCE * max(1.0, abs(value)):
                    said = f"it says {name} = {value:.4g} of fold {fold.fold}, the predictions say {computed_value:.4g}"
                    wrong.setdefault((row.data, row.label), said)
    return wrong


def _close(one: RecordedSummary, other: RecordedSummary) -> bool:
    pairs = [(one.mean, other.mean), (one.std, other.std), *zip(one.folds, other.folds, strict=False)]
    return len(one.folds) == len(other.folds) and all(
        a == b or (a is not None and b is not None and abs(a - b) <= CLAIM_TOLERANCE * max(1.0, abs(b)))
        for a, b in pairs
    )


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
