"""Saved sets compared as what they are: folders of files."""

from pathlib import Path


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, to the last byte."""
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}
