"""Broken inputs, each made by a few lines: the bases with one fault, hostile paths, and settings out of range.

An input is a request of :mod:`tests.faults.runner` with its name. ``wrong`` says that it must be refused; the others
may be read or refused (a truncated list is a shorter list), but always with one line, quickly and in little memory.
"""

from __future__ import annotations

import contextlib
import copy
import gzip
import hashlib
import json
import math
import os
import random
import shutil
import socket
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.faults.arguments import bad_arguments, bad_new_verbs, bad_settings
from tests.faults.runner import Request
from tests.faults.studies import broken_studies

SINGLE = ("classes.csv", "values.tsv", "list.smi", "molecules.sdf", "graphs.json", "graphs.graphml", "graphs.npz")
PAGES = ("splits.json", "grid.toml", "experiment.toml", "settings.toml", "space.toml", "best.toml")
BODIES = ("predict.body", "smiles.body", "explain.body", "upload.csv", "upload.json")
"""Requests to a server."""
MODELS = ("network.model", "kernel.model", "trees.model", "calibrated.model")
FOLDERS = ("tu", "tables.edges", "graphs.gset", *MODELS, "run", "record.json", "study")
Fault = tuple[str, Callable[[bytes], bytes], bool]

_DEEP = 200_000
FAULTS: list[Fault] = [
    ("empty", lambda b: b"", True),
    ("zeros", lambda b: bytes(len(b)), True),
    ("noise", lambda b: random.Random(1).randbytes(max(len(b), 64)), True),
    ("page", lambda b: b"<!DOCTYPE html><html><body>404 not found</body></html>\n", True),
    ("utf16", lambda b: b.decode("latin-1").encode("utf-16"), False),
    ("half", lambda b: b[: len(b) // 2], False),
    ("without the last byte", lambda b: b[:-1], False),
    ("without the last bytes", lambda b: b[:-7], False),
    ("twice", lambda b: b + b, False),
    ("first line twice", lambda b: b[: b.find(b"\n") + 1] + b, False),
    ("carriage returns", lambda b: b.replace(b"\n", b"\r"), False),
    ("no line ends", lambda b: b.replace(b"\n", b" "), False),
    ("empty lines", lambda b: b.replace(b"\n", b"\n\n"), False),
    ("zero byte", lambda b: b[: len(b) // 3] + b"\0" + b[len(b) // 3 :], False),
    ("bad utf-8", lambda b: b[: len(b) // 3] + b"\xff\xfe" + b[len(b) // 3 :], False),
    ("byte order mark", lambda b: b"\xef\xbb\xbf" + b, False),
    ("escape codes", lambda b: b.replace(b"1", b"\x1b[2J1", 3), False),
    ("markup", lambda b: b.replace(b"1", b"[/b]1", 3), False),
    ("numbers to letters", lambda b: b.replace(b"1", b"x"), False),
    ("negative", lambda b: b.replace(b"1", b"-1"), False),
    ("nan", lambda b: b.replace(b"1", b"nan", 1), False),
    ("infinity", lambda b: b.replace(b"1", b"1e999", 1), False),
    ("huge", lambda b: b.replace(b"1", b"1" + b"0" * 30, 1), False),
    ("very huge", lambda b: b.replace(b"1", b"1" * 10_000, 1), False),
    ("large", lambda b: b.replace(b"1", b"4294967296", 1), False),
    ("long line", lambda b: b + b"7," * 500_000, False),
    ("long word", lambda b: b + b"C" * 1_000_000 + b"\n", False),
    ("deep", lambda b: b"[" * _DEEP, True),
    ("deeper", lambda b: b'{"a":' * _DEEP, True),
    ("reversed lines", lambda b: b"\n".join(reversed(b.split(b"\n"))), False),
    ("other separator", lambda b: b.replace(b",", b";"), False),
    ("quotes", lambda b: b.replace(b",", b',"', 1), False),
]
VALUES: list[tuple[str, Any]] = [
    ("null", None),
    ("text", "[/b]"),
    ("minus", -1),
    ("large", 2**40),
    ("huge", 10**40),
    ("inf", math.inf),
    ("list", []),
    ("object", {}),
    ("true", True),
    ("fraction", 0.5),
    ("many", list(range(-100, 7))),
]


def corpus(folder: Path, short: bool = False) -> Iterator[Request]:
    """Write the inputs below ``folder`` and yield a request for each; of the short form a part."""
    bases = folder / "bases"
    makers = (_bytes(bases, folder / "bytes"), _values(bases, folder / "values"), _paths(bases, folder / "paths"))
    rest = (_archives(folder / "archives"), _graphs(folder / "graphs"), _models(bases, folder / "models"))
    verbs = (bad_settings(folder), bad_arguments(bases, folder), bad_new_verbs(bases, folder))
    number = 0
    for maker in (*makers, *rest, *verbs, broken_studies(bases, folder / "studies")):
        for request in maker:
            number += 1
            if not short or request.get("wrong") or number % 5 == 0:
                yield request


def _read(name: str, path: Path, wrong: bool = False) -> Request:
    return {"do": "read", "name": name, "path": str(path), "wrong": wrong}


def _place(folder: Path, base: Path, number: int) -> Path:
    """A copy of a base in a folder of its own."""
    goal = folder / str(number) / base.name
    goal.parent.mkdir(parents=True)
    if base.is_dir():
        shutil.copytree(base, goal)
    else:
        shutil.copy(base, goal)
        if (beside := base.with_suffix(".npz")).exists() and base.name == "record.json":
            shutil.copy(beside, goal.parent)
    return goal


def _files(base: Path) -> list[Path]:
    return sorted(f.relative_to(base) for f in base.rglob("*") if f.is_file()) if base.is_dir() else [Path()]


def _bytes(bases: Path, folder: Path) -> Iterator[Request]:
    """Every fault of bytes in every file; of binary files those that do not need text."""
    number = 0
    for name in (*SINGLE, *PAGES, *BODIES, *FOLDERS):
        base = bases / name
        if not base.exists():
            continue
        files = _files(base)
        for file in files:
            binary = file.suffix in (".npy", ".npz", ".safetensors") or base.suffix == ".npz"
            if name == "run" and number % 2 and file.suffix == ".npy":
                continue
            for fault, change, wrong in FAULTS:
                sound = (base / file).read_bytes()
                content = change(sound)
                if content == sound or (binary and fault not in BINARY):
                    continue
                number += 1
                goal = _place(folder, base, number)
                (goal / file if base.is_dir() else goal).write_bytes(content)
                readable = file.name.startswith(("README", ".")) or (name == "run" and "data" in file.parts)
                optional = (name == "list.smi" and fault in ("deep", "deeper", "noise", "page")) or (
                    name in ("grid.toml", "settings.toml", "best.toml") and fault == "empty"  # nothing is set
                )
                yield _read(f"{name}/{file}: {fault}", goal, wrong and not readable and not optional)


BINARY = {"empty", "zeros", "noise", "half", "without the last byte", "twice", "deep", "large", "negative"}


def _values(bases: Path, folder: Path) -> Iterator[Request]:
    """Every value of every page of JSON left out, or replaced by one of another kind."""
    number = 0
    for name in (
        *MODELS,
        "graphs.gset",
        "run",
        "record.json",
        "splits.json",
        "graphs.json",
        "study",
        *(name for name in BODIES if not name.endswith(".csv")),
    ):
        base = bases / name
        pages = [f for f in _files(base) if (base / f).suffix in (".json", ".body")] if base.exists() else []
        for file in pages[:3]:
            value = json.loads((base / file).read_text())
            where = list(_places(value))
            chosen = random.Random(0).sample(where, min(len(where), 40))
            for i, place in enumerate(chosen):
                for title, new in [("left out", ...), *(VALUES[(i + k * 4) % len(VALUES)] for k in range(2))]:
                    changed = copy.deepcopy(value)
                    if not _put(changed, place, new):
                        continue
                    model = name.endswith(".model")
                    for made in (False, True) if model else (False,):
                        number += 1
                        goal = _place(folder, base, number)
                        page = signed(goal, changed) if made else changed
                        (goal / file if base.is_dir() else goal).write_text(json.dumps(page))
                        how = " on purpose" if made else ""
                        called = f"{name}/{file}: {'.'.join(map(str, place))} {title}{how}"
                        yield _read(called, goal, wrong=model and not made)


def signed(folder: Path, page: dict[str, Any]) -> dict[str, Any]:
    """Return the page of a model with checksums that fit, as whoever makes a model on purpose would write it."""
    from gcaps import persistence

    content = (folder / persistence.ARRAYS).read_bytes()
    page = {**page, "arrays": hashlib.sha256(content).hexdigest()} if "arrays" in page else dict(page)
    if "sha256" in page:
        with contextlib.suppress(ValueError):  # what is infinite has no checksum
            page["sha256"] = persistence._digest(page)
    return page


def _places(value: Any, at: tuple[Any, ...] = (), depth: int = 0) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, below in items:
        yield (*at, key)
        if depth < 6:
            yield from _places(below, (*at, key), depth + 1)


def _put(value: Any, place: tuple[Any, ...], new: Any) -> bool:
    for key in place[:-1]:
        value = value[key]
    if value[place[-1]] == new:
        return False
    if new is ...:
        del value[place[-1]]
    else:
        value[place[-1]] = new
    return True


def _paths(bases: Path, folder: Path) -> Iterator[Request]:
    """What stands at a path is no regular file; names are absurd."""
    folder.mkdir(parents=True)
    for name in (*SINGLE, *PAGES, "record.json", "x.zip", "x.gset", "x.model"):
        own = folder / name.replace(".", "-")
        own.mkdir()
        makers: dict[str, Callable[[Path], Any]] = {
            "folder": Path.mkdir,
            "named pipe": os.mkfifo,
            "device": lambda p: p.symlink_to("/dev/zero"),
            "loop": lambda p: p.symlink_to(p.name),
            "dangling": lambda p: p.symlink_to("nowhere"),
            "missing": lambda p: None,
            "socket": _socket,
        }
        for title, make in makers.items():
            goal = own / title.replace(" ", "-") / name
            goal.parent.mkdir()
            make(goal)
            yield _read(f"{name} is a {title}", goal, True)
    for base, file in (
        ("tu", "DS_A.txt"),
        ("tu", "DS_node_labels.txt"),
        ("graphs.gset", None),
        ("network.model", None),
    ):
        names = [file] if file else [str(f) for f in _files(bases / base)]
        for one in names:
            for title in ("folder", "named pipe", "loop"):
                goal = folder / f"{base}-{one.replace('/', '-')}-{title}" / base
                shutil.copytree(bases / base, goal)
                (goal / one).unlink()
                {"folder": Path.mkdir, "named pipe": os.mkfifo, "loop": lambda p: p.symlink_to(p.name)}[title](
                    goal / one
                )
                yield _read(f"{base}/{one} is a {title}", goal, True)
    for i, odd in enumerate(
        ("[bold].csv", "[red]x[.csv", "=cmd.csv", "a\nb.csv", "\x1b[2J.csv", "x" * 240 + ".csv", "-o.csv", "😀.csv")
    ):
        goal = folder / f"odd{i}" / odd
        goal.parent.mkdir()
        shutil.copy(bases / "classes.csv", goal)
        yield _read(f"name {odd[:20]!r}", goal)
        yield {
            "do": "verb",
            "name": f"check of {odd[:20]!r}",
            "arguments": ["data", "check", str(goal)],
            "wrong": False,
        }
    for title in ("a\0b.csv", "x" * 5000, "/" * 4000, "", " ", ".", "http://nowhere.invalid/x.zip"):
        yield _read(
            f"path {title[:20]!r}", Path(title) if "\0" not in title else Path("a\0b.csv"), title not in ("", " ")
        )


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _archives(folder: Path) -> Iterator[Request]:
    """Bombs, links, names that leave the folder, and members that are no files."""
    folder.mkdir(parents=True)
    tu = {
        "DS_A.txt": b"1, 2\n2, 1\n3, 4\n4, 3\n",
        "DS_graph_indicator.txt": b"1\n1\n2\n2\n",
        "DS_graph_labels.txt": b"0\n1\n",
    }

    def archive(name: str, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
        with zipfile.ZipFile(folder / name, "w", method) as made:
            for member, content in members.items():
                made.writestr(member, content)
        return folder / name

    bomb = bytes(300 << 20)
    yield _read("bomb as a member", archive("bomb.zip", tu | {"DS_A.txt": bomb}), True)
    yield _read("bomb of digits", archive("digits.zip", tu | {"DS_A.txt": b"1, 2\n" * (40 << 20)}), True)
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        yield _read(f"bomb {method}", archive(f"bomb{method}.zip", tu | {"DS_A.txt": bomb}, method), True)
    yield _read("empty archive", archive("empty.zip", {}), True)
    yield _read("leaves the folder", archive("up.zip", {f"../../{n}": c for n, c in tu.items()}))
    yield _read("absolute", archive("absolute.zip", {f"/tmp/{n}": c for n, c in tu.items()}))
    yield _read("many members", archive("many.zip", tu | {f"x/{i}.txt": b"" for i in range(20_000)}))
    yield _read("two sets", archive("two.zip", tu | {f"E{n[1:]}": c for n, c in tu.items()}), True)
    yield _read("encrypted flag", _flipped(archive("encrypted.zip", tu), 6, 1), False)
    sound = archive("sound.zip", tu).read_bytes()
    for i in range(0, len(sound), 12):
        (folder / f"flip{i}.zip").write_bytes(sound[:i] + bytes([sound[i] ^ 0x55]) + sound[i + 1 :])
        yield _read(f"zip with byte {i} changed", folder / f"flip{i}.zip")
    for name in ("classes.csv", "list.smi", "graphs.json"):
        (folder / f"{name}.gz").write_bytes(gzip.compress(bytes(300 << 20), 1))
        yield _read(f"gzip bomb {name}", folder / f"{name}.gz", True)
    (folder / "cut.csv.gz").write_bytes(gzip.compress(b"smiles,y\nC,1\n" * 99)[:40])
    yield _read("gzip cut off", folder / "cut.csv.gz", True)
    (folder / "no.csv.gz").write_bytes(b"smiles,y\nC,1\n")
    yield _read("gzip that is none", folder / "no.csv.gz", True)


def _flipped(path: Path, at: int, bits: int) -> Path:
    content = bytearray(path.read_bytes())
    content[at] ^= bits
    path.write_bytes(content)
    return path


def _graphs(folder: Path) -> Iterator[Request]:
    """Sets that are well formed and mean nothing."""
    folder.mkdir(parents=True)
    nodes = [{"id": 0}, {"id": 1}]

    def page(name: str, graphs: Any) -> Path:
        (folder / f"{name}.json").write_text(json.dumps(graphs))
        return folder / f"{name}.json"

    def graph(**more: Any) -> dict[str, Any]:
        return {
            "directed": False,
            "multigraph": False,
            "graph": {"y": 1},
            "nodes": nodes,
            "links": [{"source": 0, "target": 1}],
            **more,
        }

    yield _read("unknown node", page("unknown", [graph(links=[{"source": 0, "target": 9}])]))
    yield _read("no links", page("nolinks", [{"nodes": nodes}]))
    yield _read("nodes without id", page("noid", [graph(nodes=[{}, {}])]))
    yield _read("same id", page("sameid", [graph(nodes=[{"id": 0}, {"id": 0}])]))
    yield _read("id is a list", page("listid", [graph(nodes=[{"id": [0]}, {"id": [1]}])]), True)
    yield _read("links of links", page("linklist", [graph(links=[[0, 1], 3])]), True)
    yield _read("list of numbers", page("numbers", [1, 2, 3]), True)
    yield _read("a string", page("string", "graphs"), True)
    for title, value in {"huge": 1e300, "nan": math.nan, "text": "a", "big": 10**400, "none": None}.items():
        yield _read(
            f"weight {title}", page(f"weight-{title}", [graph(links=[{"source": 0, "target": 1, "weight": value}])])
        )
        yield _read(f"feature {title}", page(f"x-{title}", [graph(nodes=[{"id": 0, "x": value}, {"id": 1, "x": 1}])]))
    arrays: dict[str, Any] = {
        "objects": np.array([{}], dtype=object),
        "strings": np.array(["a"]),
        "one": np.ones(3),
        "cube": np.ones((2, 2, 3)),
        "nan": np.full((2, 2, 2), np.nan),
        "complex": np.ones((2, 2, 2), complex),
        "huge": np.full((2, 2, 2), 1e300),
        "none": np.ones((0, 0, 0)),
        "directed": np.triu(np.ones((4, 3, 3))),
        "times": np.zeros((2, 2, 2), "M8[s]"),
    }
    for title, value in arrays.items():
        np.savez(folder / f"{title}.npz", adjacency=value, y=np.arange(len(value)) % 2)
        yield _read(f"adjacency of {title}", folder / f"{title}.npz", title not in ("huge", "directed", "cube"))
    for title, text in {
        "100,000 atoms": "C" * 100_000,
        "deep branches": "C(" * 5000 + ")" * 5000,
        "rings": "C1" * 3000,
        "formula": "=1+1",
        "markup": "[/b]",
        "element": "[Zz]",
        "charge": "[C+999999999]",
        "isotope": "[999999999C]",
        "nul": "C\0C",
        "percent": "C%",
    }.items():
        (folder / f"smiles-{title}.csv").write_text(f"smiles,y\nCC,0\n{text},1\nCCO,1\n")
        yield _read(f"SMILES: {title}", folder / f"smiles-{title}.csv")
    header = "DS_{}.txt"
    for title, parts in {
        "billion nodes": {"graph_indicator": "1\n1000000000\n"},
        "graph 0": {"graph_indicator": "0\n0\n1\n1\n"},
        "descending": {"graph_indicator": "2\n2\n1\n1\n"},
        "arc to nobody": {"A": "1, 99\n"},
        "arc across": {"A": "1, 3\n3, 1\n"},
        "attribute 1e300": {"node_attributes": "1e300\n1\n1\n1\n"},
        "label 10^30": {"node_labels": f"{10**30}\n1\n1\n1\n"},
        "labels short": {"node_labels": "1\n"},
        "attributes ragged": {"node_attributes": "1\n1, 2\n1\n1\n"},
        "no graphs": {"graph_indicator": "", "graph_labels": "", "A": ""},
        "node 0": {"A": "0, 1\n1, 0\n"},
    }.items():
        own = folder / title.replace(" ", "-") / "DS"
        own.mkdir(parents=True)
        base = {"A": "1, 2\n2, 1\n3, 4\n4, 3\n", "graph_indicator": "1\n1\n2\n2\n", "graph_labels": "0\n1\n"}
        for part, text in (base | parts).items():
            (own / header.format(part)).write_text(text)
        wrong = title not in ("descending", "attribute 1e300")
        yield _read(f"TU: {title}", own, wrong)
        train = ["train", str(own), "-o", str(own.parent / "model"), "--method", "deepsets", "--epochs", "1"]
        yield {
            "do": "verb",
            "name": f"training on TU: {title}",
            "arguments": train,
            "out": train[3],
            "wrong": title != "descending",
        }


def _models(bases: Path, folder: Path) -> Iterator[Request]:
    """Models whose weights or classes are not those that were saved, altered (refused) or with checksums that fit."""
    from safetensors.numpy import load_file, save_file

    def changed(
        name: str, title: str, change: Callable[[dict[str, Any], dict[str, Any]], Any], made: bool = True
    ) -> Path:
        goal = folder / title.replace(" ", "-") / name
        shutil.copytree(bases / name, goal)
        arrays = dict(load_file(goal / "model.safetensors"))
        page = json.loads((goal / "model.json").read_text())
        change(arrays, page)
        save_file(arrays, goal / "model.safetensors")
        (goal / "model.json").write_text(json.dumps(signed(goal, page) if made else page))
        return goal

    def other(array: Any) -> Any:
        return np.asarray(~array if array.dtype.kind in "iub" else -array)

    def spoil(value: float) -> Callable[[dict[str, Any], dict[str, Any]], Any]:
        def change(arrays: dict[str, Any], page: dict[str, Any]) -> None:
            for key, array in arrays.items():
                if array.dtype.kind == "f" and array.size:
                    arrays[key] = np.full_like(array, value)

        return change

    for name in ("network.model", "kernel.model", "trees.model"):
        yield _read(f"{name}: weights NaN", changed(name, f"nan {name}", spoil(math.nan)), True)
        yield _read(f"{name}: weights infinite", changed(name, f"inf {name}", spoil(math.inf)), True)
        swap = lambda a, p: p["target"]["classes"].update(names=p["target"]["classes"]["names"][::-1])  # noqa: E731
        yield _read(f"{name}: classes swapped", changed(name, f"swapped {name}", swap, made=False), True)
        yield _read(f"{name}: classes swapped on purpose", changed(name, f"swapped on purpose {name}", swap))
        same = lambda a, p: p["target"]["classes"].update(names=p["target"]["classes"]["names"][:1] * 2)  # noqa: E731
        yield _read(f"{name}: classes equal", changed(name, f"equal {name}", same), True)
        arrays = sorted(load_file(bases / name / "model.safetensors"))
        for key in arrays[:12]:
            lose = lambda a, p, key=key: a.pop(key)  # noqa: E731
            yield _read(f"{name}: without {key}", changed(name, f"without {name} {key}", lose), True)
            cut = lambda a, p, key=key: a.update({key: a[key].reshape(-1)[:1]})  # noqa: E731
            one = lambda a, p, key=key: a.update({key: other(a[key])})  # noqa: E731
            yield _read(f"{name}: {key} altered", changed(name, f"altered {name} {key}", one, made=False), True)
            yield _read(f"{name}: {key} cut", changed(name, f"cut {name} {key}", cut))
            far = lambda a, p, key=key: a.update({key: np.full_like(a[key], 10**9)})  # noqa: E731
            yield _read(f"{name}: {key} far", changed(name, f"far {name} {key}", far))
    measured = lambda a, p: p["resolved"].update(layers=100_000)  # noqa: E731
    yield _read("model of 100,000 layers", changed("network.model", "layers", measured), True)
    wide = lambda a, p: p["resolved"].update(hidden=10**9)  # noqa: E731
    yield _read("model of width 10^9", changed("network.model", "wide", wide), True)
    values = lambda a, p: p["state"]["features"].setdefault("labels", {}).update(values=list(range(-100, 7)))  # noqa: E731
    yield _read("labels out of range", changed("network.model", "labels", values), True)
