"""Structure-data files (SDF) as tables: one molecule a record, its properties as columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gcaps.data.io.tables import TextTable
from gcaps.data.molecules.parsing import Form

END = "$$$$"
MAX_NAME = 2000
"""Most characters that are read of a line with the name of a property."""
_PROPERTY = re.compile(r">.*?<(.+)>")


class SDFTable(TextTable):
    """Records of an SDF; columns are the structure, its title line ``_Name``, and every property that occurs.

    Args:
        path: file, possibly gzipped.
    """

    form: Form = "molblock"

    def read_header(self, sample: str) -> None:
        """Collect the names of the properties of all records."""
        names: dict[str, None] = {}
        with self.text() as text:
            for line in text:
                if line.startswith(">") and (found := _PROPERTY.match(line[:MAX_NAME])):
                    names[found[1]] = None
        self.names = ["structure", "_Name", *(name for name in names if name not in ("structure", "_Name"))]

    def rows(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield the first line, counted from 1, and the cells of each record."""
        with self.text() as text:
            record: list[str] = []
            first = 1
            for number, line in enumerate(text, start=1):
                if line.startswith(END):
                    yield first, self._cells(record)
                    record, first = [], number + 1
                else:
                    record.append(line.rstrip("\r\n"))
            if any(line.strip() for line in record):
                yield first, self._cells(record)

    def _cells(self, record: list[str]) -> list[Any]:
        end = next((i + 1 for i, line in enumerate(record) if line.startswith("M  END")), len(record))
        values: dict[str, str] = {"structure": "\n".join(record[:end]), "_Name": record[0] if record else ""}
        name: str | None = None
        lines: list[str] = []
        for line in [*record[end:], ""]:
            if name is not None and not line.strip():  # a blank line ends a property
                values[name], name, lines = "\n".join(lines).strip(), None, []
            elif name is not None:
                lines.append(line)
            elif line.startswith(">") and (found := _PROPERTY.match(line[:MAX_NAME])):
                name = found[1]
        return [values.get(name, "") for name in self.names]
