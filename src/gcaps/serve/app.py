"""The HTTP interface: a page, predictions, explanations, health and counters; bodies are parsed by workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from gcaps.estimators.base import GraphEstimator
from gcaps.report.template import read_resource
from gcaps.serve import schema
from gcaps.serve.facts import facts_of
from gcaps.serve.guard import Guard, too_long
from gcaps.serve.handler import Handler, Job, Reply, as_json, error_reply, one_of
from gcaps.serve.limits import Limits, RefusedError, ServerSettings
from gcaps.serve.metrics import Metrics
from gcaps.serve.pool import InThread, Pool
from gcaps.version import __version__

CODES = {400: "bad_request", 404: "not_found", 405: "not_allowed", 408: "too_slow"}
ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"description": "the body is no JSON", "model": schema.ErrorResponse},
    401: {"description": "the token is missing or wrong", "model": schema.ErrorResponse},
    403: {"description": "a page of another site asks", "model": schema.ErrorResponse},
    408: {"description": "the body did not arrive in time", "model": schema.ErrorResponse},
    413: {"description": "more bytes, graphs, nodes or edges than allowed", "model": schema.ErrorResponse},
    415: {"description": "a file of unknown format", "model": schema.ErrorResponse},
    421: {"description": "the server is not known under this name", "model": schema.ErrorResponse},
    422: {"description": "no graph that can be read, or a field of another type", "model": schema.ErrorResponse},
    500: {"description": "a bug", "model": schema.ErrorResponse},
    503: {"description": "too many requests are waiting", "model": schema.ErrorResponse},
    504: {"description": "the request took too long", "model": schema.ErrorResponse},
}
FEW: dict[int | str, dict[str, Any]] = {status: ERRORS[status] for status in (401, 403, 421)}
DESCRIPTION = """Predictions and explanations of one saved model.

Every error has one shape: `{"error": {"status": 413, "code": "too_large", "message": "…"}}`. A row that is no graph,
such as an invalid SMILES among valid ones, is an `error` of its row."""


def make_app(
    model: GraphEstimator,
    name: str = "model",
    settings: ServerSettings | None = None,
    limits: Limits | None = None,
) -> FastAPI:
    """Return an ASGI application that predicts in a thread of its own process.

    ``gcaps serve`` predicts in worker processes instead, which it can stop when a request takes too long.

    Args:
        model: a fitted estimator.
        name: of the model, in answers.
        settings: token, further host names, batches.
        limits: of a request.
    """
    settings, limits = settings or ServerSettings(), limits or Limits()
    handler = Handler(model, name, limits, settings.coverage)

    @asynccontextmanager
    async def run(pool: Pool) -> AsyncIterator[None]:
        pool.add(InThread(handler))
        yield

    return application(facts_of(handler, settings), settings, limits, run)


def application(
    facts: dict[str, Any],
    settings: ServerSettings,
    limits: Limits,
    run: Callable[[Pool], Any],
) -> FastAPI:
    """Return the application around a pool of workers.

    Args:
        facts: answer to ``/model``.
        settings: of the server.
        limits: of a request.
        run: context that adds workers to the pool.
    """
    metrics = Metrics()
    pool = Pool(settings, limits, metrics)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        pool.start()
        async with run(pool):
            yield
            await pool.close()

    app = FastAPI(
        title="gcaps", version=__version__, description=DESCRIPTION, lifespan=lifespan, docs_url=None, redoc_url=None
    )
    known: frozenset[str] = frozenset()

    def paths() -> frozenset[str]:
        return known

    app.add_middleware(Guard, settings=settings, limits=limits, metrics=metrics, paths=paths)
    _add_errors(app)
    _add_page(app)
    _add_facts(app, facts, pool, metrics)
    _add_work(app, pool, limits)
    _describe(app, settings, facts["example"])
    known = frozenset(path for route in app.routes if isinstance(path := getattr(route, "path", None), str))
    return app


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        code, words = CODES.get(error.status_code, "error"), str(error.detail)
        if error.status_code == 404:
            words = "there is nothing here; /openapi.json describes all paths"
        elif error.status_code == 405 and (allowed := (error.headers or {}).get("Allow")):
            words = f"this path answers {allowed}, not {request.method}; /openapi.json describes it"
        found = json_response(error_reply(error.status_code, code, words))
        found.headers.update(error.headers or {})
        return found

    @app.exception_handler(RefusedError)
    async def refused(_: Request, error: RefusedError) -> Response:
        return json_response(error_reply(error.status, error.code, error.message))


def _add_page(app: FastAPI) -> None:
    style = f"{read_resource('page.css')}\n{_resource('page.css')}"
    for path, text, kind in (
        ("/", _resource("page.html").replace("VERSION", __version__), "text/html"),
        ("/page.css", style, "text/css"),
        ("/page.js", _resource("page.js"), "text/javascript"),
        ("/icon.svg", _resource("icon.svg"), "image/svg+xml"),
    ):

        async def give(text: str = text, kind: str = kind) -> Response:
            return Response(text, media_type=kind)

        # the arguments of the closure are no query
        app.add_api_route(path, _without_arguments(give), include_in_schema=False, methods=["GET", "HEAD"])


def _without_arguments(function: Callable[[], Any]) -> Callable[[], Any]:
    async def call() -> Response:
        found: Response = await function()
        return found

    return call


def _add_facts(app: FastAPI, facts: dict[str, Any], pool: Pool, metrics: Metrics) -> None:
    described = as_json(facts)

    @app.get("/model", summary="What the model predicts", response_model=schema.ModelResponse, responses=FEW)
    async def model() -> Response:
        return Response(described, media_type="application/json")

    @app.get(
        "/health",
        summary="Whether the server works",
        response_model=schema.HealthResponse,
        responses={
            403: ERRORS[403],
            421: ERRORS[421],
            503: {"description": "not yet, or not any more", "model": schema.HealthResponse},
        },
    )
    async def health() -> Response:
        workers = len(pool.workers)
        status = "stopping" if pool.stopping else "ok" if workers else "starting"
        return JSONResponse({"status": status, "workers": workers}, 200 if status == "ok" else 503)

    @app.get(
        "/metrics",
        summary="Counters for Prometheus",
        response_class=Response,
        responses={200: {"content": {"text/plain": {}}, "description": "text format of Prometheus"}, **FEW},
    )
    async def counters() -> Response:
        text = metrics.text(__version__, pool.open, list(pool.workers))
        return Response(text, media_type="text/plain; version=0.0.4")


def _add_work(app: FastAPI, pool: Pool, limits: Limits) -> None:
    async def answer(kind: str, request: Request) -> Response:
        options = {} if kind in ("predict", "explain") else dict(request.query_params)
        body = await body_of(request, limits)
        return json_response(await pool.run(Job(kind, options, body)))

    @app.post(
        "/predict",
        summary="Predict molecules or graphs",
        response_model=schema.PredictResponse,
        responses=ERRORS,
        openapi_extra=_body(schema.PredictRequest),
    )
    async def predict(request: Request) -> Response:
        return await answer("predict", request)

    @app.post(
        "/predict/file",
        summary="Predict the graphs of an uploaded file",
        response_model=schema.PredictResponse,
        responses=ERRORS,
        openapi_extra=_file(("smiles", "id", "coverage", "by_class", "threshold", "neighbors")),
    )
    async def predict_file(request: Request) -> Response:
        return await answer("predict_file", request)

    @app.post(
        "/explain",
        summary="Explain the prediction for one molecule or graph",
        response_model=schema.ExplainResponse,
        responses=ERRORS,
        openapi_extra=_body(schema.ExplainRequest),
    )
    async def explain(request: Request) -> Response:
        return await answer("explain", request)

    @app.post(
        "/explain/file",
        summary="Explain the prediction for one graph of an uploaded file",
        response_model=schema.ExplainResponse,
        responses=ERRORS,
        openapi_extra=_file(("smiles", "id", "row", "target", "method")),
    )
    async def explain_file(request: Request) -> Response:
        return await answer("explain_file", request)


async def body_of(request: Request, limits: Limits) -> bytes:
    """Return the body of a request, limited independently of its header.

    Raises:
        RefusedError: it is too long, or did not arrive in time.
    """
    parts, length = [], 0
    try:
        async with asyncio.timeout(limits.max_seconds):
            async for part in request.stream():
                length += len(part)
                if length > limits.max_bytes:
                    raise RefusedError(413, "too_large", too_long(limits))
                parts.append(part)
    except TimeoutError as error:
        raise RefusedError(408, "too_slow", f"the body did not arrive in {limits.max_seconds:g} seconds") from error
    except ClientDisconnect as error:
        raise RefusedError(400, "disconnected", "the client went away") from error
    return b"".join(parts)


def json_response(reply: Reply) -> Response:
    """Return a reply as a response."""
    return Response(reply.body, reply.status, media_type="application/json")


def _resource(name: str) -> str:
    return resources.files("gcaps.serve").joinpath(name).read_text(encoding="utf-8")


# --- the OpenAPI document --------------------------------------------------------------------------------------------


def _reference(kind: type[BaseModel]) -> str:
    return f"#/components/schemas/{kind.__name__}"


def _body(kind: type[BaseModel]) -> dict[str, Any]:
    """Describe a body that workers parse."""
    content = {"application/json": {"schema": {"$ref": _reference(kind)}}}
    return {"requestBody": {"required": True, "content": content}}


def _file(names: tuple[str, ...]) -> dict[str, Any]:
    """Describe an uploaded file and its query."""
    properties = schema.FileOptions.model_json_schema()["properties"]
    query = []
    for name in ("name", *names):
        about = dict(properties[name])
        if "anyOf" in about:  # a query has no null
            about = {**about["anyOf"][0], **{key: value for key, value in about.items() if key in ("description",)}}
        about.pop("title", None)
        about.pop("default", None)
        query.append({"name": name, "in": "query", "required": name == "name", "schema": about})
    query[0]["description"] = "name of the file; its ending says the format"
    query[0]["example"] = "molecules.csv"
    content = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    return {"parameters": query, "requestBody": {"required": True, "content": content}}


def _describe(app: FastAPI, settings: ServerSettings, example: dict[str, Any]) -> None:
    """Add to the OpenAPI document the requests that workers parse, an example for this model, and the token."""
    document = app.openapi()
    found = document.setdefault("components", {}).setdefault("schemas", {})
    for kind in (schema.PredictRequest, schema.ExplainRequest):
        own = kind.model_json_schema(ref_template="#/components/schemas/{model}")
        found |= own.pop("$defs", {})
        if example:
            own["examples"] = [example if kind is schema.PredictRequest else one_of(example)]
        found[kind.__name__] = own
    for unused in ("HTTPValidationError", "ValidationError"):
        found.pop(unused, None)
    if settings.token is not None:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, operations in document["paths"].items():
            for operation in operations.values():
                if path != "/health":
                    operation["security"] = [{"token": []}]
    app.openapi_schema = document
