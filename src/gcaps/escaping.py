"""Text from outside that people read: on terminals, in pages and in tables that a spreadsheet opens."""

from __future__ import annotations

import re
from typing import Any

_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""Control characters, marks that change the direction of text, characters without width, halves of surrogate pairs."""
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def visible(text: Any, keep: str = "") -> str:
    r"""Return text in which every character that a terminal acts on, or that cannot be seen, is written as ``\x1b``.

    Args:
        text: whatever is shown; it becomes a string.
        keep: characters that stay, such as line breaks.
    """
    return _HIDDEN.sub(lambda found: found[0] if found[0] in keep else _written(found[0]), str(text))


def _written(character: str) -> str:
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character) or (
        f"\\x{ord(character):02x}" if ord(character) < 256 else f"\\u{ord(character):04x}"
    )


def csv_cell(value: Any) -> Any:
    """Return a cell that a spreadsheet does not take for a formula.

    A text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break, after any number of apostrophes, gets an
    apostrophe in front; a number stays. :func:`from_csv_cell` gives the text back.
    """
    if not isinstance(value, str) or not _FORMULA.match(value) or _NUMBER.fullmatch(value):
        return value
    return f"'{value}"


def from_csv_cell(text: str) -> str:
    """Return the text that :func:`csv_cell` was given."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
