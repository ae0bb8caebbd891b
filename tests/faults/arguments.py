"""Settings and arguments that are out of range or contradict each other, and outputs that cannot be written."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from tests.faults.runner import Request

BAD = ("x", "nan", "inf", "-1", "1e999", "9" * 40, "", "[/b]", "\x1b[2J")


def bad_settings(folder: Path) -> Iterator[Request]:
    """Every setting of every method out of range, as an option and as a parameter."""
    from gcaps.config import CONFIGS

    tu = str(folder / "bases" / "tu")
    for method, kind in CONFIGS.items():
        if method in ("tanimoto", "ecfp", "descriptors"):
            continue
        for i, (name, field) in enumerate(kind.model_fields.items()):
            if field.annotation is bool:
                continue
            numeric = any(part in (int, float) for part in (field.annotation, *get_args(field.annotation)))
            for k in range(3):
                text = BAD[(i + 3 * k) % len(BAD)]
                out = str(folder / "settings" / f"{method}-{name}-{k}" / "model")
                Path(out).parent.mkdir(parents=True)
                arguments = ["train", tu, "-o", out, "--method", method, f"--{name.replace('_', '-')}={text}"]
                if name != "epochs" and "epochs" in kind.model_fields:
                    arguments.append("--epochs=1")
                if method == "ensemble" and name != "methods":
                    arguments.append("--methods=wl,sp")
                wrong = numeric and text != "-1" and text != ""
                yield {
                    "do": "verb",
                    "name": f"{method} --{name} {text!r}",
                    "arguments": arguments,
                    "out": out,
                    "wrong": wrong,
                }
    odd: list[tuple[str, dict[str, Any], bool]] = [
        ("gcaps", {"features": []}, True),
        ("gcaps", {"features": ()}, True),
        ("gcaps", {"threads": 10**9}, True),
        ("gcaps", {"epochs": 1, "lr": 1e30}, True),
        ("gcaps", {"epochs": 1, "lr": math.inf}, True),
        ("gin", {"epochs": 2, "lr": 1e30}, True),
        ("gcaps", {"hidden": 10**9}, True),
        ("wl", {"C": []}, True),
        ("wl", {"C": [0.0]}, True),
        ("wl", {"C": [math.nan]}, True),
        ("wl", {"inner_folds": 10**9}, False),
        ("gcaps", {"class_weight": {"0": math.nan}}, True),
        ("gcaps", {"class_weight": {"9": 1}}, True),
        ("gcaps", {"epochs": 1, "class_weight": {"0": 1e300}}, False),
        ("ensemble", {"methods": []}, True),
        ("ensemble", {"methods": ["nothing"]}, True),
        ("gcaps", {"epochs": 1, "batch_size": 10**30}, True),
        ("dgk", {"n_iter": [], "sizes": []}, False),
        ("gk", {"sizes": [10**9]}, True),
        ("wl", {"n_iter": [10**9]}, False),
        ("wl", {"n_iter": [-1]}, True),
        ("sp", {"C": [1e300]}, False),
        ("rw", {"decays": [1e9]}, False),
        ("mlg", {"eta": [0.0]}, False),
        ("mlg", {"levels": [0]}, False),
        ("mlg", {"radius": [10**9]}, False),
    ]
    for method, settings, wrong in odd:
        yield {"do": "fit", "name": f"{method} {settings}", "method": method, "settings": settings, "wrong": wrong}
    for seed in (-1, 2**32, 10**30, 0.5, "x", None):
        for method in ("deepsets", "wl", "fgsd", "capsule-svm", "ensemble"):
            few: dict[str, Any] = {
                "deepsets": {"epochs": 1},
                "fgsd": {"n_estimators": 2},
                "ensemble": {"methods": ["wl"]},
            }.get(method, {})
            yield {
                "do": "fit",
                "name": f"{method} seed {seed}",
                "method": method,
                "settings": few,
                "seed": seed,
                "wrong": seed is not None,
            }


def verb(folder: Path, *arguments: str, wrong: bool = True, out: Path | None = None) -> Request:
    """Return the request of a verb, called as its arguments without the folder."""
    return {
        "do": "verb",
        "name": " ".join(arguments).replace(str(folder), "")[:140],
        "arguments": list(arguments),
        "out": None if out is None else str(out),
        "wrong": wrong,
    }


def bad_arguments(bases: Path, folder: Path) -> Iterator[Request]:
    """Verbs with arguments that contradict each other, or with outputs that cannot be written."""
    tu, model, number = str(bases / "tu"), str(bases / "network.model"), 0

    (folder / "out").mkdir()
    (folder / "out" / "file").write_text("x")
    (folder / "out" / "folder").mkdir()
    (folder / "out" / "folder" / "x").write_text("x")
    os.mkfifo(folder / "out" / "pipe")
    (folder / "out" / "link").symlink_to("loop")
    (folder / "out" / "loop").symlink_to("link")
    bad_outputs = bad_goals(folder)
    quick = ["--method", "deepsets", "--epochs", "1"]
    for out in bad_outputs:
        yield verb(folder, "train", tu, "-o", str(out), *quick)
        plain = out.name == "file"  # a file is replaced by a file
        yield verb(folder, "predict", model, tu, "-o", str(out / "p.csv" if plain else out))
        yield verb(
            folder,
            "evaluate",
            tu,
            *quick,
            "--folds",
            "2",
            "--jobs",
            "1",
            "-o",
            f"{out}/r.json",
            wrong=out.name != "folder",
        )
        yield verb(folder, "compare", tu, "--methods", "fgsd", "-o", str(out))
        yield verb(folder, "data", "convert", tu, f"{out}/x.gset", wrong=out.name != "folder")
        yield verb(folder, "report", str(bases / "run"), "-o", str(out / "x" if plain else out))
    for option, values in {
        "--folds": ("0", "-1", "x", "1e9", "9" * 30, "100000"),
        "--seed": ("-1", "4294967296", "x", "9" * 30, "0.5"),
        "--repeats": ("0", "-1", "x", "9" * 30),
        "--jobs": ("0", "-1", "x"),
        "--metric": ("x", "", "[/b]", "rmse"),
        "--split": ("x", "", "group:x", "time:", "[/b]", "/nowhere.json", "column:y"),
        "--task": ("x", "regression"),
        "--train-sizes": ("0", "-1", "x", "1,1", "9" * 30, "", ","),
        "--learning-curve": ("1", "-1", "x", "9" * 30),
        "--method": ("x", "", "[/b]"),
        "--config": ("/nowhere.toml", "/dev/zero", str(bases / "tu" / "DS_A.txt"), str(bases)),
        "--nothing": ("1",),
        "--features": ("x", "fgsd,x", ",", ""),
        "--target": ("x", "[/b]"),
        "--empty": ("x",),
    }.items():
        for value in values:
            wrong = not (option == "--features" and value == "") and not (option == "--task" and value == "regression")
            given = ["evaluate", tu, *quick, "--folds", "2", "--jobs", "1", option, value]
            yield verb(folder, *given, wrong=wrong and not (option == "--target" or value in ("", ",", "1,1")))
    for option, values in {
        "--grid": ("/nowhere.toml", str(bases / "splits.json"), "/dev/zero", str(bases)),
        "--seeds": ("x", "4294967296", "1,1", "", "-1"),
        "--experiment": ("x", "/dev/zero", str(bases / "splits.json"), str(bases)),
        "--time-limit": ("x", "-1", "0", "nan", "inf"),
        "--memory-limit": ("x", "-1", "0", "nan"),
        "--methods": ("x", "", ",", "[/b]"),
        "--cluster": ("x", "tcp://127.0.0.1:9", ""),
        "--jobs": ("0", "x"),
        "--record": ("x.txt",),
    }.items():
        for value in values:
            number += 1
            out = folder / "verbs" / str(number) / "run"
            out.parent.mkdir(parents=True)
            data = [] if option == "--experiment" else [tu]
            methods = [] if option in ("--methods", "--experiment") else ["--methods", "wl"]
            yield verb(folder, "compare", *data, *methods, "-o", str(out), option, value, wrong=value != "")
    for given in (
        ["predict"],
        ["predict", model],
        ["train", tu],
        ["report"],
        ["report", tu],
        ["report", model],
        ["compare"],
        ["compare", "-o", str(folder / "nothing")],
        ["compare", "--verify"],
        ["compare", "--verify", tu],
        ["compare", "--verify", model],
        ["data"],
        ["data", "x"],
        ["data", "check"],
        ["data", "check", model],
        ["data", "get", "x"],
        ["x"],
        ["[/b]"],
        ["--x"],
        ["predict", tu, tu],
        ["predict", model, model],
        ["predict", model, tu, "--threshold", "2"],
        ["predict", model, tu, "--threshold", "nan"],
        ["train", model, "-o", str(folder / "m")],
        ["evaluate", model],
        ["evaluate", str(bases / "run")],
        ["predict", model, str(bases / "classes.csv")],
    ):
        yield verb(folder, *given)
    grid = folder / "grid-many.toml"
    grid.write_text(
        "[deepsets]\n"
        + "".join(f"{n} = [{', '.join(f'0.{i:04d}1' for i in range(199))}]\n" for n in ("lr", "dropout", "decay"))
    )
    yield verb(folder, "compare", tu, "--methods", "deepsets", "-o", str(folder / "many"), "--grid", str(grid))
    two = folder / "two" / "DS"
    two.mkdir(parents=True)
    for part, text in {
        "A": "1, 2\n2, 1\n3, 4\n4, 3\n",
        "graph_indicator": "1\n1\n2\n2\n",
        "graph_labels": "0\n1\n",
    }.items():
        (two / f"DS_{part}.txt").write_text(text)
    for method in (
        "gcaps",
        "capsule-svm",
        "gin",
        "deepsets",
        "dgcnn",
        "pscn",
        "ecc",
        "dcnn",
        "wl",
        "wloa",
        "sp",
        "rw",
        "gk",
        "dgk",
        "mlg",
        "fgsd",
        "ensemble",
    ):
        more = ["--epochs", "1"] if method in ("gcaps", "gin", "deepsets", "dgcnn", "pscn", "ecc", "dcnn") else []
        for extra in ([], ["--selection", "validation"]) if more else ([],):
            out = folder / "two" / f"{method}{len(extra)}" / "model"
            out.parent.mkdir()
            yield verb(
                folder, "train", str(two), "-o", str(out), "--method", method, *more, *extra, wrong=False, out=out
            )


def bad_goals(folder: Path) -> list[Path]:
    """Return paths that cannot be written as a folder; a file can be written in the second one."""
    below = [folder / "out" / name for name in ("file", "folder", "file/x", "link/x")]
    return [*below, Path("/dev/null/x"), Path("/proc/x")]


def bad_new_verbs(bases: Path, folder: Path) -> Iterator[Request]:
    """The same for searches, vectors, explanations, exports and servers."""
    tu, model = str(bases / "tu"), str(bases / "network.model")
    search = ["tune", tu, "--method", "deepsets", "--epochs", "1", "--folds", "2", "--trials", "2"]
    embed, export = ["embed", model, tu], ["export", model]
    explain, serve = ["explain", model, tu], ["serve", model, "--port", "0"]
    writing = {".npz": embed, ".csv": embed, ".html": explain, ".onnx": export, ".pt2": export}
    for out in bad_goals(folder):
        yield verb(folder, *search, "-o", str(out))
        for ending, given in writing.items():
            into = out.name == "file" or out.name == "folder"
            goal = out / f"x{ending}" if out.name == "file" else out
            yield verb(folder, *given, "-o", str(goal if into else out / f"x{ending}"))
    odd = ("x", "-1", "0", "nan", "9" * 30, "", "[/b]", "\x1b[2J")
    options: dict[str, tuple[list[str], tuple[str, ...]]] = {
        "tune": (
            [*search, "-o", str(folder / "odd.study")],
            ("trials", "time-limit", "folds", "jobs", "seed", "pruner", "split", "metric", "space", "config", "task"),
        ),
        "embed": (
            [*embed, "-o", str(folder / "odd.npz")],
            ("neighbors", "distance", "projection", "among", "target", "smiles"),
        ),
        "explain": ([*explain, "-o", str(folder / "odd.html")], ("graph", "method", "target")),
        "export": ([*export, "-o", str(folder / "odd.onnx")], ("check", "edge-weights")),
        "serve": (
            serve,
            ("port", "host", "coverage", "workers", "window", "max-batch", "max-waiting", "max-bytes", "max-graphs",
             "max-nodes", "max-edges", "max-seconds"),
        ),
    }  # fmt: skip
    for name, (given, names) in options.items():
        for option in names:
            for value in odd:
                fine = (option, value) in FINE or (name != "serve" and value == "")
                if not (name == "serve" and fine):  # a server would begin
                    yield verb(folder, *given, f"--{option}={value}", wrong=not fine)
    for given in (
        ["tune"],
        ["tune", tu],
        ["tune", model, "-o", str(folder / "m.study")],
        ["tune", tu, "-o", tu],
        ["tune", tu, "-o", str(bases / "run")],
        [*search, "--space", "/dev/zero", "-o", str(folder / "zero.study")],
        [*search, "--space", str(bases / "splits.json"), "-o", str(folder / "splits.study")],
        [*search, "--seed", "1", "-o", str(bases / "study")],
        ["tune", tu, "--method", "wl", "-o", str(bases / "study")],
        ["embed"],
        ["embed", model, tu],
        ["embed", tu, tu, "-o", str(folder / "e.npz")],
        ["embed", model, model, "-o", str(folder / "e.npz")],
        [*embed, "-o", str(folder / "e.txt")],
        [*embed, "-o", str(folder / "e.npz"), "--among", tu],
        [*embed, "-o", str(folder / "e.npz"), "--neighbors", "2", "--among", str(bases / "classes.csv")],
        ["embed", model, str(bases / "classes.csv"), "-o", str(folder / "e.npz")],
        ["embed", str(bases / "molecules.model"), tu, "-o", str(folder / "e.npz")],
        ["explain"],
        ["explain", tu, tu],
        ["explain", model, model],
        ["explain", model, str(bases / "classes.csv"), "-o", str(folder / "e.html")],
        ["export"],
        ["export", tu, "-o", str(folder / "e.onnx")],
        ["export", model, "-o", str(folder / "e.txt")],
        ["export", str(bases / "kernel.model"), "-o", str(folder / "e.onnx")],
        ["export", str(bases / "trees.model"), "-o", str(folder / "e.onnx")],
        [*export, "-o", str(folder / "e.onnx"), "--check", str(bases / "classes.csv")],
        [*export, "-o", str(folder / "e.onnx"), "--check", "/dev/zero"],
        ["serve"],
        ["serve", tu],
        ["serve", "/nowhere"],
        ["serve", model, "--host", "256.1.1.1"],
        ["serve", model, "--token", "\u00e9"],
        ["report", str(bases / "study"), "-o", "/proc/x"],
    ):
        yield verb(folder, *given)
    for given in (  # sound, and read or refused without a trace
        [*embed, "-o", str(folder / "e.npz"), "--neighbors", "999999"],
        ["explain", model, tu, "--classes", "-o", str(folder / "e.html")],
        ["explain", str(bases / "kernel.model"), tu, "--classes", "-o", str(folder / "e.html")],
        ["explain", str(bases / "trees.model"), tu, "--classes", "-o", str(folder / "e.html")],
        ["explain", str(bases / "molecules.model"), str(bases / "classes.csv"), "-o", str(folder / "e.html")],
        ["embed", str(bases / "trees.model"), tu, "-o", str(folder / "e.csv")],
        ["embed", str(bases / "kernel.model"), tu, "-o", str(folder / "e.parquet")],
        ["embed", model, tu, "-o", str(folder / "e.html"), "--projection", "tsne"],
        ["report", str(bases / "study"), "-o", str(folder / "study.html")],
        ["train", tu, "--config", str(bases / "best.toml"), "-o", str(folder / "best.model")],
    ):
        yield verb(folder, *given, wrong=False)


FINE = {
    *(("graph", text) for text in ("-1", "0")),
    *(("seed", text) for text in ("0",)),
    *(("neighbors", text) for text in ("9" * 30,)),
    *(("target", text) for text in ("x", "-1", "0", "nan", "9" * 30, "[/b]", "\x1b[2J")),
    *(("smiles", text) for text in ("x", "-1", "0", "nan", "9" * 30, "[/b]", "\x1b[2J")),
    *((name, "9" * 30) for name in ("folds", "time-limit")),
    *(("port", "0"), ("window", "0"), ("max-edges", "0")),
    *((name, "9" * 30) for name in ("max-waiting", "max-graphs", "max-nodes", "max-edges", "trials")),
    *((name, "0") for name in ("host",)),
}
"""Options that have a meaning after all, or may have one."""
