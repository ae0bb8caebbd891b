"""Importance of the searched settings by functional ANOVA of the trials (Hutter, Hoos and Leyton-Brown, 2014)."""

from __future__ import annotations

from collections.abc import Sequence

from gcaps.config.spaces import Space
from gcaps.tuning.search import Trial, distribution, require_optuna

LEAST = 8
"""Least number of finished trials."""


def importances(space: Space, trials: Sequence[Trial]) -> dict[str, float]:
    """Return the share of the variance of the trials' values that each setting explains alone, the largest first.

    A forest is fitted to the values of the finished trials, and the variance of its predictions is decomposed. Empty
    where there are fewer than :data:`LEAST` such trials, or all have the same value.
    """
    optuna = require_optuna()
    done = [trial for trial in trials if trial.state == "done" and trial.value is not None]
    study = optuna.create_study()
    kinds = {name: distribution(optuna, one) for name, one in space.items()}
    for trial in done:
        try:
            params = {name: one.label_of(trial.changes[name]) for name, one in space.items()}
        except ValueError:  # a default that lies outside the space
            continue
        study.add_trial(optuna.trial.create_trial(params=params, distributions=kinds, value=trial.value))
    values = {trial.value for trial in study.get_trials(deepcopy=False)}
    if len(study.get_trials(deepcopy=False)) < LEAST or len(values) < 2:
        return {}
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    found = optuna.importance.get_param_importances(study, evaluator=evaluator, normalize=True)
    return {name: float(share) for name, share in sorted(found.items(), key=lambda one: -one[1])}
