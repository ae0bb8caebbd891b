"""The tables of the documentation, from recorded results: nothing in them is typed by hand.

    python experiments/tables.py [--check]

Writes what stands between `<!-- table NAME -->` and `<!-- end -->` in README.md and docs/*.md anew; with `--check` it
writes nothing and names the tables that differ from the results.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path

import ablation
import accuracy
import kernels
import networks
import tuning

TABLES: dict[str, Callable[[], str]] = {
    "accuracy": accuracy.table,
    "accuracy in short": accuracy.short,
    "rules": accuracy.rules,
    "divisions": accuracy.divisions,
    "attributes": accuracy.attributes,
    "fair comparison": accuracy.fair,
    "tuning": tuning.table,
    "kernels": kernels.table,
    "networks": networks.table,
    "fair folds": lambda: networks.table(folder=networks.RESULTS / "fair", source="fair"),
    "complete folds": networks.times,
    "ablation": ablation.table,
}
MARKED = re.compile(r"<!-- table (?P<name>[^>]+) -->\n(?P<text>(?:\|.*\n)*)<!-- end -->")


def pages() -> list[Path]:
    return [Path("README.md"), *sorted(Path("docs").glob("*.md"))]


def renewed(page: str) -> tuple[str, list[str]]:
    """A page with its tables as the results have them, and the names of those that were different."""
    different: list[str] = []

    def write(found: re.Match[str]) -> str:
        text = TABLES[found["name"]]() + "\n"
        if text != found["text"]:
            different.append(found["name"])
        return f"<!-- table {found['name']} -->\n{text}<!-- end -->"

    return MARKED.sub(write, page), different


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a table differs")
    check = parser.parse_args().check
    stale = False
    for page in pages():
        text, different = renewed(page.read_text(encoding="utf-8"))
        for name in different:
            print(f"{page}: {name} {'differs from the results' if check else 'written anew'}")
        stale |= bool(different)
        if different and not check:
            page.write_text(text, encoding="utf-8")
    raise SystemExit(int(check and stale))


if __name__ == "__main__":
    main()
