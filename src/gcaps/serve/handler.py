"""Handling of requests in a worker: reading, joint prediction of compatible requests, answers and errors as JSON."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError

from gcaps.data.arrays import Floats
from gcaps.data.joining import join_sets
from gcaps.documents import in_words, parse_json
from gcaps.errors import DivergenceError, GcapsError, MemoryLimitError
from gcaps.estimators.base import GraphEstimator
from gcaps.predictions import Doubt, doubt_of
from gcaps.serve.answers import Asked, predictions_of
from gcaps.serve.explaining import explanation_of
from gcaps.serve.limits import Limits, RefusedError, for_clients, too_many
from gcaps.serve.reading import Reader, Rows, joined_where_alike
from gcaps.serve.schema import ExplainRequest, FileOptions, PredictRequest

R = TypeVar("R", bound=BaseModel)


class Job(NamedTuple):
    """A request for a worker."""

    kind: str
    """``predict``, ``predict_file``, ``explain`` or ``explain_file``."""
    options: dict[str, Any]
    """Query of an uploaded file."""
    body: bytes


class Reply(NamedTuple):
    """An answer."""

    status: int
    body: bytes
    """JSON."""
    graphs: int = 0
    """Graphs that were predicted."""


class _Item(NamedTuple):
    """A request of a batch that has been read."""

    job: int
    """Its number."""
    rows: Rows
    asked: Asked
    names: list[str] | None
    smiles: bool


def one_of(example: dict[str, Any]) -> dict[str, Any]:
    """Return the request for ``/explain`` of the first graph of a request for ``/predict``."""
    return {"smiles": example["smiles"][0]} if "smiles" in example else {"graph": example["graphs"][0]}


def error_reply(status: int, code: str, message: str) -> Reply:
    """Return an error in the form that all errors have."""
    return Reply(status, as_json({"error": {"status": status, "code": code, "message": message}}))


def as_json(value: Any) -> bytes:
    """Return compact JSON; characters without encoding, such as lone surrogates, become question marks."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")


class Handler:
    """Answers requests with one model.

    Args:
        model: a fitted estimator.
        name: of the model, in answers.
        limits: of a request.
        coverage: default of sets and intervals.
    """

    def __init__(self, model: GraphEstimator, name: str, limits: Limits, coverage: float = 0.9) -> None:
        self.model, self.name, self.limits, self.coverage = model, name, limits, coverage
        self.reader = Reader(model, limits)
        self.calibrated = getattr(model, "uncertainty_", None) is not None

    def handle(self, jobs: Sequence[Job]) -> list[Reply]:
        """Answer requests; those to ``/predict`` are predicted together."""
        replies: list[Reply | None] = [None] * len(jobs)
        together = [number for number, job in enumerate(jobs) if job.kind == "predict"]
        for number, job in enumerate(jobs):
            if job.kind != "predict":
                replies[number] = self._guarded(lambda job=job: self._alone(job))  # type: ignore[misc]
        if together:
            for number, reply in zip(together, self._predict([jobs[i] for i in together]), strict=True):
                replies[number] = reply
        return [reply for reply in replies if reply is not None]

    def _guarded(self, answer: Callable[[], Reply]) -> Reply:
        """Return an answer, or the error that was raised."""
        try:
            return answer()
        except Exception as error:
            return reply_of(error)

    def warm_up(self, example: dict[str, Any]) -> bool:
        """Predict and explain once, so that no request waits for compilation; return whether graphs can be explained.

        Args:
            example: a request for ``/predict``, or an empty one.
        """
        if not example:
            return True  # a failing explanation returns its own error
        self.handle([Job("predict", {}, as_json({**example, "neighbors": 3}))] * 2)
        return self.handle([Job("explain", {}, as_json(one_of(example)))])[0].status == 200

    # --- predictions -------------------------------------------------------------------------------------------------

    def _predict(self, jobs: Sequence[Job]) -> list[Reply]:
        replies: list[Reply] = [error_reply(500, "internal", "not answered")] * len(jobs)
        items: list[_Item] = []
        molecules: list[tuple[int, PredictRequest, list[str]]] = []
        for number, job in enumerate(jobs):
            try:
                request = parsed(PredictRequest, job.body)
                if request.count > self.limits.max_graphs:
                    raise too_many("graphs", request.count, self.limits.max_graphs, "--max-graphs")
                if request.smiles is None:
                    rows = self.reader.of_graphs(request.graphs or [])
                    items.append(self._item(number, request, rows))
                else:
                    texts = [request.smiles] if isinstance(request.smiles, str) else list(request.smiles)
                    molecules.append((number, request, texts))
            except Exception as error:
                replies[number] = reply_of(error)
        if molecules:
            try:
                found = self.reader.of_smiles([texts for *_, texts in molecules])
            except Exception as error:
                for number, *_ in molecules:
                    replies[number] = reply_of(error)
            else:
                for (number, request, _), rows in zip(molecules, found, strict=True):
                    try:
                        self.reader.require_small(rows)
                        items.append(self._item(number, request, rows))
                    except Exception as error:
                        replies[number] = reply_of(error)
        for item, reply in zip(items, self._answered(items), strict=True):
            replies[item.job] = reply
        return replies

    def _item(self, number: int, request: PredictRequest, rows: Rows) -> _Item:
        asked = Asked(request.coverage or self.coverage, request.by_class, request.threshold, request.neighbors)
        self._check(asked)
        require_some(rows)
        return _Item(number, rows, asked, request.ids, smiles=False)

    def _check(self, asked: Asked) -> None:
        classes = self.model.target_.classes
        if asked.threshold is not None and (classes is None or len(classes) != 2):
            raise RefusedError(422, "invalid", "threshold is for two classes, or for binary targets")
        if asked.by_class and classes is None:
            raise RefusedError(422, "invalid", "by_class is for classes; this model predicts values")

    def _answered(self, items: Sequence[_Item]) -> list[Reply]:
        """Predict requests, jointly where the fields of graphs and the options agree."""
        found: dict[int, Reply] = {}
        waiting: dict[tuple[float, bool], list[int]] = {}
        for place, item in enumerate(items):
            waiting.setdefault((item.asked.coverage, item.asked.by_class), []).append(place)
        for places in waiting.values():
            sets = [graphs for place in places if (graphs := items[place].rows.graphs) is not None]
            for group in joined_where_alike(sets):
                chosen = [places[member] for member in group]
                found |= dict(zip(chosen, self._group([items[place] for place in chosen]), strict=True))
        return [found[place] for place in range(len(items))]

    def _group(self, items: Sequence[_Item]) -> list[Reply]:
        try:
            return self._together(items)
        except Exception as error:
            if len(items) == 1:
                return [reply_of(error)]
            return [reply for item in items for reply in self._group([item])]  # the error is that of one of them

    def _together(self, items: Sequence[_Item]) -> list[Reply]:
        sets = [graphs for item in items if (graphs := item.rows.graphs) is not None]
        graphs = sets[0] if len(sets) == 1 else join_sets(sets)
        scores = self.model.scores(graphs)
        asked = items[0].asked
        doubt = None
        if self.calibrated:
            doubt = doubt_of(self.model, graphs, scores, asked.coverage, by_class=asked.by_class)
        replies, first = [], 0
        for item, own in zip(items, sets, strict=True):
            part = slice(first, first + len(own))
            replies.append(self._reply(item, scores[part], None if doubt is None else part_of(doubt, part)))
            first += len(own)
        return replies

    def _reply(self, item: _Item, scores: Floats, doubt: Doubt | None) -> Reply:
        rows = item.rows if item.names is None else item.rows._replace(names=item.names)
        answer = {
            "model": self.name,
            "task": self.model.target_.task,
            "coverage": item.asked.coverage if self.calibrated else None,
            "predictions": predictions_of(self.model, rows, scores, doubt, item.asked, item.smiles),
            "notes": rows.notes,
        }
        return Reply(200, as_json(answer), len(scores))

    # --- files and explanations --------------------------------------------------------------------------------------

    def _alone(self, job: Job) -> Reply:
        if job.kind == "explain":
            wanted = parsed(ExplainRequest, job.body)
            rows = (
                self.reader.of_graphs([wanted.graph])
                if wanted.smiles is None
                else self.reader.of_smiles([[wanted.smiles]])[0]
            )
            self.reader.require_small(rows)
            return self._explained(rows, 0, wanted.target, wanted.method)
        options = validated_query(job.options)
        rows = self.reader.of_file(options.name, job.body, options.smiles, options.id)
        if job.kind == "explain_file":
            return self._explained(rows, options.row or 0, options.target, options.method)
        asked = Asked(options.coverage or self.coverage, options.by_class, options.threshold, options.neighbors)
        self._check(asked)
        require_some(rows)
        return self._together([_Item(0, rows, asked, None, smiles=True)])[0]

    def _explained(self, rows: Rows, row: int, target: str | None, method: str) -> Reply:
        if row >= len(rows.names):
            raise RefusedError(422, "invalid", f"there is no row {row}; the request has {len(rows.names):,}")
        if row in rows.problems or rows.graphs is None:
            raise RefusedError(422, "invalid", rows.problems.get(row, "the request has no graph"))
        one = rows.graphs.subset([rows.kept.index(row)])
        return Reply(200, as_json(explanation_of(self.model, one, rows.names[row], target, method)), 1)


def parsed(kind: type[R], body: bytes) -> R:
    """Return a JSON body as a request."""
    try:
        raw = parse_json(body, "the body")
    except GcapsError as error:
        raise RefusedError(400, "not_json", for_clients(str(error))) from error
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        raise RefusedError(422, "invalid", for_clients(in_words(error))) from error


def validated_query(options: dict[str, Any]) -> FileOptions:
    """Validate the query of an uploaded file, whose values are strings."""
    try:
        return FileOptions.model_validate_strings(options)
    except ValidationError as error:
        if "name" not in options:
            raise RefusedError(422, "invalid", "the query needs the name of the file, such as ?name=new.csv") from error
        raise RefusedError(422, "invalid", for_clients(in_words(error))) from error


def require_some(rows: Rows) -> None:
    """Raise a RefusedError where no row is a graph."""
    if rows.graphs is None:
        first = next(iter(rows.problems.values()), "")
        raise RefusedError(
            422, "invalid", f"holds no graph that can be read{'; the first row: ' if first else ''}{first}"
        )


def part_of(doubt: Doubt, part: slice) -> Doubt:
    """Return the uncertainty of consecutive graphs."""
    cut = [None if array is None else array[part] for array in doubt[:3]]
    return Doubt(cut[0], cut[1], cut[2], type(doubt.novelty)(*(np.asarray(field)[part] for field in doubt.novelty)))


def reply_of(error: Exception) -> Reply:
    """Return the answer to a request that raised an error; unexpected errors are logged and not sent to clients."""
    if isinstance(error, RefusedError):
        return error_reply(error.status, error.code, error.message)
    if isinstance(error, MemoryLimitError | MemoryError):
        return error_reply(
            413, "too_large", "the request needs more memory than there is; send fewer or smaller graphs"
        )
    if isinstance(error, DivergenceError):
        return error_reply(422, "not_finite", for_clients(str(error)))
    if isinstance(error, GcapsError):
        return error_reply(422, "invalid", for_clients(str(error)))
    traceback.print_exception(error, file=sys.stderr)
    return error_reply(500, "internal", "the server failed on this request; its log says more")
