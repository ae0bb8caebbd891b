"""Requests and responses: types for validation and for the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

MAX_TEXT = 20_000
"""Most characters of a SMILES."""

Coverage = Annotated[float, Field(gt=0, lt=1, description="share of the sets or intervals that shall hold the truth")]
Threshold = Annotated[
    float, Field(ge=0, le=1, description="the second of two classes is predicted above this probability")
]
Smiles = Annotated[str, Field(max_length=MAX_TEXT)]
Id = Annotated[str, Field(max_length=256)]
Method = Literal["auto", "occlusion", "integrated-gradients", "gradient-x-input", "saliency", "substructures"]
NodeLink = dict[str, Any]
"""Validated by the reader of node-link JSON."""

EXAMPLE_SMILES: list[Any] = ["CC(=O)Oc1ccccc1C(=O)O", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C"]


class Given(BaseModel):
    """Base class of requests: no unknown field, no value of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class PredictRequest(Given):
    """Molecules as SMILES, or graphs in node-link form."""

    smiles: Smiles | Annotated[list[Smiles], Field(min_length=1)] | None = Field(
        None, description="one molecule or several"
    )
    graphs: Annotated[list[NodeLink], Field(min_length=1)] | None = Field(
        None,
        description='graphs as NetworkX writes them: {"nodes": [{"id": …}], "links": [{"source": …, "target": …}]}',
    )
    ids: list[Id] | None = Field(None, description="names of the molecules or graphs; by default their positions")
    coverage: Coverage | None = None
    by_class: bool = Field(False, description="cover each class by itself as often; sets are larger")
    threshold: Threshold | None = None
    neighbors: int = Field(0, ge=0, le=20, description="most similar training graphs that are named")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.smiles is None) == (self.graphs is None):
            raise ValueError('give "smiles" or "graphs", one of them')
        if self.ids is not None and len(self.ids) != self.count:
            raise ValueError(f'"ids" has {len(self.ids)} names for {self.count} graphs')
        return self

    @property
    def count(self) -> int:
        """Number of graphs."""
        if self.smiles is None:
            return len(self.graphs or ())
        return 1 if isinstance(self.smiles, str) else len(self.smiles)


class ExplainRequest(Given):
    """One molecule or graph, and what to explain of its prediction."""

    smiles: Smiles | None = None
    graph: NodeLink | None = None
    target: Annotated[str, Field(max_length=4096)] | None = Field(
        None, description="one of several targets; by default the first"
    )
    method: Method = "auto"

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.smiles is None) == (self.graph is None):
            raise ValueError('give "smiles" or "graph", one of them')
        return self


class FileOptions(Given):
    """Query of an uploaded file."""

    name: Annotated[str, Field(min_length=1, max_length=255)]
    smiles: Annotated[str, Field(max_length=4096)] | None = None
    id: Annotated[str, Field(max_length=4096)] | None = None
    coverage: Coverage | None = None
    by_class: bool = False
    threshold: Threshold | None = None
    neighbors: int = Field(0, ge=0, le=20)
    row: int | None = Field(None, ge=0)
    target: Annotated[str, Field(max_length=4096)] | None = None
    method: Method = "auto"


Value = str | bool | int | float


class TargetPrediction(BaseModel):
    """Prediction for one target of one graph."""

    name: str
    value: Value = Field(description="class as in the training data, or number in its units")
    probabilities: dict[str, float] | None = Field(None, description="of each class; not for numbers")
    calibrated: dict[str, float] | None = Field(None, description="calibrated probabilities, if the model has them")
    set: list[Value] | None = Field(None, description="classes that hold the truth as often as the coverage says")
    interval: list[float | None] | None = Field(
        None, min_length=2, max_length=2, description="lower and upper end; null: unbounded"
    )


class Neighbor(BaseModel):
    """A training graph."""

    id: str
    similarity: float = Field(ge=0, le=1)


class GraphPrediction(BaseModel):
    """The prediction for one graph, or why there is none."""

    row: int = Field(ge=0, description="position among the graphs of the request")
    id: str
    error: str | None = Field(None, description="why the row is no graph; then there is nothing else")
    nodes: int | None = None
    edges: int | None = None
    smiles: str | None = Field(None, description="of a molecule in a file")
    targets: list[TargetPrediction] = []
    similarity: float | None = Field(None, ge=0, le=1, description="to the most similar training graph")
    nearest: str | None = Field(None, description="name of that graph")
    novel: bool | None = Field(None, description="whether the graph is unlike anything seen in training")
    neighbors: list[Neighbor] | None = None
    unseen: list[str] = Field([], description="labels that no training graph had: the prediction is a guess")


class PredictResponse(BaseModel):
    """Predictions in the order of the request."""

    model: str
    task: Literal["classification", "multilabel", "regression"]
    coverage: float | None = Field(None, description="of sets and intervals; null if the model is not calibrated")
    predictions: list[GraphPrediction]
    notes: list[str] = Field([], description="what was not used of the source")


class NodeContribution(BaseModel):
    """Contribution of a node or atom."""

    node: int = Field(ge=0)
    name: str = Field(description="element of an atom, or label of a node")
    contribution: float


class EdgeContribution(BaseModel):
    """Contribution of an edge."""

    nodes: list[int] = Field(min_length=2, max_length=2)
    contribution: float


class ExplainResponse(BaseModel):
    """Contributions of the nodes of one graph to its prediction."""

    id: str
    output: str = Field(description="the number that is explained")
    value: float = Field(description="that number for this graph")
    prediction: Value
    method: str
    nodes: list[NodeContribution] = Field(description="largest contribution first")
    edges: list[EdgeContribution] | None = Field(None, description="of graphs that are no molecules")
    svg: str | None = Field(None, description="drawing; null for a graph that is too large to draw")


class TargetFacts(BaseModel):
    """A target of the model."""

    name: str
    classes: list[Value] | None = None


class ModelResponse(BaseModel):
    """Description of the served model."""

    name: str
    describes: str
    method: str
    task: Literal["classification", "multilabel", "regression"]
    targets: list[TargetFacts]
    trained_on: str
    training_graphs: int
    molecules: bool = Field(description="whether it was trained on molecules and takes SMILES")
    calibrated: bool
    explains: bool
    coverage: float
    limits: dict[str, float]
    example: dict[str, Any] = Field(description="a request for /predict")
    version: str


class HealthResponse(BaseModel):
    """State of the server."""

    status: Literal["ok", "starting", "stopping"]
    workers: int = Field(description="workers that are ready")


class Problem(BaseModel):
    """An error."""

    status: int
    code: str = Field(description="one word for programs")
    message: str = Field(description="one line for people")


class ErrorResponse(BaseModel):
    """The shape of every error."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"error": {"status": 422, "code": "invalid", "message": 'give "smiles" or "graphs", one of them'}}
            ]
        }
    )

    error: Problem
