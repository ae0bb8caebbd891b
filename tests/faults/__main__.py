"""``make faults``: broken inputs, mutants and trials of processes; prints one table, and fails where it is not zeros.

python -m tests.faults [--short] [--jobs N] [--mutants N] [--only inputs,mutants,signals,…] [--to FOLDER]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.faults.bases import make_bases
from tests.faults.corpus import FOLDERS, PAGES, SINGLE, corpus
from tests.faults.runner import Request, run
from tests.faults.trials import TRIALS, Row

BAD = ("traceback", "foreign", "hang", "crash", "accepted though wrong", "partial outputs")
SHARE = 50
"""Mutants of one request."""


def main() -> None:
    """Run what is asked for, print the table, and exit with 1 unless nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="a part of everything, in a few minutes")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--mutants", type=int, help="default 100,000, or 2,000 in the short form")
    parser.add_argument("--only", default="", help="inputs, mutants, or names of trials")
    parser.add_argument("--to", type=Path, help="folder for the inputs, which is emptied first")
    given = parser.parse_args()
    only = {name for name in given.only.split(",") if name}
    folder = given.to or Path(tempfile.mkdtemp(prefix="faults-"))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make_bases(folder / "bases")
    rows: list[Row] = []
    if not only or "inputs" in only:
        rows += of_requests("inputs", list(corpus(folder, given.short)), folder, given.jobs)
    if not only or "mutants" in only:
        count = given.mutants or (2_000 if given.short else 100_000)
        rows += of_requests("mutants", mutants(folder / "bases", count), folder, given.jobs)
    for trial in TRIALS:
        if not only or trial.__name__ in only:
            rows.append(trial(folder, given.short))
            print(f"  {rows[-1].trial}: {rows[-1].outcome}", file=sys.stderr, flush=True)
    print_table(rows)
    if given.to is None:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(any(row.failures for row in rows))


def mutants(bases: Path, count: int) -> list[Request]:
    """Return requests for so many mutants, the same number of every file of every base."""
    files = []
    for name in (*SINGLE, *PAGES, *FOLDERS):
        base = bases / name
        if base.is_dir():
            found = sorted(str(f.relative_to(base)) for f in base.rglob("*") if f.is_file())
            files += [(base, file) for file in found if name != "run" or "data" not in Path(file).parts]
        elif base.exists():
            files.append((base, ""))
    each = -(-count // len(files))
    return [
        {"do": "mutants", "name": f"{base.name}/{file}", "base": str(base), "file": file, "first": first,
         "last": min(first + SHARE, each), "wrong": False}
        for first in range(0, each, SHARE)
        for base, file in files
    ]  # fmt: skip


def of_requests(title: str, requests: list[Request], folder: Path, jobs: int) -> list[Row]:
    """Run requests and count what came of them; what is wrong is printed as it is found."""
    counts: Counter[str] = Counter()
    total, memory, slowest, began = 0, (0.0, ""), (0.0, ""), time.monotonic()
    for request, outcome in run(requests, folder, jobs):
        kind = outcome["kind"]
        if kind == "tally":
            counts.update(outcome["tally"])
            total += sum(outcome["tally"].values())
        else:
            if kind == "accepted" and request["wrong"]:
                kind = "accepted though wrong"
            counts[kind] += 1
            total += 1
            if outcome.get("partial"):
                counts["partial outputs"] += 1
            if kind in BAD or outcome.get("partial"):
                where = f"{request['name']} {outcome.get('number', '')}".strip()
                print(
                    f"  {kind}: {where}: {outcome['text'][:300]} {outcome.get('partial') or ''}",
                    file=sys.stderr,
                    flush=True,
                )
        memory, slowest = (
            max(memory, (outcome["mib"], request["name"])),
            max(slowest, (outcome["seconds"], request["name"])),
        )
    bad = {kind: counts[kind] for kind in BAD}
    told = f"{counts['refused']:,} refused, {counts['accepted']:,} read, {counts['sound']:,} as they were"
    return [
        Row(title, f"{total:,} in {time.monotonic() - began:.0f} s: {told}", 0),
        *(Row(f"{title}: {kind}", f"{number:,}", number) for kind, number in bad.items()),
        Row(f"{title}: most memory", f"{memory[0]:,.0f} MiB ({memory[1]})", memory[0] > 1024),
        Row(f"{title}: longest", f"{slowest[0]:.1f} s ({slowest[1]})", slowest[0] > 10),
    ]


def print_table(rows: list[Row]) -> None:
    """Print the table."""
    width = max(len(row.trial) for row in rows)
    for row in rows:
        print(f"| {row.trial:<{width}} | {row.outcome} |{' FAILED' if row.failures else ''}")


if __name__ == "__main__":
    main()
