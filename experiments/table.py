"""Recorded results as a Markdown table, beside what was published.

    python experiments/table.py results/accuracy

Every row comes from one result file; the command inside the file makes it again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cells import markdown, percent

from gcaps.evaluation import Result
from gcaps.evaluation.published import published


def row(result: Result) -> list[str]:
    name = str(result.data["name"])
    ours = [percent(result.protocols[rule].mean, result.protocols[rule].std) for rule in ("honest", "gin", "best")]
    rows = [entry for entry in published(name) if entry.mean is not None]
    paper = next((percent(e.mean, e.std) for e in rows if e.source == "paper" and e.method == "GCAPS-CNN"), "–")
    kernel = max((e for e in rows if e.protocol == "svm"), key=lambda e: e.mean or 0, default=None)
    fair = max((e for e in rows if e.source == "fair"), key=lambda e: e.mean or 0, default=None)
    others = [f"{percent(e.mean, e.std)} ({e.method})" if e is not None else "–" for e in (kernel, fair)]
    return [name, f"**{ours[0]}**", *ours[1:], paper, *others]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    results = [Result.read(file) for file in sorted(parser.parse_args().folder.glob("*.json"))]
    head = ["data set", "honest", "`gin` rule", "`best` rule", "paper's GCAPS-CNN", "paper's best kernel", "best fair"]
    print(markdown(head, [row(result) for result in results]))


if __name__ == "__main__":
    main()
