"""``make faults``: broken inputs, mutants and trials of processes; prints one table, and fails where it is not zeros.

python -m tests.faults [--short] [--jobs N] [--mutants N] [--only inputs,mutants,signals,…] [--to FOLDER]
                       [--state FILE [--docs]]

With ``--state`` everything that is done is appended to a file of JSON lines, and what it holds already is counted and
not done again: the trials can be run in parts, and a killed run goes on. ``--docs`` writes the table of all parts into
the guide.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.faults.bases import make_bases
from tests.faults.corpus import BODIES, FOLDERS, PAGES, SINGLE, corpus
from tests.faults.processes import import_verbs
from tests.faults.runner import Outcome, Request, run
from tests.faults.trials import TRIALS, Row

BAD = ("traceback", "foreign", "hang", "crash", "accepted though wrong", "partial outputs")
SHARE = 50
"""Mutants of one request."""
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "reliability.md"
BEGIN, END = "<!-- outcome of make faults -->", "<!-- end of the table -->"


def main() -> None:
    """Run what is asked for, print the table, and exit with 1 unless nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="a part of everything, in a few minutes")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--mutants", type=int, help="default 100,000, or 2,000 in the short form")
    parser.add_argument("--only", default="", help="inputs, mutants, names of trials, or table: nothing more")
    parser.add_argument("--to", type=Path, help="folder for the inputs, which is emptied first")
    parser.add_argument("--state", type=Path, help="file of what is done, which is not done again")
    parser.add_argument("--docs", action="store_true", help="write the table of everything in --state into the guide")
    given = parser.parse_args()
    state = State(given.state)
    only = {name for name in given.only.split(",") if name}
    folder = given.to or Path(tempfile.mkdtemp(prefix="faults-"))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if only != {"table"}:
        make_bases(folder / "bases")
    if not only or "inputs" in only:
        of_requests("inputs", list(corpus(folder, given.short)), folder, given.jobs, state)
    if not only or "mutants" in only:
        count = given.mutants or (2_000 if given.short else 100_000)
        of_requests("mutants", mutants(folder / "bases", count), folder, given.jobs, state)
    import_verbs()

    for trial in TRIALS:
        if (not only or trial.__name__ in only) and trial.__name__ not in state.rows:
            state.add({"trial": trial.__name__, "row": trial(folder, given.short)})
            print(f"  {state.rows[trial.__name__].outcome}", file=sys.stderr, flush=True)
    rows = [*table_of("inputs", state), *table_of("mutants", state), *state.rows.values()]
    print_table(rows)
    if given.docs:
        write_guide(rows)
    if given.to is None:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(any(row.failures for row in rows))


class State:
    """What is done: outcomes of requests and rows of trials, in a file where one is given."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.outcomes: dict[str, list[tuple[Request, Outcome]]] = {"inputs": [], "mutants": []}
        self.rows: dict[str, Row] = {}
        for line in file.read_text().splitlines() if file is not None and file.exists() else ():
            self._count(json.loads(line))

    def done(self, title: str) -> set[tuple[str, int]]:
        """Return the requests that are done, by name and first mutant."""
        return {(request["name"], request.get("first", 0)) for request, _ in self.outcomes[title]}

    def add(self, entry: dict[str, Any]) -> None:
        """Count an outcome or a row, and keep it."""
        self._count(entry)
        if self.file is not None:
            with self.file.open("a") as stream:
                stream.write(json.dumps(entry) + "\n")

    def _count(self, entry: dict[str, Any]) -> None:
        if "trial" in entry:
            self.rows[entry["trial"]] = Row(*entry["row"])
        else:
            self.outcomes[entry["title"]].append((entry["request"], entry["outcome"]))


def mutants(bases: Path, count: int) -> list[Request]:
    """Return requests for so many mutants, the same number of every file of every base."""
    files = []
    for name in (*SINGLE, *PAGES, *BODIES, *FOLDERS):
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


def of_requests(title: str, requests: list[Request], folder: Path, jobs: int, state: State) -> None:
    """Run the requests that are not done; what is wrong is printed as it is found."""
    done = state.done(title)
    left = [request for request in requests if (request["name"], request.get("first", 0)) not in done]
    for request, outcome in run(left, folder, jobs):
        state.add({"title": title, "request": request, "outcome": outcome})
        bad = kind_of(request, outcome)
        if bad in BAD or outcome.get("partial"):
            where = f"{request['name']} {outcome.get('number', '')}".strip()
            text = f"  {bad}: {where}: {outcome['text'][:300]} {outcome.get('partial') or ''}"
            print(text, file=sys.stderr, flush=True)


def kind_of(request: Request, outcome: Outcome) -> str:
    """Return the row in which an outcome counts."""
    wrong = outcome["kind"] == "accepted" and request["wrong"]
    return "accepted though wrong" if wrong else str(outcome["kind"])


def table_of(title: str, state: State) -> list[Row]:
    """Return the rows of the inputs or of the mutants."""
    counts: Counter[str] = Counter()
    total, memory, slowest = 0, (0.0, ""), (0.0, "")
    for request, outcome in state.outcomes[title]:
        found = Counter(outcome["tally"]) if outcome["kind"] == "tally" else Counter([kind_of(request, outcome)])
        counts += found
        total += sum(found.values())
        counts["partial outputs"] += bool(outcome.get("partial"))
        memory = max(memory, (outcome["mib"], request["name"]))
        slowest = max(slowest, (outcome["seconds"], request["name"]))
    if not total:
        return []
    told = f"{counts['refused']:,} refused, {counts['accepted']:,} read, {counts['sound']:,} as they were"
    return [
        Row(title, f"{total:,}: {told}", 0),
        *(Row(f"{title}: {kind}", f"{counts[kind]:,}", counts[kind]) for kind in BAD),
        Row(f"{title}: most memory", f"{memory[0]:,.0f} MiB ({memory[1]})", memory[0] > 1024),
        Row(f"{title}: longest", f"{slowest[0]:.1f} s of processor time ({slowest[1]})", slowest[0] > 10),
    ]


def write_guide(rows: list[Row]) -> None:
    """Write the table between the marks of the guide."""
    text = GUIDE.read_text()
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    lines = [f"| {row.trial} | {visible_in_markdown(row.outcome)} |" for row in rows]
    table = "\n".join(["| trial | outcome |", "|---|---|", *lines])
    GUIDE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}")


def visible_in_markdown(text: str) -> str:
    """Return text that a cell of a table shows as it is."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def print_table(rows: list[Row]) -> None:
    """Print the table."""
    width = max(len(row.trial) for row in rows)
    for row in rows:
        print(f"| {row.trial:<{width}} | {row.outcome} |{' FAILED' if row.failures else ''}")


if __name__ == "__main__":
    main()
