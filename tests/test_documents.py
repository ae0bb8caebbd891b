"""JSON and TOML from outside are read within limits."""

import pytest

from gcaps.documents import MAX_DEPTH, parse_json, read_toml, validated
from gcaps.errors import ConfigError, DataError, GcapsError

REFUSED = {
    "deep": b"[" * 100_000,
    "beyond a double": b"[1e999]",
    "NaN": b'{"a": NaN}',
    "infinite": b"[-Infinity]",
    "a long integer": b"[" + b"9" * 10_000_000 + b"]",
    "an endless string": b'"' + b'\\"' * 3_000_000,
    "half a pair": b'"\\ud800"',
    "no UTF-8": b"\xff",
    "nothing": b"",
}


@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED)
def test_absurd_json_is_one_line(content):
    with pytest.raises(DataError) as caught:
        parse_json(content, "a.json")
    assert str(caught.value).startswith("a.json: ")
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


def test_brackets_in_strings_do_not_count():
    deep = b"[" * MAX_DEPTH + b'"' + b"[" * 500 + b'\\""' + b"]" * MAX_DEPTH
    assert parse_json(deep, "a.json")


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 5000,
        "a" + ".a" * 50_000 + " = 1",
        "a = 9" + "9" * 100,
        "a = nan",
        "a = inf",
        "x = '" + "x" * 300_000 + "'",
        "a = \x00",
    ],
    ids=["deep", "dots", "long integer", "nan", "inf", "large", "NUL"],
)
def test_absurd_toml_is_one_line(text, tmp_path):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_toml(tmp_path / "a.toml")
    assert "\n" not in str(caught.value)


def test_types_are_not_converted():
    assert validated(dict[str, int], {"a": 1}, "page") == {"a": 1}
    with pytest.raises(GcapsError, match=r"page \(a: Input should be a valid integer, not '1'\)"):
        validated(dict[str, int], {"a": "1"}, "page")
