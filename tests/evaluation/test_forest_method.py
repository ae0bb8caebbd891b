import numpy as np

import gcaps


def test_fgsd_with_a_forest_beats_the_majority_and_does_not_depend_on_jobs():
    graphs = gcaps.load("families")
    few = graphs.subset(np.arange(0, len(graphs), 2))
    found = [gcaps.evaluate(few, "fgsd", folds=3, jobs=jobs) for jobs in (1, 2)]
    assert [f.predictions for f in found[0].folds] == [f.predictions for f in found[1].folds]
    assert found[0].accuracy > 1.5 * np.bincount(few.targets).max() / len(few)
    assert list(found[0].protocols) == ["honest"]
    assert found[0].config["trees"] == 500
