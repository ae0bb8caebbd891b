import threading

import pytest

from gcaps.batching import prefetch


def test_results_come_in_order():
    assert list(prefetch(lambda n: n * n, range(50))) == [n * n for n in range(50)]
    assert list(prefetch(str, [])) == []


def test_an_exception_comes_up_where_its_result_would_have():
    def prepare(n):
        if n == 3:
            raise KeyError("three")
        return n

    results = prefetch(prepare, range(6))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyError, match="three"):
        next(results)


def test_leaving_early_ends_the_thread():
    before = threading.active_count()
    results = prefetch(lambda n: n, iter(range(10**9)))
    assert next(results) == 0
    results.close()
    assert threading.active_count() == before
