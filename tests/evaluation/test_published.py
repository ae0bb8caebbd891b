from __future__ import annotations

import pytest

from gcaps.evaluation.published import RULES, SOURCES, best_known, published, published_graphs


def test_the_papers_own_row_comes_first_as_shares_of_one() -> None:
    first = published("PROTEINS")[0]
    assert (first.source, first.method, first.protocol, first.status) == ("paper", "GCAPS-CNN", "paper", None)
    assert first.mean == pytest.approx(0.7640)
    assert first.std == pytest.approx(0.0417)


def test_all_sources_are_there() -> None:
    rows = published("NCI1")
    assert {row.source for row in rows} == {"paper", "fair", "honest"}
    assert [row.mean for row in rows if (row.source, row.method) == ("fair", "GIN")] == [pytest.approx(0.80)]


def test_a_mean_without_deviation_has_none() -> None:
    (ecc,) = [row for row in published("NCI109") if row.method == "ECC"]
    assert ecc.mean == pytest.approx(0.7503)
    assert ecc.std is None


def test_a_cell_without_a_number_keeps_the_sources_words() -> None:
    (walk,) = [row for row in published("DD") if row.method == "RW"]
    assert (walk.mean, walk.std, walk.status) == (None, None, "> 1 day")


def test_a_set_that_nobody_reported_has_no_rows() -> None:
    assert published("no such set") == []
    assert published_graphs("no such set") is None


@pytest.mark.parametrize("key", ["protocol", "status"])
def test_keys_of_the_file_are_no_data_sets(key: str) -> None:
    assert published(key) == []


def test_ptc_is_found_under_its_benchmark_name() -> None:
    assert published("PTC_MR") == published("PTC") != []
    assert published_graphs("PTC_MR") == 344


def test_enzymes_with_attributes_is_a_set_of_its_own() -> None:
    assert {row.source for row in published("ENZYMES")} == {"paper", "honest"}
    assert {row.source for row in published("ENZYMES_attributes")} == {"fair", "honest"}


@pytest.mark.parametrize("name", ["PTC", "COLLAB", "IMDB-BINARY", "REDDIT-MULTI-5K", "ENZYMES"])
def test_every_row_is_complete_and_in_range(name: str) -> None:
    rows = published(name)
    assert rows
    for row in rows:
        assert row.source in SOURCES
        assert row.protocol in RULES
        assert (row.mean is None) == (row.status is not None)
        assert row.mean is None or 0 < row.mean < 1


def test_the_best_known_number_is_the_largest_honest_one() -> None:
    assert best_known("PTC_MR") == best_known("PTC")
    for name, method, value in (("PTC", "WWL", 0.6631), ("REDDIT-MULTI-5K", "GIN", 0.561), ("NCI109", "WL-OA", 0.863)):
        found = best_known(name)
        assert found is not None
        assert (found.method, found.mean) == (method, pytest.approx(value))
        assert all(row.mean <= found.mean for row in published(name) if row.source != "paper" and row.mean is not None)
    assert best_known("no such set") is None


def test_honest_numbers_say_how_they_were_made() -> None:
    rows = [row for name in ("MUTAG", "NCI1", "DD", "IMDB-MULTI") for row in published(name) if row.source == "honest"]
    assert rows
    assert all(row.note for row in rows)
