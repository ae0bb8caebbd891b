"""Metrics of predictions: which there are for each task, and their values, for each target and as a mean over targets.

All are scikit-learn's, except Spearman's correlation, which is SciPy's, and the enrichment factor. A metric that some
graphs do not define, such as ROC AUC where all of them have the same class, is NaN for a single target and is left out
of means and dictionaries.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from gcaps.data.arrays import Array, Floats
from gcaps.data.targets import Target, Task, missing
from gcaps.errors import ConfigError

Needs = Literal["predictions", "probabilities"]
CLASSES: tuple[Task, ...] = ("classification", "multilabel")
NUMBERS: tuple[Task, ...] = ("regression",)
TOP = 0.01
"""Share of the graphs that the enrichment factor looks at."""


class Metric(NamedTuple):
    """A metric of one target; that of several targets is the mean over them."""

    name: str
    """On the command line and in Python; scikit-learn's where it has one."""
    title: str
    """In tables and charts."""
    tasks: tuple[Task, ...]
    greater_is_better: bool
    needs: Needs
    function: Callable[[Array, Array, int], float]
    """From y [n] (class numbers, or values), the predictions [n] or probabilities [n, C], and C; NaN if undefined."""
    percent: bool = False
    """Whether values are shown in percent."""
    unit: bool = False
    """Whether values are in the target's unit; others are pure numbers."""
    binary: bool = False
    """Whether it is defined for targets with two classes only."""

    @property
    def sign(self) -> int:
        """1 where larger is better, −1 where smaller is."""
        return 1 if self.greater_is_better else -1

    @property
    def heading(self) -> str:
        """The title with the unit in which values are shown."""
        return f"{self.title}, %" if self.percent else self.title

    def better(self, a: float, b: float) -> bool:
        """Whether the value ``a`` is better than ``b``."""
        return self.sign * a > self.sign * b

    def text(self, mean: float, std: float | None = None, digits: int = 2) -> str:
        """Format a value, with its standard deviation if there is one.

        Args:
            mean: the value.
            std: its standard deviation.
            digits: decimals of a percentage; other values have three, or four significant digits.
        """
        if math.isnan(mean):
            return "–"
        factor, decimals = (100, digits) if self.percent else (1, _decimals(mean) if self.unit else 3)
        text = f"{factor * mean:.{decimals}f}".replace("-", "−")
        return text if std is None or math.isnan(std) else f"{text} ± {factor * std:.{decimals}f}"

    def difference(self, value: float, digits: int = 2, like: float | None = None) -> str:
        """Format a difference of two values with its sign, in points where values are percentages.

        ``like`` is a value whose number of decimals is taken. A difference that rounds to zero has no sign.
        """
        if math.isnan(value):
            return "–"
        decimals = digits if self.percent else _decimals(value if like is None else like) if self.unit else 3
        text = f"{(100 if self.percent else 1) * value:+.{decimals}f}".replace("-", "−")
        return text[1:] if float(text[1:]) == 0 else text


def _decimals(value: float) -> int:
    """Decimals of a value in the target's unit: three from 0.1 to 10, four significant digits elsewhere."""
    size = abs(value)
    if size == 0 or not math.isfinite(size):
        return 3
    power = math.floor(math.log10(size))
    return max(3 - max(power, 0), 0) if size >= 0.1 else min(2 - power, 12)


def _accuracy(y: Array, predictions: Array, classes: int) -> float:
    return float((y == predictions).mean())


def _recall(y: Array, predictions: Array, classes: int) -> float:
    from sklearn.metrics import recall_score

    return float(recall_score(y, predictions, labels=np.unique(y), average="macro", zero_division=0))


def _f1(y: Array, predictions: Array, classes: int) -> float:
    from sklearn.metrics import f1_score

    average = "binary" if classes == 2 else "macro"
    return float(f1_score(y, predictions, average=average, pos_label=1, zero_division=0))


def _mcc(y: Array, predictions: Array, classes: int) -> float:
    from sklearn.metrics import matthews_corrcoef

    return float(matthews_corrcoef(y, predictions))


def _roc_auc(y: Array, probabilities: Array, classes: int) -> float:
    from sklearn.metrics import roc_auc_score

    return _one_versus_rest(roc_auc_score, y, probabilities)


def _pr_auc(y: Array, probabilities: Array, classes: int) -> float:
    from sklearn.metrics import average_precision_score

    return _one_versus_rest(average_precision_score, y, probabilities)


def _one_versus_rest(score: Callable[..., Any], y: Array, probabilities: Array) -> float:
    """Of the second of two classes; of more, the mean over the classes that ``y`` contains."""
    chosen = [1] if probabilities.shape[1] == 2 else np.unique(y).tolist()
    return float(np.mean([score(y == code, probabilities[:, code]) for code in chosen]))


def _enrichment(y: Array, probabilities: Array, classes: int) -> float:
    """The share of the second class among the 1 % with its highest probabilities, over its share among all.

    At least one graph is selected; of graphs that tie for the last places, their mean counts.
    """
    if probabilities.shape[1] != 2:
        return math.nan
    active, p = y == 1, probabilities[:, 1]
    selected = -(-len(y) // round(1 / TOP))
    last = np.partition(p, -selected)[-selected]
    sure, tied = p > last, p == last
    found = active[sure].sum() + (selected - sure.sum()) * active[tied].mean()
    return float(found / selected / active.mean())


def _log_loss(y: Array, probabilities: Array, classes: int) -> float:
    from sklearn.metrics import log_loss

    return float(log_loss(y, _normalised(probabilities), labels=np.arange(classes)))


def _brier(y: Array, probabilities: Array, classes: int) -> float:
    truth = np.eye(classes)[y]
    return float(((probabilities - truth) ** 2).sum(axis=1).mean())


def _normalised(probabilities: Array) -> Floats:
    """Rows that add up to one again after rounding, or after a class without training graphs was added."""
    p: Floats = probabilities / np.maximum(probabilities.sum(axis=1, keepdims=True), 1e-300)
    return p


def _rmse(y: Array, predictions: Array, classes: int) -> float:
    from sklearn.metrics import root_mean_squared_error

    return float(root_mean_squared_error(y, predictions))


def _mae(y: Array, predictions: Array, classes: int) -> float:
    from sklearn.metrics import mean_absolute_error

    return float(mean_absolute_error(y, predictions))


def _r2(y: Array, predictions: Array, classes: int) -> float:
    from sklearn.metrics import r2_score

    return float(r2_score(y, predictions)) if len(y) > 1 and np.ptp(y) > 0 else math.nan


def _spearman(y: Array, predictions: Array, classes: int) -> float:
    from scipy.stats import spearmanr

    if len(y) < 2 or np.ptp(y) == 0 or np.ptp(predictions) == 0:
        return math.nan
    return float(spearmanr(y, predictions).statistic)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "accuracy", CLASSES, True, "predictions", _accuracy, percent=True),
        Metric("balanced_accuracy", "balanced accuracy", CLASSES, True, "predictions", _recall, percent=True),
        Metric("f1", "F1", CLASSES, True, "predictions", _f1),
        Metric("mcc", "MCC", CLASSES, True, "predictions", _mcc),
        Metric("roc_auc", "ROC AUC", CLASSES, True, "probabilities", _roc_auc),
        Metric("pr_auc", "PR AUC", CLASSES, True, "probabilities", _pr_auc),
        Metric("enrichment", "EF 1 %", CLASSES, True, "probabilities", _enrichment, binary=True),
        Metric("log_loss", "log-loss", CLASSES, False, "probabilities", _log_loss),
        Metric("brier", "Brier score", CLASSES, False, "probabilities", _brier),
        Metric("rmse", "RMSE", NUMBERS, False, "predictions", _rmse, unit=True),
        Metric("mae", "MAE", NUMBERS, False, "predictions", _mae, unit=True),
        Metric("r2", "R²", NUMBERS, True, "predictions", _r2),
        Metric("spearman", "Spearman's ρ", NUMBERS, True, "predictions", _spearman),
    )
}
"""Every metric by name, in the order of tables.

F1 is that of the second class where there are two, and the mean over the classes (macro) otherwise; ROC AUC and PR AUC
(average precision) likewise, one class versus the rest. The enrichment factor is that of the second of two classes: 1
for a random order, at most one over the share of the class. The Brier score is Brier's sum over all classes, 0 to 2.
"""
ALIASES = {
    "matthews_corrcoef": "mcc",
    "average_precision": "pr_auc",
    **dict.fromkeys(("auc", "auroc"), "roc_auc"),
    **dict.fromkeys(("ef", "ef1", "enrichment_factor"), "enrichment"),
}
"""Other names that are understood: scikit-learn's, and common short forms."""
HEADLINE: dict[Task, str] = {"classification": "accuracy", "multilabel": "roc_auc", "regression": "rmse"}
"""The metric by which methods are compared, unless another is chosen."""
TWO_CLASSES = ("balanced_accuracy", "f1", "mcc", "roc_auc", "pr_auc", "enrichment")
"""Metrics that are undefined where all graphs have the same class."""


def metrics_for(task: Task) -> list[Metric]:
    """Return the metrics of a task."""
    return [metric for metric in METRICS.values() if task in metric.tasks]


def metric_for(task: Task, name: str | None = None, classes: int = 2) -> Metric:
    """Return the metric called ``name``, by default the task's headline metric.

    Args:
        task: the task.
        name: of the metric, or one of :data:`ALIASES`.
        classes: number of classes, where the task has them.

    Raises:
        ConfigError: there is no such metric, or it does not apply to the task or to so many classes.
    """
    if name is None:
        return METRICS[HEADLINE[task]]
    plain = name.strip().lower().replace("-", "_").removeprefix("neg_")
    metric = METRICS.get(ALIASES.get(plain, plain))
    known = ", ".join(one.name for one in metrics_for(task))
    if metric is None:
        raise ConfigError(f"there is no metric {name!r}; for {task} there are {known}")
    if task not in metric.tasks:
        raise ConfigError(f"{metric.name} is no metric of {task}; there are {known}")
    if metric.binary and classes > 2:
        raise ConfigError(f"{metric.name} is a metric of two classes, not of {classes}; pr_auc is defined for more")
    return metric


def compute_metrics(target: Target, y: Array, scores: Floats, predictions: Array | None = None) -> dict[str, float]:
    """Return every metric of the target's task; of several targets, the mean over those for which it is defined.

    Args:
        target: what the model predicts.
        y: [n] or [n, T] true values as in the source; missing ones do not count, a class that the model does not know
            counts as wrong.
        scores: [n, C] class probabilities, [n, T] probabilities of the second class, or [n, T] values.
        predictions: [n] or [n, T] predictions as ``predict`` returns them, where they are not those of ``scores``.
    """
    return mean_over_targets(target_metrics(target, y, scores, predictions))


def target_metrics(
    target: Target, y: Array, scores: Floats, predictions: Array | None = None
) -> list[dict[str, float]]:
    """Return the metrics of each target, with the arguments of :func:`compute_metrics`.

    Returns:
        For each target ``known``, its number of known values, and its metrics; those that are undefined are left out.
    """
    y, scores = np.asarray(y), np.asarray(scores, dtype=np.float64)
    answers = target.decode(scores) if predictions is None else np.asarray(predictions)
    if target.task == "regression":
        table = y.astype(np.float64)
        return encoded_metrics("regression", table.reshape(len(y), -1), answers.reshape(len(y), -1), None)
    if target.task == "multilabel":
        return encoded_metrics("multilabel", target.encode(y), target.encode(answers), scores)
    known = ~missing(y.reshape(len(y)))
    codes, chosen = target.encode(y)[known], target.encode(answers)[known]
    if (codes < 0).any():  # classes that the model does not know count as one more class without probability
        codes = np.where(codes < 0, scores.shape[1], codes)
        scores = np.hstack([scores, np.zeros((len(scores), 1))])
    return encoded_metrics("classification", codes, chosen, scores[known])


def encoded_metrics(
    task: Task,
    y: Array,
    predictions: Array,
    scores: Array | None,
    names: Sequence[str] | None = None,
    classes: int | None = None,
) -> list[dict[str, float]]:
    """Return the metrics of each target from encoded values.

    Args:
        task: the task.
        y: [n] class numbers; or [n, T] zeros and ones, or values, NaN where missing.
        predictions: likewise, without missing values.
        scores: [n, C] class probabilities, or [n, T] probabilities of the second class; None where there are none.
        names: of the metrics to compute; by default all of the task.
        classes: C, by default that of ``scores`` or as many as occur.

    Returns:
        As :func:`target_metrics`.
    """
    chosen = [metric for metric in metrics_for(task) if names is None or metric.name in names]
    if task == "classification":
        count = classes or (int(max(y.max(), predictions.max())) + 1 if scores is None else scores.shape[1])
        return [_single(chosen, y.astype(np.int64), predictions.astype(np.int64), scores, count)]
    found = []
    for t in range(y.shape[1]):
        known = ~np.isnan(y[:, t])
        truth, answers = y[known, t], predictions[known, t]
        if task == "regression":
            found.append(_single(chosen, truth, answers.astype(np.float64), None, 0))
        else:
            p = None if scores is None else np.stack([1 - scores[known, t], scores[known, t]], axis=1)
            found.append(_single(chosen, truth.astype(np.int64), answers.astype(np.int64), p, 2))
    return found


def _single(
    chosen: Sequence[Metric], y: Array, predictions: Array, probabilities: Array | None, classes: int
) -> dict[str, float]:
    """Return ``known`` and the metrics of one target that are defined."""
    found: dict[str, float] = {"known": len(y)}
    one_class = classes > 0 and len(np.unique(y)) < 2
    for metric in chosen:
        given = predictions if metric.needs == "predictions" else probabilities
        if given is None or not len(y) or (one_class and metric.name in TWO_CLASSES):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about classes that are not predicted, which zero_division settles
            value = metric.function(y, given, classes)
        if math.isfinite(value):
            found[metric.name] = value
    return found


def mean_over_targets(targets: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the mean of each metric over the targets for which it is defined; ``known`` is left out."""
    names = [name for name in METRICS if any(name in target for target in targets)]
    return {name: float(np.mean([target[name] for target in targets if name in target])) for name in names}
