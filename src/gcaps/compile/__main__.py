"""``python -m gcaps.compile``: compile the CPU kernels after an installation."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from tempfile import TemporaryDirectory
from time import perf_counter

from gcaps.compile import PARTS, compile_kernels, compiling_bar, folder
from gcaps.terminal import Terminal


def main() -> None:
    """Compile, or with ``--record`` list anew what is to be compiled."""
    parser = argparse.ArgumentParser("python -m gcaps.compile", description="Compile the CPU kernels ahead.")
    parser.add_argument("--only", choices=PARTS, action="append", help="only what this needs; by default everything")
    parser.add_argument("--record", action="store_true", help="list anew which kernels there are (for developers)")
    given = parser.parse_args()
    if given.record:
        with TemporaryDirectory() as empty:
            environment = {**os.environ, "NUMBA_CACHE_DIR": empty}
            sys.exit(subprocess.call([sys.executable, "-m", "gcaps.compile.record"], env=environment))
    console, begin = Terminal(stderr=True), perf_counter()
    with compiling_bar("compiling kernels", console) as report:
        count = compile_kernels(given.only or PARTS, report)
    console.print(f"compiled {count} kernels in {perf_counter() - begin:.0f} s; they are in {folder()}")


if __name__ == "__main__":
    main()
