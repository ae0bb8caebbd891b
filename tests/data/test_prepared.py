from gcaps.data import PreparedSet, make_families


def test_results_are_computed_on_first_use_and_kept():
    calls = []
    prepared = PreparedSet(make_families(4))

    def compute() -> str:
        calls.append(1)
        return "result"

    assert [prepared.get(("gram", 3), compute) for _ in range(3)] == ["result"] * 3
    assert len(calls) == 1
    assert prepared.get(("gram", 4), lambda: None) is None
    assert prepared.get(("gram", 4), compute) is None, "a result may be None"
    assert PreparedSet(prepared.graphs).get(("gram", 3), lambda: "another") == "another"


def test_results_of_other_processes_can_be_stored():
    prepared = PreparedSet(make_families(4))
    prepared.set("colors", [1, 2])
    assert prepared.get("colors", list) == [1, 2]
    assert PreparedSet.of(prepared) is prepared
    assert PreparedSet.of(prepared.graphs).graphs is prepared.graphs
