"""Codes of labels that are strings: the same string has the same code in every set."""

from __future__ import annotations

import hashlib

from gcaps.errors import DataError


def label_code(text: str) -> int:
    """Return a stable code of a string, 0 ≤ code < 2⁶³."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


class LabelNames(dict[int, str]):
    """Names of string labels by their codes, collected while a source is read."""

    def code(self, text: str) -> int:
        """Return the code of a string and remember its name.

        Raises:
            DataError: two different strings have the same code, which is as good as impossible by accident.
        """
        code = label_code(text)
        if self.setdefault(code, text) != text:
            raise DataError(f"the labels {self[code]!r} and {text!r} have the same code; rename one of them")
        return code
