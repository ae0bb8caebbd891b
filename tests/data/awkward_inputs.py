"""Awkward inputs and what the user sees, for the tests and for a table of the documentation.

    python tests/data/awkward_inputs.py

rewrites the table in docs/guides/awkward-inputs.md.
"""

import gzip
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

import gcaps
from gcaps.data.audit import describe, facts
from gcaps.data.targets import infer_task, missing
from gcaps.errors import DataWarning, GcapsError

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guides" / "awkward-inputs.md"
MARKED = re.compile(r"(<!-- awkward inputs -->\n).*(<!-- end of awkward inputs -->\n)", re.DOTALL)


class Case(NamedTuple):
    title: str
    make: Callable[[Path], Any]
    """Writes files to a folder and returns the source."""
    sees: str
    """Part of what the user sees."""
    options: Mapping[str, Any] = MappingProxyType({})
    environment: Mapping[str, str] = MappingProxyType({})
    topic: str = ""
    """Row of ``gcaps data check`` that is shown too."""


def file(name: str, text: str | bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return make


def table(text: str | bytes, name: str = "t.csv") -> Callable[[Path], Path]:
    return file(name, text)


def tu(folder: Path, **changes: str) -> Path:
    parts = {"A": "1, 2\n2, 1\n3, 4\n4, 3\n", "graph_indicator": "1\n1\n3\n3\n", "graph_labels": "0\n1\n1\n", **changes}
    (folder / "DS").mkdir()
    for part, text in parts.items():
        (folder / "DS" / f"DS_{part}.txt").write_text(text)
    return folder / "DS"


def labelled(graph: nx.Graph, label: Any, nodes: dict[str, Any] | None = None, **edges: Any) -> nx.Graph:
    graph.graph["label"] = label
    for key, value in (nodes or {}).items():
        nx.set_node_attributes(graph, value, key)
    for key, value in edges.items():
        nx.set_edge_attributes(graph, value, key)
    return graph


def molecule(smiles: str, **properties: str) -> Any:
    from rdkit import Chem

    found = Chem.MolFromSmiles(smiles)
    for key, value in properties.items():
        found.SetProp(key, value)
    return found


def sdf(folder: Path, broken: bool = False) -> Path:
    from rdkit import Chem

    records = [
        Chem.MolToMolBlock(molecule(text)) + f"> <active>\n{k}\n\n$$$$\n" for k, text in enumerate(("CCO", "CN"))
    ]
    if broken:
        records.insert(1, "gone\n\n\nnot a record\nM  END\n$$$$\n")
    path = folder / "t.sdf"
    path.write_text("".join(records))
    return path


def fifo(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.csv")
    return folder / "pipe.csv"


def sparse(_: Path) -> list[Any]:
    import torch
    from torch_geometric.data import Data

    return [Data(edge_index=torch.eye(3).to_sparse(), num_nodes=3, y=torch.tensor([0]))]


def several(_: Path) -> list[Any]:
    import torch
    from torch_geometric.data import Data

    edges = torch.tensor([[0, 1], [1, 0]])
    return [Data(edge_index=edges, num_nodes=2, y=torch.tensor([[0.5, k]])) for k in (float("nan"), 2.0)]


def mixed(_: Path) -> list[Any]:
    return [nx.path_graph(2), "CCO"]


def edges(folder: Path) -> Path:
    (folder / "set").mkdir()
    (folder / "set" / "edges.csv").write_text("graph_id,source,target\na,1,2\na,2,9\n")
    (folder / "set" / "nodes.csv").write_text("graph_id,node_id,kind\na,1,C\na,2,N\n")
    return folder / "set"


def pickled(folder: Path) -> Path:
    np.savez(folder / "t.npz", adjacency=np.array([np.eye(2), np.eye(3)], dtype=object))
    return folder / "t.npz"


def graphml(folder: Path) -> Path:
    (folder / "set").mkdir()
    for i in range(2):
        nx.write_graphml(labelled(nx.DiGraph([("a", "b")]), f"class {i}"), folder / "set" / f"{i}.graphml")
    return folder / "set"


def multigraph(_: Path) -> list[nx.MultiGraph]:
    return [labelled(nx.MultiGraph([(0, 1), (0, 1), (1, 2)]), k) for k in (0, 1)]


SKIP = {"invalid": "skip"}
NO_TARGETS = {"labelled": False}
PEPTIDE = "N" + "CC(=O)N" * 74 + "CC(=O)O"
CASES = [
    Case("string labels", table("smiles,y\nC,toxic\nCC,safe\n"), "2 classes: safe, toxic"),
    Case("booleans", table("smiles,y\nC,TRUE\nCC,false\n"), "2 classes: False, True"),
    Case("one class only", table("smiles,y\nC,1\nCC,1\n"), "all have the target 1"),
    Case("a missing class", table("smiles,y\nC,a\nCC,\nCCC,b\n"), "1 without target"),
    Case("NaN targets", table("smiles,y\nC,0.5\nCC,nan\nCCC,NA\nN,1\n"), "2 without target"),
    Case("a word among numbers", table("smiles,y\nC,1\nCC,0\nN,2\nO,high\n"), "t.csv:5: 'high' in column 'y' is not"),
    Case("an infinite target", table("smiles,y\nC,1\nCC,inf\n"), "t.csv:3: 'inf' in column 'y' is not finite"),
    Case("several targets, some missing", table("a,b,smiles\n0,1,C\n,0,CC\n"), "a, b", {"target": "a,b"}),
    Case("several candidates for the target", table("smiles,mw,logp\nC,1,2\nCC,3,4\n"), "--target NAME among mw, logp"),
    Case("a misspelt target", table("smiles,Activity\nC,1\n"), "did you mean 'Activity'", {"target": "activity"}),
    Case("no target, for prediction", table("smiles,mw,logp\nC,1,2\nCC,3,4\n"), "no targets", NO_TARGETS),
    Case("an unknown target, for prediction", table("smiles\nC\n"), "no targets", NO_TARGETS | {"target": "y"}),
    Case("invalid SMILES in the first and last row", table("smiles,y\n?,1\nC,1\nCC,0\nc1,1\n"), "row 4", SKIP),
    Case("the same with `--strict`", table("smiles,y\n?,1\nC,1\nCC,0\nc1,1\n"), "t.csv:2: '?' is not a SMILES"),
    Case("an impossible valence", table("smiles,y\nC(C)(C)(C)(C)C,1\nC,0\n"), "Explicit valence for atom # 0 C, 5"),
    Case("only invalid SMILES", table("smiles,y\n?,1\n!,0\n"), "no molecule that can be read", SKIP),
    Case("an empty SMILES", table("smiles,y\nC,1\n,0\nCC,0\n"), "has no SMILES", SKIP),
    Case("a salt", table("smiles,y\n[Na+].[Cl-],1\nC,0\n"), "2 graphs"),
    Case("charged atoms", table("smiles,y\nC[NH3+],1\nCC(=O)[O-],0\n"), "2 graphs"),
    Case("wildcard atoms", table("smiles,y\n*C,1\nCC,0\n"), "2 graphs"),
    Case("one-atom molecules", table("smiles,y\nC,1\nO,0\n"), "1 to 1 nodes"),
    Case("a peptide of 300 atoms", table(f"smiles,y\n{PEPTIDE},1\nC,0\n"), "1 to 301 nodes"),
    Case("dative bonds", table("smiles,y\nN->[Cu],1\nC,0\n"), "2 graphs"),
    Case("heavy hydrogen", table("smiles,y\n[2H]O[2H],1\nO,0\n"), "1 to 3 nodes"),
    Case(
        "a molecule twice with different labels", table("smiles,y\nOCC,1\nCCO,0\nC,0\n"), "groups with different",
        topic="stored twice",
    ),
    Case("no header", table("CC(=O)O,1\nCCO,0\n"), "has no header"),
    Case("columns in Chinese", table("分子,活性\nCCO,1\nCCN,0\n"), "target 活性"),
    Case("German: semicolons and decimal commas", table("Molekül;Löslichkeit\nCCO;0,5\nCCN;1,25\n"), "0.5 to 1.25"),
    Case("Latin-1", table("Molekül,y\nCCO,1\nCCN,0\n".encode("latin-1")), "read as Latin-1"),
    Case("UTF-8 with a byte order mark", table(b"\xef\xbb\xbfsmiles,y\nC,1\nCC,0\n"), "2 graphs"),
    Case("UTF-16", table("smiles,y\nC,1\nCC,0\n".encode("utf-16")), "2 graphs"),
    Case("CRLF", table("smiles,y\r\nC,1\r\nCC,0\r\n"), "2 graphs"),
    Case("a line break within quotes", table('smiles,note,y\nC,"a\nb",1\nCC,"a\nb",0\n'), "2 graphs", {"target": "y"}),
    Case("tabs in a .csv", table("smiles\ty\nC\t1\nCC\t0\n"), "2 graphs"),
    Case("a row that is too short", table("smiles,y\nC,1\nCC\nCCC,0\n"), "has 1 columns, expected 2", SKIP),
    Case("an open quote", table('smiles,y\n"C,1\nCC,0\n'), "is not a table"),
    Case("an empty file", table(""), "is empty; its first line should name its columns"),
    Case("an Excel file called .csv", table(b"PK\x03\x04..."), "save the table as CSV"),
    Case("a truncated .csv.gz", table(gzip.compress(b"smiles,y\nC,1\n")[:-4], "t.csv.gz"), "cannot be read"),
    Case("a .smi list with names", table("CCO ethanol\nCN methyl amine\n", "t.smi"), "ethanol", NO_TARGETS),
    Case("an SDF with properties", sdf, "target active"),
    Case("an SDF with a broken record", lambda folder: sdf(folder, True), "is not an MDL mol block", SKIP),
    Case("a list of SMILES", lambda _: ["CCO", "CN"], "2 graphs", NO_TARGETS),
    Case("RDKit molecules, one None", lambda _: [molecule("CC"), None], "RDKit returns None", NO_TARGETS),
    Case("a list of file names that do not exist", lambda _: ["a.graphml"], "looks like a file name"),
    Case("one graph, not a list", lambda _: nx.path_graph(3), "pass a list: [graph]"),
    Case("a mixed list", mixed, "graphs[1]: is a string while graphs[0] is a NetworkX graph"),
    Case("an array of numbers", lambda _: np.zeros((3, 4)), "give an array or list of graphs"),
    Case(
        "NetworkX with names and string labels",
        lambda _: [labelled(nx.Graph([("a", "b")]), k, {"element": "C"}, bond="single") for k in ("x", "y")],
        "2 classes: x, y",
    ),
    Case(
        "NetworkX features under `feature`",
        lambda _: [labelled(nx.path_graph(3), k, {"feature": [0.5, 1.0]}) for k in (0, 1)],
        "2 attributes",
    ),
    Case(
        "NetworkX data that only some nodes have",
        lambda _: [labelled(nx.path_graph(3), k, {"charge": {0: 1.0}}) for k in (0, 1)],
        "'charge' (4 of 6 lack it)",
    ),
    Case("labels of some nodes", lambda _: [labelled(nx.path_graph(2), 0, {"label": {0: 1}})], "1 of 2 nodes have"),
    Case("a directed graph", lambda _: [labelled(nx.DiGraph([(0, 1)]), 0)], 'directed="symmetrize"'),
    Case(
        "the same with `--directed symmetrize`",
        lambda _: [labelled(nx.DiGraph([(0, 1)]), k) for k in (0, 1)],
        "2 edges given in one direction only",
        {"directed": "symmetrize"},
        topic="on reading",
    ),
    Case("a multigraph", multigraph, "2 parallel edges, merged", topic="on reading"),
    Case("an edge of weight 0", lambda _: [labelled(nx.path_graph(2), 0, weight=0)], "an edge of weight 0 is no edge"),
    Case("a graph without nodes", lambda _: [labelled(nx.path_graph(2), 0), nx.Graph()], "graphs[1]: has no nodes"),
    Case(
        "the same with `--empty drop`",
        lambda _: [labelled(nx.path_graph(2), 0), nx.Graph(), labelled(nx.path_graph(3), 1)],
        "row 2 (1): has no nodes",
        {"empty": "drop"},
    ),
    Case("a TU set with an empty graph", tu, "graph 2 has no nodes"),
    Case("the same with `--empty drop` (TU)", tu, "row 2 (1): has no nodes", {"empty": "drop"}),
    Case("PyG with a sparse adjacency", sparse, "torch_geometric.utils.to_edge_index"),
    Case("PyG with two targets, one missing", several, "2 targets"),
    Case("directed GraphML", graphml, "0.graphml: is directed"),
    Case("JSON that is no graph", file("t.json", '{"a": 1}'), "is not a graph in node-link form"),
    Case("an .npz of Python objects", pickled, "holds Python objects, which are not read"),
    Case("an edge of an unknown node", edges, "edges.csv:3: names node '9' of graph 'a'", NO_TARGETS),
    Case("a FIFO", fifo, "is a named pipe, which may never end"),
    Case("a device", lambda _: Path("/dev/zero"), "is a device, which may never end"),
    Case("a file over the limit", table("smiles,y\nC,1\n"), "more than the limit of 10", {}, {"GCAPS_MAX_BYTES": "10"}),
    Case("a file that is not there", lambda folder: folder / "none.sdf", "none.sdf: does not exist"),
    Case("one file of a TU set", file("DS_A.txt", "1, 2\n"), "give its folder"),
    Case("a folder of other things", lambda folder: folder, "is a folder without data that can be read"),
    Case("a file of an unknown format", file("t.docx", "text"), "is of no format that can be read"),
]  # fmt: skip


def seen(case: Case, folder: Path) -> str:
    """Return what the user sees: a summary of the graphs, or the error."""
    before = {key: os.environ.get(key) for key in case.environment}
    os.environ.update(case.environment)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DataWarning)
            graphs = gcaps.load(case.make(folder), **case.options)
        text = _summary(graphs, case.topic) + "".join(f"; note: {one.message}" for one in caught)
    except GcapsError as error:
        text = f"error: {error}"
    finally:
        for key, value in before.items():
            os.environ.pop(key) if value is None else os.environ.__setitem__(key, value)
    return text.replace(f"{folder}/", "").replace(str(folder), "folder")


def _summary(graphs: gcaps.GraphSet, topic: str) -> str:
    words = [f"{len(graphs)} graphs of {graphs.sizes.min()} to {graphs.sizes.max()} nodes"]
    if graphs.given_ids is not None:
        words.append(f"called {', '.join(map(str, graphs.ids[:3]))}")
    if graphs.target_names:
        words.append(f"target {', '.join(graphs.target_names)}")
    if graphs.y is None:
        words.append("no targets")
    elif graphs.y.ndim == 2:
        words.append(f"{graphs.y.shape[1]} targets")
    elif infer_task(graphs.y).task == "classification":
        known = np.unique(graphs.y[~missing(graphs.y)])
        known = known.astype(int) if known.dtype.kind == "f" else known
        words.append(f"{len(known)} classes: {', '.join(map(str, known.tolist()))}")
    else:
        words.append(f"values {np.nanmin(graphs.y):g} to {np.nanmax(graphs.y):g}")
    if graphs.y is not None and missing(graphs.y).any():
        words.append(f"{missing(graphs.y).sum()} without target" if graphs.y.ndim == 1 else "some missing")
    if graphs.x is not None and graphs.preparation is None:  # molecules always have the mass
        words.append(f"{graphs.x.shape[1]} attributes")
    words += [f"left out: row {one.row + 1} ({one.id}): {one.reason}" for one in graphs.skipped]
    if topic:
        words.append(f"{topic}: {describe(facts(graphs))[topic]}")
    return "; ".join(words)


def rows() -> str:
    """Return the table of the documentation."""
    lines = ["| input | what the user sees |", "|---|---|"]
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            text = seen(case, Path(folder))
        shown = text.replace("|", "\\|").replace("\n", " ").replace(PEPTIDE, "…").replace("<", "&lt;")
        lines.append(f"| {case.title} | {shown} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(MARKED.sub(lambda found: found[1] + "\n" + rows() + "\n" + found[2], page), encoding="utf-8")
    sys.exit(0)
