"""Reading a TU data set: gcaps (straight from the zip) against PyTorch Geometric's TUDataset (from unpacked files).

    python benchmarks/reading.py [NAME_OR_PATH ...] [--repeats 3] [--json FILE]

Each reading runs in a separate process, which gives its peak memory; imports and unpacking for PyTorch Geometric are
not timed. The best of the repeats counts. Without names, those of NCI1, COLLAB, IMDB-BINARY and MUTAG that are found
are read. NAME is searched for in the folders of GCAPS_DATA.

The last columns are about a saved set: seconds to open it, its structure checked, and the processor time of that in
ratio to reading the bytes of the same files into memory; alternating, medians of 31. "From disk": the system has been
told to forget the files before (posix_fadvise), as when a set is opened for the first time.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

READ = {
    "gcaps": """
import time, resource, sys, gcaps, gcaps.data.io.tu
began = time.perf_counter()
graphs = gcaps.load(sys.argv[1])
seconds = time.perf_counter() - began
""",
    "open": """
import time, resource, sys, gcaps, gcaps.data.storage
began = time.perf_counter()
graphs = gcaps.GraphSet.open(sys.argv[1])
seconds = time.perf_counter() - began
""",
    "ratio": """
import os, sys, time, resource, gcaps, gcaps.data.storage
from pathlib import Path
from statistics import median
graphs = gcaps.GraphSet.open(sys.argv[1])
files = sorted(Path(sys.argv[1]).iterdir())
ways = {"read": lambda: [file.read_bytes() for file in files], "open": lambda: gcaps.GraphSet.open(sys.argv[1])}
def ratio(forget):
    times = {name: [] for name in ways}
    for _ in range(31):
        for name, way in ways.items():
            for file in files if forget else ():
                descriptor = os.open(file, os.O_RDONLY)
                os.fdatasync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(descriptor)
            began = time.thread_time()
            found = way()
            times[name].append(time.thread_time() - began)
            del found
    return median(times["open"]) / median(times["read"])
print(ratio(forget=True), ratio(forget=False))
""",
    "pyg": """
import time, resource, sys, warnings
warnings.simplefilter("ignore")
from torch_geometric.datasets import TUDataset
began = time.perf_counter()
graphs = TUDataset(sys.argv[1], sys.argv[2])
seconds = time.perf_counter() - began
""",
}
REPORT = "\nprint(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, len(graphs))"


def measure(kind: str, *arguments: str) -> tuple[float, float, int]:
    """(seconds, peak MiB, graphs) of one reading in a fresh process."""
    command = [sys.executable, "-c", READ[kind] + REPORT, *arguments]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split()
    return float(out[0]), float(out[1]), int(out[2])


def opening_ratios(saved: Path) -> tuple[float, float]:
    """Processor time of opening a saved set over that of reading its bytes: from disk, and from memory."""
    command = [sys.executable, "-c", READ["ratio"], str(saved)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(out[0]), float(out[1])


def unpacked(source: Path, name: str, root: Path) -> None:
    """Lay the files out as TUDataset expects them: root/NAME/raw/NAME_*.txt."""
    raw = root / name / "raw"
    raw.mkdir(parents=True)
    if source.is_dir():
        for file in source.glob("*.txt"):
            shutil.copy(file, raw / file.name)
        return
    with zipfile.ZipFile(source) as archive:
        for member in archive.namelist():
            if member.endswith(".txt"):
                with archive.open(member) as text, (raw / Path(member).name).open("wb") as out:
                    shutil.copyfileobj(text, out)


def compare(source: Path, repeats: int) -> dict[str, float | str]:
    """All figures of one data set."""
    import gcaps

    with tempfile.TemporaryDirectory() as scratch:
        saved = Path(scratch) / "set.gset"
        graphs = gcaps.load(source)
        name = graphs.name
        graphs.save(saved)
        del graphs
        ours = [measure("gcaps", str(source)) for _ in range(repeats)]
        ratios = opening_ratios(saved)
        opened = [measure("open", str(saved)) for _ in range(repeats)]
        theirs = []
        for repeat in range(repeats):
            root = Path(scratch) / f"pyg{repeat}"
            unpacked(source, name, root)
            theirs.append(measure("pyg", str(root), name))
            shutil.rmtree(root)
    assert ours[0][2] == theirs[0][2] == opened[0][2]
    best = {key: min(s for s, _, _ in runs) for key, runs in (("gcaps", ours), ("pyg", theirs), ("open", opened))}
    peak = {key: min(m for _, m, _ in runs) for key, runs in (("gcaps", ours), ("pyg", theirs))}
    return {
        "data": name,
        "gcaps_seconds": best["gcaps"],
        "pyg_seconds": best["pyg"],
        "times_faster": best["pyg"] / best["gcaps"],
        "gcaps_peak_mib": peak["gcaps"],
        "pyg_peak_mib": peak["pyg"],
        "memory_ratio": peak["gcaps"] / peak["pyg"],
        "open_saved_seconds": best["open"],
        "open_over_read_from_disk": ratios[0],
        "open_over_read_from_memory": ratios[1],
    }


def main() -> None:
    from gcaps.data.catalog import find, looks_like_path

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if options.sources:
        places = [Path(s) if looks_like_path(s) else find(s) for s in options.sources]
    else:
        places = [place for name in ("NCI1", "COLLAB", "IMDB-BINARY", "MUTAG") if (place := find(name))]
    if None in places:
        parser.error("no such data set; set GCAPS_DATA or give a path")
    rows = [compare(place, options.repeats) for place in places if place is not None]
    table = Table("data set", "gcaps s", "PyG s", "times faster", "gcaps MiB", "PyG MiB", "memory", "open saved, s",
                  "open/read, from disk", "from memory")  # fmt: skip
    for row in rows:
        table.add_row(
            str(row["data"]),
            *(f"{row[k]:.3f}" for k in ("gcaps_seconds", "pyg_seconds")),
            f"{row['times_faster']:.1f}",
            *(f"{row[k]:,.0f}" for k in ("gcaps_peak_mib", "pyg_peak_mib")),
            f"{row['memory_ratio']:.2f}",
            f"{row['open_saved_seconds']:.4f}",
            *(f"{row[k]:.2f}" for k in ("open_over_read_from_disk", "open_over_read_from_memory")),
        )
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
