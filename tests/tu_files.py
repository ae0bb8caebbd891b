"""Small data sets in the TU collection's format, written for one test and varied by it."""

import zipfile
from pathlib import Path

TWO_GRAPHS: dict[str, str] = {
    # a triangle and a path of three nodes
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n4, 5\n5, 4\n5, 6\n6, 5\n",
    "graph_indicator": "1\n1\n1\n2\n2\n2\n",
    "graph_labels": "1\n-1\n",
    "node_labels": "0\n1\n2\n0\n1\n2\n",
    "node_attributes": "0.5, 1\n1e-3, 2\n-1, 3\n4, 4\n5, 5\n6, 6\n",
    "edge_labels": "7\n7\n8\n8\n9\n9\n7\n7\n8\n8\n",
}


def write_folder(folder: Path, name: str = "DS", **changes: str | bytes | None) -> Path:
    """TWO_GRAPHS with some files changed, or left out where None."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, content in {**TWO_GRAPHS, **changes}.items():
        if content is not None:
            raw = content.encode() if isinstance(content, str) else content
            (folder / f"{name}_{part}.txt").write_bytes(raw)
    return folder


def zipped(folder: Path, goal: Path, compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(goal, "w", compression) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, f"{goal.stem}/{file.name}")
    return goal
